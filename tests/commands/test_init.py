"""`poorhttp init`: what it finds, what it writes, and what it leaves alone."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from poorhttp.config import loader
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.deployment import ini_file, systemd
from poorhttp.plugins.setup.deployment.mode import Mode
from poorhttp.plugins.setup.deployment.plan import Plan
from poorhttp.plugins.setup.deployment.project import DeployedProject
from tests.commands.projects import FILES, init, make
from tests.support.development import write
from tests.support.forked_command import run_command
from tests.support.nobody import IS_ROOT

TARGETS = {
    "flask": "app:app",
    "django": "site_of_mine.wsgi:application",
    "dispatch": "dispatch:.",
    "static": "static:.",
}

#: Sources of an application, and the options that are chosen for it.
MODES = {
    "nothing": ("", {"mode": "threading", "threads": "8"}),
    "waits": ("import psycopg", {"mode": "threading", "threads": "16"}),
    "waits-later": ("def f():\n    import redis.client", {"mode": "threading", "threads": "16"}),
    "computes": ("from numpy.linalg import norm", {"mode": "forking"}),
    "gevent": ("import psycopg, gevent.monkey, numpy", {"mode": "gevent"}),
    "sockets": ("from flask_sock import Sock", {"mode": "threading", "threads": "8"}),
    "broken": ("import psycopg; def", {"mode": "threading", "threads": "8"}),
    "nested": ("import psycopg\n" + "-" * 100_000 + "1", {"mode": "threading", "threads": "8"}),
}


#: An application, which is found as such.
APPLICATION = "def application(environ, start_response): ...\n"


def loaded(folder: Path, name: str = "poorhttp.ini") -> Settings:
    """What a configuration says that was written."""
    (settings,) = loader.load({}, {}, str(folder / name))
    return settings


@pytest.mark.parametrize("kind", FILES)
def test_what_is_found(kind: str, tmp_path: Path) -> None:
    project = make(kind, tmp_path)
    before = set(project.iterdir())
    said = init(project)
    name = ".deploy/poorhttp.ini" if kind == "static" else "poorhttp.ini"
    assert f"wrote {name}\n" in said
    assert f"next: poorhttp serve -c {name}\n" in said
    (new,) = set(project.iterdir()) - before
    assert new == project / name.split("/", maxsplit=1)[0]
    settings = loaded(project, name)
    assert settings.target == TARGETS[kind]
    assert settings.mode == "threading"
    assert settings.trusted_proxies == ()
    assert ("collectstatic" in (project / name).read_text()) == (kind == "django")
    done = run_command("check", "-c", name, "--bind", "127.0.0.1:0", cwd=project)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", MODES)
def test_mode(name: str, tmp_path: Path) -> None:
    source, wanted = MODES[name]
    others = ("tests/test_app.py", "test_app.py", ".venv/mine.py", "env/mine.py")
    write(tmp_path, dict.fromkeys(others, "import numpy, gevent") | {"env/pyvenv.cfg": ""})
    write(tmp_path, {"app.py": APPLICATION, "part/library.py": source})
    init(tmp_path)
    settings = loaded(tmp_path)
    assert {option: settings.written(option)[0] for option in wanted} == wanted
    for option in {"workers", "threads"} - wanted.keys():
        assert not settings.is_set(option)
    said = "# part/library.py imports " in (tmp_path / "poorhttp.ini").read_text()
    assert said == (name not in ("nothing", "broken", "nested"))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    project = make("flask", tmp_path)
    init(project)
    site = project / "deploy/nginx.conf"
    site.parent.mkdir()
    site.write_text("mine")
    there = "deploy/nginx.conf already exists; --force overwrites it"
    for words, said in (
        ((), "poorhttp: poorhttp.ini already exists; --force replaces it"),
        (("--caddy", "--nginx"), f"poorhttp: nothing is written: {there}"),
    ):
        done = run_command("init", *words, cwd=project)
        assert (done.returncode, done.stderr[: len(said)]) == (2, said)
    assert [path.name for path in site.parent.iterdir()] == ["nginx.conf"]
    assert site.read_text() == "mine"
    init(project, "--caddy", "--nginx", "--force", "--name", "shop")
    assert "upstream shop {" in site.read_text()
    assert "trusted_proxies = 127.0.0.1" in (project / "poorhttp.ini").read_text()


def test_a_configuration_that_is_there_decides(tmp_path: Path) -> None:
    """As `loadtests advise` writes it, with what it has measured."""
    project = make("flask", tmp_path)
    text = "[http]\ntarget = other:app\nmode = forking\nworkers = 3\npreload = on\n"
    text += "bind = 127.0.0.1:9999\n"
    (project / "poorhttp.ini").write_text(text)
    said = init(project, "--kubernetes", "--caddy", "--systemd")
    assert "poorhttp.ini already exists and stays" in said
    added = "trusted_proxies = 127.0.0.1, health = /-"
    assert f"add to it, for the web server in front: {added}" in said
    assert (project / "poorhttp.ini").read_text() == text
    for name in ("deploy/container.ini", "deploy/kubernetes/poorhttp.ini"):
        settings = loaded(project, name)
        assert (settings.target, settings.mode, settings.workers) == ("other:app", "forking", 3)
        assert settings.value("preload")
        assert not settings.is_set("threads")
    assert "reverse_proxy 127.0.0.1:9999 {" in (project / "deploy/Caddyfile").read_text()
    assert "ListenStream=127.0.0.1:9999\n" in (project / "deploy/my-flask.socket").read_text()


@pytest.mark.parametrize(
    ("bind", "listen", "reached"),
    [("localhost:8000", "127.0.0.1:8000", "127.0.0.1"), ("[::]:82", "[::]:82", "::1")],
)
def test_addresses(bind: str, listen: str, reached: str, tmp_path: Path) -> None:
    project = make("flask", tmp_path)
    init(project, "--systemd", "--nginx", "--lighttpd", "--bind", bind)
    settings = loaded(project)
    assert [str(address) for address in settings.bind] == [listen]
    assert settings.written("trusted_proxies") == [reached]
    port = listen.rpartition(":")[2]
    at = f"[{reached}]:{port}" if ":" in reached else f"{reached}:{port}"
    for name, text in {
        "my-flask.socket": f"\nListenStream={listen}\n",
        "nginx.conf": f"    server {at} max_fails=0;\n",
        "lighttpd.conf": f'"host" => "{reached}", "port" => {port},',
    }.items():
        assert text in (project / "deploy" / name).read_text()


def test_a_unix_socket(tmp_path: Path) -> None:
    """It is in all files, and nothing that systemd gives away or removes contains it."""
    project = make("flask", tmp_path)
    words = ("--systemd", "--nginx", "--name", "shop")
    said = init(project, *words, "--bind", "unix:/run/shop/shop.sock")
    assert "next: poorhttp serve -c poorhttp.ini --bind 127.0.0.1:8080\n" in said
    settings = loaded(project)
    assert [str(address) for address in settings.bind] == ["unix:/run/shop/shop.sock"]
    assert settings.socket_mode == 0o660
    assert settings.written("trusted_proxies") == ["unix"]
    folder = project / "deploy"
    for name, text in (
        ("shop.socket", "\nListenStream=/run/shop/shop.sock\n"),
        ("shop.socket", "\nSocketMode=0660\nSocketGroup=www-data\n"),
        ("shop.service", "\nRuntimeDirectory=shop/server\n"),
        ("nginx.conf", "    server unix:/run/shop/shop.sock max_fails=0;\n"),
    ):
        assert text in (folder / name).read_text()
    # As it was written, by a configuration that is there.
    for path in folder.iterdir():
        path.unlink()
    init(project, "--systemd", "--haproxy", "--name", "shop")
    assert "SocketGroup=haproxy\n" in (folder / "shop.socket").read_text()
    assert "unix@/run/shop/shop.sock\n" in (folder / "haproxy.cfg").read_text()
    init(project, *words, "--bind", "unix:/run/other.sock", "--force")
    assert "\nRuntimeDirectory=shop\n" in (folder / "shop.service").read_text()


#: Folders of a project, and what hides them from the service.
HIDDEN_FOLDERS = {
    "/srv/shop": "",
    "/tmp/shop": "PrivateTmp=yes",
    "/var/tmp/shop": "PrivateTmp=yes",
    "/home/ada/shop": "ProtectHome=read-only",
    "/root/shop": "ProtectHome=read-only",
}


@pytest.mark.parametrize("folder", HIDDEN_FOLDERS)
def test_folders_that_a_unit_hides(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd, "server_command", lambda: ["/opt/venv/bin/poorhttp"])
    plan = Plan(folder, "shop", "shop:app", Mode({"mode": "threading"}), DeployedProject(folder))
    found, hidden = systemd.warnings(plan), HIDDEN_FOLDERS[folder]
    assert len(found) == bool(hidden)
    assert all(hidden in warning and "/srv/shop" in warning for warning in found)
    monkeypatch.setattr(systemd, "server_command", lambda: ["/home/ada/venv/bin/poorhttp"])
    assert any("its Python is in /home/ada/venv" in each for each in systemd.warnings(plan))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--system"], 'unknown option "--system"; did you mean "--systemd"?'),
        (["--nginx=on"], "--nginx takes no value"),
        (["--domain"], "--domain: needs a value: --domain NAME"),
        (["--domain", "a b"], '--domain: "a b" is wrong; write a host name, such as example.org'),
        (["--name", "x;y"], '--name: "x;y" is wrong; write lower-case letters'),
        (["--bind", "8080"], '--bind: "8080" is wrong; write ADDRESS:PORT, or unix:'),
        (["--bind", "unix:shop.sock"], '--bind: "unix:shop.sock" is wrong; write ADDRESS:PORT'),
        (["--user", "a", "--user", "b"], "--user is given twice"),
        (["a", "b"], 'init takes one folder, but there are "a" and "b"'),
        (["nowhere"], "there is no folder nowhere"),
        ([], "name it: poorhttp init --target package.module:application"),
    ],
)
def test_mistakes(words: list[str], said: str, tmp_path: Path) -> None:
    done = run_command("init", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


# Names of whoever has made the project


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("shop\n[Service]\nUser=root", r"the folder is \S*shop\n[Service]\nUser=root: a line end"),
        ("shop\x1b[2J", r"shop\x1b[2J: a line end, another control character"),
        ("shop\udcff", r"shop\udcff: a line end"),
        ("shop\\", "a unit of systemd cannot hold quotes, backslashes, or a space at its end"),
        ("shop ", "a unit of systemd cannot hold quotes"),
        ('a"b', "a unit of systemd cannot hold quotes"),
    ],
)
def test_folders_that_go_into_no_file(name: str, said: str, tmp_path: Path) -> None:
    project = tmp_path / name
    write(project, {"app.py": APPLICATION})
    done = run_command("init", "--systemd", "--nginx", cwd=project)
    assert done.returncode == 3, done.stderr
    assert said.replace(r"\S*", f"{tmp_path}/") in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    assert [path.name for path in project.iterdir()] == ["app.py"]


def test_folders_that_a_unit_quotes(tmp_path: Path) -> None:
    project = tmp_path / "100% $HOME; x"
    write(project, {"app.py": APPLICATION})
    init(project, "--systemd", "--user", "www-data", "--name", "shop")
    unit = (project / "deploy/shop.service").read_text()
    assert f"\nWorkingDirectory={tmp_path}/100%% $HOME; x\n" in unit
    assert f' serve -c "{tmp_path}/100%% $$HOME; x/poorhttp.ini" --bind fd:http\n' in unit
    assert f'\nReadWritePaths="{tmp_path}/100%% $HOME; x"\n' in unit


@pytest.mark.parametrize("address", ["unix:/run/a;b{/shop.sock", "unix:/run/a b.sock"])
def test_addresses_that_go_into_no_file(address: str, tmp_path: Path) -> None:
    (tmp_path / "poorhttp.ini").write_text(f"[http]\ntarget = app:app\nbind = {address}\n")
    done = run_command("init", "--nginx", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert f'bind: "{address}" cannot be written' in done.stderr


@pytest.mark.parametrize(
    "values", [["a", "#b"], [" a"], ["a", ""]], ids=["a comment", "a space", "nothing"]
)
def test_values_of_an_ini_file(values: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"^static: .* cannot be written into an ini file"):
        ini_file.setting("static", values)


@pytest.mark.parametrize("kind", ["link", "folder", "hard link"])
def test_what_is_there_is_not_written_through(kind: str, tmp_path: Path) -> None:
    """A link in place of a file or of its folder; a file's permissions stay."""
    project = make("flask", tmp_path)
    folder, other = project / "deploy", tmp_path / "other"
    other.mkdir()
    (other / "nginx.conf").write_text("of somebody else")
    (other / "nginx.conf").chmod(0o640)
    if kind == "folder":
        if not IS_ROOT:
            pytest.skip("only root gives files away")
        folder.symlink_to(other)
        nobody = pwd.getpwnam("nobody").pw_uid
        os.lchown(folder, nobody, -1)
        os.chown(project, nobody, -1)
    else:
        folder.mkdir()
        link = os.symlink if kind == "link" else os.link
        link(other / "nginx.conf", folder / "nginx.conf")
    done = run_command("init", "--nginx", "--force", cwd=project)
    if kind == "hard link":
        assert done.returncode == 0, done.stderr
        assert stat.S_IMODE((folder / "nginx.conf").stat().st_mode) == 0o640
        assert "upstream" in (folder / "nginx.conf").read_text()
    else:
        assert "is a symbolic link" in done.stderr
        assert done.returncode == 1
    assert (other / "nginx.conf").read_text() == "of somebody else"
    assert [path.name for path in other.iterdir()] == ["nginx.conf"]
