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
from typing import TYPE_CHECKING, cast

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


def pid(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The process that answers."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]


def surrogate(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    raise ValueError("bad \udce9")


def unspeakable(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    raise Unspeakable("told so")


def fork(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Fork a child that does as the query says; the answer is for its parent to give."""
    child = os.fork()
    if child == 0:
        if environ["QUERY_STRING"] == "exit":
            sys.exit()
        if environ["QUERY_STRING"] == "raise":
            raise RuntimeError("in the child")
    else:
        os.waitpid(child, 0)
    start_response("200 OK", [])
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


def gated_file(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """This file, as soon as the file of the query exists."""
    environ["wsgi.errors"].write(f"entered {environ['QUERY_STRING']}\n")
    while not os.path.exists(environ["QUERY_STRING"]):
        time.sleep(0.002)
    start_response("200 OK", [])
    return cast("Iterable[bytes]", environ["wsgi.file_wrapper"](Path(__file__).open("rb")))


def no_headers(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Call `start_response` without headers."""
    call: Callable[..., object] = start_response
    call("200 OK")
    return [b"never"]


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
        gated_file,
        no_headers,
        wrong_chunk,
        wrong_late,
        chdir,
    )
}


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Do what the function of the path does. No validator: nothing here is valid."""
    return PATHS[environ["PATH_INFO"]](environ, start_response)
