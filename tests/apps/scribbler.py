"""An application that changes its environ, and reports whether it was unchanged before."""

from __future__ import annotations

from tests.apps.basics import Environ, Pieces, StartResponse, say


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    clean = "scribbled" not in environ and environ["SCRIPT_NAME"] == ""
    environ.update({"scribbled": True, "SCRIPT_NAME": "/changed"})
    environ.pop("HTTP_HOST", None)
    return say(start_response, "clean" if clean else "dirty")
