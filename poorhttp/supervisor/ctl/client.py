"""A client of the address `admin`: one request on each connection."""

from __future__ import annotations

import http.client
import json
import socket
import sys

from poorhttp.errors import ConfigError, Failure, visible
from poorhttp.net.running_servers import is_loopback, listeners_at
from poorhttp.supervisor.ctl.find import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.supervisor.admin.model import Status

#: Seconds for a response. The admin process waits up to 5 s for the main process.
TIMEOUT = 15.0

#: Bytes of a response, at most: the admin process has the rights of the workers only.
LARGEST = 64 << 20


class Unreachable(Failure):
    """No server answers."""

    exit_code = 5


class Unavailable(Unreachable):
    """The main process does not answer its admin process."""


class _Connection(http.client.HTTPConnection):
    """A connection over TCP or a Unix socket, to a process that may know the token."""

    def __init__(self, place: Place) -> None:
        address = place.address
        host = address.host if address.kind == "tcp" else "localhost"
        super().__init__(host, address.port or None, timeout=TIMEOUT)
        self._address = address
        self._place = place

    def connect(self) -> None:
        """Connect, and check who listens before anything is sent.

        Raises:
            ConfigError: the user must not know the token.
        """
        if self._address.kind == "tcp":
            self._connect_tcp()
            return
        path = self._address.path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(f"\0{path[1:]}" if self._address.abstract else path)
        peer = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self._place.check([int.from_bytes(peer[4:8], sys.byteorder)], "it is listened at by")

    def _connect_tcp(self) -> None:
        super().connect()
        peer, own = self.sock.getpeername()[:2], self.sock.getsockname()[:2]
        # Who listens on another machine is not known.
        if not self._place.token or not (peer[0] == own[0] or is_loopback(peer[0])):
            return
        before = listeners_at(*peer)
        # Again: that connection may be one of a socket that is closed by now.
        self.sock.close()
        super().connect()
        after = listeners_at(*peer)
        if not before or before != after or self.sock.getpeername()[:2] != peer:
            raise ConfigError(
                f"{self._address}: it cannot be told who listens there, and the token was not sent"
            )
        self._place.check(after.values(), "it is listened at by")


class Client:
    """Asks and commands one server.

    Attributes:
        place: where it answers.
    """

    def __init__(self, place: Place) -> None:
        self.place = place

    def status(self) -> Status:
        """Return the status document.

        Raises:
            Failure: it cannot be had.
        """
        document: Any = self._json("GET", "/-/status")[1]
        found: Status = document
        return found

    def command(self, name: str, arguments: dict[str, object]) -> tuple[int, dict[str, Any]]:
        """Send a command; return the status, and the members of the answer.

        Raises:
            Failure: there is none.
        """
        return self._json("POST", f"/-/control/{name}", json.dumps(arguments).encode())

    def job(self, name: str) -> tuple[int, dict[str, Any]]:
        """Return the answer to a command that takes long; status 202: it is not there yet.

        Raises:
            Failure: there is none.
        """
        return self._json("GET", f"/-/control/jobs/{name}")

    def request(self, method: str, path: str, body: bytes | None = None) -> tuple[int, str, bytes]:
        """Send a request; return status, content type and body of the answer.

        Raises:
            Failure: there is none, or a token is needed.
        """
        where = self.place.address
        headers = {"Connection": "close"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self.place.token:
            headers["Authorization"] = f"Bearer {self.place.token.decode()}"
        connection = _Connection(self.place)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read(LARGEST + 1)
            if len(text) > LARGEST:
                raise http.client.HTTPException("its answer is too large")
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Unreachable(f"no server answers at {where}: {why}") from error
        finally:
            connection.close()
        if response.status == 401:
            why = "it refuses this token" if self.place.token else "it needs a token"
            raise ConfigError(f"{where}: {why}: --token-file FILE, its admin_token_file")
        return response.status, response.headers.get_content_type(), text

    def _json(
        self, method: str, path: str, body: bytes | None = None
    ) -> tuple[int, dict[str, Any]]:
        where = self.place.address
        status, content_type, text = self.request(method, path, body)
        if status == 503:
            raise Unavailable(f"{where}: the main process does not answer")
        try:
            found = json.loads(text) if content_type == "application/json" else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Unreachable(f"{where}: this is not the admin address of a poorhttp server")
        if path == "/-/status" and status != 200:
            raise Failure(f"{where}: {visible(str(found.get('message', status)))}")
        return status, found
