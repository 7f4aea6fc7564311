"""Responses that stream leave the count of `threads`; handlers ask for the end of their client."""

from __future__ import annotations

import signal
import socket
import ssl
from ast import literal_eval
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Serve
from tests.support.certificate import certificate
from tests.support.status_reader import Admin
from tests.support.tls_client import BIND, VERSIONS, context, write
from tests.testkit.client import HANG, Connection
from tests.testkit.server import Server, mode_options, wait_for

APP = "tests/apps/event_streams.py"

ANOTHER = b"GET /light HTTP/1.1\r\nHost: a\r\n\r\n"
MESSAGE = "streaming_threads = 1): further responses that stream keep threads of the pool\n"


def opened(server: Server, path: str, *, begins: bool = True) -> Connection:
    """A connection whose response has begun, if it does."""
    connection = server.connect()
    connection.send_request("GET", path)
    if begins:
        # Its first piece is sent with its head.
        assert connection.socket.recv(1, socket.MSG_PEEK)
    return connection


def ask(server: Server, path: str) -> Any:
    return literal_eval(server.get(path).body.decode())


@pytest.fixture
def admin(tmp_path: Path) -> Admin:
    return Admin(tmp_path)


def streaming(admin: Admin) -> tuple[int, int, int]:
    """Responses that stream, those whose threads have left, and other requests in flight."""
    figures = admin.figures()
    return (figures["streaming"], figures["streaming_threads"], figures["in_flight"])


def wait_streaming(admin: Admin, *expected: int) -> None:
    wait_for(lambda: streaming(admin) == expected, f"{expected} responses stream")


def end(server: Server, admin: Admin, *streams: Connection) -> None:
    """End the streams, which are whole, and have the threads end that are too many."""
    assert ask(server, "/end") == "light"
    for stream in streams:
        assert stream.response().body.endswith(b"last\n\n")
    wait_streaming(admin, 0, 0, 0)


def test_more_streams_than_threads(admin: Admin) -> None:
    """Others are answered beside them, and the pool has its threads back in the end."""
    with Server(APP, "threading", "--threads", "4", *admin.options) as server:
        alive = 1 + 4
        wait_for(lambda: ask(server, "/alive") == alive, "the pool has all threads")
        streams = [opened(server, "/events", begins=False) for _ in range(40)]
        assert ask(server, "/light") == "light"
        wait_streaming(admin, 40, 40, 0)
        assert ask(server, "/alive") == alive + 40
        (worker,) = admin.service()["workers"]
        assert [each["streaming"] for each in worker["working_on"]] == [True] * 40
        end(server, admin, *streams)
        wait_for(lambda: ask(server, "/alive") == alive, "threads that are too many end")
        assert "streaming_threads" not in server.log()


def test_as_many_leave_as_may(admin: Admin) -> None:
    options = ("--threads", "3", "--streaming-threads", "1", *admin.options)
    with Server(APP, "threading", *options) as server:
        streams = [opened(server, "/events") for _ in range(2)]
        wait_streaming(admin, 2, 1, 1)
        server.wait_log(MESSAGE)
        third = opened(server, "/events")
        wait_streaming(admin, 3, 1, 2)
        # The pool has one thread left.
        assert ask(server, "/light") == "light"
        assert server.log().count("streaming_threads") == 1
        end(server, admin, *streams, third)
        # There is room again.
        again = opened(server, "/events")
        wait_streaming(admin, 1, 1, 0)
        end(server, admin, again)


def test_none_leaves(admin: Admin) -> None:
    options = ("--threads", "2", "--streaming-threads", "0", *admin.options)
    with Server(APP, "threading", *options) as server:
        stream = opened(server, "/events")
        wait_streaming(admin, 1, 0, 1)
        end(server, admin, stream)
        assert "streaming_threads" not in server.log()


def test_who_leaves(admin: Admin) -> None:
    """Those that came later leave; who waits before the response, or computes, stays."""
    with Server(APP, "threading", "--threads", "5", *admin.options) as server:
        before = opened(server, "/before", begins=False)
        computed = opened(server, "/computed")
        wait_streaming(admin, 0, 0, 2)
        streams = [opened(server, path) for path in ("/written", "/events")]
        wait_streaming(admin, 2, 2, 2)
        names = ask(server, "/threads")
        assert {path: name.endswith("-streaming") for path, name in names.items()} == {
            "/before": False,
            "/computed": False,
            "/written": True,
            "/events": True,
        }
        end(server, admin, *streams)
        assert before.response().body == b"'light'"
        assert computed.response().status == 200


