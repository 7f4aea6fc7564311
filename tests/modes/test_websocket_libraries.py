"""flask-sock, Flask-SocketIO and gevent-websocket as they are, with real clients."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.testkit.client import HANG
from tests.testkit.server import Server, join, wait_for

flask_sock = pytest.importorskip("flask_sock")
socketio = pytest.importorskip("socketio")
requests = pytest.importorskip("requests")
geventwebsocket = pytest.importorskip("geventwebsocket")
websocket = pytest.importorskip("websocket")

APP = "tests/apps/websockets_served.py"


@contextmanager
def connect(server: Server, path: str, **options: Any) -> Iterator[Any]:
    """A WebSocket of the package websocket-client.

    Its method `close` leaves the socket open if a close frame has been sent, `shutdown` does not.
    """
    url = f"ws://127.0.0.1:{server.port}{path}"
    ws = websocket.create_connection(url, timeout=HANG, **options)
    try:
        yield ws
    finally:
        ws.shutdown()


@pytest.mark.parametrize("mode", ["threading", "gevent"])
def test_flask_sock(mode: str) -> None:
    """It echoes, and all connections are closed cleanly when the server stops."""
    with Server(APP, mode) as server, ExitStack() as stack:
        with connect(server, "/echo", subprotocols=["talk", "chat"]) as ws:
            assert ws.getsubprotocol() == "chat"
            for text in ("", "hello", "ü" * 70_000):
                ws.send(text)
                assert ws.recv() == text
            ws.send_binary(b"\0\1" * 1_000_000)
            assert ws.recv() == b"\0\1" * 1_000_000
            ws.ping("there?")
            ws.send("behind a ping")
            assert ws.recv() == "behind a ping"
            ws.send_close(1000)
            assert ws.recv_data() == (8, (1000).to_bytes(2, "big"))
        sockets = [stack.enter_context(connect(server, "/echo")) for _ in range(10)]
        for ws in sockets:
            ws.send("x")
            assert ws.recv() == "x"
        server.process.send_signal(signal.SIGTERM)
        for ws in sockets:
            assert ws.recv_data() == (8, (1001).to_bytes(2, "big"))
        stack.close()
        assert server.wait() == 0
        server.ended()


@pytest.mark.parametrize(
    ("mode", "transports"),
    # Only gevent has a package of its own.
    [("threading", ["websocket"]), ("gevent", ["polling", "websocket"])],
)
def test_flask_socketio(mode: str, transports: list[str]) -> None:
    with Server(APP, mode) as server, requests.Session() as session:
        client = socketio.Client(reconnection=False, http_session=session)
        heard: list[str] = []
        client.on("heard", heard.append)
        client.connect(f"http://127.0.0.1:{server.port}", transports=transports)
        assert client.call("spoken", "hello", timeout=HANG) == "HELLO"
        wait_for(lambda: heard == ["hello"], "the event")
        assert client.transport() == transports[-1]
        client.disconnect()
        join(client.start_background_task(client.wait))
        if client.eio.ws:
            client.eio.ws.shutdown()


def test_gevent_websocket() -> None:
    with Server(APP, "gevent") as server:
        with connect(server, "/gevent") as ws:
            for text in ("one", "ü" * 70_000):
                ws.send(text)
                assert ws.recv() == f"/gevent: {text}"
            ws.send_close(1000)
            assert ws.recv_data() == (8, b""), "as that package closes"
        with (
            pytest.raises(websocket.WebSocketBadStatusException, match="200"),
            connect(server, "/offered"),
        ):
            pass
        assert server.get("/offered").body == b"False"
        with connect(server, "/gevent") as ws:
            ws.send("x")
            assert ws.recv() == "/gevent: x"
            server.process.send_signal(signal.SIGTERM)
            assert ws.recv_data() == (8, (1001).to_bytes(2, "big"))
        assert server.wait() == 0
        server.ended()
