"""An application that answers with the `repr` of each value of the environ, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with all keys."""
    told = {key: repr(value) for key, value in environ.items()}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(told).encode()]