def test_a_stop_waits_for_streams(admin: Admin) -> None:
    """As for any other request, whichever threads run them."""
    with Server(APP, "threading", "--threads", "2", *admin.options) as server:
        streams = [opened(server, "/events") for _ in range(2)]
        wait_streaming(admin, 2, 2, 0)
        last = server.connect()
        last.send(b"GET /end HTTP/1.1\r\n")
        server.process.send_signal(signal.SIGTERM)
        wait_for(server.is_refusing, "the server stops")
        last.send(b"Host: a\r\n\r\n")
        for stream in streams:
            assert stream.response().body.endswith(b"last\n\n")
        assert server.wait() == 0
        server.ended()


@pytest.mark.each_mode
def test_streams_are_counted(mode: str, admin: Admin) -> None:
    """Only mode `threading` has another thread for them."""
    with Server(APP, mode, *mode_options(mode), *admin.options) as server:
        stream = opened(server, "/ticks")
        left = mode == "threading"
        wait_streaming(admin, 1, left, not left)
        stream.close()
        wait_streaming(admin, 0, 0, 0)
        assert ask(server, "/light") == "light"


@pytest.mark.each_mode
def test_a_client_closes_the_connection(serve: Serve) -> None:
    server = serve(APP)
    for end in (Connection.close, Connection.reset):
        end(opened(server, "/left"))
        wait_for(lambda: ask(server, "/seen") == [False, True], "the handler knows it")


#: Bytes that a client sends behind its request, whether it ends its input then, and whether that
#: means that it has left. One that sends another request may have sent its last.
BEHIND = [(b"", False, False), (ANOTHER, False, False), (ANOTHER, True, False), (b"", True, True)]


def check_end_of_the_input(
    connect: Callable[[], Connection], folder: Path, *, aborts: bool = True
) -> None:
    for data, is_end, is_left in BEHIND:
        gate = folder / f"{len(data)}{is_end}"
        with connect() as connection:
            connection.send_request("GET", f"/asked?{gate}")
            assert not connection.at_end()
            connection.send(data)
            if is_end:
                end_input(connection.socket)
            gate.touch()
            expected = [is_left and aborts] * 2
            assert connection.response().body == f"begun\n{expected}".encode()
            assert not data or connection.response().body == b"'light'"


def end_input(sock: socket.socket) -> None:
    """End what a client sends; a TLS session by its alert first, and go on reading."""
    if isinstance(sock, ssl.SSLSocket):
        sock.setblocking(False)
        with suppress(ssl.SSLWantReadError):
            sock.unwrap()
        sock.settimeout(HANG)
    # The method of a TLS socket would forget the session.
    socket.socket.shutdown(sock, socket.SHUT_WR)


@pytest.mark.each_mode
@pytest.mark.parametrize("abort_on_close", ["on", "off"])
def test_the_end_of_the_input(serve: Serve, tmp_path: Path, abort_on_close: str) -> None:
    server = serve(APP, "--abort-on-close", abort_on_close)
    check_end_of_the_input(server.connect, tmp_path, aborts=abort_on_close == "on")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_end_of_the_input_over_tls(tmp_path: Path, version: str) -> None:
    """The alert that ends a session is nothing that a client sends behind its request."""
    options = ("--tls-certificate", write(tmp_path, "site.pem", certificate().issued))

    def connect() -> Connection:
        connection = server.connect()
        made = context(version)
        connection.socket = made.wrap_socket(connection.socket, server_hostname="localhost")
        return connection

    with Server(APP, "threading", *options, bind=BIND) as server:
        check_end_of_the_input(connect, tmp_path)


@pytest.mark.each_mode
def test_only_the_thread_of_a_request_asks(serve: Serve, mode: str) -> None:
    what = "greenlet" if mode == "gevent" else "thread"
    text = ask(serve(APP), "/elsewhere")
    assert text == (
        f"poorhttp.client_disconnected was called in a {what} that runs no request: "
        f"only the {what} of a request can ask"
    )
