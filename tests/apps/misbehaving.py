"""An application that computes, or grows: by the first word of the path."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

kept: list[bytes] = []


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Do what the path says."""
    query = environ["QUERY_STRING"]
    match environ["PATH_INFO"].split("/")[1]:
        case "sleep":
            time.sleep(float(query))
        case "compute":
            end = time.thread_time() + float(query)
            while time.thread_time() < end:
                pass
        case "grow":
            kept.append(b"x" * int(query))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
