"""Plug-ins of others: the example of the guide in an environment of its own; what is refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.each_value import each_value
from tests.support.forked_command import run_command
from tests.support.installed import examples
from tests.support.nobody import IS_ROOT, Nobody
from tests.support.plug_in import install
from tests.testkit.client import Connection
from tests.testkit.process import children
from tests.testkit.server import ROOT, Program, Server, run, wait_for

pytestmark = pytest.mark.xdist_group("plugins")

NAME = "poorhttp-echo"

APPLICATION = "wsgiref.simple_server:demo_app"

#: Whether plug-ins have to be named.
NAMED = ("--plugins", NAME) if IS_ROOT else ()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the guide's example."""
    folder = tmp_path_factory.mktemp("echo")
    (toml,) = examples("plugins", "toml")
    (module,) = examples("plugins", "python")
    assert len(f"{toml}{module}".splitlines()) < 100
    (folder / "pyproject.toml").write_text(toml)
    (folder / "poorhttp_echo.py").write_text(module)
    build = "from setuptools import build_meta; build_meta.build_wheel('dist')"
    done = run(sys.executable, "-c", build, cwd=folder)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("dist/*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and this server, and with nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    done = run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    assert done.returncode == 0, done.stderr
    (packages,) = folder.glob("lib/python*/site-packages")
    with ZipFile(wheel) as archive:
        archive.extractall(packages)
    (packages / "poorhttp.pth").write_text(f"{ROOT}\n")
    return folder / "bin/python"


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def poorhttp(python: Path, tmp_path: Path) -> Run:
    """Runs the command in that environment."""
    command = (str(python), "-m", "poorhttp")
    return lambda *words, **env: run(*command, *words, cwd=tmp_path, env={"PYTHONPATH": "", **env})


def test_all_that_it_adds_is_used(python: Path, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    admin = tmp_path / "admin.sock"
    (tmp_path / "poorhttp.ini").write_text(
        f"[http]\nplugins = {NAME}\ntarget = echo:hello\nmode = nice\nbind = 127.0.0.1:0\n"
        f"echo_mark = ?\naccess_log = echo:{log}\nadmin = unix:{admin}\n"
    )
    words = (str(python), "-m", "poorhttp", "serve", "-c", "poorhttp.ini")
    with Program(*words, cwd=tmp_path, env={"PYTHONPATH": ""}) as server:
        urls = server.wait_line()[2]
        with Connection(("127.0.0.1", int(urls.rpartition(":")[2]))) as connection:
            response = connection.request("GET", "/tea")
        assert (response.status, response.body) == (200, b"hello?\n")
        assert ("X-Echo", "yes") in response.headers
        wait_for(lambda: "GET /tea" in log.read_text(), "the request in the log of the sink")
        nice = {
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[16]
            for pid in children(server.process.pid)
        }
        assert str(os.nice(0) + 5) in nice
        with Connection(str(admin)) as connection:
            metrics = connection.request("GET", "/-/metrics").body.decode()
        assert "# HELP poorhttp_plugin_echo_workers_total Workers started.\n" in metrics
        assert "\npoorhttp_plugin_echo_workers_total 1\n" in metrics
        server.process.terminate()
        assert server.wait() == 0
        assert "Traceback" not in server.log()


def test_a_server_in_a_program_uses_it(python: Path, tmp_path: Path) -> None:
    program = (
        "import poorhttp, urllib.request as r\n"
        f"with poorhttp.Server('echo:hello', plugins='{NAME}', echo_mark='?') as server:\n"
        "    with r.urlopen(server.url) as answer:\n"
        "        print(answer.read(), answer.headers['X-Echo'])\n"
    )
    done = run(str(python), "-c", program, cwd=tmp_path, env={"PYTHONPATH": ""})
    assert (done.stdout, done.stderr) == ("b'hello?\\n' yes\n", "")


def test_its_option_is_one_in_every_place(poorhttp: Run, tmp_path: Path) -> None:
    words = ("echo", "echo:hello", *NAMED)
    assert poorhttp(*words).stdout == "hello!\n"
    assert poorhttp(*words, "--echo-mark", "#").stdout == "hello#\n"
    assert poorhttp(*words, POORHTTP_ECHO_MARK=".").stdout == "hello.\n"
    (tmp_path / "echo.ini").write_text(f"[http]\nplugins = {NAME}\necho_mark = ?\n")
    assert poorhttp(*words, "-c", "echo.ini").stdout == "hello?\n"
    wrong = poorhttp(*words, "--echo-marc", "#")
    assert 'did you mean "--echo-mark"?' in wrong.stderr
    shown = poorhttp("serve", "--help-all", *NAMED, POORHTTP_PLUGINS=NAME).stdout
    assert "\nEcho:\n" in shown
    assert "--echo-mark TEXT" in shown
    assert "Text behind each echo. (default: !)" in shown
    commands = poorhttp("--help", POORHTTP_PLUGINS=NAME).stdout
    assert "Print what TARGET, echo:TEXT, answers." in commands


def test_the_list(poorhttp: Run, python: Path) -> None:
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    listed = poorhttp("plugins", NAME).stdout
    assert f"\npoorhttp-echo 1.0, from {packages}:\n" in listed
    after = listed.partition(f"{packages}:\n")[2]
    assert [line.split() for line in after.splitlines()] == [
        ["targets", "echo"],
        ["modes", "nice"],
        ["commands", "echo"],
        ["options", "echo"],
        ["components", "echo"],
        ["worker_hooks", "echo"],
        ["log_sinks", "echo"],
        ["metrics", "echo_workers"],
    ]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture
def site(shared: Path) -> Path:
    """A folder of Python's path, empty, and the same one for all: commands are forks."""
    shutil.rmtree(shared)
    shared.mkdir()
    return shared


def started(
    *words: str, path: Path | None = None, cwd: Path, forked: bool = True, **env: str
) -> subprocess.CompletedProcess[str]:
    """The command with a folder of plug-ins on its path."""
    paths = os.pathsep.join([str(ROOT), *([str(path)] if path else [])])
    forked = forked and path is not None
    return run_command(*words, cwd=cwd, env={"PYTHONPATH": paths, **env}, shared=forked)


#: What a plug-in adds, and the ways to use that.
ALL = {
    "targets": "noted = noting:load",
    "modes": "noted = noting",
    "commands": "noted = noting:COMMAND",
    "options": "noted = noting:Noted",
}

USES = (
    ("noted",),
    ("serve", "noted:x", "--bind", "127.0.0.1:0"),
    ("serve", APPLICATION, "--mode", "noted"),
    ("serve", APPLICATION, "--noted", "1"),
)


def noted(folder: Path, tmp_path: Path, **points: str) -> Path:
    """Install the plug-in `noted`; a file that is there once its code has run."""
    ran = tmp_path / "ran"
    code = f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n"
    install(folder, "noted", {**ALL, **points}, {"noting": code})
    return ran


@pytest.mark.skipif(not IS_ROOT, reason="only root has to name plug-ins")
@pytest.mark.parametrize("words", USES, ids=["command", "target", "mode", "option"])
def test_root_runs_no_code_of_a_plug_in_that_is_not_named(
    words: tuple[str, ...], site: Path, tmp_path: Path
) -> None:
    ran = noted(site, tmp_path)
    done = started(*words, path=site, cwd=tmp_path)
    assert done.returncode != 0
    assert "--plugins noted" in done.stderr
    assert not ran.exists()


@pytest.mark.parametrize(
    ("words", "place"), each_value([("plugins",), *USES], ["current", "chdir", "pythonpath"])
)
def test_nothing_is_found_where_others_may_write(
    words: tuple[str, ...], place: str, site: Path, tmp_path: Path
) -> None:
    """In the current folder, `chdir` and `pythonpath`, also if it is named."""
    ran = noted(site, tmp_path)
    cwd = site if place == "current" else tmp_path
    options = () if place == "current" or len(words) == 1 else (f"--{place}", str(site))
    for named in ("", "noted"):
        done = started(*words, *options, cwd=cwd, POORHTTP_PLUGINS=named)
        assert "noted 1.2" not in done.stdout
        assert done.returncode != 0 or words == ("plugins",)
        assert not ran.exists()
        if named:
            assert 'no plug-in "noted" is installed' in done.stderr


def test_nothing_is_found_below_the_current_folder(tmp_path: Path) -> None:
    """By a relative entry of PYTHONPATH, which the interpreter makes absolute."""
    near = tmp_path / "site"
    near.mkdir()
    noted(near, tmp_path)
    for entry in ("site", "./site", "../" + tmp_path.name + "/site"):
        done = run_command("plugins", cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}:{entry}"})
        assert (done.returncode, "noted 1.2" in done.stdout) == (0, False), entry
    assert "noted 1.2" in started("plugins", path=near, cwd=tmp_path, forked=False).stdout


@pytest.mark.parametrize("use", [("serve", "x:y", "--plugins", "noted"), ("plugins", "noted")])
def test_a_plug_in_for_another_contract_is_refused_in_words(
    use: tuple[str, ...], site: Path, tmp_path: Path
) -> None:
    ran = noted(site, tmp_path, contract="2 = noting")
    done = started(*use, path=site, cwd=tmp_path)
    assert done.returncode == 2
    assert (
        "plugins: plug-in noted 1.2 is for version 2 of the contract of plug-ins, and this server "
        "has version 1: install a version of one that fits the other\n"
    ) in done.stderr
    assert not ran.exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
        ("", "cannot be loaded: AttributeError: module 'broken' has no attribute 'HOOKS'"),
    ],
)
def test_one_that_cannot_be_loaded(text: str, why: str, site: Path, tmp_path: Path) -> None:
    install(site, "broken", {"worker_hooks": "noisy = broken:HOOKS"}, {"broken": text})
    wanted = f"plug-in noisy of broken (poorhttp.worker_hooks) {why}"
    listed = started("plugins", path=site, cwd=tmp_path, POORHTTP_PLUGINS="broken")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert f"\n  {wanted}\n" in listed.stdout
    done = started("check", APPLICATION, "--plugins", "broken", path=site, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, f"poorhttp: {wanted}\n")


