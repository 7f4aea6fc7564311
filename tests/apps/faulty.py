"""An application with every fault that WSGI forbids, one by path."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from tests.apps.basics import Environ, Pieces, StartResponse, enter


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise LookupError("no words")


def deep(level: int = 0) -> int:
    return deep(level + 1) + 1


def raiser(error: Callable[[], BaseException]) -> Callable[[], None]:
    def fail() -> None:
        raise error()

    return fail


#: How it fails, by the query.
FAILURES: dict[str, Callable[[], object]] = {
    "exception": raiser(lambda: LookupError("told so")),
    "exit": lambda: sys.exit("told to exit"),
    "interrupt": raiser(KeyboardInterrupt),
    "generator-exit": raiser(GeneratorExit),
    # More than there is.
    "memory": lambda: bytearray(1 << 62),
    "recursion": deep,
    "mute": raiser(Mute),
    "lines": raiser(lambda: ValueError("one\n2026-11-20T00:00:00Z [1] error: forged")),
    "control": raiser(lambda: ValueError("\x1b[2J\rforged")),
    "type": raiser(lambda: TypeError("of its own")),
}


class Failing:
    """An iterable of two pieces that fails where it is told to."""

    def __init__(self, where: str, fail: Callable[[], object]) -> None:
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


# Each function below is a path: `/function/what?query`.


def failing(environ: Environ, start_response: StartResponse, where: str) -> Any:
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


def returned(environ: Environ, start_response: StartResponse, what: str) -> Any:
    """Return something else than an iterable of bytes."""
    start_response("200 OK", [])
    return RETURNED[what]


def yields_text(environ: Environ, start_response: StartResponse, what: str) -> Any:
    start_response("200 OK", [])
    yield "text"


def ignores_exit(environ: Environ, start_response: StartResponse, what: str) -> Any:
    """A generator that cannot be closed; the length says that its first piece is all."""
    start_response("200 OK", [("Content-Length", "6")])
    try:
        yield b"first "
        yield b"too much"
    except GeneratorExit:
        yield b"going on"


def never(environ: Environ, start_response: StartResponse, what: str) -> Any:
    return [b"body"]


def twice(environ: Environ, start_response: StartResponse, what: str) -> Any:
    start_response("200 OK", [])
    start_response("200 OK", [])
    return [b"body"]


def late(environ: Environ, start_response: StartResponse, what: str) -> Any:
    """Call it when content has been given already."""
    yield b"body"
    start_response("200 OK", [])


def late_again(environ: Environ, start_response: StartResponse, what: str) -> Any:
    """Call it again when content has been sent."""
    start_response("200 OK", [])
    yield b"first "
    start_response("404 Not Found", [])


# What never ends


class Endless:
    """Pieces without end; what is said to the log tells where it is. `what`: SECONDS,OCTETS."""

    def __init__(self, environ: Environ, what: str) -> None:
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


#: Status and headers of answers that do not end, by their paths.
ENDLESS = {
    "endless": ("200 OK", []),
    "endless_length": ("200 OK", [("Content-Length", "10")]),
    "endless_204": ("204 No Content", []),
    "endless_304": ("304 Not Modified", []),
}


def endless_write(environ: Environ, start_response: StartResponse, what: str) -> Any:
    write = start_response("200 OK", [])
    pieces = Endless(environ, what)
    try:
        for piece in pieces:
            write(piece)
    finally:
        pieces.close()


def exact(environ: Environ, start_response: StartResponse, what: str) -> Iterator[bytes]:
    """Do something behind the last piece, with which the declared length is reached."""
    start_response("200 OK", [("Content-Length", "4")])
    yield b"body"
    environ["wsgi.errors"].write(f"behind {environ['QUERY_STRING']}\n")


def pause(environ: Environ, start_response: StartResponse, what: str) -> Iterator[bytes]:
    """Have nothing to send at first."""
    start_response("200 OK", [])
    for _ in range(5):
        yield b""
        time.sleep(0.02)
    yield b"at last"


# What ends a process

DEATHS: dict[str, Callable[[], object]] = {
    "segv": lambda: signal.raise_signal(signal.SIGSEGV),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(7),
    "realtime": lambda: signal.raise_signal(signal.SIGRTMIN + 1),
}


def die(environ: Environ, start_response: StartResponse, what: str) -> Any:
    return DEATHS[what]()


KEPT: list[object] = []


def keep(environ: Environ, start_response: StartResponse, what: str) -> Any:
    """Answer, in the way of `what`, and keep what belongs to the request."""
    KEPT.append(start_response)
    start_response("200 OK", [])
    if what == "fail":
        raise LookupError("told so")
    return [b"kept"] if what == "list" else iter([b"kept"])


def fail_beside(environ: Environ, start_response: StartResponse, what: str) -> Any:
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


def wait(environ: Environ, start_response: StartResponse, what: str) -> Pieces:
    """Answer as soon as the file of the query exists; if `what` is a way to die, die instead."""
    enter(environ, environ["QUERY_STRING"])
    if what:
        DEATHS[what]()
    start_response("200 OK", [])
    return [b"waited"]


def pid(environ: Environ, start_response: StartResponse, what: str) -> Pieces:
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]


def application(environ: Environ, start_response: StartResponse) -> Any:
    _, name, *what = environ["PATH_INFO"].split("/", 2)
    if name in ENDLESS:
        start_response(*ENDLESS[name])
        return Endless(environ, *what)
    return globals()[name](environ, start_response, *what or [""])
