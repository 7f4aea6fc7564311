"""An application that takes connections by a protocol upgrade; its path says how it ends them."""

from __future__ import annotations

import builtins
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse, say

VERSION = Path(os.environ["VERSION_FILE"]).read_text() if "VERSION_FILE" in os.environ else ""

HEAD = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade\r\n\r\n"

#: More than a socket takes at once.
LARGE = b"x" * (16 << 20)

#: What was kept from being closed.
KEPT: list[object] = []


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    way = environ["PATH_INFO"].strip("/")
    sock: Any = environ.get("poorhttp.upgrade")
    if way in ("plain", "offered", "timeout"):
        if way == "timeout":
            # In any thread: only the main one is interrupted in a system call.
            for _ in range(600):
                time.sleep(0.1)
        text = f"{way} {environ.get('werkzeug.socket') is not None} {sock!r:.25} {VERSION}"
        return say(start_response, text)
    if way == "generator":
        return generator(sock)
    sock.sendall(HEAD % environ["HTTP_UPGRADE"].encode())
    if way in ("echo", "keep", "detach", "fail"):
        while data := sock.recv(65536):
            if data == b"end":
                break
            sock.sendall(data)
    if way == "keep":
        KEPT.append(sock)
        threading.Thread(target=read_on, args=(sock, environ["wsgi.errors"]), daemon=True).start()
    elif way == "detach":
        kept = socket.socket(fileno=sock.detach())
        kept.sendall(b"detached")
        threading.Thread(target=late_answer, args=(kept,), daemon=True).start()
    elif way == "fail":
        raise ValueError("this application fails")
    elif way in ("StopIteration", "ConnectionError", "SystemExit"):
        raise vars(builtins)[way]
    elif way == "response":
        return say(start_response, "discarded")
    elif way == "pieces":
        start_response("200 OK", [TEXT])
        return Noting(environ["wsgi.errors"])
    elif way == "leaves":
        threading.Thread(target=sock.sendall, args=(LARGE,)).start()
        # The client has got the first of it.
        sock.recv(1)
    elif way == "frames":
        send_frames(sock, environ["wsgi.errors"])
    return []


def generator(sock: socket.socket) -> Iterator[bytes]:
    """Take the connection in a generator, as some middleware does."""
    yield b""
    sock.sendall(HEAD % b"anything")
    sock.sendall(sock.recv(100))
    yield b"discarded"


class Noting:
    """A response that leaves a line in the log when it is closed."""

    def __init__(self, log: object) -> None:
        self.log = log

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"dis", b"carded"])

    def close(self) -> None:
        print("the response was closed", file=self.log)  # type: ignore[call-overload]


def read_on(sock: socket.socket, log: object) -> None:
    """Wait for more after the request has ended."""
    try:
        end = repr(sock.recv(100))
    except OSError as error:
        end = type(error).__name__
    print(f"kept: {end}", file=log)  # type: ignore[call-overload]


def late_answer(sock: socket.socket) -> None:
    with sock:
        while data := sock.recv(100):
            sock.sendall(data)


def send_frames(sock: socket.socket, log: object) -> None:
    """Send a half frame, and the rest when asked; then say what has come until the end."""
    for piece in (b"\x81\x05he", b"llo"):
        sock.sendall(piece)
        sock.recv(1)
    try:
        while sock.recv(100):
            sock.sendall(b"\x81\x02ok")
    except OSError as error:
        print(f"frames: {type(error).__name__}", file=log)  # type: ignore[call-overload]
        raise
    print("frames: end", file=log)  # type: ignore[call-overload]
