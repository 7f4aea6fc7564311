"""The end of a process: Python's whole shutdown runs, with atexit, threads and buffers."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.each_value import DIFFERENT, each_value
from tests.testkit.process import children, wait_for_end
from tests.testkit.server import Server, wait_for

#: What each process leaves to its shutdown, beside what it leaves for each request.
ONCE = ("atexit", "thread")


class Notes:
    """What processes have written when they ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.has_spans = False
        #: Requests that were answered, by the process that has answered.
        self.answered: Counter[str] = Counter()

    def serve(self, mode: str, *options: str, **more: Any) -> Server:
        env = {"ENDING": str(self.path), **more.pop("env", {})}
        self.has_spans = "SPANS" in env
        return Server("tests.apps.ending:application", mode, *options, env=env, **more)

    def ask(self, server: Server, path: str = "/", times: int = 1) -> str:
        """Make requests; the process that has answered the last."""
        for _ in range(times):
            answer = server.get(path)
            assert answer.status == 200
            self.answered[answer.body.decode()] += 1
        return answer.body.decode()

    def read(self) -> Counter[str]:
        return Counter(self.path.read_text().splitlines() if self.path.exists() else [])

    def check(self, *pids: str, preload: str = "off") -> None:
        """Check that these have noted everything once, or so often as they had requests.

        Of a preloaded application Python does not free what a thread of the preloader has on its
        stack, and that is the module: an open file of it is not flushed (nor with gunicorn).
        """
        read = self.read()
        for pid in pids:
            for word in (*ONCE, "buffer") if preload == "off" else ONCE:
                assert read[f"{word} {pid}"] == 1, (word, read)
            for word in ("request", "span") if self.has_spans else ("request",):
                assert read[f"{word} {pid}"] == self.answered[pid], (word, read)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


#: A preloader is the same in each mode, but for gevent, which is patched in the workers.
PRELOADS = pytest.mark.parametrize(
    ("mode", "preload"), each_value(DIFFERENT, ["off", "on"]), indirect=["mode"]
)


@PRELOADS
def test_reload_and_stop(mode: str, preload: str, notes: Notes) -> None:
    with notes.serve(mode, "--preload", preload, env={"SPANS": "1"}) as server:
        notes.ask(server, times=20)
        before = set(notes.answered)
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        for pid in before:
            wait_for_end(int(pid))
        notes.check(*before, preload=preload)
        notes.ask(server, times=20)
        after = set(notes.answered) - before
        main = server.process.pid
        assert "while it ended" not in server.log()
        server.stop()
    notes.check(*after, preload=preload)
    # Nothing of the application is in the main process.
    assert not any(line.endswith(f" {main}") for line in notes.read())


@PRELOADS
def test_max_requests(mode: str, preload: str, notes: Notes) -> None:
    with notes.serve(mode, "--max-requests", "5", "--preload", preload) as server:
        wait_for(lambda: notes.ask(server) and len(notes.answered) > 2, "some workers")
    notes.check(*notes.answered, preload=preload)


@pytest.mark.parametrize(
    ("mode", "number"), each_value(DIFFERENT, [signal.SIGINT, signal.SIGQUIT]), indirect=["mode"]
)
def test_quick_stop(number: signal.Signals, mode: str, notes: Notes) -> None:
    with notes.serve(mode) as server:
        notes.ask(server)
        server.stop(number)
    notes.check(*notes.answered)


@pytest.mark.each_mode
def test_without_a_supervisor(mode: str, notes: Notes) -> None:
    options = ("--supervisor", "off", "--workers", "1")
    with notes.serve("single" if mode == "forking" else mode, *options) as server:
        assert notes.ask(server, times=3) == str(server.process.pid)
    notes.check(*notes.answered)


@pytest.mark.each_mode
def test_a_worker_that_ends_by_itself(mode: str, notes: Notes) -> None:
    with notes.serve(mode) as server:
        pid = notes.ask(server, "/leave")
        server.wait_log(f"worker {pid} ended with 0 and is replaced")
        notes.check(pid)


@pytest.mark.parametrize(
    ("mode", "how"),
    each_value(DIFFERENT, ["/fork/exit", "/fork/raise", "/multiprocessing"]),
    indirect=["mode"],
)
def test_a_fork_of_the_application(how: str, mode: str, notes: Notes) -> None:
    """What it has inherited is not its own, and not done twice."""
    env = {"SPANS": "1"} if mode == "threading" else {}
    with notes.serve(mode, "--workers", "1", env=env, tracebacks=True) as server:
        notes.ask(server)
        notes.ask(server, how)
    notes.check(*notes.answered)
    (fork,) = (line.split()[1] for line in notes.read() if line.startswith("child"))
    assert notes.read()[f"child {fork}"] == 1
    # With gevent, a fork of multiprocessing has the greenlets of all threads, and joins them.
    threads = () if how == "/multiprocessing" else ("thread",)
    words = ("atexit", "buffer", "request", "span", *threads)
    assert not any(notes.read()[f"{word} {fork}"] for word in words)


def test_the_preloader_ends_as_asked(notes: Notes) -> None:
    """It is kept where workers are replaced, and then it ends with the server, as they do."""
    with notes.serve("single", "--preload", "--max-requests", "1000") as server:
        worker = notes.ask(server)
        (preloader,) = {str(pid) for pid in children(server.process.pid)} - {worker}
    notes.check(worker, preload="on")
    assert notes.read()[f"atexit {preloader}"] == 1


def test_a_preloader_that_is_dismissed(notes: Notes) -> None:
    """The application goes on, in the workers: a folder that is removed at its end still stands."""
    with notes.serve("single", "--preload") as server:
        wait_for(lambda: len(children(server.process.pid)) == 1, "the end of the preloader")
        worker = notes.ask(server)
        assert not notes.read()
    notes.check(worker, preload="on")
    assert {line.split()[1] for line in notes.read()} == {worker}


def test_a_handler_that_hangs(mode: str, notes: Notes) -> None:
    options = ("--graceful-timeout", "0.5", "--workers", "1")
    with notes.serve(mode, *options, env={"HANGS": "1"}) as server:
        pid = notes.ask(server)
        server.process.send_signal(signal.SIGTERM)
        server.wait()
        assert f"worker {pid} had answered everything, but did not end" in server.log()
        server.kill()
