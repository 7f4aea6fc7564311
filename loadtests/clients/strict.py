"""An HTTP client that sends exactly the given bytes and reads responses strictly.

It is a second reading of RFC 9112: what it accepts is what the RFC allows, so everything that reads
an answer also checks its framing. The tests of the server use it, too.
"""

from __future__ import annotations

import json
import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from loadtests.measure.waiting import HANG

if TYPE_CHECKING:
    from typing_extensions import Self

STATUS_LINE = re.compile(rb"HTTP/1\.(1) ([1-5][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*?)[ \t]*")


class BadResponse(Exception):
    """The server sent something that RFC 9112 does not allow."""


class Closed(Exception):
    """The server closed the connection before an answer began."""


@dataclass
class Response:
    """One final response; `interim` holds the statuses of the 1xx responses before it."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    trailers: list[tuple[str, str]] = field(default_factory=list)
    interim: list[int] = field(default_factory=list)
    #: How the end of the body was known: "none", "length", "chunked" or "close".
    framing: str = "none"

    def get(self, name: str) -> str | None:
        """The value of the header `name`; an AssertionError when it came more than once."""
        values = self.get_all(name)
        assert len(values) < 2, f"{name} was sent {len(values)} times: {values}"
        return values[0] if values else None

    def get_all(self, name: str) -> list[str]:
        """Every value of the header `name`, in order."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """One connection to a server: TCP as (host, port), a path for a Unix socket.

    `source` is the address that it comes from, if that matters: this machine has all of
    127.0.0.0/8. `was_reset` says that the server has ended the connection by a reset. `portion` is
    how much is received at once. `version` is that of the last answer: `1`, and where `status_line`
    allows it `0`.
    """

    portion = 65_536
    status_line = STATUS_LINE
    #: What the requests of `send_request` have as Host.
    host = "test"

    def __init__(
        self, address: tuple[str, int] | str, source: str = "", timeout: float = HANG
    ) -> None:
        family = socket.AF_UNIX
        if not isinstance(address, str):
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.was_reset, self.version = False, b"1"
        try:
            if source:
                # Else the kernel reserves a port for all destinations and runs out of them early.
                no_port = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24)
                self.socket.setsockopt(socket.IPPROTO_IP, no_port, 1)
                self.socket.bind((source, 0))
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        if family != socket.AF_UNIX:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = bytearray()
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Vanish: close with a TCP reset, as a client does whose machine or program is gone."""
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # struct linger: on, 0 seconds
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.socket.close()

    # Requests

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_slowly(self, data: bytes) -> None:
        """Send `data` octet by octet; a server may answer and close before the last.

        What is long goes faster between its first and its last thousand octets.
        """
        every = range(len(data) + 1)
        cuts = sorted({*every[:1_000], *every[::61], *every[-1_000:]})
        try:
            for start, end in pairwise(cuts):
                self.socket.sendall(data[start:end])
        except (BrokenPipeError, ConnectionResetError):
            pass

    def send_request(
        self,
        method: str,
        target: str,
        *headers: str,
        body: bytes | None = None,
        version: str = "HTTP/1.1",
    ) -> None:
        """Send one request. Host is added for HTTP/1.1, Content-Length when there is a body."""
        lines = [f"{method} {target} {version}"]
        if version == "HTTP/1.1":
            lines.append(f"Host: {self.host}")
        lines += headers
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))

    def request(
        self,
        method: str,
        target: str,
        *headers: str,
        body: bytes | None = None,
        version: str = "HTTP/1.1",
    ) -> Response:
        """Send one request and read the answer."""
        self.send_request(method, target, *headers, body=body, version=version)
        return self.response(method)

    # Responses

    def response(self, method: str = "GET") -> Response:
        """Read one final response to a `method` request. Raises Closed or BadResponse."""
        interim = []
        while True:
            response = self._head()
            if response.status >= 200:
                break
            interim.append(response.status)
        response.interim = interim
        self._body(response, method)
        return response

    def interim(self) -> int:
        """Read one 1xx response and return its status."""
        response = self._head()
        if response.status >= 200:
            raise BadResponse(f"a final response, {response.status}, where a 1xx was expected")
        return response.status

    def at_end(self) -> bool:
        """Wait for what comes next: True for the end of the connection, False for an octet."""
        if not self._read:
            self._fill()
        return not self._read

    def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        while self._fill():
            pass
        data, self._read = bytes(self._read), bytearray()
        return data

    def _fill(self) -> bool:
        """Receive some more; False at the end."""
        if self._ended:
            return False
        try:
            data = self.socket.recv(self.portion)
        except ConnectionResetError:
            self.was_reset = True
            data = b""
        self._ended = not data
        if self._ended:
            # As clients do, which close their end as well: the server waits for that.
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
        self._read += data
        return not self._ended

    def _line(self) -> bytes:
        while (end := self._read.find(b"\n")) < 0:
            if not self._fill():
                start = bytes(self._read[:200])
                raise BadResponse(f"the connection ended within a line: {start!r}")
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        if not line.endswith(b"\r"):
            raise BadResponse(f"a line feed without a carriage return: {line[:200]!r}")
        return line[:-1]

    def _take(self, length: int) -> bytes:
        while len(self._read) < length:
            if not self._fill():
                raise BadResponse(
                    f"the connection ended {length - len(self._read)} octets before a body did"
                )
        data = bytes(memoryview(self._read)[:length])
        del self._read[:length]
        return data

    def _fields(self) -> list[tuple[str, str]]:
        fields = []
        while line := self._line():
            match = FIELD.fullmatch(line)
            if match is None:
                raise BadResponse(f"a malformed header line: {line!r}")
            name, value = match.groups()
            fields.append((name.decode("ascii"), value.decode("latin-1")))
        return fields

    def _head(self) -> Response:
        if self.at_end():
            raise Closed
        line = self._line()
        match = self.status_line.fullmatch(line)
        if match is None:
            raise BadResponse(f"a malformed status line: {line[:200]!r}")
        self.version = match[1]
        return Response(int(match[2]), (match[3] or b"").decode("latin-1"), self._fields())

    def _body(self, response: Response, method: str) -> None:
        """RFC 9112 section 6.3, in its order."""
        length = response.get("Content-Length")
        coding = response.get("Transfer-Encoding")
        if length is not None and coding is not None:
            raise BadResponse("both Content-Length and Transfer-Encoding")
        if length is not None and not re.fullmatch("[0-9]+", length):
            raise BadResponse(f"Content-Length: {length!r}")
        if coding is not None and coding.lower() != "chunked":
            raise BadResponse(f"Transfer-Encoding: {coding!r}")
        if response.status == 204 and (length is not None or coding is not None):
            raise BadResponse("204 with Content-Length or Transfer-Encoding (RFC 9110 section 8.6)")
        if method == "HEAD" or response.status in (204, 304):
            return
        if coding is not None:
            response.framing = "chunked"
            self._chunks(response)
        elif length is not None:
            response.framing = "length"
            response.body = self._take(int(length))
        else:
            response.framing = "close"
            response.body = self.rest()

    def _chunks(self, response: Response) -> None:
        parts = []
        while True:
            line = self._line()
            if not re.fullmatch(b"[0-9A-Fa-f]{1,16}", line):
                raise BadResponse(f"a malformed chunk size: {line[:200]!r}")
            size = int(line, 16)
            if size == 0:
                break
            parts.append(self._take(size))
            if self._take(2) != b"\r\n":
                raise BadResponse("a chunk without CRLF behind its data")
        response.body = b"".join(parts)
        response.trailers = self._fields()
