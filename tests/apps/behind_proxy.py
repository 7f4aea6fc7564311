"""What the tests ask for through a proxy: apps/lightheavy, and the echo below /echo."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from poorhttp.targets import load

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

light_and_heavy = load("dispatch:apps/lightheavy")
echo = load("tests/apps/echo.py")


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with the one or the other."""
    below_echo = environ["PATH_INFO"].startswith("/echo")
    return (echo if below_echo else light_and_heavy)(environ, start_response)
