"""Three pages for any WSGI server: /hello, and /light and /heavy of `apps/lightheavy`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from poorhttp import dispatch

APPS = Path(__file__).resolve().parents[2] / "apps"
BODY = b"Hello, world!"
HEADERS = [("Content-Type", "text/plain"), ("Content-Length", str(len(BODY)))]

sys.path.insert(0, str(APPS / "lightheavy"))
pages = dispatch.Application(importlib.import_module("dispatch_table"))


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A greeting or one of the pages."""
    if environ["PATH_INFO"] == "/hello":
        start_response("200 OK", HEADERS.copy())
        return [BODY]
    return pages(environ, start_response)