def test_a_reload_uses_what_was_installed_meanwhile(site: Path, tmp_path: Path) -> None:
    ini = tmp_path / "poorhttp.ini"
    ini.write_text("[http]\n")
    env = {"PYTHONPATH": f"{ROOT}:{site}"}
    text = (
        "from poorhttp.config.options.option import Option\n"
        "from poorhttp.worker.plugin_hooks import WorkerHooks\n"
        "class Loud:\n    loud = Option(str, '', 'It is.', metavar='TEXT')\n"
        "class Hooks(WorkerHooks):\n"
        "    def wrap_target(self, application, target, settings):\n"
        "        text = settings.of(Loud).loud.encode()\n"
        "        return lambda environ, start: [*application(environ, start), text]\n"
        "HOOKS = Hooks()\n"
    )
    points = {"options": "loud = louder:Loud", "worker_hooks": "loud = louder:HOOKS"}
    with Server(APPLICATION, "threading", "-c", str(ini), env=env) as server:
        assert server.get("/").body.startswith(b"Hello world!")
        install(site, "loud", points, {"louder": text})
        ini.write_text("[http]\nplugins = loud\nloud = very\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded")
        assert server.get("/").body.endswith(b"very")
        ini.write_text("[http]\nplugins = loud quiet\nloud = very\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log('plugins: no plug-in "quiet" is installed')
        assert server.get("/").body.endswith(b"very")


def test_a_metric_that_fails_is_named_and_switched_off(site: Path, tmp_path: Path) -> None:
    text = (
        "from poorhttp.supervisor.metric import Metric\n"
        "def fail(main):\n    return 1 / 0\n"
        "BAD = Metric('gauge', 'It fails.', fail)\n"
        "NAN = Metric('gauge', 'No number.', lambda main: float('nan'))\n"
        "SOME = Metric('gauge', 'Some.', lambda main: [({'of': 'a'}, 1), ({'of': 'b'}, 2.5)])\n"
    )
    points = {"metrics": "bad = numbers_of:BAD\nnan = numbers_of:NAN\nsome = numbers_of:SOME"}
    install(site, "numbers", points, {"numbers_of": text})
    admin = tmp_path / "admin.sock"
    options = ("--plugins", "numbers", "--admin", f"unix:{admin}")
    env = {"PYTHONPATH": f"{ROOT}:{site}"}
    with Server(APPLICATION, "threading", *options, env=env, tracebacks=True) as server:
        for _ in range(4):
            with Connection(str(admin)) as connection:
                text = connection.request("GET", "/-/metrics").body.decode()
            assert '\npoorhttp_plugin_some{of="a"} 1\n' in text
            assert '\npoorhttp_plugin_some{of="b"} 2.5\n' in text
            assert "poorhttp_plugin_bad" not in text
            assert "poorhttp_plugin_nan" not in text
        assert server.get("/").status == 200
        log = server.log()
    for name, why in (("bad", "ZeroDivisionError"), ("nan", "no finite number")):
        entry = f"plug-in {name} of numbers (poorhttp.metrics)"
        assert log.count(f"{entry}: read failed; the main process goes on") == 3
        assert f"{entry} is switched off until the next start of the server" in log
        assert why in log


@pytest.mark.parametrize(
    ("points", "taken"),
    [
        ({"targets": "static = x:y"}, "adds static (poorhttp.targets), which the server has"),
        ({"commands": "serve = x:y"}, "adds serve (poorhttp.commands), which the server has"),
        ({"options": "o = taking:Taking"}, "taking declares threads, which is an option already"),
    ],
    ids=["target", "command", "option"],
)
def test_a_taken_name(points: Mapping[str, str], taken: str, site: Path, tmp_path: Path) -> None:
    text = (
        "from poorhttp.config.options.option import Option\n"
        "class Taking:\n    threads = Option(str, '', '', metavar='X')\n"
    )
    install(site, "taking", points, {"taking": text})
    done = started("serve", "x:y", "--plugins", "taking", path=site, cwd=tmp_path)
    assert done.returncode == 2
    assert taken in done.stderr
    # The server itself is as before.
    assert started("serve", "--help", path=site, cwd=tmp_path).returncode == 0


@pytest.fixture
def public(nobody: Nobody, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the path of the user nobody."""
    folder.chmod(0o755)
    path = nobody.env.get("PYTHONPATH", str(ROOT))
    monkeypatch.setitem(nobody.env, "PYTHONPATH", f"{path}:{folder}")
    return folder


def test_a_user_need_not_name_it(wheel: Path, nobody: Nobody, public: Path) -> None:
    """The command, the target, the mode and the option are found."""
    with ZipFile(wheel) as archive:
        archive.extractall(public)
    shown = nobody.run("echo", "echo:hello", "--echo-mark", "?")
    assert (shown.stdout, shown.stderr) == ("hello?\n", "")
    words = ("check", "echo:hello", "--bind", "127.0.0.1:0", "--mode", "nice")
    checked = nobody.run(*words, "--echo-mark", "?")
    assert checked.stderr == ""
    assert "would serve echo:hello on http://127.0.0.1:0 (nice, 1 worker)" in checked.stdout
    assert "echo_mark = ?" in checked.stdout
    assert "Text behind each echo." in nobody.run("serve", "--help-all").stdout
    assert "Print what TARGET, echo:TEXT, answers." in nobody.run("--help").stdout
    assert "poorhttp-echo" not in nobody.run("plugins", cwd=public).stdout


def test_the_current_folder_by_another_spelling(tmp_path: Path) -> None:
    """What depends on it is not looked into; nor is the folder itself, however it is called."""
    near = tmp_path / "site"
    near.mkdir()
    ran = noted(near, tmp_path)
    (tmp_path / "link").symlink_to("/proc/self/cwd")
    (tmp_path / "alias").symlink_to(near)
    (tmp_path / "other").mkdir()
    dependent = (
        *("/proc/self/cwd/site", "//proc/self/cwd/site", "/proc/thread-self/cwd/site"),
        *("/proc/self/../self/cwd/../cwd/site", f"{tmp_path}/link/site"),
    )
    itself = (f"{tmp_path}/other/../site/../site", str(near), f"{tmp_path}/alias")
    for cwd, entries in ((tmp_path, dependent), (near, itself)):
        env = {"PYTHONPATH": os.pathsep.join([str(ROOT), *entries]), "POORHTTP_PLUGINS": "noted"}
        done = run_command("plugins", cwd=cwd, env=env)
        # Where it was found, the list says.
        assert 'no plug-in "noted" is installed' in done.stderr, done.stdout
        assert not ran.exists()


def test_two_plug_ins_that_add_the_same(nobody: Nobody, public: Path) -> None:
    """Nothing is guessed."""
    text = (
        "from poorhttp.config.options.option import Option\n"
        "class Options:\n    same = Option(str, '', 'It.', metavar='TEXT')\n"
        "def load(rest):\n    from wsgiref.simple_server import demo_app\n    return demo_app\n"
    )
    points = {"targets": "same = {0}:load", "options": "same = {0}:Options"}
    for name in ("one", "two"):
        named = {group: line.format(name) for group, line in points.items()}
        install(public, name, named, {name: text})
    for words in (("same:x",), (APPLICATION, "--same", "1")):
        done = nobody.run("check", *words, "--bind", "127.0.0.1:0")
        assert "are plug-ins that add same: name the one to use" in done.stderr
        assert "one" in done.stderr
        assert "two" in done.stderr
    chosen = nobody.run("check", "same:x", "--bind", "127.0.0.1:0", "--plugins", "two")
    assert (chosen.returncode, chosen.stderr) == (0, "")


@pytest.mark.parametrize(
    ("group", "place", "why"),
    [
        ("targets", "string:digits", "is not a function: '0123456789'"),
        ("modes", "odd:RUNS", "is no mode, which has a function run: "),
        ("components", "os:getpid", "is no class derived from poorhttp.supervisor.component"),
        ("worker_hooks", "odd:Odd", "is no object of poorhttp.worker.plugin_hooks.WorkerHooks"),
        ("options", "os:getpid", "is no class with options, but <built-in function getpid>"),
        ("metrics", "odd:ODD", "cannot be used: ZeroDivisionError: division by zero"),
        ("modes", "odd:ODD", "cannot be used: ZeroDivisionError: division by zero"),
    ],
)
def test_objects_that_are_something_else(
    group: str, place: str, why: str, site: Path, tmp_path: Path
) -> None:
    text = (
        "class Odd:\n"
        "    def __getattr__(self, name):\n        1 / 0\n"
        "    def __repr__(self):\n        1 / 0\n"
        "class Runs:\n    run = 5\n"
        "ODD, RUNS = Odd(), Runs()\n"
    )
    install(site, "other", {group: f"other = {place}"}, {"odd": text})
    listed = started("plugins", path=site, cwd=tmp_path, POORHTTP_PLUGINS="other")
    if group == "options":
        assert f"plug-in other of other (poorhttp.options) {why}" in listed.stderr
    else:
        assert (listed.returncode, listed.stderr) == (0, "")
        assert f"plug-in other of other (poorhttp.{group}) {why}" in listed.stdout


@pytest.mark.skipif(not IS_ROOT, reason="only root has to name plug-ins")
def test_root_takes_no_names_from_a_file_of_others(site: Path, tmp_path: Path) -> None:
    """Also if `-c` names the file, and at a reload: the plug-ins run as root, the file does not."""
    ran = noted(site, tmp_path)
    folder = tmp_path / "project"
    folder.mkdir()
    file = folder / "poorhttp.ini"
    text = f"[http]\ntarget = {APPLICATION}\nbind = 127.0.0.1:0\n"
    file.write_text(f"{text}plugins = noted\n")
    for owner, mode, folder_mode in ((65534, 0o644, 0o755), (0, 0o666, 0o755), (0, 0o644, 0o777)):
        os.chown(file, owner, owner)
        file.chmod(mode)
        folder.chmod(folder_mode)
        for words in (("-c", "poorhttp.ini"), ("-c", str(file)), ()):
            done = started("check", *words, path=site, cwd=folder)
            assert done.returncode == 3, words
            if words:
                assert "poorhttp.ini:4: plugins: root runs the code of plug-ins" in done.stderr
            assert not ran.exists()
    folder.chmod(0o755)
    os.chown(file, 65534, 65534)
    file.write_text(text)
    env = {"PYTHONPATH": f"{ROOT}:{site}"}
    with Server(APPLICATION, "threading", "-c", str(file), env=env) as server:
        file.write_text(f"{text}plugins = noted\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("does not take their names from this file, because it belongs to user")
        assert not ran.exists()
    os.chown(file, 0, 0)
    # Of root alone: the names are taken. This plug-in lacks what it adds.
    assert "has no attribute 'Noted'" in started("check", path=site, cwd=folder).stderr
    assert ran.exists()
