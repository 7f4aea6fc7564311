"""An application that shows and logs the id of its request."""

from __future__ import annotations

import json
import logging
import time
from threading import Barrier

from tests.apps.basics import Environ, Pieces, StartResponse

logger = logging.getLogger("identified")

#: Requests that are in the application at the same time.
together = Barrier(4)


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Do what the path says, and return what the environ has."""
    path = environ["PATH_INFO"]
    fields = [("Content-Type", "application/json"), ("X-Answer", "4 2"), ("X-Twice", "a")]
    environ["identified.user"] = 'anna "a"'
    environ["identified.number"] = 42
    environ["identified.object"] = object()
    if path == "/own":
        fields.append(("x-request-id", "mine"))
    if path == "/nap":
        # In any thread: only the main one is interrupted in a system call.
        for _ in range(600):
            time.sleep(0.1)
    if path == "/log":
        number = environ["QUERY_STRING"]
        together.wait(240)
        print(f"said {number}", file=environ["wsgi.errors"])
        logger.warning("logged %s", number, extra={"number": number, "tags": ["a"]})
        together.wait(240)
    if path == "/raise":
        raise ValueError("told")
    names = ("HTTP_X_REQUEST_ID", "HTTP_TRACEPARENT")
    start_response("200 OK", [*fields, ("X-Twice", "b")])
    return [json.dumps({name: environ.get(name) for name in names}).encode()]
