"""Connections that wait to be accepted while all threads of all workers are busy."""

from __future__ import annotations

import selectors
from pathlib import Path

from tests.testkit.server import Server

#: Connections, far more than threads.
CLIENTS = 60
#: Responses on one connection before each has had its first. With one connection accepted after
#: each round of those that wait, it is some 30.
ROUNDS = 15
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

APPLICATION = """\
import time

def application(environ, start_response):
    time.sleep(0.01)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


def test_nobody_waits_for_many_rounds_to_be_accepted(mode: str, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(APPLICATION, encoding="utf-8")
    with Server(str(app), mode, "--workers", "2", "--threads", "2") as server:
        poller, answered = selectors.DefaultSelector(), dict.fromkeys(range(CLIENTS), 0)
        connections = [server.connect() for _ in range(CLIENTS)]
        for number, connection in enumerate(connections):
            connection.socket.sendall(REQUEST)
            poller.register(connection.socket, selectors.EVENT_READ, number)
        while not all(answered.values()):
            for key, _ in poller.select():
                socket = connections[key.data].socket
                assert socket.recv(4096).startswith(b"HTTP/1.1 200 ")
                answered[key.data] += 1
                socket.sendall(REQUEST)
        assert max(answered.values()) <= ROUNDS, sorted(answered.values())
        for connection in connections:
            connection.close()
