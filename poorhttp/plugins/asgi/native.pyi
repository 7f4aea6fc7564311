"""Types of what only mode `asyncio` uses of the extension module."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from _typeshed import WriteableBuffer

from poorhttp._core import RequestName
from poorhttp.plugins.asgi.scope import RequestHead

def reason_phrases() -> dict[int, str]:
    """Return the reason phrases of statuses, by their codes."""

class Reactor:
    """The methods of `poorhttp._core.Reactor` that a mode on an event loop uses."""

    def poll(self) -> Any:
        """Return the next `Request`, or `None`."""

    def fileno(self) -> int: ...
    def flush_log(self) -> None: ...
    def give_up(self) -> None: ...
    foreign: Final[bool]
    finished: Final[bool]
    #: Whether it was stopped; requests may still be in flight.
    stopping: Final[bool]

class Request:
    """A `poorhttp._core.Request` of a reactor with `lazy_environ`."""

    def take_head(self) -> RequestHead:
        """Return the head in parts, as it was received; `take_environ` is possible, too."""

    def take_environ(self) -> dict[str, Any]: ...
    def begin(self) -> None:
        """Start the timeout, if the environ is not taken."""

    #: Whether the application receives the body; otherwise the environ has it.
    streamed: Final[bool]

    def receive_nowait(self, buffer: WriteableBuffer) -> int | None: ...
    def start_bytes(self, status: str, headers: Iterable[Sequence[bytes]], /) -> None:
        """Start the response with fields of bytes; of the connection, only `close` counts.

        Raises: as `start_response`.
        """

    def send_head(self) -> None:
        """Send the head at once, unless the body may be compressed. Raises: as `write`."""

    def send_nowait(self, data: bytes) -> int: ...
    def finish_nowait(self, data: bytes, taken: int = 0) -> int:
        """Send the last piece of the body from byte `taken` on; return up to where it was taken.

        With head and body in one system call, if nothing was sent before. The response has ended
        when all bytes were taken; before, `notify` tells when there is room for more.

        Raises: as `write`.
        """

    def finish_with_trailers(self, headers: Iterable[Sequence[bytes]]) -> None:
        """End the response with trailer fields, where its framing has a place for them."""

    def send_file(self, fd: int, offset: int, length: int) -> bool:
        """Send the response with a part of a file; `False`: it is to be compressed, and sent so."""

    def __call__(self, headers: list[tuple[str, str]], /) -> None:
        """Send a response 103 with these fields."""

    def notify(
        self, function: Callable[[], object], *, data: bool = False, room: bool = False
    ) -> None: ...
    def client_disconnected(self) -> bool: ...
    def disarm_timeout(self) -> None: ...
    def abort(self) -> None: ...
    def take_over_nowait(self) -> tuple[int, object] | None:
        """Take the connection; `None`: there must be room for earlier responses first.

        Raises:
            OSError: the response has begun, or the client is gone.
        """

    def end_upgraded(self, complete: bool) -> None: ...
    stopping: Final[bool]

    #: Whether the client has left, as far as that is known, or was cut off by the server.
    disconnected: Final[bool]
    cut: Final[bool]
    name: Final[RequestName]
    foreign: Final[bool]
