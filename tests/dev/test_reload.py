"""`poorhttp dev`: reloads after changes of all kinds of files."""

from __future__ import annotations

import os
import signal
import time
import zipfile
from pathlib import Path

import pytest

from tests.support.development import APP, PART, ProjectFolder, version, wait_text, write
from tests.support.forked_command import run_command
from tests.support.load import Load
from tests.testkit.client import HANG
from tests.testkit.process import children, lives
from tests.testkit.server import ROOT, Server, command, run, wait_for


def wait_version(server: Server, wanted: str) -> None:
    wait_text(server, f'"version": "{wanted}"')


@pytest.mark.parametrize(
    ("mode", "reload"),
    [
        *(("forking", "on"), ("threading", "full"), ("gevent", "on")),
        *(pytest.param(mode, "full", marks=pytest.mark.full) for mode in ("forking", "gevent")),
        *(pytest.param(mode, "on", marks=pytest.mark.full) for mode in ("single", "threading")),
    ],
)
def test_every_save_is_served_and_nothing_is_lost(
    mode: str, reload: str, project: ProjectFolder
) -> None:
    """Python takes compiled code for right whose source has the same size and second."""
    with project.develop(mode, "--autoreload", reload) as server:
        with Load(server.port) as load:
            for number in range(2, 7):
                for name, text in (("part.py", PART), ("app.py", APP)):
                    new = project.folder / "new"
                    new.write_text(text.format(version=number))
                    os.utime(new, (1_700_000_000, 1_700_000_000))
                    new.replace(project.folder / name)
                load.wait_version(str(number))
                wait_text(server, f'"version": "{number}", "part": "{number}"')
        load.check()


