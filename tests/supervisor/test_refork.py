"""Reforks: workers are replaced by forks of one that has served (`refork_after`)."""

from __future__ import annotations

import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.supervisor.reloads import reload
from tests.support.forked_command import run_command
from tests.support.load import Load
from tests.testkit.client import Connection
from tests.testkit.process import children, lives, opened
from tests.testkit.server import Server, wait_for
from tests.testkit.versions import Versions

OPTIONS = ("--preload", "--drain-timeout", "0.1")

#: Logged when a worker was chosen.
BEGUN = "and finishes: workers are forked from it"

#: Tells what requests and hooks have left behind, in its process and in those it comes from.
APP = """
import os, sys, threading

EVENTS, PATHS, THREADS = [], set(), []

def after_fork():
    EVENTS.append(f"forked {os.getpid()}")

def before_refork():
    EVENTS.append(f"finished {os.getpid()}")
    while THREADS:
        over, thread = THREADS.pop()
        over.set()
        thread.join()

def start_thread():
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="the clock", daemon=True)
    thread.start()
    THREADS.append((over, thread))

def refuse():
    raise RuntimeError("not this one")

def application(environ, start_response):
    path, gate = environ["PATH_INFO"], environ["QUERY_STRING"]
    PATHS.add(path)
    if path == "/wait":
        environ["wsgi.errors"].write(f"process {os.getpid()} entered {gate}\\n")
        while not os.path.exists(gate):
            threading.Event().wait(0.002)
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    start_response("200 OK", [])
    return [f"{os.getpid()} {depth} {len(PATHS)} {','.join(EVENTS)}".encode()]
"""


class Application(Server):
    """A server of `APP`, and what is asked of it."""

    def __init__(self, tmp_path: Path, *options: str) -> None:
        path = tmp_path / "reforked.py"
        path.write_text(APP)
        self.gate = tmp_path / "gate"
        super().__init__(f"{path}:application", "threading", *OPTIONS, "--workers", "3", *options)
        self._asked = 0

    def ask(self) -> tuple[int, int, int, list[str]]:
        """The process of a worker, its depth of calls, the paths that it knows, and its events.

        The connection stays open.
        """
        self._asked += 1
        words = self.connect().request("GET", f"/{self._asked}").body.decode().split(" ", 3)
        return int(words[0]), int(words[1]), int(words[2]), words[3].split(",")

    def ask_until(self, text: str, times: int = 1) -> None:
        def asked() -> bool:
            self._asked += 1
            assert self.get(f"/{self._asked}").status == 200
            return self.log().count(text) >= times

        wait_for(asked, f"{text!r} in the log {times} times")

    def wait_settled(self) -> set[int]:
        """Wait until there are three workers and nothing else; their processes."""
        wait_for(lambda: len(children(self.process.pid)) == 3, "three workers, and nothing else")
        return set(children(self.process.pid))

    def hold(self) -> list[Connection]:
        """Have requests wait for the gate, at least one in each worker and half of its threads.

        A worker whose threads are all taken may accept before one that has not run for a while.
        """
        held: list[Connection] = []
        workers = Counter[str]()
        while len(workers) < 3:
            gate = self.gate.with_name(f"gate-{workers.total()}")
            connection = self.enter(gate)
            (worker,) = re.findall(rf"process (\d+) entered {gate}\n", self.log())
            workers[worker] += 1
            if workers[worker] > 4:
                gate.touch()
                assert connection.response().status == 200
            else:
                gate.symlink_to(self.gate)
                held.append(connection)
        return held

    def begun(self) -> list[int]:
        """The workers that were told to finish because others are to be forked from them."""
        found = re.findall(r"worker (\d+) has begun \d+ requests, and finishes", self.log())
        return list(map(int, found))


def test_nothing_is_lost_or_crossed(mode: str, versions: Versions) -> None:
    """Three generations, each forked from the one before, under the load of all clients."""
    with versions.serve(mode, *OPTIONS, "--workers", "3", "--refork-after", "20, 40, 60") as server:
        with Load(server.port) as load:
            server.wait_log("reforked 3 workers", 3)
            wait_for(lambda: len(children(server.process.pid)) == 3, "no preloader any more")
            before = children(server.process.pid)
            load.wait_more(300)
        load.check()
        assert len(load.pids) > 3 * 3
        assert children(server.process.pid) == before, "the list has ended"


