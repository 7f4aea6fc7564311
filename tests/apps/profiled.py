"""An application with slow requests, profiled into the folder `PROFILES`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import cast

from poorhttp.config.settings import Settings
from poorhttp.plugins.dev.profiler import ProfiledApplication, ProfilePages
from tests.apps.basics import TEXT, Environ, Pieces, StartResponse


def compute(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(100))


def busy_head() -> None:
    compute(0.06)


def busy_body() -> Iterator[bytes]:
    for _ in range(3):
        compute(0.02)
        yield b"piece"


def busy_file(environ: Environ) -> Pieces:
    """Be busy, and answer with a file."""
    compute(0.06)
    return cast("Pieces", environ["wsgi.file_wrapper"](open(__file__, "rb")))


def take_turns() -> None:
    """Wait while others compute, and compute while others wait."""
    for _ in range(4):
        time.sleep(0.01)
        compute(0.01)


def answer(environ: Environ, start_response: StartResponse) -> Pieces:
    path = environ["PATH_INFO"]
    if path == "/raise":
        busy_head()
        raise ValueError("raised")
    if path == "/nothing":
        return None  # type: ignore[return-value]
    start_response("200 OK", [TEXT])
    if path == "/body":
        return busy_body()
    if path == "/file":
        return busy_file(environ)
    if path == "/turns":
        take_turns()
    if path.startswith("/slow"):
        busy_head()
    return [b"hello"]


def profiled(slow_request: float) -> ProfiledApplication:
    """What is profiled if it takes longer."""
    settings = Settings(mode=os.environ.get("MODE", "threading"), slow_request=slow_request)
    return ProfiledApplication(answer, settings, os.environ["PROFILES"])


always, never = profiled(0.05), profiled(600)


def timed(environ: Environ, start_response: StartResponse) -> Pieces:
    """All but `/quick` are slow, however long they take here."""
    chosen = never if environ["PATH_INFO"] == "/quick" else always
    return chosen(environ, start_response)


application = ProfilePages(timed, Settings(), os.environ["PROFILES"])
