"""The application that is served while a new version cannot be loaded.

`FAILED_TARGET` is the target, or a request names it in its field `X-Target`; `FAILED_DEBUG` is the
option `debug`, `FAILED_TEXT` the text of what has no exception.
"""

from __future__ import annotations

import os

from poorhttp import targets
from poorhttp.config.settings import Settings
from poorhttp.plugins.dev.debug.load_error_page import load_error_page
from poorhttp.plugins.dev.debug.plain_page import PlainPage
from tests.apps.basics import Environ, Pieces, StartResponse, WSGIApplication

#: Applications of requests, by their targets.
loaded: dict[str, WSGIApplication] = {}


def load(target: str) -> WSGIApplication:
    if text := os.environ.get("FAILED_TEXT"):
        return PlainPage(text)
    try:
        return targets.load(target)
    except BaseException as error:
        settings = Settings(debug=os.environ.get("FAILED_DEBUG", "on"), workers=1)
        return load_error_page(error, settings)


def of_request(environ: Environ, start_response: StartResponse) -> Pieces:
    target = environ["HTTP_X_TARGET"]
    if target not in loaded:
        loaded[target] = load(target)
    return loaded[target](environ, start_response)


named = "FAILED_TARGET" in os.environ or "FAILED_TEXT" in os.environ
application = load(os.environ.get("FAILED_TARGET", "")) if named else of_request
