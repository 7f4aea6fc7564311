"""An application with every fault that WSGI forbids, one by path."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise LookupError("no words")


def deep(level: int = 0) -> int:
    """Recurse until it is too deep."""
    return deep(level + 1) + 1


def recurse() -> None:
    """Recurse for real."""
    deep()


def allocate() -> None:
    """Ask for more memory than there is."""
    bytearray(1 << 62)


def leave() -> None:
    """End as a script does."""
    sys.exit("told to exit")


def raiser(error: Callable[[], BaseException]) -> Callable[[], None]:
    """A function that raises."""

    def fail() -> None:
        raise error()

    return fail


#: How it fails, by the query.
FAILURES: dict[str, Callable[[], None]] = {
    "exception": raiser(lambda: LookupError("told so")),
    "exit": leave,
    "interrupt": raiser(KeyboardInterrupt),
    "generator-exit": raiser(GeneratorExit),
    "memory": allocate,
    "recursion": recurse,
    "mute": raiser(Mute),
    "lines": raiser(lambda: ValueError("one\n2026-11-20T00:00:00Z [1] error: forged")),
    "control": raiser(lambda: ValueError("\x1b[2J\rforged")),
    "type": raiser(lambda: TypeError("of its own")),
}


class Failing:
    """An iterable of two pieces that fails where it is told to."""

    def __init__(self, where: str, fail: Callable[[], None]) -> None:
        self._where = where
        self._fail = fail
        self._pieces = iter((b"first ", b"second"))

    def _at(self, where: str) -> None:
        if where == self._where:
            self._fail()

    def __iter__(self) -> Failing:
        self._at("iter")
        return self

    def __next__(self) -> bytes:
        left = self._pieces.__length_hint__()  # type: ignore[attr-defined]
        self._at({2: "first", 1: "between", 0: "after"}[left])
        return next(self._pieces)

    def close(self) -> None:
        self._at("close")


def failing(environ: WSGIEnvironment, start_response: StartResponse, where: str) -> Any:
    """Fail at a place, in a way."""
    fail = FAILURES[environ["QUERY_STRING"]]
    if where == "called":
        fail()
    start_response("200 OK", [])
    if where == "started":
        fail()
    return Failing(where, fail)


RETURNED: dict[str, Any] = {
    "none": None,
    "number": 5,
    "text": "text",
    "bytes": b"octets",
    "dict": {"a": 1},
    "object": object(),
    "list-of-text": ["text"],
    "list-of-numbers": [b"octets", 5],
    "tuple-of-none": (None,),
}


def returned(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Return something else than an iterable of bytes."""
    start_response("200 OK", [])
    return RETURNED[what]


def yields_text(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """A generator of text."""
    start_response("200 OK", [])
    yield "text"


def ignores_exit(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """A generator that cannot be closed; the length says that its first piece is all."""
    start_response("200 OK", [("Content-Length", "6")])
    try:
        yield b"first "
        yield b"too much"
    except GeneratorExit:
        yield b"going on"


def never(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Never call `start_response`."""
    return [b"body"]


def twice(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Call it twice."""
    start_response("200 OK", [])
    start_response("200 OK", [])
    return [b"body"]


def late(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Call it when content has been given already."""
    yield b"body"
    start_response("200 OK", [])


def late_again(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Call it again when content has been sent."""
    start_response("200 OK", [])
    yield b"first "
    start_response("404 Not Found", [])


# What never ends


class Endless:
    """Pieces without end; what is said to the log tells where it is. `what`: SECONDS,OCTETS."""

    def __init__(self, environ: WSGIEnvironment, what: str) -> None:
        self._errors = environ["wsgi.errors"]
        self._token = environ["QUERY_STRING"]
        seconds, octets = what.split(",")
        self._seconds = float(seconds)
        self._piece = b"x" * int(octets)
        self._begun = False

    def __iter__(self) -> Endless:
        return self

    def __next__(self) -> bytes:
        if not self._begun:
            self._begun = True
            self._errors.write(f"begun {self._token}\n")
        if self._seconds:
            time.sleep(self._seconds)
        return self._piece

    def close(self) -> None:
        self._errors.write(f"closed {self._token}\n")


def endless(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Never end."""
    start_response("200 OK", [])
    return Endless(environ, what)


def endless_length(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Never end, although a length is declared."""
    start_response("200 OK", [("Content-Length", "10")])
    return Endless(environ, what)


def endless_204(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Never end, although there is no content."""
    start_response("204 No Content", [])
    return Endless(environ, what)


def endless_304(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Never end, although there is no content."""
    start_response("304 Not Modified", [])
    return Endless(environ, what)


def endless_write(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Never end to call write()."""
    write = start_response("200 OK", [])
    pieces = Endless(environ, what)
    try:
        for piece in pieces:
            write(piece)
    finally:
        pieces.close()


def exact(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Iterator[bytes]:
    """Do something behind the last piece, with which the declared length is reached."""
    start_response("200 OK", [("Content-Length", "4")])
    yield b"body"
    environ["wsgi.errors"].write(f"behind {environ['QUERY_STRING']}\n")


def pause(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Iterator[bytes]:
    """Have nothing to send at first."""
    start_response("200 OK", [])
    for _ in range(5):
        yield b""
        time.sleep(0.02)
    yield b"at last"


# What ends a process

DEATHS: dict[str, Callable[[], object]] = {
    "abort": os.abort,
    "segv": lambda: signal.raise_signal(signal.SIGSEGV),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(7),
    "realtime": lambda: signal.raise_signal(signal.SIGRTMIN + 1),
}


def die(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """End the process in a way."""
    return DEATHS[what]()


KEPT: list[object] = []


def keep(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Answer, in the way of `what`, and keep what belongs to the request."""
    KEPT.append(start_response)
    start_response("200 OK", [])
    if what == "fail":
        raise LookupError("told so")
    return [b"kept"] if what == "list" else iter([b"kept"])


def fail_beside(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Any:
    """Fail while a thread of its own writes the response."""
    write = start_response("200 OK", [])
    begun = threading.Event()

    def run() -> None:
        with suppress(ConnectionError, RuntimeError):
            while True:
                write(b"x" * 4_000_000)
                begun.set()

    threading.Thread(target=run, daemon=True).start()
    begun.wait()
    raise LookupError("told so")


def wait(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Iterable[bytes]:
    """Answer as soon as the file of the query exists; if `what` is a way to die, die instead."""
    environ["wsgi.errors"].write(f"entered {environ['QUERY_STRING']}\n")
    while not Path(environ["QUERY_STRING"]).exists():
        time.sleep(0.005)
    if what:
        DEATHS[what]()
    start_response("200 OK", [])
    return [b"waited"]


def pid(environ: WSGIEnvironment, start_response: StartResponse, what: str) -> Iterable[bytes]:
    """The process that answers."""
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]


PATHS: dict[str, Callable[[WSGIEnvironment, Any, str], Any]] = {
    function.__name__: function
    for function in (
        failing,
        returned,
        yields_text,
        ignores_exit,
        never,
        twice,
        late,
        late_again,
        endless,
        endless_length,
        endless_204,
        endless_304,
        endless_write,
        exact,
        pause,
        die,
        keep,
        fail_beside,
        wait,
        pid,
    )
}


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Do what the path says: `/function/what?query`."""
    _, name, *what = environ["PATH_INFO"].split("/", 2)
    return PATHS[name](environ, start_response, *what or [""])
