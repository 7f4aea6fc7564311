"""Installations that lack something: the folder of plug-ins, or extension modules."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.binary_upgrade import end, upgrade
from tests.support.certificate import certificate
from tests.support.forked_command import run_command
from tests.support.nobody import link
from tests.testkit.server import ROOT, Server, run

APPLICATION = """
VERSION = "{}"

def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [VERSION.encode()]
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of a program that imports the copy."""
    folder = tmp_path_factory.mktemp("core")
    # With what is compiled: the paths within are not compared, times of files are.
    left_out = shutil.ignore_patterns("plugins")
    shutil.copytree(ROOT / "poorhttp", folder / "poorhttp", ignore=left_out, copy_function=link)
    return {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def write(folder: Path, version: str) -> None:
    (folder / "alone.py").write_text(APPLICATION.format(version))


@pytest.mark.each_mode
def test_the_core_serves(mode: str, core: Mapping[str, str], tmp_path: Path) -> None:
    """Also after a reload and a binary upgrade, until it is stopped."""
    write(tmp_path, "first")
    pidfile = tmp_path / "pid"
    with Server("alone", mode, "--pidfile", str(pidfile), env=core, cwd=tmp_path) as server:
        assert server.get("/").body == b"first"
        write(tmp_path, "second")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded")
        assert server.get("/").body == b"second"
        write(tmp_path, "third")
        new = upgrade(server, pidfile)
        assert server.get("/").body == b"third"
        server.leave()
        end(server, new)


def test_a_request_for_another_protocol_is_as_any(core: Mapping[str, str], tmp_path: Path) -> None:
    """The log says once what is missing."""
    write(tmp_path, "first")
    with Server("alone", "threading", env=core, cwd=tmp_path) as server:
        for _ in range(2):
            assert server.get("/", "Connection: upgrade", "Upgrade: websocket").body == b"first"
        server.wait_log("(WebSocket): plug-in websocket (poorhttp.worker_hooks) is left out")
        assert server.log().count("(WebSocket)") == 1


@pytest.mark.parametrize("options", [(), ("--supervisor", "off")], ids=["supervised", "alone"])
def test_a_manager_that_waits_for_a_notice_is_answered_in_a_sentence(
    options: tuple[str, ...], core: Mapping[str, str], tmp_path: Path
) -> None:
    """A unit with Type=notify would wait for it in vain."""
    write(tmp_path, "first")
    words = ("serve", "alone", "--bind", "127.0.0.1:0", *options)
    env = {**core, "NOTIFY_SOCKET": str(tmp_path / "notify")}
    done = run_command(*words, env=env, cwd=tmp_path, shared=True)
    assert done.returncode == 3
    assert "plug-in systemd (poorhttp." in done.stderr
    assert "is left out of this installation" in done.stderr


def test_the_core_checks_and_helps(core: Mapping[str, str], tmp_path: Path) -> None:
    write(tmp_path, "first")
    for words, said in (
        ("check alone --bind 127.0.0.1:0", "would serve alone on http://127.0.0.1:0"),
        ("check alone --host 127.0.0.1 --port 0 --workers 2", "2 workers"),
        ("--help", "serve"),
        ("serve --help-all", "serve"),
    ):
        done = run_command(*words.split(), env=core, cwd=tmp_path, shared=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert said in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        *(((name,), f"plug-in {name}") for name in ("dev", "ctl", "top", "init", "plugins")),
        *(((name, "x"), f"plug-in {name}") for name in ("compile", "man", "migrate")),
        *(
            (("serve", f"{scheme}:."), f"{scheme}:. cannot be loaded: plug-in {scheme}")
            for scheme in ("dispatch", "pages", "cgi", "paste")
        ),
        (("serve", "alone", "--mount", "/x=pages:."), "plug-in pages"),
        (("serve", "alone", "--admin", "127.0.0.1:0"), 'unknown option "--admin"'),
        (("serve", "alone", "--preload"), 'unknown option "--preload"'),
        (("serve", "alone", "--refork-after", "9"), 'unknown option "--refork-after"'),
        (("serve", "alone", "--log-config", "x.ini"), 'unknown option "--log-config"'),
        (("serve", "alone", "--debug"), 'unknown option "--debug"'),
        (("serve", "--django"), 'unknown option "--django"'),
        (("serve", "alone", "--access-log", "terminal"), "plug-in dev"),
        (
            ("serve", "alone", "--bind", "https://127.0.0.1:0"),
            "--bind: https://127.0.0.1:0: plug-in https (poorhttp.transports) is left out",
        ),
        (("check", "alone", "--bind", "https+unix:sock"), "plug-in https (poorhttp.transports)"),
        (("serve", "alone", "--tls-certificate", "x"), 'unknown option "--tls-certificate"'),
        (("serve", "alone", "--certfile", "x"), 'unknown option "--certfile"'),
        (("serve", "alone", "--redirect-to-https"), 'unknown option "--redirect-to-https"'),
        (("serve",), "there is nothing to serve"),
        (("serve", "-c", "monitored.ini"), 'monitored.ini:3: unknown option "otel"'),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_a_word_of_a_missing_plug_in_is_answered_in_a_sentence(
    words: tuple[str, ...], says: str, core: Mapping[str, str], tmp_path: Path
) -> None:
    write(tmp_path, "first")
    (tmp_path / "monitored.ini").write_text("[http]\ntarget = alone\notel = on\n")
    address = ("--bind", "127.0.0.1:0") if words[0] == "serve" and "--bind" not in words else ()
    done = run_command(*words, *address, env=core, cwd=tmp_path, shared=True)
    assert done.returncode != 0
    *_, sentence = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert says in sentence


#: The modules that a plain server does without.
OTHERS = ("_codings", "_tls")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A certificate and its key in one file."""
    path = tmp_path / "site.pem"
    certificate().write(path)
    path.chmod(0o600)
    return path


