"""A plain keep-alive HTTP/1.1 connection: for checking answers, idling and timing first answers."""

from __future__ import annotations

import functools
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.clients import strict
from loadtests.clients.strict import BadResponse, Closed
from loadtests.errors import ServerFailure

BODILESS = ("GET", "HEAD")
"""Methods whose requests have no Content-Length without a body."""


@functools.cache
def unverified(*protocols: str) -> ssl.SSLContext:
    """TLS with any certificate, and these protocols by ALPN.

    Made once: that takes as long as a hundred requests.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


@dataclass(frozen=True)
class Answer:
    """A response: status code, Content-Type and body."""

    status: int
    content_type: str
    body: bytes


def request_bytes(
    target: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b"", method: str = ""
) -> bytes:
    """A request as it is sent; without a method a GET, or a POST if there is a body."""
    method = method or ("POST" if body else "GET")
    lines = [f"{method} {target} HTTP/1.1"]
    if not any(name.lower() == "host" for name, _ in headers):
        lines.append("Host: 127.0.0.1")
    lines += [f"{name}: {value}" for name, value in headers]
    if body or method not in BODILESS:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


class Connection(strict.Connection):
    """Connects when made. OSError is the caller's; wrong HTTP raises ServerFailure.

    With `tls` any certificate is taken.
    """

    # Answers to HTTP/1.0 may say so themselves.
    status_line = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?")

    def __init__(
        self,
        port: int,
        timeout: float = 5.0,
        source: str = "",
        address: str = "127.0.0.1",
        *,
        tls: bool = False,
    ) -> None:
        super().__init__((address, port), source, timeout)
        if tls:
            self.socket = unverified().wrap_socket(self.socket)

    def fileno(self) -> int:
        """The socket, for those who wait for several."""
        return self.socket.fileno()

    def ask(self, request: bytes, count: int = 1) -> list[Answer]:
        """Sends `count` copies of a request at once and reads as many answers."""
        self.send(request * count)
        return [self.read() for _ in range(count)]

    def read(self) -> Answer:
        """Reads the answer to what was sent."""
        try:
            response = self.response()
            return Answer(response.status, response.get("Content-Type") or "", response.body)
        except Closed:
            raise ServerFailure("it closed the connection instead of answering") from None
        except (BadResponse, AssertionError) as error:
            raise ServerFailure(str(error)) from None
