"""An application that holds the interpreter's lock, and reports how it is called."""

from __future__ import annotations

import ctypes
from pathlib import Path

from tests.apps.basics import Environ, Pieces, StartResponse, tell


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Hold the interpreter until the file that the query names exists; or tell about the call."""
    if environ["PATH_INFO"] == "/hog":
        # A library that is called so keeps the interpreter, as careless extensions do.
        library = ctypes.PyDLL(None)
        flag = Path(environ["QUERY_STRING"])
        flag.with_suffix(".begun").touch()
        while library.access(bytes(flag), 0):
            library.usleep(1_000)
    told = {key: environ[key] for key in ("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO")}
    return tell(start_response, {**told, "body": environ["wsgi.input"].read().decode()})