def test_workers_have_what_requests_have_left(tmp_path: Path) -> None:
    """Hooks are called in each process; neither calls nor descriptors pile up."""
    hooks = ("--after-fork", "reforked:after_fork", "--before-refork", "reforked:before_refork")
    with Application(tmp_path, *hooks, "--refork-after", "10 10") as server:
        pid, depth, _, events = server.ask()
        files = len(opened(pid))
        assert events == [f"forked {pid}"]
        server.ask_until("reforked 3 workers", 2)
        first, second = server.begun()
        server.wait_settled()
        assert not any(map(lives, (first, second)))
        pid, same_depth, paths, events = server.ask()
        assert paths > 10
        came_from = [
            f"{what} {each}" for each in (first, second) for what in ("forked", "finished")
        ]
        assert events == [*came_from, f"forked {pid}"]
        assert same_depth == depth
        wait_for(lambda: len(opened(pid)) == files, "as many descriptors as before")


def test_a_worker_with_a_thread_is_not_reforked(tmp_path: Path) -> None:
    """It goes on serving."""
    hooks = ("--after-fork", "reforked:start_thread")
    with Application(tmp_path, *hooks, "--refork-after", "5") as server:
        before = server.wait_settled()
        server.ask_until("not reforked, because a thread does not survive that: the clock\n")
        assert server.wait_settled() == before
        assert server.begun() == []


def test_a_worker_that_has_finished_and_cannot_be_forked(tmp_path: Path) -> None:
    """It is replaced by a worker that has loaded the application again."""
    why = "--before-refork: reforked:refuse has failed: RuntimeError: not this one"
    hooks = ("--after-fork", "reforked:start_thread", "--before-refork", "reforked:refuse")
    with Application(tmp_path, *hooks, "--refork-after", "5") as server:
        before = server.wait_settled()
        server.ask_until("not reforked, because worker")
        server.wait_log(why)
        (ended,) = server.begun()
        wait_for(lambda: ended not in children(server.process.pid), "its end")
        wait_for(lambda: server.wait_settled() != before - {ended}, "its successor")
        assert len(server.wait_settled() & before) == 2


def test_a_stop_while_a_worker_finishes(tmp_path: Path) -> None:
    """What is in flight is answered, and the worker does not become the preloader."""
    with Application(tmp_path, "--refork-after", "20") as server:
        held = server.hold()
        server.ask_until(BEGUN)
        server.process.send_signal(signal.SIGTERM)
        server.gate.touch()
        assert [connection.response().status for connection in held] == [200] * len(held)
        server.leave()
        assert server.wait() == 0
        assert "reforked 3 workers" not in server.log()
        server.ended()


def test_a_reload_while_a_worker_finishes(tmp_path: Path) -> None:
    """It ends like the other workers of its version."""
    hooks = ("--before-refork", "reforked:before_refork")
    with Application(tmp_path, *hooks, "--refork-after", "20") as server:
        held = server.hold()
        server.ask_until(BEGUN)
        before = set(children(server.process.pid))
        reload(server)
        server.gate.touch()
        assert [connection.response().status for connection in held] == [200] * len(held)
        assert not server.wait_settled() & before
        server.ask_until("reforked 3 workers")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--mode", "threading"), "only with preload = on"),
        (("--mode", "gevent", "--preload"), "not in mode gevent"),
        (("--mode", "asyncio", "--preload"), "not in mode asyncio"),
        (("--preload", "--refork-after", "0"), "0 is out of range"),
    ],
)
def test_where_it_is_refused(options: tuple[str, ...], why: str) -> None:
    ended = run_command("serve", "tests.apps.plain:application", "--refork-after", "9", *options)
    assert ended.returncode in (2, 3)
    assert why in ended.stderr
    assert "--refork-after" in ended.stderr
