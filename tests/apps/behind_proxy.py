"""What the tests ask for through a proxy: apps/lightheavy, the echo below /echo, and /wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from poorhttp.targets import load

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

light_and_heavy = load("dispatch:apps/lightheavy")
echo = load("tests/apps/echo.py")
gate = load("tests/apps/gate.py")


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with one of them."""
    path = environ["PATH_INFO"]
    chosen = gate if path == "/wait" else echo if path.startswith("/echo") else light_and_heavy
    return chosen(environ, start_response)
