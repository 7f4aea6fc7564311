"""An application that misuses the process: exceptions, forks, signals, threads."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import cast

from tests.apps.basics import Environ, Pieces, StartResponse, enter, say


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


# Each function below is a path.


def pid(environ: Environ, start_response: StartResponse) -> Pieces:
    return say(start_response, str(os.getpid()))


def surrogate(environ: Environ, start_response: StartResponse) -> Pieces:
    raise ValueError("bad \udce9")


def unspeakable(environ: Environ, start_response: StartResponse) -> Pieces:
    raise Unspeakable("told so")


def fork(environ: Environ, start_response: StartResponse) -> Pieces:
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


def fork_between(environ: Environ, start_response: StartResponse) -> Iterator[bytes]:
    """The same in the middle of a body; the child goes on with it."""
    start_response("200 OK", [])
    yield b"before "
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    yield str(os.getpid()).encode()


def child(environ: Environ, start_response: StartResponse) -> Pieces:
    """Leave a forked process behind that lives on; the answer is its number."""
    process = multiprocessing.get_context("fork").Process(
        target=time.sleep, args=(1000,), daemon=True
    )
    process.start()
    CHILDREN.append(process)
    return say(start_response, str(process.pid))


def gated_file(environ: Environ, start_response: StartResponse) -> Pieces:
    """This file, as soon as the file of the query exists."""
    enter(environ, environ["QUERY_STRING"])
    start_response("200 OK", [])
    return cast("Pieces", environ["wsgi.file_wrapper"](open(__file__, "rb")))


def no_headers(environ: Environ, start_response: StartResponse) -> Pieces:
    call: Callable[..., object] = start_response
    call("200 OK")
    return [b"never"]


def wrong_late(environ: Environ, start_response: StartResponse) -> Pieces:
    """A body that cannot go on, when more has been produced than any socket takes."""
    start_response("200 OK", [])
    yield bytes(8_000_000)
    yield "no bytes"  # type: ignore[misc]


def chdir(environ: Environ, start_response: StartResponse) -> Pieces:
    os.chdir("/")
    return pid(environ, start_response)


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Do what the function of the path does. No validator: nothing here is valid."""
    do: Callable[[Environ, StartResponse], Pieces] = globals()[environ["PATH_INFO"][1:]]
    return do(environ, start_response)
