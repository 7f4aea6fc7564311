"""The application of the study `operate`: it has a version, and responses of several kinds.

The version is what the file says that `LOADTESTS_VERSION` names, at the time of import; `broken`
cannot be imported. Each answer tells the version, the process and the token of its request.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadtests.apps import mixed, sockets
from loadtests.apps.content import content, pieces

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

BROKEN = "broken"


path = os.environ.get("LOADTESTS_VERSION")
VERSION = Path(path).read_text(encoding="ascii").strip() if path else "0"
if VERSION == BROKEN:
    raise ImportError("this version is broken on purpose")


class Asked(mixed.Asked):
    """Answers with the version, too."""

    def start(self, *headers: tuple[str, str], status: str = mixed.OK, exc_info: Any = None) -> Any:
        """Call start_response."""
        return super().start(("X-Version", VERSION), *headers, status=status, exc_info=exc_info)


# Both begin at once: not every server waits for a generator's first piece before it sends the head.


def streamed(asked: Asked) -> Iterable[bytes]:
    """Pieces of an unknown total."""
    asked.start()
    return pieces(asked.token, mixed.PIECES)


def trickles(asked: Asked) -> Iterable[bytes]:
    """The same with pauses between them."""
    return _slowly(streamed(asked), float(asked.query["seconds"]) / len(mixed.PIECES))


def _slowly(items: Iterable[bytes], pause: float) -> Iterator[bytes]:
    for item in items:
        time.sleep(pause)
        yield item


def hangs(asked: Asked) -> Iterable[bytes]:
    """Sleeps where no exception reaches it."""
    time.sleep(60)
    return mixed.small(asked)


def spins(asked: Asked) -> Iterable[bytes]:
    """Waits in Python, again and again, where an exception reaches it."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.005)
    return mixed.small(asked)


def whole(asked: Asked, body: bytes) -> Iterable[bytes]:
    """A body of known length, as frameworks make it."""
    asked.start(("Content-Length", str(len(body))))
    return [body]


PATHS: dict[str, Callable[[Asked], Iterable[bytes]]] = {
    # The same for everybody, so that the lab knows the answer before it starts the server.
    "/": lambda asked: whole(asked, b"ready\n"),
    "/small": lambda asked: whole(asked, content(asked.token, asked.size)),
    "/posted": mixed.posted,
    "/streamed": streamed,
    "/sleeps": mixed.sleeps,
    "/trickles": trickles,
    "/hangs": hangs,
    "/spins": spins,
    "/echo": lambda asked: sockets.application(asked.environ, asked.start_response),
}


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The answer of the path."""
    return PATHS[environ["PATH_INFO"]](Asked(environ, start_response))
