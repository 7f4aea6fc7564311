"""An application that misuses the process: exceptions, forks, signals, threads."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def on_usr1(number: int, frame: FrameType | None) -> None:
    """A signal handler that raises, wherever the server is just then."""
    sys.stderr.write("usr1 came\n")
    sys.stderr.flush()
    raise RuntimeError("from a signal handler")


signal.signal(signal.SIGUSR1, on_usr1)

#: Processes that live on: kept, so that nobody waits for them.
CHILDREN: list[object] = []


class Unspeakable(Exception):
    """An exception that cannot be shown."""

    @property
    def __notes__(self) -> list[str]:
        raise SystemExit(3)

    @property
    def __cause__(self) -> BaseException | None:  # type: ignore[override]
        raise SystemExit(4)


class Evil(str):
    """A str whose repr() calls `start_response`."""

    start_response: Callable[..., object]

    def __repr__(self) -> str:
        Evil.start_response("200 OK", [])
        return "evil"


class EvilObject:
    """The same, no str."""

    def __repr__(self) -> str:
        Evil.start_response("200 OK", [])
        return "evil"


EVIL: dict[str, Any] = {
    "name": (Evil("x y"), "v"),
    "value": ("a", Evil("v\n")),
    "number": (Evil("a"), 5),
    "three": ("a", Evil("b"), "c"),
    "object": ("a", EvilObject()),
    "no-tuple": EvilObject(),
}


def pid(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The process that answers."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]


def surrogate(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    raise ValueError("bad \udce9")


def unspeakable(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    raise Unspeakable("told so")


#: What a forked child ends with, by the query.
EXITS: dict[str, int | str | None] = {"exit": 0, "number": 7, "nothing": None, "text": "why"}


def fork(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Fork a child that does as the query says; the answer is for its parent to give."""
    child, code = os.fork(), 0
    if child == 0:
        if environ["QUERY_STRING"] in EXITS:
            sys.exit(EXITS[environ["QUERY_STRING"]])
        if environ["QUERY_STRING"] == "raise":
            raise RuntimeError("in the child")
    else:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    start_response("200 OK", [("X-Child", str(code))])
    return [str(os.getpid()).encode()]


def fork_between(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """The same in the middle of a body; the child goes on with it."""
    start_response("200 OK", [])
    yield b"before "
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    yield str(os.getpid()).encode()


def child(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Leave a forked process behind that lives on; the answer is its number."""
    process = multiprocessing.get_context("fork").Process(
        target=time.sleep, args=(1000,), daemon=True
    )
    process.start()
    CHILDREN.append(process)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(process.pid).encode()]


def evil(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A header (the query says which) whose repr() calls `start_response`."""
    Evil.start_response = start_response
    start_response("200 OK", [EVIL[environ["QUERY_STRING"]]])
    return [b"never"]


def write_then_file(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """write(), then the file of the query."""
    write = start_response("200 OK", [])
    write(b"written ")
    return cast(
        "Iterable[bytes]",
        environ["wsgi.file_wrapper"](open(environ["QUERY_STRING"], "rb")),
    )


def gated_file(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """This file, as soon as the file of the query exists."""
    environ["wsgi.errors"].write(f"entered {environ['QUERY_STRING']}\n")
    while not os.path.exists(environ["QUERY_STRING"]):
        time.sleep(0.002)
    start_response("200 OK", [])
    return cast("Iterable[bytes]", environ["wsgi.file_wrapper"](Path(__file__).open("rb")))


def attribute(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """What happens to whoever hides something in `wsgi.input`."""
    stream = environ["wsgi.input"]
    found = getattr(stream, "secret", "nothing")
    try:
        stream.secret = "kept"
        how = "set"
    except AttributeError:
        how = "refused"
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{found} {how}".encode()]


def no_headers(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Call `start_response` without headers."""
    call: Callable[..., object] = start_response
    call("200 OK")
    return [b"never"]


def fail(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Raise before anything is sent."""
    start_response("200 OK", [])
    raise LookupError("told so")


def wrong_chunk(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A body that cannot go on, when it has begun."""
    start_response("200 OK", [("Content-Length", "1000000")])
    yield b"begun"
    yield "no bytes"  # type: ignore[misc]


def wrong_late(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The same, when more has been produced than any socket takes."""
    start_response("200 OK", [])
    yield bytes(8_000_000)
    yield "no bytes"  # type: ignore[misc]


def chdir(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Go elsewhere."""
    os.chdir("/")
    return pid(environ, start_response)


PATHS = {
    f"/{function.__name__}": function
    for function in (
        pid,
        surrogate,
        unspeakable,
        fork,
        fork_between,
        child,
        evil,
        write_then_file,
        gated_file,
        attribute,
        no_headers,
        fail,
        wrong_chunk,
        wrong_late,
        chdir,
    )
}


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Do what the function of the path does. No validator: nothing here is valid."""
    return PATHS[environ["PATH_INFO"]](environ, start_response)