def test_an_archive_on_the_path_is_replaced(
    project: ProjectFolder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One of the project, and an egg that is installed; its folders differ each time."""
    folder = tmp_path_factory.mktemp("path")
    paths = {"own": folder / "lib/own.egg", "egg": folder / "site-packages/egg.egg"}

    def replace(name: str, number: int) -> None:
        with zipfile.ZipFile(folder / "new", "w") as archive:
            archive.writestr(f"{name}.py", f"#{'.' * number}\nNUMBER = {number}\n")
        (folder / "new").replace(paths[name])

    for name, path in paths.items():
        path.parent.mkdir()
        replace(name, 1)
        os.utime(path, (1, 1))
    project.save("part.py", "import own, egg\nVERSION = f'{own.NUMBER} {egg.NUMBER}'\n")
    pythonpath = os.pathsep.join(map(str, (ROOT, *paths.values())))
    with project.develop(env={"PYTHONPATH": pythonpath}, tracebacks=True) as server:
        wait_text(server, '"part": "1 1"')
        for number in (2, 3):
            replace("own", number)
            wait_text(server, f'"part": "{number} {number - 1}"')
            replace("egg", number)
            wait_text(server, f'"part": "{number} {number}"')
        assert "Traceback" not in server.log()


#: With a request that waits for a file, and a WebSocket.
CONNECTED = (
    APP.replace(
        "    start_response",
        "    while path == 'slow' and not os.path.exists('go'):\n"
        "        open('here', 'w').close()\n"
        "        time.sleep(0.01)\n"
        "    if path == 'ws': return talk(environ['poorhttp.upgrade'])\n"
        "    start_response",
        1,
    )
    + """
def talk(sock):
    sock.sendall(b'HTTP/1.1 101 \\r\\n\\r\\n')
    while sock.recv(100): sock.sendall(b'\\x81\\x01' + str(VERSION).encode())
    return []
"""
)


def test_what_is_open_while_a_version_is_replaced(mode: str, project: ProjectFolder) -> None:
    """A request is finished by its version, and a WebSocket closed: its browser connects again.

    A kept connection is never answered by the version before.
    """
    project.save("app.py", CONNECTED.format(version=1))
    with project.develop(mode, "--workers", "2" if mode == "forking" else "1") as server:
        kept = [server.connect() for _ in range(5)]
        for connection in kept:
            assert connection.request("GET", "/").json()["version"] == "1"
        idle = server.connect()
        for number in (2, 3):
            project.save("app.py", CONNECTED.format(version=number))
            # Where there are several workers, until it is all of them.
            server.wait_log("reloaded in", number - 1)
            for connection in kept:
                assert connection.request("GET", "/").json()["version"] == str(number)
        assert idle.request("GET", "/").json()["version"] == "3"
        slow = server.connect()
        # One that runs a request at once has no time for a WebSocket beside it.
        if mode != "single":
            slow.send_request("GET", "/slow")
            wait_for((project.folder / "here").exists, "the request")
        for number in (3, 4):
            with server.connect() as connection:
                fields = ("Connection: upgrade", "Upgrade: websocket")
                connection.send_request("GET", "/ws", *fields)
                assert connection.interim() == 101
                connection.send(b"x")
                assert connection._take(3) == b"\x81\x01%d" % number
                project.save("app.py", CONNECTED.format(version=number + 1))
                wait_version(server, str(number + 1))
                # It does not answer: the application sees the end of its input then.
                assert connection.rest() == b"\x88\x02\x03\xe9"
        (project.folder / "go").touch()
        assert mode == "single" or slow.response().json()["version"] == "3"


BROKEN = [
    ("def broken(:\n", "SyntaxError"),
    ("raise RuntimeError('it is meant to')\n", "RuntimeError: it is meant to"),
    ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
    ("import there_is_no_such_module\n", "there_is_no_such_module"),
    ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "was killed by SIGKILL"),
    ("import os\nos._exit(7)\n", "ended with 7"),
]


@pytest.mark.parametrize(("reload", "cases"), [("on", BROKEN), ("full", BROKEN[::4])])
def test_a_version_that_cannot_be_loaded_says_why(
    reload: str, cases: list[tuple[str, str]], project: ProjectFolder
) -> None:
    with project.develop("threading", "--autoreload", reload, tracebacks=True) as server:
        for text, why in cases:
            project.save("part.py", text)
            wait_text(server, why)
            server.wait_log(why.split(":")[0])
            project.save("part.py", PART.format(version=1))
            wait_version(server, "1")


HANGS = """\
import time
open('hangs', 'w').close()
while True:
    try: time.sleep(60)
    except BaseException: pass
"""


def test_a_save_while_the_version_before_is_loaded(project: ProjectFolder) -> None:
    """Also one that hangs."""
    with project.develop() as server:
        project.save("part.py", HANGS)
        wait_for((project.folder / "hangs").exists, "the version that hangs")
        waiting = server.connect()
        waiting.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        project.save("part.py", PART.format(version=2))
        assert waiting.response().json()["part"] == "2"
        with Load(server.port) as load:
            for number in range(2, 20):
                project.save_version(number)
                time.sleep(0.003)
            load.wait_version("19")
        load.check()


@pytest.mark.parametrize(
    ("number", "moment"), [(signal.SIGINT, "serving"), (signal.SIGKILL, "importing")]
)
def test_no_process_stays(number: signal.Signals, moment: str, project: ProjectFolder) -> None:
    hang = "import time\nopen('here', 'w').close()\ntime.sleep(3600)\n"
    project.save("part.py", "import asyncio, unittest\nVERSION = 1\n")
    with project.develop() as server:
        assert version(server) == "1"
        if moment == "importing":
            project.save("part.py", hang)
            wait_for((project.folder / "here").exists, "the version that hangs")
        pids = children(server.process.pid)
        assert len(pids) >= 2
        os.kill(server.process.pid, number)
        server.process.wait(HANG)
        wait_for(lambda: not any(map(lives, pids)), "the end of all processes")
        if number != signal.SIGKILL:
            assert server.process.returncode == 0
        server.kill()


@pytest.mark.parametrize("autoreload", ["on", "full"])
def test_a_version_that_cannot_be_stopped(autoreload: str, project: ProjectFolder) -> None:
    """While it loads, it ends soon after the main process, even if it catches everything."""
    deaf = (
        "import time\n"
        "while True:\n"
        "    try:\n"
        "        open('here', 'w').close()\n"
        "        time.sleep(3600)\n"
        "    except BaseException:\n"
        "        pass\n"
    )
    words = ("--autoreload", autoreload, "--graceful-timeout", "3600")
    with project.develop("threading", *words) as server:
        project.save("part.py", deaf)
        wait_for((project.folder / "here").exists, "the version that hangs")
        pids = children(server.process.pid)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(HANG)
        wait_for(lambda: not any(map(lives, pids)), "the end of all processes")
        server.kill()


@pytest.mark.parametrize(
    ("target", "reload"), [("nosuch:application", "on"), ("app:nosuch", "full")]
)
def test_a_target_that_was_not_written_right(
    target: str, reload: str, project: ProjectFolder
) -> None:
    """Nothing of the project's can be mended, so there is nothing to wait for."""
    words = ("dev", target, "--bind", "127.0.0.1:0", "--autoreload", reload)
    done = run_command(*words, cwd=project.folder)
    assert done.returncode == 4
    assert "nosuch" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_what_the_extra_installs(project: ProjectFolder, tmp_path: Path) -> None:
    """Tracebacks are plain then, and the terminal says how to have better ones."""
    hidden = tmp_path / "hidden"
    hide = "import sys\nfor name in 'werkzeug', 'rich', 'pyinstrument': sys.modules[name] = None\n"
    write(hidden, {"sitecustomize.py": hide})
    env = {"PYTHONPATH": str(hidden), "FORCE_COLOR": "1"}
    with project.develop(env=env, tracebacks=True) as server:
        server.wait_log("shows plain tracebacks; better ones need werkzeug and rich")
        server.wait_log("pip install '.[dev]'")
        assert "PIN" not in server.log()
        project.save("part.py", "1 / 0\n")
        wait_text(server, "ZeroDivisionError", "text/html")
        server.wait_log("ZeroDivisionError")
        project.save("app.py", "def application(environ, start_response):\n    0 / 0\n")
        wait_text(server, "0 / 0", "text/html")
        assert server.get("/?__debugger__=yes&cmd=resource&f=style.css").status == 500
    words = command("dev", "--debug", "on", "app:application")
    done = run(*words, cwd=project.folder, env={"PYTHONPATH": f"{hidden}:{ROOT}"})
    assert done.returncode == 3
    assert "--debug: debug needs werkzeug and rich, which are not installed: pip" in done.stderr
