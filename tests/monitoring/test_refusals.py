"""Requests that the server itself refuses, and connections that wait until they are accepted."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.status_reader import Admin
from tests.testkit.client import HANG, Connection
from tests.testkit.process import stopped, workers
from tests.testkit.server import Server, run, wait_for

if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Refusal

APP = "tests.apps.statuses:application"

#: What a client sends; status, reason and line of the refusal.
REFUSED = [
    (b"GET /a\x1b[31m HTTP/1.1\r\n\r\n", 400, "malformed request line", r"GET /a\x1b[31m HTTP/1.1"),
    (b"\x16\x03\x01 no TLS here\r\n\r\n", 400, "malformed", r"\x16\x03\x01 no TLS here"),
    (b"GET /2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "than one Host", "GET /2 HTTP/1.1"),
    (b"GET /x HTTP/3.0\r\nHost: test\r\n\r\n", 505, "version", "GET /x HTTP/3.0"),
    (
        *(b"GET /long" + b"x" * 9_000 + b" HTTP/1.1\r\nHost: test\r\n\r\n", 414, "line"),
        ("GET /long" + "x" * 300)[:248],
    ),
    (
        *(b"POST /up HTTP/1.1\r\nHost: test\r\nContent-Length: 2000000\r\n\r\n", 413, "body"),
        "POST /up HTTP/1.1",
    ),
    (b"GET /h HTTP/1.1\r\nX: " + b"x" * 17_000 + b"\r\n\r\n", 431, "header", "GET /h HTTP/1.1"),
]  # fmt: skip


@pytest.fixture
def admin(folder: Path) -> Admin:
    return Admin(folder)


@pytest.fixture
def server(admin: Admin) -> Iterator[Server]:
    options = ("--max-body", "1000000", "--header-timeout", "1", "--request-id", "on")
    with Server(APP, "threading", *options, *admin.options) as server:
        yield server


def shown(admin: Admin) -> str:
    """What `ctl status` prints."""
    words = ("python3", "-m", "poorhttp", "ctl", "--admin", f"unix:{admin.path}", "status")
    return run(*words).stdout


def test_each_is_shown(admin: Admin, server: Server) -> None:
    """With its reason, its client, and what it has sent; also when its worker has died."""
    clients = []
    ids = []
    for data, status, _, _ in REFUSED:
        with server.connect() as connection:
            clients.append("{}:{}".format(*connection.socket.getsockname()))
            connection.send(data)
            response = connection.response()
            assert response.status == status
            ids.append(response.get("X-Request-ID"))
    with server.connect() as slow:
        slow.send(b"GET /slow HT")
        assert slow.response().status == 408

    def check(found: list[Refusal]) -> None:
        late, *others = found
        assert (late["status"], late["line"]) == (408, "GET /slow HT")
        assert late["reason"] == "the request did not come in time"
        assert [each["client"] for each in others] == clients[::-1]
        assert [each["id"] for each in others] == ids[::-1]
        for each, (_, status, reason, line) in zip(others, REFUSED[::-1], strict=True):
            assert (each["status"], each["line"]) == (status, line)
            assert reason in each["reason"]
            # As in the log.
            server.wait_log(f"refused with {status} ({each['reason']})")
        assert all(abs(each["when"] - time.time()) < HANG for each in found)
        assert [each["number"] for each in found] == list(range(len(found), 0, -1))

    # The worker notes a refusal when its response has been sent.
    service = admin.wait(lambda each: len(each["refusals"]) == len(REFUSED) + 1, "all refusals")
    check(service["refusals"])
    # Errors of the server are among the last errors as well.
    assert [each["line"] for each in service["errors"]] == ["GET /x HTTP/3.0"]
    (pid,) = workers(server.process.pid)
    assert {each["pid"] for each in service["refusals"]} == {pid}
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: workers(server.process.pid) not in ([], [pid]), "a new worker")
    check(admin.service()["refusals"])
    # Of an operator at a terminal.
    text = shown(admin)
    assert "Last refusals by the server itself:" in text
    assert "the request did not come in time" in text
    assert text.replace("\n", "").isprintable()


def test_only_the_last_are_kept(admin: Admin, server: Server) -> None:
    with_body = "POST /{} HTTP/1.1\r\nHost: test\r\nContent-Length: 2000000\r\n\r\n"
    for number in range(25):
        with server.connect() as connection:
            connection.send(with_body.format(number).encode())
            assert connection.response().status == 413
    came = lambda each: [one["number"] for one in each["refusals"][:1]] == [25]  # noqa: E731
    last = admin.wait(came, "the last")["refusals"]
    lines = [each["line"] for each in last]
    assert lines == [f"POST /{number} HTTP/1.1" for number in range(24, 4, -1)]


def waiting(admin: Admin, expected: int) -> Callable[[], bool]:
    return lambda: [each["waiting"] for each in admin.service()["accept_queues"]] == [expected] * 2


def test_by_default_the_kernel_keeps_what_comes_in_a_second_of_overload(admin: Admin) -> None:
    """The kernel drops connections for which its queue has no room; clients try again after 1 s."""
    allowed = int(Path("/proc/sys/net/core/somaxconn").read_text())
    with Server(APP, "single", *admin.options):
        (queue,) = admin.service()["accept_queues"]
        assert queue["limit"] == min(4096, allowed)


def test_connections_that_wait_in_the_kernel(admin: Admin, folder: Path) -> None:
    """Of each address, while the only worker is stopped: no worker is asked for it."""
    path = folder / "server"
    options = ("--bind", f"unix:{path}", "--backlog", "7", *admin.options)
    with Server(APP, "single", *options) as server:
        limits = [(each["waiting"], each["limit"]) for each in admin.service()["accept_queues"]]
        assert limits == [(0, 7), (0, 7)]
        (pid,) = workers(server.process.pid)
        connections: list[Connection] = []
        with stopped(pid):
            for _ in range(3):
                connections += [server.connect(), Connection(str(path))]
            wait_for(waiting(admin, 3), "three wait at each address")
            urls = [each["url"] for each in admin.service()["accept_queues"]]
            assert urls == [f"http://127.0.0.1:{server.port}", f"unix:{path}"]
            assert f"unix:{path}: 3 connections wait to be accepted, of 7\n" in shown(admin)
            with Connection(admin.path) as connection:
                metrics = connection.request("GET", "/metrics").body.decode()
            assert f'poorhttp_accept_queue{{address="unix:{path}"}} 3\n' in metrics
            assert f'poorhttp_accept_queue_limit{{address="{urls[0]}"}} 7\n' in metrics
        wait_for(waiting(admin, 0), "all are accepted")
        for each in connections:
            each.close()


def test_where_netlink_is_forbidden(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Unix sockets are left out; the document is made all the same."""
    from poorhttp.net.listener import Listener
    from poorhttp.plugins.monitor import accept_queue, unread

    def fail(states: int) -> None:
        raise OSError(97, "Address family not supported by protocol")

    monkeypatch.setattr(unread, "unix_queues", fail)
    unix, tcp = socket.socket(socket.AF_UNIX), socket.socket()
    unix.bind(str(folder / "socket"))
    tcp.bind(("127.0.0.1", 0))
    for each in (unix, tcp):
        each.listen(3)
    listeners = [Listener(each, ("127.0.0.1", 0, 0, None)) for each in (unix, tcp)]
    (only,) = accept_queue.accept_queues(listeners)
    assert only == {"url": listeners[1].url, "waiting": 0, "limit": 3}
    for listener in listeners:
        listener.release()
    assert accept_queue.accept_queues(listeners) == []
