"""One WebSocket of an ASGI application: its handshake, `receive` and `send`, and its end.

When the application accepts, the reactor gives the connection away; the extension module has the
event loop watch its descriptor. Imported with the first handshake.
"""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import suppress

from poorhttp import logs
from poorhttp.plugins.asgi._websocket import Handshake
from poorhttp.plugins.asgi.exchange import ENDED, NEW, STATUS_LINES, HttpExchange, comes_of_reset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import TimerHandle
    from typing import Any

    from poorhttp.plugins.asgi._websocket import WebSocket
    from poorhttp.plugins.asgi.exchange import Message
    from poorhttp.plugins.asgi.native import Request
    from poorhttp.plugins.asgi.options import Asgi

#: Codes of Close frames (RFC 6455 section 7.4.1).
NORMAL, GOING_AWAY, ABNORMAL, INTERNAL_ERROR = 1000, 1001, 1006, 1011

#: Seconds in which the client takes what is left when the application has finished.
LAST_SEND = 10.0


class WebSocketExchange(HttpExchange):
    """A WebSocket, and the request for it."""

    _socket: WebSocket | None = None  # set when the application accepts
    _timer: TimerHandle | None = None
    _is_asked = _is_connected = False
    _complete = True

    def __init__(self, options: Asgi, handshake: Handshake, *rest: Any) -> None:
        super().__init__(*rest)
        self._handshake, self._options = handshake, options

    async def receive(self) -> Message:
        """Return the next message: the handshake, what the client has sent, or the end."""
        if not self._is_connected:
            self._is_connected = True
            return {"type": "websocket.connect"}
        while (socket := self._socket) is None:
            if self._phase == ENDED or self._is_left or self.request.client_disconnected():
                self._is_left = self._phase != ENDED
                return {"type": "websocket.disconnect", "code": ABNORMAL, "reason": ""}
            await self._wait()
        while (message := socket.take()) is None:
            await self._change(socket)
        return message

    async def send(self, message: Message) -> None:
        """Accept or refuse, send a message, or close; waits while the client does not read.

        Raises: as `HttpExchange.send`.
        """
        kind, socket = message["type"], self._socket
        if socket is not None:
            if kind == "websocket.send":
                data = message.get("bytes")
                if socket.has_waiting:  # of another task
                    await self._flushed(socket)
                if not socket.send(message["text"] if data is None else data):
                    await self._flushed(socket)
                return
            if kind == "websocket.close":
                socket.close(message.get("code") or NORMAL, message.get("reason") or "")
                return
        elif self._is_left:
            raise ConnectionResetError("the client has left")
        elif kind == "websocket.accept" and self._phase == NEW:
            await self._accept(message)
            return
        elif kind == "websocket.close" and self._phase == NEW:
            refuse(self.request, 403, "the application has refused the WebSocket")
            self._end()
            return
        elif kind.startswith("websocket.http.response."):
            await super().send({**message, "type": kind[len("websocket.") :]})
            return
        raise RuntimeError(f"{kind} was sent where it does not belong")

    async def _flushed(self, socket: WebSocket) -> None:
        while socket.has_waiting:
            await self._change(socket)
        if socket.closing:
            raise ConnectionResetError("this WebSocket is closed")

    async def _change(self, socket: WebSocket) -> None:
        """Wait until something has come, or all was sent."""
        waiter = self._loop.create_future()
        socket.wait(waiter)
        await waiter

    async def _accept(self, message: Message) -> None:
        headers = [(bytes(name), bytes(value)) for name, value in message.get("headers") or ()]
        head = self._handshake.head(message.get("subprotocol"), headers)
        while (connection := self.request.take_over_nowait()) is None:
            # Earlier responses must be sent before.
            await self._wait(room=True)
        most = self._options.websocket_max_message
        self._socket = self._handshake.open(head, connection, self._loop, most)
        if (interval := self._options.websocket_ping_interval) > 0:
            self._timer = self._loop.call_later(interval, self._ping)
        if self.request.stopping:
            self.going_away()
        self._wake()

    def going_away(self) -> None:
        """Tell the client that the server stops; messages are received until it answers."""
        if self._socket is not None:
            self._socket.close(GOING_AWAY, waits=True)

    def _ping(self) -> None:
        """Ask the client whether it is there; later close, if nothing has come."""
        socket = self._socket
        if socket is None or socket.closing:
            return
        if self._is_asked and not socket.heard:
            socket.close(INTERNAL_ERROR, "no answer to a ping")
            return
        delay = self._options.websocket_ping_interval
        self._is_asked = not self._is_asked
        if self._is_asked:
            socket.ping()
            delay = self._options.websocket_ping_timeout
        self._timer = self._loop.call_later(delay, self._ping)

    def _end_unfinished(self) -> None:
        if self._socket is None:
            super()._end_unfinished()
        else:
            self._conclude(self._socket, NORMAL)

    def _fail(self, error: BaseException) -> None:
        socket = self._socket
        if socket is None or self.request.foreign:
            super()._fail(error)
            return
        # Frameworks raise it where the application takes no notice of the end.
        is_end = comes_of_reset(error) or type(error).__name__ == "WebSocketDisconnect"
        is_ours = self.cancelled and isinstance(error, CancelledError)
        if not (is_ours or (is_end and socket.closing)):
            what = self.request.name
            logs.exception(f"{what}: the application failed", error, what)
            self._complete = False
        self._conclude(socket, NORMAL if self._complete else INTERNAL_ERROR)

    def _conclude(self, socket: WebSocket, code: int) -> None:
        """Close, if that is not done yet, and end the connection behind what is left to send."""
        socket.close(code)
        if not socket.has_waiting:
            self._finish()
            return
        waiter = self._loop.create_future()
        waiter.add_done_callback(self._finish)
        socket.wait(waiter)
        self._loop.call_later(LAST_SEND, self._finish)

    def _finish(self, _: object = None) -> None:
        if self._phase == ENDED or self._socket is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        is_all_sent = self._socket.end()
        # The reactor has a descriptor of its own, on which it waits for the client.
        self.request.end_upgraded(self._complete and is_all_sent)
        self._end()


def refuse(request: Request, status: int, reason: str) -> None:
    """Answer a handshake with an error; of the connection, 426 alone may and must say something."""
    headers = [(b"connection", b"upgrade"), (b"upgrade", b"websocket")]
    headers += (b"sec-websocket-version", b"13"), (b"content-type", b"text/plain; charset=utf-8")
    with suppress(OSError):
        request.start_bytes(STATUS_LINES[status], headers)
        request.finish_nowait(f"{reason}\n".encode())
