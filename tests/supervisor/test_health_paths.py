"""Health paths: answered by the server itself, also while it drains."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.supervisor.reloads import reload
from tests.supervisor.service_manager import ServiceManager
from tests.supervisor.stops import wait_end, wait_refusing
from tests.support.health_probe import ask, wait_status
from tests.testkit.process import children, stopped
from tests.testkit.server import Server, wait_for
from tests.testkit.versions import Versions, told

ECHO = "tests/apps/echo.py"
GATE = "tests/apps/gate.py"
HEALTH = ("--health", "/-")

NOT_READY = "not ready: the server was told to stop"

#: Longer than any test: what happens was not waited for.
NEVER = "600"

#: Method, target, status, and the text; `None` for the application's answer.
QUESTIONS = [
    ("GET", "/-/live", 200, b"live\n"),
    ("GET", "/-/ready", 200, b"ready\n"),
    ("HEAD", "/-/live", 200, b""),
    ("HEAD", "/-/ready", 200, b""),
    ("GET", "/-/ready?of=me", 200, b"ready\n"),
    ("GET", "/%2D/%6Cive", 200, b"live\n"),
    ("GET", "http://any.example/-/ready", 200, b"ready\n"),
    ("POST", "/-/ready", 405, b"health can be read only\n"),
    ("DELETE", "/-/live", 405, b"health can be read only\n"),
    ("GET", "/-/", 200, None),
    ("GET", "/-", 200, None),
    ("GET", "/-/metrics", 200, None),
    ("GET", "/-/liver", 200, None),
    ("GET", "/-/live/", 200, None),
    ("GET", "/-//live", 200, None),
    ("GET", "/live", 200, None),
    ("GET", "/x/-/live", 200, None),
]


@pytest.mark.parametrize(
    ("method", "target", "status", "body"),
    QUESTIONS,
    ids=[" ".join(case[:2]) for case in QUESTIONS],
)
def test_questions(serve: Serve, method: str, target: str, status: int, body: bytes | None) -> None:
    server = serve(ECHO, *HEALTH)
    with server.connect() as connection:
        for _ in range(3):
            response = connection.request(method, target)
            assert response.status == status
            if body is None:
                assert b"PATH_INFO" in response.body
            else:
                assert response.body == (b"" if method == "HEAD" else body)
                assert response.get("Cache-Control") == "no-store"
                assert response.get("Content-Type") == "text/plain; charset=utf-8"
                assert response.get("Allow") == ("GET, HEAD" if status == 405 else None)


def test_old_clients_and_any_host(serve: Serve) -> None:
    """HAProxy asks with HTTP/1.0 and without a host unless it is told otherwise."""
    server = serve(ECHO, *HEALTH)
    with server.connect() as connection:
        assert connection.request("GET", "/-/ready", version="HTTP/1.0").body == b"ready\n"
        assert connection.at_end()
    with server.connect() as connection:
        connection.send(b"GET /-/ready HTTP/1.1\r\nHost: 10.0.0.1:8080\r\n\r\n")
        assert connection.response().body == b"ready\n"
        # A request of the application on the same connection, and the other way round.
        assert b"PATH_INFO" in connection.request("GET", "/").body
        assert connection.request("GET", "/-/live").body == b"live\n"


def test_a_body_is_not_waited_for(serve: Serve) -> None:
    server = serve(ECHO, *HEALTH)
    with server.connect() as connection:
        connection.send_request("POST", "/-/ready", "Content-Length: 1000000000")
        assert connection.response().status == 405
        assert connection.at_end()


def test_without_the_option_the_paths_are_the_applications(serve: Serve) -> None:
    server = serve(ECHO)
    for path in ("/-/live", "/-/ready"):
        assert b"PATH_INFO" in server.get(path).body


def test_before_folders_and_hosts(mode: str, tmp_path: Path) -> None:
    (tmp_path / "-").mkdir()
    (tmp_path / "-" / "ready").write_text("a file")
    (tmp_path / "-" / "other").write_text("another file")
    config = tmp_path / "poorhttp.ini"
    config.write_text(
        f"[http]\nhealth = /-\nstatic = /-={tmp_path}/-\n[host:a.example]\nstatic = /={tmp_path}\n"
    )
    with Server(ECHO, mode, "-c", str(config)) as server:
        for host in ("test", "a.example"):
            with server.connect() as connection:
                for path, body in (("/-/ready", b"ready\n"), ("/-/other", b"another file")):
                    connection.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                    assert connection.response().body == body


def test_who_asks_is_no_client(mode: str, tmp_path: Path, versions: Versions) -> None:
    """Not logged, not counted among max_requests; requests are."""
    log = tmp_path / "access"
    options = ("--max-requests", "5", "--workers", "1", "--access-log", str(log))
    with versions.serve(mode, *HEALTH, *options) as server:
        (worker,) = children(server.process.pid)
        with server.connect() as connection:
            for _ in range(50):
                assert connection.request("GET", "/-/ready").status == 200
        for _ in range(4):
            assert told(server)["pid"] == worker
        assert "is replaced" not in server.log()
        told(server)
        server.wait_log("is replaced: it has begun max_requests requests")
        wait_for(lambda: told(server)["pid"] != worker, "the next worker")
        server.stop()
    lines = log.read_text()
    assert "/-/ready" not in lines
    assert lines.count("GET / ") >= 6


# The drain


def told_to_stop(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    # Each worker is told in its own time; none is asked twice in a row by the same chance.
    for _ in range(20):
        assert wait_status(("127.0.0.1", server.port), 503) == NOT_READY


@pytest.mark.parametrize(
    ("mode", "supervisor", "number"),
    [
        ("forking", "on", signal.SIGTERM),
        ("threading", "off", signal.SIGINT),
        ("gevent", "on", signal.SIGQUIT),
    ],
)
def test_drained_servers_serve(
    mode: str, supervisor: str, number: signal.Signals, tmp_path: Path
) -> None:
    """With a main process and without one, which `forking` has not: there it serves as `single`."""
    workers = "2" if supervisor == "on" else "1"
    options = ("--supervisor", supervisor, "--drain-delay", NEVER, "--workers", workers)
    with Server(GATE, mode, *HEALTH, *options, "--drain-timeout", "0.1") as server:
        kept, asking = server.connect(), server.connect()
        assert kept.request("GET", "/process").status == 200
        assert asking.request("GET", "/-/ready").status == 200
        told_to_stop(server)
        assert asking.request("GET", "/-/ready").status == 503
        assert asking.request("GET", "/-/live").status == 200
        for connection in (kept, server.connect()):
            for _ in range(3):
                response = connection.request("GET", "/process")
                assert response.status == 200
                assert response.get("Connection") is None
        # What is in hand when the delay is ended is finished.
        busy = server.enter(gate := tmp_path / "gate")
        server.process.send_signal(number)
        wait_refusing(server)
        gate.touch()
        answer = busy.response()
        assert (answer.status, answer.get("Connection")) == (200, "close")
        wait_end(server)


def test_who_dies_while_draining_is_replaced(mode: str) -> None:
    options = ("--drain-delay", NEVER, "--workers", "2")
    with Server(GATE, mode, *HEALTH, *options) as server:
        told_to_stop(server)
        before = set(children(server.process.pid))
        os.kill(min(before), signal.SIGKILL)
        wait_for(lambda: len(set(children(server.process.pid)) - before) == 1, "a new worker")
        (other,) = before & set(children(server.process.pid))
        with stopped(other):
            # Now only the new one can answer; it was told as well.
            assert wait_status(("127.0.0.1", server.port), 503) == NOT_READY
            assert server.get("/process").json()["pid"] not in before
        # Neither a reload nor an upgrade begins now.
        for number in (signal.SIGHUP, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU):
            server.process.send_signal(number)
            server.wait_log(f"{number.name} has no effect: the server is drained")
        assert ask(("127.0.0.1", server.port))[0] == 503
        server.process.send_signal(signal.SIGTERM)
        wait_refusing(server)
        assert "reloading" not in server.log()
        assert "new main process" not in server.log()
        wait_end(server)


def test_the_delay_ends_by_itself(folder: Path) -> None:
    options = ("--supervisor", "off", "--workers", "1", "--drain-delay", "0.5")
    with (
        ServiceManager(folder / "notify") as manager,
        Server(GATE, "gevent", *HEALTH, *options, env=manager.env) as server,
    ):
        server.process.terminate()
        manager.until("STOPPING")
        server.wait_log("the stop begins in 0.5 s (TERM)")
        wait_end(server)


def test_without_a_delay_who_asks_is_told_as_well(mode: str) -> None:
    with Server(GATE, mode, *HEALTH, "--drain-timeout", NEVER, "--workers", "1") as server:
        with server.connect() as connection, server.connect() as another:
            for asking in (connection, another):
                assert asking.request("GET", "/-/ready").status == 200
            server.process.send_signal(signal.SIGTERM)
            wait_refusing(server)
            for asking in (connection, another):
                response = asking.request("GET", "/-/ready")
                assert (response.status, response.get("Connection")) == (503, "close")
        wait_end(server)


# What is no drain


def test_who_retires_is_ready(mode: str, versions: Versions) -> None:
    """Others serve: whoever asks a worker that finishes means the server."""
    with versions.serve(mode, *HEALTH, "--workers", "1", "--drain-timeout", NEVER) as server:
        with server.connect() as connection, server.connect() as late:
            assert connection.request("GET", "/-/ready").status == 200
            assert late.request("GET", "/-/ready").status == 200
            reload(server)
            response = connection.request("GET", "/-/ready")
            assert (response.status, response.body) == (200, b"ready\n")
        server.stop()
