"""Services that speak something else than HTTP: a handler gets each connection as it is.

Imported only where the target is `tcp:…`. In mode `gevent`, `socket` has been patched by then.
"""

from __future__ import annotations

import socket
from contextlib import suppress

from poorhttp import logs
from poorhttp.errors import RequestTimeout
from poorhttp.worker.wsgi import exit_forked_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    from poorhttp._core import Connection

    #: Is called with the socket, which blocks, and the address of the client, which is as
    #: `socket.accept` has it.
    Handler: TypeAlias = Callable[[socket.socket, Any], object]


def serve(handler: Handler, connections: Iterable[Connection]) -> None:
    """Hand connections to a handler, one after another: all that a reactor has for this thread.

    A connection ends when its handler does. Nothing that a handler does ends the loop.
    """
    connections = iter(connections)
    while True:
        try:
            for connection in connections:
                sock = None
                try:
                    fd, family = connection.duplicate()
                    sock = socket.socket(family, socket.SOCK_STREAM, 0, fd)
                    handler(sock, connection.begin())
                    connection.end()
                except BaseException as error:
                    # First of all: nothing shall strike where it is not expected.
                    connection.leave_alone()
                    report_failure(connection, sock, error)
                if sock is not None:
                    close_socket(sock)
                # Otherwise the last ones would live on while the reactor waits for the next.
                del connection, sock
            return
        except RequestTimeout:
            # It came when the handler was through: nothing is lost.
            pass


def close_socket(sock: socket.socket) -> None:
    """Close the handler's socket: it may have kept it. The core has closed the connection."""
    with suppress(OSError):
        sock.close()


def report_failure(
    connection: Connection, sock: socket.socket | None, error: BaseException
) -> None:
    """Reset a connection whose handler has failed, and log what went wrong. Never raises."""
    if connection.foreign:
        exit_forked_process(error)
    try:
        level, what = "info", f"request {connection.number} {connection.line}"
        if isinstance(error, RequestTimeout) or connection.forfeited:
            # Where it was has been logged.
            logs.write(level, f"{what}: the handler was interrupted, its connection was reset")
        elif isinstance(error, ConnectionError) and connection.disconnected:
            logs.write(level, f"{what}: the client left before its handler ended")
        elif isinstance(error, TimeoutError) and has_timeout(sock):
            logs.write(level, f"{what}: the handler has waited too long for its client")
        else:
            logs.exception(f"{what}: the handler failed", error)
    except BaseException as another:
        # Descriptors may have run out, or the exception itself may be broken. The server goes on.
        logs.write(
            "error",
            f"request {connection.number}: {type(error).__name__}, and then"
            f" {type(another).__name__} while it was reported",
        )
    connection.end(complete=False)


def has_timeout(sock: socket.socket | None) -> bool:
    """Whether a handler has said how long it waits for its client."""
    return sock is not None and sock.gettimeout() is not None
