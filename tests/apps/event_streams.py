"""Responses in pieces that wait between them, handlers that wait before, and ones that compute."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

#: Set by `/end`: streams and handlers that wait end.
ended = threading.Event()

#: What each call of `client_disconnected` has found, for `/seen`.
seen: list[bool] = []


def wait() -> None:
    ended.wait()


def events() -> Iterator[bytes]:
    """Send an event, and the next at the end."""
    yield b"data: first\n\n"
    wait()
    yield b"data: last\n\n"


def computed() -> Iterator[bytes]:
    """Compute between all pieces."""
    while not ended.is_set():
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass
        yield b"computed\n"


def left(environ: dict[str, Any]) -> Iterator[bytes]:
    """Send a piece, and then ask whether the client has left until it has."""
    yield b"begun\n"
    asks = environ["poorhttp.client_disconnected"], environ["waitress.client_disconnected"]
    seen.clear()
    seen.append(asks[0]())
    while not (ended.is_set() or any(answers := [ask() for ask in asks])):
        time.sleep(0.02)
    seen.append(all(answers))
    ended.wait(0)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path == "/before":
        wait()
    write = start_response("200 OK", [("Content-Type", "text/event-stream")])
    if path == "/events":
        return events()
    if path == "/computed":
        return computed()
    if path == "/written":
        write(b"data: first\n\n")
        wait()
        write(b"data: last\n\n")
        return []
    if path == "/end":
        ended.set()
    if path == "/again":
        ended.clear()
    if path == "/left":
        return left(environ)
    if path == "/seen":
        return [repr(seen).encode()]
    if path == "/threads":
        return [repr(sorted(thread.name for thread in threading.enumerate())).encode()]
    return [b"light\n"]
