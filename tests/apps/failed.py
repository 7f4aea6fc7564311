"""The application that is served while a new version cannot be loaded.

`FAILED_TARGET` is the target, `FAILED_DEBUG` its option `debug`, `FAILED_TEXT` the text of what has
no exception.
"""

from __future__ import annotations

import os

from poorhttp import targets
from poorhttp.config.settings import Settings
from poorhttp.plugins.dev.debug.load_error_page import load_error_page
from poorhttp.plugins.dev.debug.plain_page import PlainPage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def load() -> WSGIApplication:
    if text := os.environ.get("FAILED_TEXT"):
        return PlainPage(text)
    try:
        return targets.load(os.environ["FAILED_TARGET"])
    except BaseException as error:
        settings = Settings(debug=os.environ.get("FAILED_DEBUG", "on"), workers=1)
        return load_error_page(error, settings)


application = load()
