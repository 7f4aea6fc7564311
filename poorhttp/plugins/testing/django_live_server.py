"""Live servers of Django's tests, served by poorhttp.

from poorhttp.frameworks.django.testing import StaticLiveServerTestCase

`LiveServerTestCase` and `StaticLiveServerTestCase` take the place of Django's. `install` changes
Django's own, which pytest-django's fixture `live_server` uses too.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from threading import Event

from django.contrib.staticfiles import testing as static_files
from django.db import connections
from django.test import testcases

import poorhttp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class LiveServer:
    """A server with the methods of `WSGIServer` that Django's `LiveServerThread` calls.

    Attributes:
        server_address: host and port.
    """

    def __init__(
        self,
        address: tuple[str, int],
        handler: object = None,
        *,
        ipv6: bool = False,
        allow_reuse_address: bool = False,
        connections_override: dict[str, Any] | None = None,
    ) -> None:
        """Listen at an address.

        Args:
            address: host and port; 0 is any free port.
            handler: Django's class for requests; not used.
            ipv6: whether the host has an IPv6 address.
            allow_reuse_address: not used: an address in use is an error.
            connections_override: connections to databases in memory, which all threads share.

        Raises:
            poorhttp.errors.BindError: the address cannot be used.
        """
        family = socket.AF_INET6 if ipv6 else socket.AF_INET
        found = socket.getaddrinfo(*address, family, socket.SOCK_STREAM)[0][4]
        host = str(found[0])
        host = f"[{host}]" if ipv6 else host
        self._connections = connections_override or {}
        self._application: WSGIApplication | None = None
        self._stopped = Event()
        self._server = poorhttp.Server(self._call, bind=f"{host}:{address[1]}")
        port = self._server.url.rpartition(":")[2]
        self.server_address = (address[0], int(port))

    def set_app(self, application: WSGIApplication) -> None:
        """Serve this application."""
        self._application = application

    def serve_forever(self) -> None:
        """Wait for `shutdown`."""
        self._stopped.wait()

    def shutdown(self) -> None:
        """Finish requests in flight, and stop."""
        try:
            self._server.close()
        finally:
            self._stopped.set()

    def server_close(self) -> None:
        """Close the listening socket, if `shutdown` has not."""
        self._server.close()

    def _call(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        assert self._application is not None
        for alias, connection in self._connections.items():
            connections[alias] = connection
        try:
            return _Response(self._application(environ, start_response), self._close_connections)
        except BaseException:
            self._close_connections()
            raise

    def _close_connections(self) -> None:
        """Close those of this thread, which the test does not share.

        Otherwise the database could not be removed when the tests have ended.
        """
        shared = self._connections.values()
        for connection in connections.all(initialized_only=True):
            if connection not in shared:
                connection.close()


class _Response:
    """A response at whose end a function is called in the thread that sends it."""

    def __init__(self, chunks: Iterable[bytes], at_end: Callable[[], None]) -> None:
        self._chunks = chunks
        self._at_end = at_end

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)

    def close(self) -> None:
        try:
            close = getattr(self._chunks, "close", None)
            if close is not None:
                close()
        finally:
            self._at_end()


class LiveServerThread(testcases.LiveServerThread):  # type: ignore[misc]  # Django has no types
    """Django's thread, with this server."""

    server_class = LiveServer


class LiveServerTestCase(testcases.LiveServerTestCase):  # type: ignore[misc]
    """Django's test case with a live server, which is this one."""

    server_thread_class = LiveServerThread


class StaticLiveServerTestCase(static_files.StaticLiveServerTestCase):  # type: ignore[misc]
    """The same, with the static files of applications."""

    server_thread_class = LiveServerThread


def install() -> None:
    """Make this the server of Django's own test cases."""
    testcases.LiveServerThread.server_class = LiveServer
