"""Protocol upgrade: which requests may have it, what both sides receive, and how it ends."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.support.certificate import certificate
from tests.support.tls_client import BIND, context, write
from tests.testkit.client import Connection
from tests.testkit.server import Server, wait_for
from tests.testkit.versions import Versions

APP = "tests/apps/protocol_upgrade.py"

ASKS = ("Connection: Upgrade", "Upgrade: anything")
WEBSOCKET = ("Connection: Upgrade", "Upgrade: websocket")
GOING_AWAY = b"\x88\x02\x03\xe9"
INTERNAL_ERROR = b"\x88\x02\x03\xf3"


def opened(server: Server, path: str, *fields: str) -> Connection:
    """A connection that the application has taken."""
    connection = server.connect()
    if server.urls.startswith("https"):
        made = context()
        connection.socket = made.wrap_socket(connection.socket, server_hostname="localhost")
    connection.send_request("GET", path, *(fields or ASKS))
    assert connection.interim() == 101
    return connection


def received(connection: Connection, length: int) -> bytes:
    return connection._take(length)


@pytest.mark.each_mode
def test_an_application_that_ignores_it_answers_on_a_kept_connection(serve: Serve) -> None:
    with serve(APP).connect() as connection:
        for _ in range(3):
            answer = connection.request("GET", "/plain", *ASKS)
            assert answer.body.startswith(b"plain True <poorhttp.upgrade of requ")
        connection.send(b"")
        assert connection.request("GET", "/plain").body.startswith(b"plain False None")


#: Requests, by what is the matter with them, and whether they are offered a connection.
REQUESTS = {
    "no protocol": ("GET HTTP/1.1", "Connection: upgrade", False),
    "no option": ("GET HTTP/1.1", "Upgrade: anything", False),
    "h2c": ("GET HTTP/1.1", "Connection: upgrade|Upgrade: h2c|HTTP2-Settings: AAAA", False),
    "ours": ("GET HTTP/1.1", "Connection: upgrade|Upgrade: TLS/1.2, HTTP/2.0", False),
    "no token": ("GET HTTP/1.1", "Connection: upgrade|Upgrade: web socket", False),
    "no version": ("GET HTTP/1.1", "Connection: upgrade|Upgrade: websocket/", False),
    "empty": ("GET HTTP/1.1", "Connection: upgrade|Upgrade: ,", False),
    "POST": ("POST HTTP/1.1", "|".join([*ASKS, "Content-Length: 0"]), False),
    "HTTP/1.0": ("GET HTTP/1.0", "|".join(ASKS), False),
    "HEAD": ("HEAD HTTP/1.1", "|".join(ASKS), False),
    "two options": ("GET HTTP/1.1", "Connection: keep-alive, Upgrade|Upgrade: WebSocket", True),
    "two protocols": ("GET HTTP/1.1", "Connection: upgrade|Upgrade: h2c, websocket", True),
    "two fields": ("GET HTTP/1.1", "Connection: upgrade|Upgrade: h2c|Upgrade: IRC/6.9", True),
    "close": ("GET HTTP/1.1", "Connection: close, upgrade|Upgrade: anything", True),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_who_is_offered_a_connection(serve: Serve, case: str) -> None:
    line, fields, offered = REQUESTS[case]
    method, version = line.split()
    with serve(APP).connect() as connection:
        request = (method, "/offered", *fields.split("|"))
        answer = connection.request(*request, version=version)
    expected = b"offered True" if offered else b"offered False None"
    assert answer.status == 200
    assert method == "HEAD" or answer.body.startswith(expected)


@pytest.mark.each_mode
def test_what_comes_goes_back(serve: Serve) -> None:
    """With what has come behind the request, in one piece with it."""
    with serve(APP).connect() as connection:
        lines = ["GET /echo HTTP/1.1", "Host: x", *ASKS, "", "early "]
        connection.send("\r\n".join(lines).encode())
        assert connection.interim() == 101
        connection.send(b"late")
        assert received(connection, 10) == b"early late"
        for data in (b"one", b"\0" * 5_000, bytes(range(256))):
            connection.send(data)
            assert received(connection, len(data)) == data
        connection.send(b"end")
        assert connection.rest() == b""


@pytest.mark.each_mode
@pytest.mark.parametrize(
    "path",
    ["StopIteration", "ConnectionError", "SystemExit", "response", "pieces", "return", "generator"],
)
def test_ends_of_applications(serve: Serve, path: str) -> None:
    server = serve(APP)
    with server.connect() as connection:
        connection.send_request("GET", f"/{path}", *ASKS)
        assert connection.interim() == 101
        sent = b"here" if path == "generator" else b""
        connection.send(sent)
        assert connection.rest() == sent
    if path == "pieces":
        server.wait_log("the response was closed")
    assert server.get("/plain").status == 200


@pytest.mark.each_mode
def test_what_another_thread_sends_is_sent(serve: Serve) -> None:
    """The application ends in the middle of it, as simple-websocket does with its Close frame."""
    with opened(serve(APP), "/leaves") as connection:
        assert received(connection, 1) == b"x"
        connection.send(b"1")
        assert len(connection.rest()) == (16 << 20) - 1


@pytest.mark.each_mode
def test_a_failure_is_logged_once(mode: str) -> None:
    with Server(APP, mode, tracebacks=True) as server:
        with opened(server, "/fail", *WEBSOCKET) as connection:
            connection.send(b"end")
            assert connection.rest() == INTERNAL_ERROR
        with opened(server, "/fail") as connection:
            connection.send(b"end")
            with pytest.raises(ConnectionResetError):
                connection.socket.recv(100)
        assert server.get("/plain").status == 200
        server.wait_log("Traceback", 2)
        assert server.log().count("Traceback") == 2


@pytest.mark.each_mode
def test_a_kept_socket_ends_with_its_request(serve: Serve) -> None:
    server = serve(APP)
    with opened(server, "/keep") as connection:
        connection.send(b"end")
        assert connection.rest() == b""
    server.wait_log("kept: ")


@pytest.mark.each_mode
def test_a_detached_descriptor_belongs_to_the_application(serve: Serve) -> None:
    server = serve(APP)
    with opened(server, "/detach") as connection:
        connection.send(b"end")
        assert received(connection, 8) == b"detached"
        assert server.get("/plain").status == 200
        connection.send(b"still there")
        assert received(connection, 11) == b"still there"


def test_so_many_threads_may_be_upgraded() -> None:
    with Server(APP, "threading", "--threads", "1", "--upgraded-threads", "2") as server:
        first, second = opened(server, "/echo"), opened(server, "/echo")
        answer = server.get("/echo", *ASKS)
        assert (answer.status, answer.get("Retry-After")) == (503, "5")
        assert server.get("/plain").status == 200
        first.send(b"end")
        assert first.rest() == b""
        wait_for(lambda: server.get("/offered", *ASKS).status == 200, "a free place")
        opened(server, "/echo")
        second.send(b"x")
        assert received(second, 1) == b"x"


@pytest.mark.parametrize("mode", ["threading", "gevent"])
def test_request_timeout_does_not_apply(mode: str) -> None:
    options = ("--request-timeout", "0.3", "--threads", "2")
    with (
        Server(APP, mode, *options, tracebacks=True) as server,
        opened(server, "/echo") as connection,
    ):
        assert server.get("/timeout").status == 504
        connection.send(b"x")
        assert received(connection, 1) == b"x"


def stop_between_two_frames(server: Server) -> None:
    """Stop a server while its application sends a frame."""
    with server:
        connection = opened(server, "/frames", *WEBSOCKET)
        assert received(connection, 4) == b"\x81\x05he"
        server.process.send_signal(signal.SIGTERM)
        connection.send(b".")
        assert received(connection, 7) == b"llo" + GOING_AWAY
        connection.send(b"\x88\x80abcd")
        assert connection.rest() == b""
        assert server.wait() == 0
        assert re.search("frames: (BrokenPipeError|end)", server.log())
        server.ended()


@pytest.mark.each_mode
def test_stop_sends_a_close_frame_between_two_frames(mode: str) -> None:
    stop_between_two_frames(Server(APP, mode))


def test_stop_sends_a_close_frame_over_tls(mode: str, tmp_path: Path) -> None:
    tls = ("--tls-certificate", write(tmp_path, "site.pem", certificate().issued))
    stop_between_two_frames(Server(APP, mode, *tls, bind=BIND))


@pytest.mark.each_mode
def test_stop_ends_the_input_of_other_protocols(mode: str) -> None:
    with Server(APP, mode) as server:
        connection = opened(server, "/echo")
        connection.send(b"x")
        assert received(connection, 1) == b"x"
        server.process.send_signal(signal.SIGTERM)
        assert connection.rest() == b""
        assert server.wait() == 0
        server.ended()


def test_reload_tells_them(versions: Versions, mode: str) -> None:
    with Server(APP, mode, "--workers", "2", env={"VERSION_FILE": str(versions.path)}) as server:
        connection = opened(server, "/frames", *WEBSOCKET)
        received(connection, 4)
        connection.send(b".")
        received(connection, 3)
        versions.set("second")
        server.process.send_signal(signal.SIGHUP)
        assert received(connection, 4) == GOING_AWAY
        connection.send(b"\x88\x80abcd")
        assert connection.rest() == b""
        wait_for(lambda: server.get("/plain").body.endswith(b"second"), "the new version")


def test_access_log(tmp_path: Path, mode: str) -> None:
    log = tmp_path / "access.log"
    options = ("--access-log", str(log), "--access-log-format", "%m %U %s %B %O")
    with Server(APP, mode, *options) as server:
        with opened(server, "/echo") as connection:
            connection.send(b"hello")
            assert received(connection, 5) == b"hello"
            connection.send(b"end")
            assert connection.rest() == b""
        wait_for(log.read_text, "the line")
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: anything\r\nConnection: Upgrade\r\n\r\n"
    assert log.read_text().splitlines() == [f"GET /echo 101 5 {len(head) + 5}"]