def loaded(server: Server) -> set[str]:
    """The extension modules of the server that the process has in memory."""
    maps = Path(f"/proc/{server.process.pid}/maps").read_text(encoding="utf-8")
    return {name for name in ("_core", *OTHERS) if f"/{name}." in maps}


def test_a_server_loads_what_its_options_need(site: Path) -> None:
    tls = ("--tls-certificate", str(site))
    for options, address, expected in (
        ((), "127.0.0.1:0", {"_core"}),
        (("--compress", "static"), "127.0.0.1:0", {"_core", "_codings"}),
        (tls, "https://127.0.0.1:0", {"_core", "_tls"}),
    ):
        words = (*options, "--supervisor", "off")
        with Server("tests/apps/echo.py", "single", *words, bind=(address,)) as server:
            assert loaded(server) == expected


@pytest.mark.parametrize("is_clone", [True, False])
def test_a_missing_module_is_named_with_the_command_that_builds_it(
    is_clone: bool, site: Path, tmp_path: Path
) -> None:
    ignored = shutil.ignore_patterns(*(f"{name}.*so" for name in OTHERS))
    shutil.copytree(ROOT / "poorhttp", tmp_path / "poorhttp", ignore=ignored, copy_function=link)
    if is_clone:
        (tmp_path / "Makefile").touch()
    how = f"run `make modules` in {tmp_path}" if is_clone else "install the server again"
    env = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    files = ("static:.", "--supervisor", "off")
    for words, option, module in (
        (("serve", *files, "--compress", "on"), "--compress", "compression._codings"),
        (
            ("serve", *files, "--bind", "https://127.0.0.1:0", "--tls-certificate", str(site)),
            "--bind: https://127.0.0.1:0",
            "tls._tls",
        ),
        (("dev", "static:.", "--bind", "127.0.0.1:0", "--https"), "--https", "tls._tls"),
    ):
        done = run(sys.executable, "-m", "poorhttp", *words, cwd=tmp_path, env=env)
        sentence = f"{option}: the extension module poorhttp.plugins.{module} is not built; {how}"
        assert (done.returncode, sentence in done.stderr) == (3, True), done.stderr
        assert done.stderr.count("\n") == 1
