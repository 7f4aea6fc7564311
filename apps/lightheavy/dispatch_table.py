"""Two pages to measure a server with: hardly any work, and some."""

from __future__ import annotations

import re

from heavy import heavy
from light import light

from poorhttp import dispatch as http

_address = re.compile(r"[a-z0-9._-]+@[a-z0-9._-]+$")


def setreq(req: http.Request) -> None:
    """Give every request what the handlers share."""
    req.address = _address


handlers = {
    "/": (http.METHOD_GET, light),
    "/light": (http.METHOD_GET, light),
    "/heavy": (http.METHOD_GET, heavy),
}
