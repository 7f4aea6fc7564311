"""Responses of each kind within spans of OpenTelemetry; most tell their trace and process ID."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import cast

from opentelemetry import trace

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse

tracer = trace.get_tracer("shop")


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    path = environ["PATH_INFO"]
    if path == "/raises":
        raise LookupError("nothing here")
    write = start_response("503 Service Unavailable" if path == "/busy" else "200 OK", [TEXT])
    match path:
        case "/pieces":
            return pieces()
        case "/breaks":
            return breaks()
        case "/file":
            return cast("Pieces", environ["wsgi.file_wrapper"](open(__file__, "rb")))
        case "/written":
            write(b"written")
            return []
    with tracer.start_as_current_span("work"):
        context = trace.get_current_span().get_span_context()
    return [json.dumps({"trace": f"{context.trace_id:032x}", "pid": os.getpid()}).encode()]


def pieces() -> Iterator[bytes]:
    """A body whose pieces are made while it is sent."""
    for number in range(3):
        with tracer.start_as_current_span(f"piece {number}"):
            pass
        yield b"piece\n"


def breaks() -> Iterator[bytes]:
    yield b"one"
    raise OSError("gone")
