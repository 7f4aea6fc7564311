"""`poorhttp dev`: what applications, people and systems do to it."""

from __future__ import annotations

import os
import re
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.client import Connection
from tests.development import APP, IMPATIENT, PART, Project, version, wait_text
from tests.process import lives
from tests.server import Server, command, wait_for
from tests.terminal import Terminal

#: Is loaded when `Gate` is opened.
WAITS = """\
VERSION = {version}

def wait():
    # gevent does not know of it: its hub would be seen, and not what waits for it.
    open("gate").close()


wait()
"""


class Gate:
    """A file of a project that cannot be opened for reading before `open` was called."""

    def __init__(self, folder: Path) -> None:
        self._path, self._fifo = folder / "gate", folder / "fifo"
        os.mkfifo(self._fifo)
        self._path.hardlink_to(self._fifo)

    def open(self) -> None:
        """Let all pass."""
        free = self._path.with_name("free")
        free.touch()
        free.replace(self._path)
        # Those that wait already.
        os.close(os.open(self._fifo, os.O_RDWR))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project in a temporary folder."""
    return Project(tmp_path)


def wait_page(server: Server, text: str) -> str:
    """Wait until a browser is shown a page with this in it."""
    return wait_text(server, text, "text/html")


@pytest.mark.parametrize("reload", ["on", "full"])
def test_a_version_that_takes_long_says_where_it_is(
    mode: str, reload: str, project: Project
) -> None:
    with project.develop(mode, "--autoreload", reload, launcher=IMPATIENT) as server:
        kept = server.connect()
        assert kept.request("GET", "/").json()["version"] == "1"
        where = "part.py, line 5, in wait\npart.py, line 8, in &lt;module&gt;\napp.py, line 2"
        gate = Gate(project.folder)
        shown = [""]

        def page() -> str:
            project.save("part.py", WAITS.format(version=2))
            shown.append(wait_page(server, "has been loading for 2 s"))
            return shown[-1]

        # On a busy machine it may not have come so far by then.
        wait_for(lambda: where in page(), "the place where it waits")
        assert "/__poorhttp__/" in shown[-1]
        server.wait_log("has been loading for 2 s: part.py, line 5")
        assert b"has been loading" in kept.request("GET", "/").body
        gate.open()
        server.wait_log("reloaded in")
        # Whoever has given the page may not have heard of it by now.
        wait_for(lambda: kept.request("GET", "/").status == 200, "an answer")
        assert kept.request("GET", "/").json()["part"] == "2"
        assert version(server) == "1"


@pytest.mark.parametrize("end", ["os._exit(0)", "os._exit(7)", "os.kill(os.getpid(), 11)"])
def test_the_first_version_may_end_its_process(end: str, project: Project) -> None:
    project.save("part.py", f"import os\n{end}\n")
    with project.develop() as server:
        wait_page(server, "while it was loaded")
        project.save("part.py", PART.format(version=2))
        wait_for(lambda: server.get("/").status == 200, "the version that is mended")


def test_the_folder_goes_and_comes_back(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    with project.develop(tracebacks=True) as server:
        shutil.rmtree(project.folder)
        wait_page(server, "the folder in which app is looked for was removed")
        project.save("part.py", PART.format(version=2))
        project.save("app.py", APP.format(version=2))
        wait_for(lambda: server.get("/").status == 200, "the version that has come back")
        assert version(server) == "2"
        assert "could not do what was due" not in server.log()


def test_a_new_configuration_is_read_once(project: Project) -> None:
    configuration = "[http]\ntarget = app:application\nbind = 127.0.0.1:0\n"
    file = project.folder / "server.ini"
    file.write_text(configuration)
    with project.develop(target="--config=server.ini", bind=()) as server:
        for number in range(1, 4):
            project.save("server.ini", configuration + "#" * number)
            server.wait_log("reloaded: the new version serves", number)
        # Whatever came twice would have been told before this.
        project.save_version(2)
        wait_for(lambda: version(server) == "2", "the next version")
        assert server.log().count("main] info: reloading") == 3


class Window(Terminal):
    """A terminal in which `poorhttp dev` runs."""

    def __init__(self, project: Project) -> None:
        develop = command("dev", "app:application", "--bind", "127.0.0.1:0")
        super().__init__(
            develop, controls=True, columns=200, rows=200, env={"TERM": "dumb"}, cwd=project.folder
        )

    def __exit__(self, *_: object) -> None:
        for pid in processes_of(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        super().__exit__()

    def port(self) -> int:
        """Wait until it listens; where."""
        found = self.wait(re.compile(r"listening on \S*127\.0\.0\.1:(\d+) ").search, "its port")
        return int(found[1])

    def all_ended(self) -> int:
        """Wait for its end, and that of all that it has started; the exit code."""
        code = self.ended()
        wait_for(lambda: not any(map(lives, processes_of(self.process.pid))), "their end")
        return code


def processes_of(session: int) -> list[int]:
    """The processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                found.append(int(folder.name))
    return found


def test_control_c_ends_everything_though_a_request_hangs(project: Project) -> None:
    project.save(
        "app.py",
        "def application(environ, start_response):\n"
        "    open('here', 'w').close()\n"
        "    while True:\n"
        "        try: input()\n"
        "        except BaseException: pass\n",
    )
    with Window(project) as window, Connection(("127.0.0.1", window.port())) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for((project.folder / "here").exists, "the request")
        window.type("\x03")
        assert window.all_ended() == 0
        assert "Traceback" not in window.text()


def test_a_closed_window_leaves_no_server_behind(project: Project) -> None:
    with Window(project) as window:
        window.port()
        window.close()
        window.all_ended()


def test_a_main_process_of_its_own_is_not_for_development(project: Project) -> None:
    with project.develop() as server:
        server.process.send_signal(signal.SIGUSR2)
        server.wait_log("with autoreload there is no new main process")
        project.save_version(2)
        wait_for(lambda: version(server) == "2", "the next version")
