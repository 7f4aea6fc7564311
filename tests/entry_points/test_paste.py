"""PasteDeploy: Pyramid's `pserve`, and the target `paste:FILE`."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import pytest

from poorhttp import targets
from poorhttp.api import serve_paste
from poorhttp.errors import ApplicationError, ConfigError
from tests.support.development import DEV, Started, save, write
from tests.support.installed import examples, installed
from tests.testkit.server import Server, command, run, wait_for

APPLICATION = """
import logging, os
from pyramid.config import Configurator
from pyramid.response import Response

def index(request):
    logging.getLogger("shop").info("asked for %s", request.path)
    who = request.registry.settings["who"]
    return Response(f"{who} {os.getpid()} {request.environ['wsgi.multithread']}")

def main(global_config, **settings):
    config = Configurator(settings=settings)
    config.add_route("index", "/")
    config.add_view(index, route_name="index")
    return config.make_wsgi_app()
"""
#: As the templates of Pyramid have it, but for the server.
APPLICATIONS = """\
[app:main]
paste.app_factory = shop:main
who = first

[app:other]
paste.app_factory = shop:main
who = 100%% other

"""
LOGGING = """
[loggers]
keys = root, shop
[handlers]
keys = console
[formatters]
keys = generic

[logger_root]
level = WARNING
handlers = console

[logger_shop]
level = INFO
handlers =
qualname = shop

[handler_console]
class = StreamHandler
args = (sys.stderr,)
formatter = generic

[formatter_generic]
format = %(levelname)s of %(name)s: %(message)s
"""
SERVER = "[server:main]\nuse = egg:poorhttpd#main\n"
INI = APPLICATIONS + SERVER + LOGGING
PSERVE = (sys.executable, "-m", "pyramid.scripts.pserve")
GEVENT = (sys.executable, "-m", "gevent.monkey", "--module", "pyramid.scripts.pserve")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "project", {"shop.py": APPLICATION})
    return tmp_path / "project"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    path = installed(tmp_path / "installed")["PYTHONPATH"]
    # Pyramid imports what setuptools will not have for ever.
    return {"PYTHONPATH": f"{path}:{tmp_path / 'project'}", "PYTHONWARNINGS": "ignore"}


def ini(project: Path, *server: str) -> str:
    write(project, {"test.ini": APPLICATIONS + SERVER + "\n".join(server) + LOGGING})
    return "test.ini"


def answer(server: Server) -> list[str]:
    return server.get("/").body.decode().split()


# pserve


def test_pserve(project: Path, env: dict[str, str], mode: str) -> None:
    workers = ["workers = 2"] if mode == "forking" else []
    file = ini(project, "host = 127.0.0.1", "port = 0", f"mode = {mode}", *workers)
    words = GEVENT if mode == "gevent" else PSERVE
    with Started(*words, file, cwd=project, env=env) as server:
        who, pid, threads = answer(server)
        assert (who, threads) == ("first", str(mode in ("threading", "gevent")))
        assert (server.mode, server.workers) == (mode, 2 if mode == "forking" else 1)
        assert int(pid) != server.process.pid, "a worker, which was forked"
        server.wait_log("INFO of shop: asked for /\n")


def test_the_guide(project: Path, env: dict[str, str]) -> None:
    server = examples("pyramid", "ini")[0].replace("localhost:6543", "127.0.0.1:0")
    write(project, {"test.ini": APPLICATIONS + server})
    with Started(*PSERVE, "test.ini", cwd=project, env=env) as pserve:
        assert answer(pserve)[::2] == ["first", "True"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("thread = 4", 'test.ini: unknown option "thread"; did you mean "threads"?'),
        ("threads = many", 'test.ini: threads: "many" is not'),
        ("port = http", 'test.ini: bind: "http" in "127.0.0.1:http" is not a port'),
        ("target = x:y", "test.ini: target: leave it out; the application of this file is served"),
        ("mode = gevent", "test.ini: mode: gevent has to patch the standard library before"),
    ],
)
def test_wrong_options(line: str, said: str) -> None:
    name, _, value = line.partition(" = ")
    with pytest.raises(ConfigError) as caught:
        serve_paste(lambda *_: [], {"__file__": "/etc/test.ini"}, **{name: value})
    assert str(caught.value).startswith(said)


# poorhttp serve paste:FILE


def test_target(project: Path, env: dict[str, str], mode: str) -> None:
    """Where the application is loaded by each worker, all modes are as with other targets."""
    file = ini(project)
    with Server(f"paste:{file}", mode, cwd=project, env=env) as server:
        assert answer(server)[0] == "first"
        server.wait_log("INFO of shop: asked for /\n")
        save(project / file, INI.replace("first", "second"))
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: answer(server)[0] == "second", "the next version")


def test_sections(project: Path, env: dict[str, str]) -> None:
    """Two of the file's applications; `log_config` has precedence over what the file says."""
    logging = LOGGING.replace("%(levelname)s of", "other:")
    write(project, {"log.ini": logging, "a folder/x.ini": INI})
    words = ("--log-config", "log.ini", "--mount", "/other=paste:a folder/x.ini#other")
    with Server(f"paste:{ini(project)}", "threading", *words, cwd=project, env=env) as server:
        assert answer(server)[0] == "first"
        assert server.get("/other/").body.startswith(b"100% other ")
        server.wait_log("other: shop: asked for /other/\n")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("tset.ini", 'tset.ini; did you mean "test.ini"?'),
        ("test.ini#mian", "paste:test.ini#mian cannot be loaded: LookupError: No section 'mian'"),
        ("wrong.ini", "wrong.ini cannot be read: MissingSectionHeaderError: File contains no"),
    ],
)
def test_wrong_targets(
    project: Path, target: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {"wrong.ini": "use = egg:shop\n", "test.ini": APPLICATIONS})
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", sys.path[:])
    with pytest.raises(ApplicationError, match=re.escape(said)):
        targets.load(f"paste:{target}")


def test_without_pastedeploy(project: Path, env: dict[str, str]) -> None:
    # `paste` itself is there before any file of ours: a namespace that its installation makes.
    write(project, {"sitecustomize.py": "import sys\nsys.modules['paste.deploy'] = None\n"})
    done = run(*command("check", f"paste:{ini(project)}"), cwd=project, env=env)
    assert "needs PasteDeploy, which is not installed: pip install PasteDeploy" in done.stderr


def test_the_development_server_watches_the_file(project: Path, env: dict[str, str]) -> None:
    """Also in a folder where nothing else is."""
    write(project.parent, {"etc/test.ini": INI})
    with Started(*DEV, "paste:../etc/test.ini#main", cwd=project, env=env) as server:
        save(project.parent / "etc/test.ini", INI.replace("first", "second"))
        wait_for(lambda: answer(server)[0] == "second", "the next version")
