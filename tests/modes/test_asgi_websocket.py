"""WebSockets of ASGI applications: protocol cases, handshakes, limits, how they end."""

from __future__ import annotations

import signal
import socket
from ast import literal_eval
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from loadtests.studies.websocket import cases
from loadtests.studies.websocket.cases import Frame
from tests.modes.test_asgi import LOOP, events
from tests.support.browser import Browser
from tests.support.certificate import certificate
from tests.testkit.client import HANG, Connection
from tests.testkit.server import Server, patched, wait_for

websockets = pytest.importorskip("websockets")

from websockets.exceptions import ConnectionClosed  # noqa: E402
from websockets.sync.client import ClientConnection, connect  # noqa: E402

APP = "tests/apps/asgi_websockets.py"

HANDSHAKE = (
    *("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
GOING_AWAY = b"\x88\x02\x03\xe9"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(APP, "asyncio", *LOOP, "--access-log", "-", tracebacks=True) as running:
        yield running


@contextmanager
def opened(server: Server, path: str, **options: Any) -> Iterator[ClientConnection]:
    """A WebSocket of the package websockets, which pings nobody."""
    url = f"ws://127.0.0.1:{server.port}{path}"
    options = {"ping_interval": None, "proxy": None, "max_size": None, **options}
    with connect(url, open_timeout=HANG, close_timeout=HANG, **options) as client:
        yield client


def raw(server: Server, path: str) -> Connection:
    """A connection whose handshake was accepted, over TLS where that is what the server speaks."""
    connection = server.connect()
    connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if server.urls.startswith("https"):
        context = certificate().client_context()
        connection.socket = context.wrap_socket(connection.socket, server_hostname="localhost")
    connection.send_request("GET", path, *HANDSHAKE)
    assert connection.interim() == 101
    return connection


def receive(connection: Connection, size: int) -> bytes:
    """So many bytes of frames."""
    return connection._take(size)


def code(connection: Connection) -> int:
    """The code of the Close frame with which a connection ends."""
    found = connection.rest()
    assert found[0] == 0x88, found[:50]
    return int.from_bytes(found[2:4], "big")


def wait_event(server: Server, event: str) -> None:
    try:
        wait_for(lambda: any(event in each for each in events(server)), f"the event {event}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {events(server)}") from None


def test_protocol_cases(server: Server) -> None:
    """Those of the Autobahn test suite that send little; cargo's tests have all of them."""

    def verdict(case: cases.Case) -> str:
        with cases.upgraded(server.port) as connection:
            return cases.run(case, connection)

    chosen = cases.cases(1 << 12)
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip([case.number for case in chosen], pool.map(verdict, chosen), strict=True))
    assert len(found) > 200
    wrong = {number: each for number, each in found.items() if each not in (cases.OK, cases.ANY)}
    # Which frames a server has seen when it fails a connection depends on how they come.
    assert not wrong


def test_scope_and_subprotocol(server: Server) -> None:
    with opened(server, "/scope?a=%20b", subprotocols=["talk", "chat"]) as client:
        assert client.subprotocol == "chat"
        assert client.response is not None
        assert client.response.headers["x-path"] == "/scope"
        scope = literal_eval(str(client.recv()))
        headers = dict(scope.pop("headers"))
        assert headers[b"upgrade"] == b"websocket"
        assert scope.pop("client")[0] == "127.0.0.1"
        assert scope == {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "ws",
            "path": "/scope",
            "raw_path": b"/scope",
            "query_string": b"a=%20b",
            "root_path": "",
            "server": ("127.0.0.1", server.port),
            "subprotocols": ["talk", "chat"],
            "extensions": {"websocket.http.response": {}},
        }
        with pytest.raises(ConnectionClosed):
            client.recv()
        assert client.close_code == 1000, "the application has returned"


@pytest.mark.parametrize("compression", ["deflate", None])
def test_messages_of_all_sizes(server: Server, compression: str | None) -> None:
    with opened(server, "/echo", compression=compression) as client:
        large = bytes(range(256)) * 40_000
        for message in ("", "hello", "ü" * 70_000, b"", b"\0\1" * 70_000, large):
            client.send(message)
            assert client.recv() == message
        client.send([b"in ", b"three ", b"frames"])
        assert client.recv() == b"in three frames"
        assert client.ping(b"there?").wait(HANG)
        client.close(4000, "enough")
    wait_event(server, "left 4000 enough")


@pytest.mark.parametrize(
    ("path", "fields", "status", "words"),
    [
        ("/refused", HANDSHAKE, 403, b"the application has refused"),
        ("/denied", HANDSHAKE, 401, b"who are you?"),
        ("/fails", HANDSHAKE, 500, b"500"),
        ("/silent", HANDSHAKE, 500, b"500"),
        ("/split", HANDSHAKE, 500, b"500"),
        ("/echo", HANDSHAKE[:3], 400, b"Sec-WebSocket-Key"),
        ("/echo", (*HANDSHAKE[:2], HANDSHAKE[3]), 426, b"version"),
        ("/echo", (*HANDSHAKE[:2], "Sec-WebSocket-Version: 8", HANDSHAKE[3]), 426, b"version"),
        ("/echo", HANDSHAKE[1:], 200, b"http"),
    ],
)
def test_handshakes_that_are_refused(
    server: Server, path: str, fields: tuple[str, ...], status: int, words: bytes
) -> None:
    """HTTP goes on behind the answer."""
    connection = server.connect()
    answer = connection.request("GET", path, *fields)
    assert (answer.status, words in answer.body) == (status, True), answer.body
    names = ("Upgrade", "Connection", "Sec-WebSocket-Version")
    if status == 426:
        assert [answer.get(name) for name in names] == ["websocket", "upgrade", "13"]
    assert connection.request("GET", "/").body == b"http"
    if path == "/refused":
        wait_event(server, "{'type': 'websocket.disconnect', 'code': 1006, 'reason': ''}")


def test_clients_that_leave(server: Server) -> None:
    with server.connect() as connection:
        connection.send_request("GET", "/left", *HANDSHAKE)
        wait_event(server, "waits")
    wait_event(server, "an OSError: the client has left")
    raw(server, "/echo").close()
    wait_event(server, "left 1006")


def test_the_application_closes_or_fails(server: Server) -> None:
    connection = raw(server, "/close?4321,bye")
    assert connection.rest() == b"\x88\x05\x10\xe1bye"
    wait_event(server, "{'type': 'websocket.disconnect', 'code': 4321, 'reason': 'bye'}")
    wait_event(server, "an OSError: this WebSocket is closed")
    start = server.log_size()
    for path in ("/raise", "/wrong?websocket.send", "/wrong?websocket.accept", "/close?1005"):
        assert code(raw(server, path)) == 1011, path
    wait_for(lambda: "RuntimeError: meant to fail" in server.log(start), "the exception in the log")


def test_tasks_of_one_websocket(server: Server) -> None:
    connection = raw(server, "/tasks")
    assert receive(connection, 7) == b"\x81\x05other"
    connection.send(Frame("text", b"late").encoded())
    assert receive(connection, 6) == b"\x81\x04late"


def test_a_client_that_sends_much_leaves_others_their_turn(server: Server) -> None:
    connection = raw(server, "/turns?1000")
    connection.send(Frame("text", b"").encoded() * 1_000)
    assert int(receive(connection, 11)[2:]) > 20


def test_a_client_that_does_not_read() -> None:
    """The application waits in `send`, and nothing is lost; what floods it is not answered."""
    with Server(APP, "asyncio", *LOOP) as server:
        size = 12_000_000
        connection = raw(server, f"/large?{size}")
        header = b"\x82\x7f" + size.to_bytes(8, "big")
        assert receive(connection, len(header)) == header
        ping = Frame("ping", b"p").encoded()
        connection.send(ping * 10_000)
        assert "sent" not in events(server)
        received = receive(connection, size)
        assert received == b"x" * size
        wait_event(server, "sent")
        # At least the last one is answered.
        assert receive(connection, 3) == b"\x8a\x01p"
        leaver = raw(server, f"/large?{size}")
        assert receive(leaver, len(header)) == header
        leaver.reset()
        wait_event(server, "an OSError")


def test_a_task_that_waits_is_woken_at_the_end() -> None:
    """Its client does not read, and the application has returned."""
    launcher = patched("poorhttp.plugins.asgi.websocket", LAST_SEND=0.1)
    with Server(APP, "asyncio", *LOOP, launcher=launcher) as server:
        raw(server, "/returns")
        wait_event(server, "an OSError: this WebSocket is closed")


#: More than the kernel and the server keep for an application that takes nothing.
MUCH = 64 << 20


@pytest.mark.parametrize("size", [1, 100_000])
def test_an_application_that_does_not_receive(size: int) -> None:
    """So much is received and no more; later the application gets all of it."""
    with Server(APP, "asyncio", *LOOP) as server:
        connection = raw(server, "/slow")
        frames = Frame("binary", b"x" * size).encoded() * (100_000 // size)
        connection.socket.setblocking(False)
        sent, refusals = 0, 0
        while sent < MUCH and refusals < 20:
            try:
                sent += connection.socket.send(memoryview(frames)[sent % len(frames) :])
                refusals = 0
            except BlockingIOError:
                # It may read on while others are served.
                refusals += 1
                server.get("/")
        assert sent < MUCH
        server.get("/event?go")
        connection.socket.settimeout(HANG)
        connection.send(frames[sent % len(frames) :] + Frame("binary", b"").encoded())
        count = -(-sent // len(frames)) * (100_000 // size)
        answer = b"%d %d" % (count + 1, count * size)
        assert receive(connection, 2 + len(answer))[2:] == answer


def test_messages_that_are_too_large() -> None:
    most = 1 << 20
    with Server(APP, "asyncio", *LOOP, "--websocket-max-message", "1M") as server:
        connection = raw(server, "/echo")
        connection.send(Frame("binary", b"x" * most).encoded())
        assert len(receive(connection, most + 10)) == most + 10
        # The header of the frame is enough.
        header = Frame("binary", b"x" * (most + 1)).encoded()[:14]
        parts = Frame("binary", b"x" * most, fin=False).encoded() + Frame("more", b"x").encoded()
        for sent in (header, parts):
            connection = raw(server, "/echo")
            connection.send(sent)
            assert code(connection) == 1009
        with opened(server, "/echo", compression="deflate") as client:
            client.send(b"\0" * 50_000_000)
            with pytest.raises(ConnectionClosed):
                client.recv()
            assert client.close_code == 1009


def test_pings() -> None:
    """A client that answers stays, one of which nothing comes is closed."""
    options = ("--websocket-ping-interval", "0.2", "--websocket-ping-timeout", "0.2")
    with Server(APP, "asyncio", *LOOP, *options) as server:
        # On a busy machine the answer may come too late, but not each time.
        for _ in range(10):
            with opened(server, "/echo") as client:
                connection = raw(server, "/echo")
                assert receive(connection, 2) == b"\x89\x00"
                assert code(connection) == 1011
                wait_event(server, "left 1011 no answer to a ping")
                with suppress(ConnectionClosed):
                    client.send("still there")
                    assert client.recv() == "still there"
                    return
        pytest.fail("a client that answers pings is closed")


def test_no_compression() -> None:
    with (
        Server(APP, "asyncio", *LOOP, "--websocket-compression", "off") as server,
        opened(server, "/echo", compression="deflate") as client,
    ):
        assert client.response is not None
        assert "sec-websocket-extensions" not in client.response.headers


@pytest.mark.parametrize("is_secure", [False, True])
def test_all_are_closed_when_the_server_stops(is_secure: bool, tmp_path: Path) -> None:
    """Messages on their way still arrive; who does not answer does not hold up the end."""
    site, notes = tmp_path / "site.pem", tmp_path / "notes"
    certificate().write(site)
    tls = ("--tls-certificate", str(site)) if is_secure else ()
    bind = ("https://127.0.0.1:0" if is_secure else "127.0.0.1:0",)
    with Server(APP, "asyncio", *LOOP, *tls, bind=bind) as server:
        connections = [raw(server, f"/stays?{notes}") for _ in range(5)]
        server.process.send_signal(signal.SIGTERM)
        for connection in connections:
            assert receive(connection, 4) == GOING_AWAY
        for connection in connections[1:]:
            text, close = Frame("text", b"last"), Frame("close", GOING_AWAY[2:])
            connection.send(text.encoded() + close.encoded())
            assert connection.rest() == b""
        assert server.wait() == 0
        left = sorted(notes.read_text().splitlines())
        assert left == ["left 1001 behind ['last']"] * 4 + ["left 1001 behind []"]
        server.ended()


def test_a_reload_and_a_stop_without_patience() -> None:
    with Server(APP, "asyncio", *LOOP, "--graceful-timeout", "0") as server:
        for number in (signal.SIGHUP, signal.SIGTERM):
            connection = raw(server, "/echo")
            server.process.send_signal(number)
            assert connection.rest() == GOING_AWAY
            connection.close()
        assert server.wait() == 0
        server.ended()


def test_log_and_metrics(server: Server) -> None:
    connection = raw(server, "/echo?logged")
    connection.send(Frame("text", b"12345").encoded() + Frame("close", b"").encoded())
    assert connection.rest() == b"\x81\x0512345\x88\x00"
    connection.close()
    wait_for(lambda: "GET /echo?logged" in server.output() + server.log(), "the line of the log")
    [line] = [each for each in server.output().splitlines() if "/echo?logged" in each]
    assert '" 101 9' in line, line


def test_in_a_browser(server: Server, browser: Browser) -> None:
    browser.open(f"http://127.0.0.1:{server.port}/page")
    browser.wait_for("document.title != '-'")
    title = browser.run("document.title")
    assert title.startswith("chat,permessage-deflate"), title
    assert title.endswith(",true,4001,true"), title
    wait_event(server, "left 4001 enough")
