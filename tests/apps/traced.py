"""Responses of each kind within spans of OpenTelemetry; most tell their trace and process ID."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from opentelemetry import trace

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

tracer = trace.get_tracer("shop")


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer by path."""
    path = environ["PATH_INFO"]
    if path == "/raises":
        raise LookupError("nothing here")
    status = "503 Service Unavailable" if path == "/busy" else "200 OK"
    write = start_response(status, [("Content-Type", "text/plain")])
    if path == "/pieces":
        return pieces()
    if path == "/breaks":
        return breaks()
    if path == "/file":
        file = open(__file__, "rb")  # noqa: SIM115
        found: Iterable[bytes] = environ["wsgi.file_wrapper"](file)
        return found
    if path == "/written":
        write(b"written")
        return []
    with tracer.start_as_current_span("work"):
        context = trace.get_current_span().get_span_context()
    told = {"trace": f"{context.trace_id:032x}", "pid": os.getpid()}
    return [json.dumps(told).encode()]


def pieces() -> Iterator[bytes]:
    """A body whose pieces are made while it is sent."""
    for number in range(3):
        with tracer.start_as_current_span(f"piece {number}"):
            pass
        yield b"piece\n"


def breaks() -> Iterator[bytes]:
    """A body that fails in the middle."""
    yield b"one"
    raise OSError("gone")
