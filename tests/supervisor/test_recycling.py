"""Replacement of workers by `max_requests`, `max_rss` and the like: no request is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.supervisor.reloads import reload
from tests.support.load import Load
from tests.testkit.server import Server, wait_for
from tests.testkit.versions import Versions, told

JITTERED = ("--max-requests", "20", "--max-requests-jitter", "5", "--drain-timeout", "0.2")
PRELOADED = (*JITTERED, "--preload")
BEGUN = "it has begun max_requests requests"


@pytest.mark.parametrize(
    ("mode", "options", "workers", "why"),
    [
        ("forking", JITTERED, 4, BEGUN),
        ("threading", PRELOADED, 4, BEGUN),
        ("gevent", JITTERED, 4, BEGUN),
        pytest.param("forking", PRELOADED, 4, BEGUN, marks=pytest.mark.full),
        pytest.param("threading", JITTERED, 4, BEGUN, marks=pytest.mark.full),
        pytest.param("gevent", PRELOADED, 4, BEGUN, marks=pytest.mark.full),
        ("threading", ("--max-lifetime", "0.5"), 3, "max_lifetime is over"),
        ("single", ("--max-rss", "1M"), 2, "MiB (max_rss)"),
    ],
)
def test_nothing_is_lost(
    mode: str, options: tuple[str, ...], workers: int, why: str, versions: Versions
) -> None:
    with versions.serve(mode, *options) as server:
        with Load(server.port) as load:
            wait_for(lambda: len(load.pids) >= workers, "several workers, one after another")
        load.check()
        # Others may have been given more while the successor began.
        server.wait_log(why)


#: A module of which the fork of a worker ends at once, if there is a file DIES.
DYING = """
import os

def die():
    try:
        os.unlink(os.environ["DIES"])
    except FileNotFoundError:
        return
    os._exit(1)

os.register_at_fork(after_in_child=die)

def application(environ, start_response):
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
"""


def test_a_successor_that_cannot_be_forked_is_forgotten(tmp_path: Path) -> None:
    """Another one takes the worker's place when it can be."""
    app, dies = tmp_path / "dying.py", tmp_path / "dies"
    app.write_text(DYING)
    options = ("--preload", "on", "--workers", "1", "--max-requests", "3")
    with Server(str(app), "single", *options, env={"DIES": str(dies)}) as server:
        dies.touch()
        first = server.get("/").body
        wait_for(lambda: server.get("/").body != first, "an answer of another worker")
        server.wait_log("a worker has ended before it could report itself")
        assert not dies.exists()


def test_a_worker_that_does_not_end_is_killed(versions: Versions) -> None:
    """It is retired and has a request that takes too long: that one is lost, and nothing else."""
    options = ("--graceful-timeout", "0.3", "--workers", "1")
    with versions.serve("threading", *options) as server:
        pid = told(server)["pid"]
        with server.connect() as connection:
            connection.send_request("GET", "/60000")
            # It is in hand when another is answered behind it.
            wait_for(lambda: told(server)["pid"] == pid, "an answer")
            reload(server)
            with Load(server.port) as load:
                server.wait_log(f"worker {pid} still had requests in flight and was killed")
            load.check()
            server.wait_log(f"worker {pid} was killed by SIGKILL")
            server.wait_log("GET /60000")


STUCK = """
import os
from tests.apps.slow import hold
def application(environ, start_response):
    if environ["PATH_INFO"] == "/stuck":
        hold()
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
"""


@pytest.mark.parametrize(("mode", "preload"), [("threading", "on"), ("gevent", "off")])
def test_a_worker_that_is_stuck_is_replaced(mode: str, preload: str, tmp_path: Path) -> None:
    """It is in C and holds the interpreter: its client gets 504, and others a new worker."""
    app = tmp_path / "stuck.py"
    app.write_text(STUCK)
    limits = ("--request-timeout", "0.2", "--graceful-timeout", "0.2")
    options = ("--workers", "1", "--preload", preload, *limits)
    with Server(f"{app}:application", mode, *options, tracebacks=True) as server:
        stuck = int(server.get("/").body)
        assert server.get("/stuck").status == 504
        server.wait_log(f"worker {stuck} is replaced: a request in it cannot be interrupted")
        server.wait_log(f"worker {stuck} was killed by SIGKILL")
        assert int(server.get("/").body) != stuck


def test_who_has_just_connected_is_heard(versions: Versions) -> None:
    """Also where idle connections are not: nobody connects for nothing."""
    options = ("--max-requests", "5", "--drain-timeout", "0", "--preload")
    with versions.serve("single", *options) as server:
        pids = {told(server)["pid"] for _ in range(100)}
        # A busy machine needs longer for another worker.
        wait_for(lambda: len({*pids, told(server)["pid"]}) > 1, "another worker")
