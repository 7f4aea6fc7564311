"""The target `tcp:package.module:handler` or `tcp:path/to/file.py:handler`: a raw TCP service.

The handler is called with a socket and an address for each connection (`poorhttp/worker/tcp.py`).
"""

from __future__ import annotations

from poorhttp.errors import ApplicationError
from poorhttp.targets import wsgi
from poorhttp.targets.target import CALLABLE, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load(target: str) -> Any:
    """Load the handler that a target names; an ApplicationError says what is wrong."""
    place, colon, name = target.rpartition(":")
    if not (place and colon and name):
        place = place or target or "package.module"
        raise ApplicationError(f"tcp:{target} names no handler: say tcp:{place}:HANDLER")
    handler, _ = wsgi.load_callable(target)
    code = getattr(handler, "__code__", None)
    if code is not None and code.co_flags & 0x80:  # 0x80: async def
        raise ApplicationError(
            f"tcp:{target} is a coroutine: a handler is an ordinary function, which may block "
            "(mode gevent runs thousands at a time)"
        )
    if code is not None and code.co_argcount < 2 and not code.co_flags & 0x04:  # *arguments
        raise ApplicationError(
            f"tcp:{target} does not take what a handler gets: socket and address"
        )
    return handler


TARGET = Target(load, CALLABLE, whole_body="TCP services have none")
