"""Modes: workers, signals, many clients, slow clients, jumps of the wall clock."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from poorhttp.config.options.server import MODES as OURS
from poorhttp.modes import forking, single
from tests.conftest import Serve
from tests.support.load import Load
from tests.testkit.process import opened
from tests.testkit.server import AT_ONCE, MODES, ROOT, Server
from tests.testkit.versions import Versions

GATE = "tests/apps/gate.py"
ECHO = "tests/apps/echo.py"
ANSWERS = "tests/apps/answers.py"

POLLER = "anon_inode:[eventpoll]"


def process_of(server: Server) -> dict[str, Any]:
    """What the worker that answers says of itself."""
    answer: dict[str, Any] = server.get("/process").json()
    return answer


# Starting


def test_single_and_forking_differ_by_their_workers_only() -> None:
    """Hence the quick level runs `single` only here, and `forking` everywhere."""
    assert forking.run is single.run


@pytest.mark.each_mode("single")
def test_ready_line(serve: Serve, mode: str) -> None:
    server = serve(GATE)
    assert server.mode == mode
    assert server.workers == (2 if mode == "forking" else 1)
    workers = "2 workers" if mode == "forking" else "1 worker"
    assert f"listening on http://127.0.0.1:{server.port} ({mode}, {workers})\n" in server.log()


@pytest.mark.each_mode
def test_gevent_patches_before_the_application_is_imported(serve: Serve, mode: str) -> None:
    process = process_of(serve(GATE))
    assert process["patched_before_import"] == (mode == "gevent")
    assert process["gevent"] == (mode == "gevent"), "gevent is imported where it is not used"


# Stopping


def test_idle_connections_do_not_hold_it(mode: str) -> None:
    with Server(GATE, mode, "--drain-timeout", "0.1") as server:
        used, fresh = server.connect(), server.connect()
        used.request("GET", "/process")
        server.process.terminate()
        assert used.at_end()
        assert fresh.at_end()
        assert server.wait() == 0
        server.ended()


# Workers


@pytest.mark.each_mode
def test_fork_safety(serve: Serve) -> None:
    """Workers share a listening socket and nothing else; what one does, no other feels."""
    server = serve(GATE, "--workers", "2")
    for pid in {process_of(server)["pid"] for _ in range(50)}:
        assert POLLER in opened(pid), "a worker without a poller of its own"
    assert POLLER not in opened(server.process.pid), "a poller was made before the fork"
    assert psutil.Process(server.process.pid).num_threads() == 1, "a thread before the fork"


# Many clients


@pytest.mark.each_mode
def test_requests_at_once(serve: Serve, mode: str, tmp_path: Path) -> None:
    """As many as the mode promises are run together; one more is answered behind them."""
    server = serve(GATE)
    gate = tmp_path / "gate"
    held = []
    for number in range(AT_ONCE[mode]):
        # One by one: a process may accept several connections before it answers the first.
        held.append(server.connect())
        held[-1].send_request("GET", f"/wait?{gate}")
        server.wait_log(f"entered {gate}\n", number + 1)
    with server.connect() as behind:
        behind.send_request("GET", "/process")
        gate.touch()
        for connection in held:
            assert connection.response().json() == "waited"
        assert behind.response().status == 200


# Slow clients


@pytest.mark.each_mode
def test_a_slow_upload_holds_nobody(serve: Serve) -> None:
    # Connections may be idle for as long as a busy machine needs for all the others.
    server = serve(ECHO, "--header-timeout", "600", "--keepalive-timeout", "600")
    uploads = [server.connect() for _ in range(20)]
    for upload in uploads:
        upload.send(b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234")
    for _ in range(20):
        assert server.get("/").status == 200
    for upload in uploads:
        upload.send(b"56789")
        assert upload.response().json()["body"] == "0123456789"
        upload.close()


@pytest.mark.each_mode
def test_a_slow_reader_holds_nobody(serve: Serve) -> None:
    """An answer that is known at once is the server's to deliver, not the application's."""
    server = serve(ANSWERS)
    readers = [server.connect() for _ in range(10)]
    for reader in readers:
        reader.send_request("GET", "/large")
    for _ in range(20):
        assert server.get("/one").body == b"hello"
    for reader in readers:
        assert len(reader.response().body) == 5_000_000
        reader.close()


#: For Python; the core asks for the time of day to write dates, and for nothing else.
JUMPING = """
import itertools, time
real, jumps = time.time, itertools.cycle([0, 86400, -86400, 3.2e9])
time.time = lambda: real() + next(jumps)
time.time_ns = lambda: int(time.time() * 1e9)
"""


def test_a_clock_that_jumps(mode: str, tmp_path: Path) -> None:
    """Timeouts are as they were."""
    (tmp_path / "sitecustomize.py").write_text(JUMPING)
    versions = Versions(tmp_path)
    options = ("--max-lifetime", "3600", "--request-timeout", "30", "--graceful-timeout", "20")
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with versions.serve(mode, *options, env=env) as server:
        with Load(server.port) as load:
            load.wait_more(50)
            versions.set("2")
            server.process.send_signal(signal.SIGHUP)
            load.wait_version("2")
            load.wait_more(50)
        load.check()
        assert "max_lifetime" not in server.log()


def test_every_mode_is_tested() -> None:
    """But for `asyncio`, which has applications of another kind: test_asgi.py."""
    assert {*MODES, "asyncio"} == {*OURS}
