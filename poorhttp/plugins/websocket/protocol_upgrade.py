"""Offers applications the socket of a request for a protocol upgrade, such as WebSocket.

Imported with the first request that asks for one. The socket is in the environ under the names for
which libraries look, and takes the connection at its first use: an application that ignores it
answers as always. In mode `gevent`, `socket` was patched before, and the socket is gevent's.
"""

from __future__ import annotations

import os
import socket
import sys
from _thread import allocate_lock
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from types import MethodDescriptorType

from poorhttp import logs
from poorhttp._core import Request
from poorhttp.worker.wsgi import ThreadReplaced, log_unreported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed import ReadableBuffer

    from poorhttp.plugins.native import UpgradedConnection

#: Names of the socket in the environ: that for authors, and those of Werkzeug and gunicorn.
NAMES = ("poorhttp.upgrade", "werkzeug.socket", "gunicorn.socket")

#: The methods of `socket.socket` are those of C, which send everything if the socket blocks.
IS_NATIVE = isinstance(socket.socket.send, MethodDescriptorType)

#: The package gevent-websocket is installed, and may be used.
HAS_GEVENT_WEBSOCKET = not IS_NATIVE and find_spec("geventwebsocket") is not None

#: The sockets of requests whose applications have got the connection.
_taken: dict[Request, UpgradedSocket] = {}

_taking = allocate_lock()

#: Connections from which on the switch interval is long while their threads end.
MANY = 256

#: The long switch interval, in seconds. A thread that waits for the GIL wakes at each interval to
#: request it: thousands of threads that wake each 5 ms leave the thread with the GIL no CPU time.
LONG = 0.5

#: The switch interval before it was made long; empty: it was not.
_usual: list[float] = []

#: Seconds that another thread of the application has for what it is sending when the application
#: ends: simple-websocket answers a Close frame in one thread, and its handler returns in another.
LAST_SEND = 5.0


class UpgradedSocket(socket.socket):
    """A blocking socket whose server knows what is sent, so that it can add a Close frame."""

    __slots__ = ("_connection", "_finish", "_replace", "_replaced", "_request", "_sending")

    _connection: UpgradedConnection
    _finish: Callable[[], object] | None
    _request: Request
    _replace: Callable[[], bool] | None
    _replaced: bool
    _sending: Any

    def send(self, data: ReadableBuffer, flags: int = 0, **timeout: float | None) -> int:
        """Send; blocks until everything is sent, unless a timeout is set.

        gevent's `sendall` calls this for each part, with `timeout` if the socket has one.
        """
        sent = 0
        with self._sending:
            self._connection.begin()
            try:
                sent = super().send(data, flags, **timeout)
                if not IS_NATIVE and not timeout and self.gettimeout() is None:
                    # gevent's own may have sent a part.
                    view = memoryview(data).cast("B")
                    while sent < len(view) and not flags & socket.MSG_DONTWAIT:
                        sent += super().send(view[sent:], flags)
                return sent
            finally:
                self._connection.end(data, sent)

    if IS_NATIVE:

        def sendall(self, data: ReadableBuffer, flags: int = 0, /) -> None:
            """Send everything."""
            sent = -1
            with self._sending:
                self._connection.begin()
                try:
                    super().sendall(data, flags)
                    sent = memoryview(data).nbytes
                finally:
                    self._connection.end(data, sent)

    def sendmsg(self, buffers: Iterable[ReadableBuffer], *arguments: Any) -> int:
        """Send what is in several buffers."""
        buffers = list(buffers)
        sent = 0
        with self._sending:
            self._connection.begin()
            try:
                sent = super().sendmsg(buffers, *arguments)
                return sent
            finally:
                self._connection.end(b"".join(buffers), sent)

    def sendto(self, *arguments: Any) -> int:
        """Send, which the server does not see."""
        self._connection.lose_track()
        return super().sendto(*arguments)

    def sendfile(self, *arguments: Any, **named: Any) -> int:
        """Send a file, which the server does not see."""
        self._connection.lose_track()
        return super().sendfile(*arguments, **named)

    def dup(self) -> socket.socket:  # type: ignore[override]
        """Return a plain socket; what that sends the server does not see."""
        self._connection.lose_track()
        return socket.socket(fileno=os.dup(self.fileno()))

    def detach(self) -> int:
        """Return the descriptor, which is the application's: the server does not end it."""
        self._connection.detach()
        return super().detach()


