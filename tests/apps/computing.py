"""Requests that compute, some for long, and answer with Python's switch interval."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

LONG = 0.05
"""Seconds of processor time."""


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """`/compute` computes for long, and `/set?SECONDS` sets the interval."""
    if environ["PATH_INFO"] == "/set":
        sys.setswitchinterval(float(environ["QUERY_STRING"]))
    interval = f"{sys.getswitchinterval():g}"
    if environ["PATH_INFO"] == "/compute":
        end = time.thread_time() + LONG
        while time.thread_time() < end:
            pass
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [interval.encode()]
