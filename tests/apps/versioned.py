"""An application whose version is read from a file when it is loaded."""

from __future__ import annotations

import hashlib
import os
import sys
import time

from tests.apps.basics import Environ, Pieces, StartResponse, tell

# Not with `pathlib`, whose import would take a third of the start of each worker.
with open(os.environ["VERSION_FILE"]) as file:
    VERSION = file.read().strip()
"""Read when the application is loaded."""

if VERSION == "broken":
    raise ValueError("this version is broken")
if VERSION == "mortal":
    os.kill(os.getpid(), 9)

FORKED: list[int] = []
"""The processes in which `forked` was called; what a template left here its workers have too."""


def forked() -> None:
    """Be told of a new worker (`after_fork`)."""
    FORKED.append(os.getpid())


def unforked() -> None:
    """Fail to take up work."""
    raise RuntimeError("no work for me")


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Tell who answers, with the digest of what was sent; /MILLISECONDS takes so long."""
    pause = environ["PATH_INFO"].strip("/")
    body = environ["wsgi.input"].read()
    if pause:
        time.sleep(int(pause) / 1000)
    told = {
        "version": VERSION,
        "pid": os.getpid(),
        "parent": os.getppid(),
        "uid": os.getuid(),
        "forked": FORKED,
        "gevent": "gevent.monkey" in sys.modules,
        "digest": hashlib.sha256(body).hexdigest(),
        "query": environ["QUERY_STRING"],
    }
    return tell(start_response, told)
