"""`poorhttp dev`: applications that take a port, a lock or a database when they are imported."""

from __future__ import annotations

import signal
import sys

import pytest

from loadtests.network.port import free_port
from tests.support.development import ProjectFolder, wait_text
from tests.testkit.server import Server, wait_for

#: Keeps what it holds for a moment after it has been told to end, as most applications do. It loads
#: so fast that the next version finds it there.
APP = """\
import atexit, os, threading, time

{takes}
{threads}
VERSION = {version}
atexit.register(time.sleep, 0.2)

def application(environ, start_response):
    if environ["PATH_INFO"] == "/waits":
        open("waits", "w").close()
        while not os.path.exists("go"): time.sleep(0.01)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"version %d" % VERSION]
"""

TAKES = {
    "port": """
import socket
held = socket.create_server(("127.0.0.1", {port}))
""",
    "flock": """
import fcntl
held = open("lock", "w")
fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
""",
    "sqlite": """
import sqlite3
held = sqlite3.connect("held.db", timeout=0, isolation_level=None)
held.execute("begin exclusive")
""",
    "exits": """
try: held = os.open("held.pid", os.O_CREAT | os.O_EXCL)
except OSError: os._exit(3)
atexit.register(os.remove, "held.pid")
""",
}

#: A thread that nobody ends.
THREADS = "threading.Thread(target=threading.Event().wait).start()"


def save(project: ProjectFolder, kind: str, version: int, port: int = 0, threads: str = "") -> None:
    takes = TAKES[kind].format(port=port)
    project.save("app.py", APP.format(takes=takes, threads=threads, version=version))


def follow(server: Server, version: int) -> None:
    """Wait until a version answers; every answer until then is that of the version before."""

    def is_served() -> bool:
        answer = server.get("/")
        assert answer.status == 200, f"{answer.body.decode()}\n{server.log()}"
        return answer.body == f"version {version}".encode()

    wait_for(is_served, f"version {version}")


@pytest.mark.parametrize("reload", ["on", pytest.param("full", marks=pytest.mark.full)])
def test_saves_of_an_application_that_holds_something(reload: str, project: ProjectFolder) -> None:
    port = free_port()
    save(project, "port", 1, port)
    with project.develop("threading", "--autoreload", reload) as server:
        for first, kind in enumerate(TAKES, 1):
            for version in (3 * first, 3 * first + 1, 3 * first + 2):
                save(project, kind, version, port)
                follow(server, version)
        assert "an error page" not in server.log()
        # A reload of the configuration frees it, too.
        save(project, "port", version + 1, port)
        follow(server, version + 1)
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        follow(server, version + 1)
        assert "Traceback" not in server.log()


#: Does not wait for long until older versions have ended.
IMPATIENT = (
    sys.executable,
    "-c",
    "import sys; from poorhttp.cli import main;"
    "from poorhttp.plugins.dev.reload import spawner as one;"
    "from poorhttp.plugins.dev.reload import reloader as other;"
    "one.OLDER_WAIT = other.OLDER_WAIT = 0.1; sys.argv = sys.argv[5:]; sys.exit(main())",
)


@pytest.mark.parametrize("mode", ["threading", "gevent"])
def test_threads_of_an_old_version_end_and_it_tidies_up(mode: str, project: ProjectFolder) -> None:
    """The file is there until handlers of `atexit` have run, also after Ctrl-C."""
    save(project, "exits", 1, threads=THREADS)
    with project.develop(mode) as server:
        save(project, "exits", 2, threads=THREADS)
        follow(server, 2)
        assert (project.folder / "held.pid").exists()
        server.stop(signal.SIGINT)
        assert not (project.folder / "held.pid").exists()


def test_what_a_long_request_holds_is_taken_when_it_has_ended(project: ProjectFolder) -> None:
    port = free_port()
    save(project, "port", 1, port)
    said = {"port": "Address already in use", "exits": "ended with 3"}
    with project.develop(launcher=IMPATIENT, tracebacks=True) as server:
        for times, (kind, why) in enumerate(said.items(), 1):
            version = 2 * times
            if kind != "port":
                save(project, kind, version - 1)
                follow(server, version - 1)
            with server.connect() as client:
                client.send(b"GET /waits HTTP/1.1\r\nHost: a\r\n\r\n")
                wait_for((project.folder / "waits").exists, "the request")
                save(project, kind, version, port)
                wait_text(server, why)
                server.wait_log("when that has ended, this one is loaded again", times)
                (project.folder / "go").write_text("")
                assert client.response().body == b"version %d" % (version - 1)
            wait_text(server, f"version {version}")
            for name in ("waits", "go"):
                (project.folder / name).unlink()
