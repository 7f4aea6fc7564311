"""Responses in pieces that wait between them, handlers that wait before, and ones that compute."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.apps.basics import Environ, Pieces, StartResponse, wait_for_file

#: Set by `/end`: streams and handlers that wait end.
ended = threading.Event()

#: The thread of each path that waits or computes, for `/threads`.
threads: dict[str, threading.Thread] = {}

#: What the last `/left` has found.
seen: list[bool] = []


def events() -> Iterator[bytes]:
    yield b"data: first\n\n"
    ended.wait()
    yield b"data: last\n\n"


def computed() -> Iterator[bytes]:
    """Compute between all pieces."""
    while not ended.is_set():
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
        yield b"computed\n"


def ticks() -> Iterator[bytes]:
    while not ended.is_set():
        yield b"tick\n"
        time.sleep(0.05)


def asked(environ: Environ) -> Iterator[bytes]:
    """Send a piece, and then whether the client has left, once the file of the query exists."""
    yield b"begun\n"
    wait_for_file(environ["QUERY_STRING"])
    keys = ("poorhttp.client_disconnected", "waitress.client_disconnected")
    yield repr([environ[key]() for key in keys]).encode()


def left(environ: Environ) -> Iterator[bytes]:
    """Ask whether the client has left until it has."""
    seen[:] = [environ["poorhttp.client_disconnected"]()]
    yield b"begun\n"
    while not environ["waitress.client_disconnected"]():
        time.sleep(0.01)
    seen.append(True)


def elsewhere(ask: Callable[[], bool]) -> str:
    """Return the message of the error that another thread gets."""
    with ThreadPoolExecutor(1) as another:
        return str(another.submit(ask).exception())


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    path = environ["PATH_INFO"]
    if path in ("/before", "/computed", "/events", "/written"):
        threads[path] = threading.current_thread()
        ended.clear()
    if path == "/before":
        ended.wait()
    write = start_response("200 OK", [("Content-Type", "text/event-stream")])
    if path == "/events":
        return events()
    if path == "/computed":
        return computed()
    if path == "/ticks":
        ended.clear()
        return ticks()
    if path == "/asked":
        return asked(environ)
    if path == "/left":
        return left(environ)
    if path == "/written":
        write(b"data: first\n\n")
        ended.wait()
        write(b"data: last\n\n")
        return []
    if path == "/end":
        ended.set()
    if path == "/elsewhere":
        return [repr(elsewhere(environ["poorhttp.client_disconnected"])).encode()]
    names = {path: thread.name for path, thread in threads.items()}
    answers = {"/threads": names, "/seen": seen, "/alive": threading.active_count()}
    return [repr(answers.get(path, "light")).encode()]
