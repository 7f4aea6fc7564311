"""WebSockets by libraries: flask-sock, Flask-SocketIO, gevent-websocket."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from typing import Any

from flask import Flask
from flask_sock import Sock
from flask_socketio import SocketIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

if os.environ.get("WITHOUT_GEVENT_WEBSOCKET"):
    sys.modules["geventwebsocket"] = None  # type: ignore[assignment]

IS_GEVENT = "gevent" in sys.modules

flask = Flask(__name__)
flask.config["SOCK_SERVER_OPTIONS"] = {"subprotocols": ["chat"]}
sock = Sock(flask)
socketio = SocketIO(flask, async_mode="gevent" if IS_GEVENT else "threading")


@flask.get("/")
def index() -> str:
    """A plain page."""
    return f"{threading.active_count()}"


@sock.route("/echo")  # type: ignore[untyped-decorator]
def echo(ws: Any) -> None:
    """Echo until the client leaves."""
    while True:
        ws.send(ws.receive())


@socketio.on("spoken")  # type: ignore[untyped-decorator]
def spoken(text: str) -> str:
    """An event with an answer and a broadcast."""
    socketio.emit("heard", text)
    return text.upper()


def gevent_websocket(environ: WSGIEnvironment) -> Iterable[bytes]:
    """Echo by the `wsgi.websocket` of gevent-websocket."""
    ws: Any = environ["wsgi.websocket"]
    while not ws.closed:
        message = ws.receive()
        if message is None:
            break
        ws.send(f"{ws.path}: {message}")
    return []


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """All of them."""
    if environ["PATH_INFO"] == "/offered":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [repr("wsgi.websocket" in environ).encode()]
    if environ["PATH_INFO"] == "/gevent":
        return gevent_websocket(environ)
    answer: Iterable[bytes] = flask(environ, start_response)
    return answer
