"""WebSockets by libraries: flask-sock, Flask-SocketIO, gevent-websocket."""

from __future__ import annotations

import sys
import threading
from typing import Any

from flask import Flask
from flask_sock import Sock
from flask_socketio import SocketIO

from tests.apps.basics import Environ, Pieces, StartResponse, say

IS_GEVENT = "gevent" in sys.modules

flask = Flask(__name__)
flask.config["SOCK_SERVER_OPTIONS"] = {"subprotocols": ["chat"]}
sock = Sock(flask)
socketio = SocketIO(flask, async_mode="gevent" if IS_GEVENT else "threading")


@flask.get("/")
def index() -> str:
    return f"{threading.active_count()}"


@sock.route("/echo")  # type: ignore[untyped-decorator]
def echo(ws: Any) -> None:
    while True:
        ws.send(ws.receive())


@socketio.on("spoken")  # type: ignore[untyped-decorator]
def spoken(text: str) -> str:
    """An event with an answer and a broadcast."""
    socketio.emit("heard", text)
    return text.upper()


def gevent_websocket(environ: Environ) -> Pieces:
    ws: Any = environ["wsgi.websocket"]
    while not ws.closed:
        message = ws.receive()
        if message is None:
            break
        ws.send(f"{ws.path}: {message}")
    return []


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    if environ["PATH_INFO"] == "/offered":
        return say(start_response, repr("wsgi.websocket" in environ))
    if environ["PATH_INFO"] == "/gevent":
        return gevent_websocket(environ)
    return flask(environ, start_response)
