"""Slow requests of several kinds: sleeping, receiving, locked, computing."""

from __future__ import annotations

import ctypes
import socket
import threading
import time
from collections.abc import Iterator

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse, wait_for_file

#: Longer than any test waits.
FOR_EVER = 3600.0


def sleep() -> None:
    """Wait in a system call."""
    time.sleep(FOR_EVER)  # here


def receive() -> None:
    """Wait for somebody who says nothing."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.recv(1)  # here


def lock() -> None:
    """Wait for a lock that nobody gives back."""
    held = threading.Lock()
    held.acquire()
    held.acquire()  # here


def compute() -> None:
    while True:  # here
        pass  # here


def nap() -> None:
    """Wait for a moment, again and again."""
    while True:  # here
        time.sleep(0.001)  # here


def swallow() -> None:
    """Go on, whatever is raised."""
    while True:
        try:
            nap()
        except BaseException:
            continue


def hold() -> None:
    """Keep the interpreter for ever."""
    mutex = ctypes.create_string_buffer(64)
    library = ctypes.PyDLL(None)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)  # here


def briefly(seconds: str) -> None:
    """Compute for some time, and wait for as long."""
    half = float(seconds) / 2
    end = time.monotonic() + half
    while time.monotonic() < end:
        pass
    time.sleep(half)


def held(path: str) -> None:
    """Block the process, greenlets included, until the writer of a FIFO closes it."""
    with open(path, "rb") as fifo:
        fifo.read()


WAYS = {f"/{way.__name__}": way for way in (sleep, receive, lock, compute, nap, swallow, hold)}


class Waiting:
    """A first piece, then one that never comes; notes in the log that it was closed."""

    def __init__(self, environ: Environ) -> None:
        self.environ = environ

    def __iter__(self) -> Iterator[bytes]:
        yield b"first"
        WAYS[f"/{self.environ['QUERY_STRING']}"]()
        yield b"never"

    def close(self) -> None:
        self.environ["wsgi.errors"].write("closed\n")


class Kept:
    """One piece; `close()` waits until a file exists."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __iter__(self) -> Iterator[bytes]:
        yield b"whole"

    def close(self) -> None:
        wait_for_file(self.path)


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Hang in the way of the path.

    Not for ever: `/briefly?SECONDS`, `/held?FIFO`, `/large?OCTETS`, `/kept?FILE`.
    """
    path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
    if path in WAYS:
        WAYS[path]()
    if path == "/briefly":
        briefly(query)
    if path == "/held":
        held(query)
    start_response("200 OK", [TEXT])
    if path == "/pieces":
        return Waiting(environ)
    if path == "/kept":
        return Kept(query)
    if path == "/large":
        return [bytes(int(query))]
    return [environ.get("HTTP_X_NAME", "").encode()]
