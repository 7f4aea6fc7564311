"""Answers after a delay, as an application that waits for a database."""

from __future__ import annotations

import time
from urllib.parse import parse_qs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

LONGEST = 60.0


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Sleep for `?seconds=` (0.01 unless given, at most 60), then say so.

    With `?spin=1` the time is spent calculating, as an application does that holds the GIL.
    """
    arguments = parse_qs(environ.get("QUERY_STRING", ""))
    try:
        seconds = float(arguments.get("seconds", ["0.01"])[0])
        if not 0 <= seconds <= LONGEST:
            raise ValueError
    except ValueError:
        body = f"seconds is a number from 0 to {LONGEST:g}\n".encode()
        status = "400 Bad Request"
    else:
        if "spin" in arguments:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                pass
        else:
            # Through the module: gevent may have put its own sleep there.
            time.sleep(seconds)
        body = f"slept {seconds:g} s\n".encode()
        status = "200 OK"
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
