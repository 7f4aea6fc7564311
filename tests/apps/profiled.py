"""An application in whose requests time goes by, profiled into the folder `PROFILES`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from poorhttp.debug import profile
from poorhttp.debug.profile import Pages, Profiled
from poorhttp.options import Settings

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# Seconds after which the profile of a body without end is written.
profile.LONGEST = float(os.environ.get("LONGEST", profile.LONGEST))


def compute(seconds: float) -> None:
    """Be busy for so long."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(100))


def busy_head() -> None:
    """Be busy before there is an answer."""
    compute(0.06)


def busy_body() -> Iterator[bytes]:
    """Be busy while it is sent."""
    for _ in range(3):
        compute(0.02)
        yield b"piece"


def busy_file(environ: WSGIEnvironment) -> Iterable[bytes]:
    """Be busy, and answer with a file."""
    compute(0.06)
    wrapper: type[Iterable[bytes]] = environ["wsgi.file_wrapper"]
    return wrapper(open(__file__, "rb"))  # type: ignore[call-arg]


def busy_for_ever() -> Iterator[bytes]:
    """Be busy until the client leaves."""
    while True:
        compute(0.005)
        yield b"piece"


def take_turns() -> None:
    """Wait while others compute, and compute while others wait."""
    for _ in range(4):
        time.sleep(0.01)
        compute(0.01)


def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Do what the path says."""
    path = environ["PATH_INFO"]
    if path == "/raise":
        busy_head()
        raise ValueError("raised")
    if path == "/nothing":
        return None  # type: ignore[return-value]
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/body":
        return busy_body()
    if path == "/endless":
        return busy_for_ever()
    if path == "/file":
        return busy_file(environ)
    if path == "/turns":
        take_turns()
    if path.startswith("/slow"):
        busy_head()
    return [b"hello"]


def profiled(slow_request: float) -> Profiled:
    """What is profiled if it takes longer."""
    settings = Settings(mode=os.environ.get("MODE", "threading"), slow_request=slow_request)
    return Profiled(answer, settings, os.environ["PROFILES"])


always, never, soon = profiled(0.05), profiled(600), profiled(0.001)


def timed(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """All but `/quick` are slow, however long they take here."""
    chosen = {"/quick": never, "/endless": soon}.get(environ["PATH_INFO"], always)
    return chosen(environ, start_response)


application = Pages(timed, Settings(), os.environ["PROFILES"])
