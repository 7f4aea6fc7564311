"""WebSockets on descriptors that an event loop watches."""

from asyncio import AbstractEventLoop, Future
from collections.abc import Sequence
from typing import Any, Final

from _typeshed import ReadableBuffer

class Handshake:
    def __init__(self, headers: Sequence[tuple[bytes, bytes]], compress: bool) -> None: ...
    refusal: Final[tuple[int, str] | None]
    subprotocols: Final[list[str]]
    def head(self, subprotocol: str | None, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Return the head of the answer that accepts. Raises ValueError: it would be malformed."""

    def open(
        self, head: bytes, taken: tuple[int, object], loop: AbstractEventLoop, max_message: int
    ) -> WebSocket:
        """Send the head on what `Request.take_over_nowait` has returned; takes it over."""

class WebSocket:
    #: The next message of the client, or its end; `None`: none has come.
    def take(self) -> dict[str, Any] | None: ...
    #: Has a future done when something has come, or all was sent.
    def wait(self, future: Future[Any]) -> None: ...
    def send(self, data: str | ReadableBuffer) -> bool:
        """Send; `False`: a part waits. Raises ConnectionResetError, TypeError, ValueError."""

    def ping(self) -> None: ...
    def close(self, code: int, reason: str = "", *, waits: bool = False) -> None:
        """Send a Close frame, if none was; receive until the client answers if it `waits`."""

    def end(self) -> bool:
        """Close the descriptor; return whether everything was sent."""

    #: Whether something waits to be sent, something has come since the last ping (or was not looked
    #: at), no message can be sent any more.
    has_waiting: Final[bool]
    heard: Final[bool]
    closing: Final[bool]
