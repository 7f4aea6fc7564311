"""A WSGI application that answers with its process ID and its environ variables of TLS as JSON."""

from __future__ import annotations

import json
import os

from tests.apps.basics import Environ, Pieces, StartResponse


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer; `/hsts` with a Strict-Transport-Security of its own."""
    headers = [("Content-Type", "application/json")]
    if environ["PATH_INFO"] == "/hsts":
        headers.append(("strict-transport-security", "max-age=1"))
    start_response("200 OK", headers)
    found = {key: value for key, value in environ.items() if key.startswith(("SSL_", "HTTPS"))}
    found |= {"pid": os.getpid(), "scheme": environ["wsgi.url_scheme"]}
    return [json.dumps({**found, "port": environ["SERVER_PORT"]}).encode()]
