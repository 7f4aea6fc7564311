"""One HTTP request of an ASGI application: `receive` and `send`, and the end of its task."""

from __future__ import annotations

import os
from asyncio import CancelledError, sleep
from re import fullmatch
from stat import S_ISREG

from poorhttp import logs
from poorhttp.errors import RequestTimeout
from poorhttp.plugins.asgi.native import reason_phrases
from poorhttp.worker.wsgi import report_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task
    from collections.abc import Callable, Sequence
    from typing import Any

    from poorhttp.plugins.asgi.native import Request
    from poorhttp.plugins.asgi.scope import Scope

    Message = dict[str, Any]
    Wrapper = Callable[[Callable[[], object]], Callable[[], object]]

#: Into which parts of all bodies are received, one after another: no call waits while it is used.
BUFFER = memoryview(bytearray(256 * 1024))

#: Status lines by their codes.
STATUS_LINES = {code: f"{code} {phrase}" for code, phrase in reason_phrases().items()}

#: Seconds after which a body is asked for again of which nothing comes: its client may be too slow.
RETRY = 1.0

# How far the response is; with trailers, they follow its body.
NEW, STARTED, SENDING, TRAILERS, ENDED = range(5)


class HttpExchange:
    """A request and its response; `run` is the coroutine of its task.

    Attributes:
        request: that of the reactor.
        task: in which the application runs.
        cancelled: the server has cancelled the task, and logged why.
        overdue: the same, because of `request_timeout`.
    """

    task: Task[None]
    # Here, as most requests end with these values.
    cancelled = overdue = False
    _phase = NEW
    _body_left = True  # its end was not received yet
    _is_left = False
    _trailers: list[Any] | None = None  # fields behind the body; `None`: none are announced
    _part: tuple[int, int] | None = None  # what 206 sends of a file
    _waiters: Sequence[Future[None]] = ()
    _waits_for_data = _waits_for_room = False

    def __init__(
        self, request: Request, scope: Scope, loop: AbstractEventLoop, wrap_notice: Wrapper | None
    ) -> None:
        """Take a request; `wrap_notice` makes a function that any thread may call, if needed."""
        self.request = request
        self._scope = scope
        self._loop = loop
        self._wrap_notice = wrap_notice

    async def run(self, application: Any, exchanges: set[HttpExchange], request: Request) -> None:
        """Run the application, and see to its failure. Raises nothing.

        It is one of `exchanges` until then. By the name of `request`, which no other coroutine of
        the server has, stacks that are shown find the request of a task.
        """
        try:
            await application(self._scope, self.receive, self.send)
            if self._phase != ENDED:
                self._end_unfinished()
        except BaseException as error:
            self._fail(error)
        finally:
            exchanges.discard(self)

    async def receive(self) -> Message:
        """Return the next message: a part of the body, or that the client has left."""
        while self._body_left and self._phase != ENDED:
            if not self.request.streamed:
                self._body_left = False
                return {"type": "http.request", "body": self._whole_body(), "more_body": False}
            message = self._receive_nowait()
            if message is not None:
                if len(message.get("body", b"")) == len(BUFFER):
                    # Others have their turn, too, while a client sends as fast as it is read.
                    await sleep(0)
                return message
            timer = self._loop.call_later(RETRY, self._wake)
            try:
                await self._wait(data=True)
            finally:
                timer.cancel()
        while not (self._phase == ENDED or self._is_left or self.request.client_disconnected()):
            await self._wait()
        self._is_left = self._phase != ENDED
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a part of the response; waits while the client does not read.

        Raises:
            OSError: the client has left.
            RuntimeError: a message that does not follow the one before.
            TypeError, ValueError: a message that cannot be sent.
        """
        kind = message["type"]
        if self._is_left:
            raise ConnectionResetError("the client has left")
        if kind == "http.response.body" and NEW < self._phase < TRAILERS:
            body = message.get("body", b"")
            if type(body) is not bytes:
                body = bytes(memoryview(body))
            if message.get("more_body") or self._trailers is not None:
                await self._send_piece(body)
                if not message.get("more_body"):
                    self._phase = TRAILERS
                return
            taken = self.request.finish_nowait(body)
            while taken < len(body):
                await self._wait(room=True)
                taken = self.request.finish_nowait(body, taken)
            self._end()
        elif kind == "http.response.start" and self._phase == NEW:
            status = message["status"]
            line = STATUS_LINES.get(status) or f"{int(status)} Unknown"
            headers = message.get("headers", ())
            if status == 206:
                headers = [*headers]
                self._part = part_of(headers)
            self.request.start_bytes(line, headers)
            self._phase = STARTED
            if message.get("trailers"):
                self._trailers = []
        elif kind == "http.response.trailers" and self._phase == TRAILERS:
            assert self._trailers is not None
            self._trailers += message.get("headers", ())
            if not message.get("more_trailers"):
                self.request.finish_with_trailers(self._trailers)
                self._end()
        elif kind == "http.response.early_hint" and self._phase == NEW:
            self.request([("Link", link.decode("latin-1")) for link in message["links"]])
        elif kind == "http.response.pathsend" and self._phase == STARTED:
            await self._send_file(message["path"])
        else:
            places = ("before http.response.start", "there", "there", "behind the body")
            where = (*places, "behind the end of the response")[self._phase]
            where = "a second time" if kind == "http.response.start" else where
            raise RuntimeError(f"{kind} was sent {where}, where it has no place")

    def going_away(self) -> None:
        """Do nothing, as the server stops: requests that run are completed."""

    async def _send_piece(self, body: bytes) -> None:
        if body:
            while (taken := self.request.send_nowait(body)) < len(body):
                body = body[taken:]
                self._phase = SENDING
                await self._wait(room=True)
        elif self._phase == STARTED:
            self.request.send_head()
        self._phase = SENDING

    async def _send_file(self, path: str) -> None:
        # A named pipe would be waited for.
        with open(path, "rb", 0, opener=lambda at, how: os.open(at, how | os.O_NONBLOCK)) as file:
            found = os.fstat(file.fileno())
            begin, end = self._part or (0, found.st_size)
            if end - begin == found.st_size:
                begin, end = 0, end - begin  # a file of this part alone
            if not S_ISREG(found.st_mode) or not begin <= end <= found.st_size:
                raise OSError(f"{path!r} is no regular file, or ends before its Content-Range")
            if self.request.send_file(file.fileno(), begin, end - begin):
                self.request.done()
            else:
                # It is to be compressed, piece by piece.
                while piece := file.read(len(BUFFER)):
                    await self._send_piece(piece)
                self.request.finish_nowait(b"")
        self._end()

    def _receive_nowait(self) -> Message | None:
        """Return what has come of the body; `None`: nothing."""
        receive, filled = self.request.receive_nowait, 0
        try:
            while filled < len(BUFFER) and (length := receive(BUFFER[filled:])):
                filled += length
        except ConnectionResetError:
            self._body_left, self._is_left = False, True
            return {"type": "http.disconnect"}
        if length is None and not filled:
            return None
        self._body_left = length != 0
        body = bytes(BUFFER[:filled])
        return {"type": "http.request", "body": body, "more_body": self._body_left}

    def _whole_body(self) -> bytes:
        """Return the body that the server has received before; mostly empty."""
        framing = b"content-length", b"transfer-encoding"
        if not any(name in framing for name, _ in self._scope["headers"]):
            return b""
        body: bytes = self.request.take_environ()["wsgi.input"].read()
        return body

    async def _wait(self, *, data: bool = False, room: bool = False) -> None:
        """Wait until data or room may have come, the client has left, or the response has ended."""
        waiter = self._loop.create_future()
        self._waiters = (*self._waiters, waiter)
        # Another call of `notify` replaces that of another task of the application.
        self._waits_for_data |= data
        self._waits_for_room |= room
        function = self._wrap_notice(self._wake) if self._wrap_notice is not None else self._wake
        self.request.notify(function, data=self._waits_for_data, room=self._waits_for_room)
        await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, ()
        self._waits_for_data = self._waits_for_room = False
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _end(self) -> None:
        self._phase = ENDED
        if self._waiters:
            self._wake()

    def _end_unfinished(self) -> None:
        """Raise what is wrong: the application has returned, but not completed its response."""
        if self._is_left or self.request.client_disconnected():
            self._is_left = True
            raise ConnectionResetError("the client has left")
        ending = "without a response" if self._phase == NEW else "before the end of its response"
        raise RuntimeError(f"the application returned {ending}")

    def _fail(self, error: BaseException) -> None:
        request, what = self.request, self.request.name
        if (self._is_left or request.disconnected) and comes_of_reset(error):
            # If the server has cut the connection, the reason has been logged.
            if not request.cut:
                logs.write("info", f"{what}: the client left before the end of the response", what)
            request.abort()
        elif self.cancelled and isinstance(error, CancelledError):
            request.abort()
        elif self._phase == ENDED and not request.foreign:
            method = self._scope.get("method", "GET")  # the scope of a handshake has none
            after = f"behind its response to {method} {self._scope['path']!r}"
            logs.exception(f"{what}: the application failed {after}", error, what)
        else:
            request.disarm_timeout()
            is_late = self.overdue and isinstance(error, CancelledError)
            ours: Any = request
            report_failure(ours, RequestTimeout() if is_late else error)
        self._end()


def part_of(headers: list[tuple[bytes, bytes]]) -> tuple[int, int] | None:
    """Return begin and end of the part that `Content-Range` names (RFC 9110 section 14.4)."""
    text = next((value for name, value in headers if name.lower() == b"content-range"), b"")
    found = fullmatch(rb"bytes (\d+)-(\d+)/.*", text.strip())
    return (int(found[1]), int(found[2]) + 1) if found else None


def comes_of_reset(error: BaseException | None) -> bool:
    """Tell whether an exception is that of `send` to a client that has left, or follows from it.

    Frameworks raise one of their own for it, perhaps in a group.
    """
    for _ in range(10):
        if error is None or isinstance(error, ConnectionResetError):
            break
        members = getattr(error, "exceptions", None)
        if isinstance(members, tuple):
            return all(map(comes_of_reset, members))
        error = error.__cause__ or error.__context__
    return isinstance(error, ConnectionResetError)
