"""An application that holds the interpreter's lock, and reports how it is called."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterable
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Hold the interpreter until the file that the query names exists; or tell about the call."""
    if environ["PATH_INFO"] == "/hog":
        # A library that is called so keeps the interpreter, as careless extensions do.
        library = ctypes.PyDLL(None)
        flag = Path(environ["QUERY_STRING"])
        flag.with_suffix(".begun").touch()
        while library.access(bytes(flag), 0):
            library.usleep(1_000)
    told = {key: environ[key] for key in ("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO")}
    told["body"] = environ["wsgi.input"].read().decode()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(told).encode()]
