"""An application that sleeps, computes, or grows: by the first word of the path."""

from __future__ import annotations

import time

from tests.apps.basics import Environ, Pieces, StartResponse, say

kept: list[bytes] = []


def application(environ: Environ, start_response: StartResponse) -> Pieces:
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
    return say(start_response, "done\n")