class OfferedSocket(UpgradedSocket):
    """The same before its first use. Any attribute is a use, except those of Python itself."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return object.__getattribute__(self, name)
        take_over(self)
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"<poorhttp.upgrade of request {object.__getattribute__(self, '_request').number}>"


def offer(
    environ: dict[str, Any],
    request: Request,
    application: object,
    replace: Callable[[], bool] | None,
) -> None:
    """Put a socket into the environ that takes the connection when it is used.

    Args:
        environ: of the request.
        request: one that asks for another protocol.
        application: gets the request.
        replace: starts a thread in the place of the present one, and returns whether it could;
            `None`: there is no pool of threads.
    """
    offered = OfferedSocket.__new__(OfferedSocket)
    offered._request, offered._replace, offered._replaced = request, replace, False
    offered._sending = allocate_lock()
    offered._finish = None
    for name in NAMES:
        environ[name] = offered
    if HAS_GEVENT_WEBSOCKET:
        from poorhttp.plugins.websocket import gevent_websocket

        gevent_websocket.offer(environ, offered, application)
        offered._finish = partial(gevent_websocket.end, environ)


def take_over(offered: UpgradedSocket) -> None:
    """Take the connection of its request.

    Raises:
        OSError: the response has begun, or the client is gone.
    """
    with _taking:
        if type(offered) is UpgradedSocket:
            return  # another thread was faster
        request: Request = object.__getattribute__(offered, "_request")
        replace = object.__getattribute__(offered, "_replace")
        fd, connection = request.take_over(in_pool=replace is None)
        # The request ends it from now on, whatever happens.
        _taken[request] = offered
        offered.__class__ = UpgradedSocket
        offered._connection = connection
        try:
            socket.socket.__init__(offered, fileno=fd)
        except BaseException:
            os.close(fd)
            raise
        offered.settimeout(None)
        if replace is not None:
            offered._replaced = replace()
            if not offered._replaced:
                what = request.name
                text = f"{what}: no thread can be started, so this connection keeps one of the pool"
                logs.write("error", text, what)


def end(request: Request, error: BaseException) -> None:
    """End the connection of a request whose application has got it, and is through.

    Raises:
        ThreadReplaced: another thread serves in the place of this one.
    """
    upgraded = _taken.pop(request, None)
    if upgraded is not None and upgraded._replaced:
        _set_switch_interval(request)
    complete = is_end(error)
    if upgraded is not None and upgraded._finish is not None:
        with suppress(Exception):
            upgraded._finish()
    try:
        if not complete:
            what = request.name
            logs.exception(f"{what}: the application failed", error, what)
    except BaseException as another:
        log_unreported(request.number, error, another)
    # A thread may be answering a Close frame.
    is_alone = upgraded is not None and upgraded._sending.acquire(timeout=LAST_SEND)
    request.end_upgraded(complete)
    if upgraded is not None:
        if is_alone:
            upgraded._sending.release()
        # The application may still refer to it; the core has a descriptor of its own.
        with suppress(OSError):
            upgraded.close()
        if upgraded._replaced:
            raise ThreadReplaced


def _set_switch_interval(request: Request) -> None:
    """Make it long while a server with many connections stops, whose threads all end then."""
    are_many = len(_taken) >= MANY
    if are_many == bool(_usual) or (are_many and not request.stopping):
        return
    with _taking:
        # Another thread may have been faster.
        if are_many and not _usual:
            _usual.append(sys.getswitchinterval())
            sys.setswitchinterval(max(LONG, *_usual))
        elif _usual and not are_many:
            sys.setswitchinterval(_usual.pop())


def is_end(error: BaseException) -> bool:
    """Whether an exception is the usual end of an application that has got the connection.

    A StopIteration is gunicorn's sign that the response is discarded, and what the core raises if
    there is one; a generator makes it a RuntimeError. With a ConnectionError an application says
    the same to Werkzeug, or the client is gone.
    """
    while isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        error = error.__cause__
    return isinstance(error, (StopIteration, ConnectionError, SystemExit, GeneratorExit)) or (
        type(error).__name__ == "GreenletExit"
    )
