"""An application that answers with the `repr` of each value of the environ, as JSON."""

from __future__ import annotations

from tests.apps.basics import Environ, Pieces, StartResponse, tell


def app(environ: Environ, start_response: StartResponse) -> Pieces:
    return tell(start_response, {key: repr(value) for key, value in environ.items()})
