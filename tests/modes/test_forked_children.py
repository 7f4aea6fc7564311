"""Children that an application forks, and programs, keep nothing of the server's."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests.network.port import free_port
from tests.support.binary_upgrade import end, upgrade
from tests.support.each_value import DIFFERENT, each_value
from tests.testkit.process import children, lives
from tests.testkit.server import Server, run, wait_for

pytestmark = pytest.mark.each_mode

APP = "tests.apps.forking_children:application"

#: What a program ignores and blocks that these tests start.
OWN = run("cat", "/proc/self/status").stdout


def get(server: Server, target: str) -> str:
    answer = server.get(target)
    assert answer.status == 200, answer
    return answer.body.decode()


@pytest.fixture(
    scope="module",
    params=["threading", "forking", "gevent", pytest.param("single", marks=pytest.mark.full)],
)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(APP, request.param) as started:
        yield started


def skip_unknown(server: Server, way: str) -> None:
    """gevent's `os.waitpid` does not end for children that gevent has not forked."""
    if server.mode == "gevent" and way == "library":
        pytest.skip("gevent cannot wait for children of libraries")


@pytest.mark.parametrize(
    ("mode", "options"),
    each_value(
        ["threading", "forking", "single"], [(), ("--preload", "on"), ("--supervisor", "off")]
    ),
    indirect=["mode"],
)
def test_a_pool_ends(mode: str, options: tuple[str, ...]) -> None:
    if "--supervisor" in options and mode == "forking":
        pytest.skip("forking has several processes")
    with Server(APP, mode, *options) as server, server.connect() as client:
        for _ in range(10):
            assert client.request("GET", "/pool").body == b"285"


@pytest.mark.parametrize("way", ["python", "library"])
def test_a_child_ends_by_a_signal_at_once(server: Server, way: str) -> None:
    skip_unknown(server, way)
    for _ in range(10):
        assert get(server, f"/terminate?{way}") == str(-signal.SIGTERM)


@pytest.mark.parametrize("way", ["python", "library"])
def test_a_child_has_nothing_of_the_server(server: Server, way: str) -> None:
    skip_unknown(server, way)
    found = dict(re.findall(r"^(\w+):\s*(.*)", get(server, f"/signals?{way}"), re.MULTILINE))
    blocked, ignored, caught = (int(found[name], 16) for name in ("SigBlk", "SigIgn", "SigCgt"))
    # A shell has its programs in the background ignore SIGQUIT.
    ignored &= ~mask(OWN, "SigIgn")
    ours = [signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR2, signal.SIGALRM]
    ours += [signal.SIGTTIN, signal.SIGTTOU, signal.SIGRTMAX]
    for number in ours:
        assert not (blocked | ignored | caught) >> number - 1 & 1, signal.Signals(number).name
    if way == "python":
        # The application's own handler.
        assert caught >> signal.SIGUSR1 - 1 & 1
    kinds = ("socket:", "anon_inode:[eventpoll]", "anon_inode:[timerfd]")
    left = [where for fd, where in found.items() if fd.isdigit() and where.startswith(kinds)]
    # The one of gevent's own loop.
    assert len(left) <= (server.mode == "gevent"), found


def mask(status: str, field: str) -> int:
    """The signals of a field of `/proc/PID/status`."""
    return int(re.findall(rf"{field}:\s+(\w+)", status)[0], 16)


def test_programs_ignore_no_signal(server: Server) -> None:
    found = get(server, "/ignored")
    for field in ("SigIgn", "SigBlk"):
        assert mask(found, field) & ~mask(OWN, field) == 0
    assert get(server, "/hangup") == str(-signal.SIGHUP)


def test_what_was_ignored_at_the_start_stays_ignored() -> None:
    """As by nohup(1)."""
    with Server(APP, "threading", launcher=("nohup",)) as server:
        hangup = 1 << signal.SIGHUP - 1
        assert mask(get(server, "/ignored"), "SigIgn") & ~(mask(OWN, "SigIgn") & ~hangup) == hangup
        assert mask(get(server, "/signals?python"), "SigIgn") & hangup


@pytest.mark.parametrize(
    ("mode", "how", "action"),
    each_value(
        DIFFERENT, [signal.SIGTERM, signal.SIGKILL], ["/sleep?python", "/sleep?library", "/daemon"]
    ),
    indirect=["mode"],
)
def test_a_child_keeps_no_port(mode: str, how: signal.Signals, action: str) -> None:
    # No other test gets it when it is free.
    bind = (f"127.0.0.1:{free_port()}",)
    server = Server(APP, mode, bind=bind)
    workers = children(server.process.pid)
    child = int(get(server, action))
    try:
        server.process.send_signal(how)
        server.wait()
        for pid in workers:
            wait_for(lambda pid=pid: not lives(pid), "the end of a worker")  # type: ignore[misc]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port), 5)
        assert lives(child)
        with Server(APP, mode, bind=bind) as again:
            assert again.get("/").status == 200
    finally:
        os.kill(child, signal.SIGKILL)
        server.kill()


def test_a_connection_ends_with_its_worker(mode: str) -> None:
    """Its client sees the end, though a child lives on."""
    with Server(APP, mode, *(("--workers", "1") if mode == "forking" else ())) as server:
        (worker,) = children(server.process.pid)
        with server.connect() as client:
            child = int(client.request("GET", "/sleep?python").body)
            os.kill(worker, signal.SIGKILL)
            try:
                assert client.at_end()
            finally:
                os.kill(child, signal.SIGKILL)


def inherited(server: Server) -> tuple[str, list[str]]:
    """The worker that has answered, and what a program of it has beside the standard streams."""
    pid, _, listing = server.get("/").body.decode().partition("\n")
    found = re.findall(r" (\d+) -> (.*)", listing)
    assert len(found) > 3
    # The program itself has opened the folder.
    own = re.compile(r"/proc/\d+/fd")
    return pid, [where for fd, where in found if int(fd) > 2 and not own.fullmatch(where)]


@pytest.mark.parametrize(("mode", "preload"), [("threading", "on"), ("gevent", "off")])
def test_nothing_is_inherited(mode: str, preload: str, tmp_path: Path, folder: Path) -> None:
    pidfile, log = tmp_path / "pid", tmp_path / "error"
    options = (
        *("--preload", preload, "--pidfile", str(pidfile)),
        *("--access-log", str(tmp_path / "access"), "--error-log", str(log)),
        *("--request-timeout", "600", "--slow-request", "600", "--admin", f"unix:{folder}/admin"),
        *("--static", f"/files={tmp_path}"),
    )
    with Server("tests.apps.starting:application", mode, *options) as server:
        first, found = inherited(server)
        assert found == []
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: inherited(server)[0] != first, "a worker of the new version")
        assert inherited(server)[1] == []
        wait_for(lambda: "reloaded: the new version serves" in log.read_text(), "the reload")
        server.wait_log = lambda text, times=1: wait_for(  # type: ignore[method-assign]
            lambda: log.read_text().count(text) >= times, text
        )
        pid = upgrade(server, pidfile)
        assert inherited(server)[1] == []
        end(server, pid)
