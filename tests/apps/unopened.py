"""An application whose process cannot open files for reading: an audit hook forbids it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def forbid(event: str, arguments: tuple[object, ...]) -> None:
    """Raise when a descriptor is opened for reading."""
    if event == "open" and isinstance(arguments[0], int) and arguments[1] in ("r", "rb"):
        raise PermissionError("the audit hook forbids this")


sys.addaudithook(forbid)


def application(_: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
