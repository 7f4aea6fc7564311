"""A client of the address `admin`: one request on each connection."""

from __future__ import annotations

import http.client
import json
import socket
import sys
import time

from poorhttp.config.version import VERSION
from poorhttp.errors import ConfigError, Failure, visible
from poorhttp.net.running_servers import LISTENS, ip_address, port_of, rows
from poorhttp.plugins.monitor.ctl import shape
from poorhttp.plugins.monitor.ctl.find import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.plugins.monitor.admin.model import Status

#: Seconds without a byte of a response. The admin process waits up to 5 s for the main process.
TIMEOUT = 15.0

#: Seconds for a whole response: some programs send a little of one again and again.
LONGEST = 60.0

#: Bytes of a response, at most: the admin process has the rights of the workers only.
LARGEST = 64 << 20


class Unreachable(Failure):
    """No server answers."""

    exit_code = 5


class Stranger(Unreachable):
    """Something else answers: another program, or another version of the server."""

    def __init__(self, place: Place, why: str = "") -> None:
        what = f"{place.address}: this is not the admin address of a poorhttp server"
        super().__init__(f"{what}: {why}" if why else what)


class Unavailable(Unreachable):
    """The main process does not answer its admin process."""


class _Socket(socket.socket):
    """A socket from which all has to be received in `LONGEST` seconds."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(fileno=sock.detach())
        self._until = time.monotonic() + LONGEST

    def recv_into(self, *arguments: Any) -> int:
        """Receive; a TimeoutError if nothing comes, or not all in time."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(min(left, TIMEOUT))
        return super().recv_into(*arguments)


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
        else:
            self._connect_unix()
        self.sock = _Socket(self.sock)

    def _connect_unix(self) -> None:
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
        """Return the status document, of the version of this command.

        Raises:
            Failure: it cannot be had.
        """
        document = self.document()
        if place := shape.missing(document, shape.STATUS):
            version = visible(document["version"])[:40]
            raise Unreachable(
                f"{self.place.address}: this is poorhttp {version}, whose status has another form "
                f"({place}) than that of {VERSION}: use the command of that installation"
            )
        found: Any = document
        status: Status = found
        return status

    def document(self) -> dict[str, Any]:
        """Return the status document of a server of any version.

        Raises:
            Failure: it cannot be had.
        """
        code, document = self._json("GET", "/-/status")
        if code != 200:
            self._check_answer(code, document)
            if code < 400:
                raise Stranger(self.place)
            raise Failure(f"{self.place.address}: {visible(document['message'])}")
        if shape.missing(document, shape.ANY_STATUS):
            raise Stranger(self.place)
        return document

    def pid(self) -> int:
        """Return the main process, also of another version: it may be about to be replaced.

        Raises:
            Failure: it does not answer.
        """
        found: int = self.document()["pid"]
        return found

    def command(self, name: str, arguments: dict[str, object]) -> tuple[int, dict[str, Any]]:
        """Send a command; return the status, and the members of the answer.

        Raises:
            Failure: there is none.
        """
        found = self._json("POST", f"/-/control/{name}", json.dumps(arguments).encode())
        self._check_answer(*found)
        return found

    def job(self, name: str) -> tuple[int, dict[str, Any]]:
        """Return the answer to a command that takes long; status 202: it is not there yet.

        Raises:
            Failure: there is none.
        """
        found = self._json("GET", f"/-/control/jobs/{name}")
        self._check_answer(*found)
        return found

    def _check_answer(self, status: int, answer: dict[str, Any]) -> None:
        """Raise `Stranger` unless a server of any version answers so: with words or a result."""
        if shape.missing(answer, shape.ANSWER):
            raise Stranger(self.place)
        # What a server accepts has not failed yet.
        contradicts = status == 202 and not answer["ok"]
        if contradicts or not (answer["message"] or "result" in answer):
            raise Stranger(self.place)

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
        connection, began = _Connection(self.place), time.monotonic()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read(LARGEST + 1)
        except http.client.RemoteDisconnected as error:
            why = "it closes the connection without an answer, as an address of HTTPS may do"
            raise Stranger(self.place, why) from error
        except http.client.IncompleteRead as error:
            raise Stranger(self.place, "its answer ends too early") from error
        except http.client.HTTPException as error:
            raise Stranger(self.place, "it does not speak HTTP, or speaks HTTPS") from error
        except TimeoutError as error:
            limit = TIMEOUT if time.monotonic() - began < LONGEST else LONGEST
            why = f"no complete answer in {limit:.0f} s"
            raise Unreachable(f"no server answers at {where}: {why}") from error
        except OSError as error:
            why = error.strerror or str(error) or type(error).__name__
            raise Unreachable(f"no server answers at {where}: {why}") from error
        finally:
            connection.close()
        if len(text) > LARGEST:
            raise Stranger(self.place, "its answer is too large")
        realms = response.headers.get_all("WWW-Authenticate", [])
        if response.status == 401 and not any('realm="poorhttp"' in each for each in realms):
            raise Stranger(self.place)
        if response.status == 401:
            why = "it refuses this token" if self.place.token else "it needs a token"
            raise ConfigError(f"{where}: {why}: --token-file FILE, its admin_token_file")
        return response.status, response.headers.get_content_type(), text

    def _json(
        self, method: str, path: str, body: bytes | None = None
    ) -> tuple[int, dict[str, Any]]:
        where = self.place.address
        status, content_type, text = self.request(method, path, body)
        if status == 503 and text.startswith(b"not ready: "):
            raise Unavailable(f"{where}: the main process does not answer")
        found = shape.read(text) if content_type == "application/json" else None
        if found is None:
            raise Stranger(self.place)
        return status, found


def listeners_at(host: str, port: int) -> dict[int, int]:
    """Return the users of the sockets that accept connections at an IP address, by inode.

    Empty if there is none in this network namespace, or that cannot be seen.
    """
    import ipaddress

    wanted = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(wanted, "ipv4_mapped", None)
    wanted = mapped or wanted
    exact: dict[int, int] = {}
    others: dict[int, int] = {}
    for table in ("tcp", "tcp6"):
        for words in rows(table):
            if words[3] != LISTENS:
                break
            if port_of(words[1]) != port:
                continue
            found = ip_address(words[1])
            if found == wanted:
                exact[int(words[9])] = int(words[7])
            elif found.is_unspecified and (found.version == 6 or wanted.version == 4):
                others[int(words[9])] = int(words[7])
    return exact or others


def is_loopback(host: str) -> bool:
    """Whether an IP address is one of this machine for itself."""
    return host == "::1" or host.removeprefix("::ffff:").startswith("127.")
