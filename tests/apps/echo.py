"""An application that returns its environ and body as JSON, checked by wsgiref.validate."""

from __future__ import annotations

import json
from wsgiref.validate import validator

from tests.apps.basics import Environ, Pieces, StartResponse


def echo(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer with `environ` (what is text, number or truth value in it) and `body` as Latin-1.

    Each call leaves a line `ran METHOD PATH` in the log: a test can see one that must not be.
    """
    environ["wsgi.errors"].write(f"ran {environ['REQUEST_METHOD']} {environ['RAW_URI']}\n")
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    plain = {key: value for key, value in environ.items() if isinstance(value, (str, int, tuple))}
    answer = json.dumps({"environ": plain, "body": body.decode("latin-1")}).encode()
    fields = [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))]
    start_response("200 OK", fields)
    return [answer]


application = validator(echo)
