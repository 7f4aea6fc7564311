"""A plain keep-alive HTTP/1.1 connection: for checking answers, idling and timing first answers."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.errors import ServerFailure

RECEIVE = 65536
BODILESS = ("GET", "HEAD")
"""Methods whose requests have no Content-Length without a body."""


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


class Connection:
    """Connects when made. OSError is the caller's; wrong HTTP raises ServerFailure."""

    def __init__(
        self,
        port: int,
        timeout: float = 5.0,
        source: str | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        self._socket = socket.socket()
        try:
            self._socket.settimeout(timeout)
            if source is not None:
                # Else the kernel reserves a port for all destinations and runs out of them early.
                no_port = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24)
                self._socket.setsockopt(socket.IPPROTO_IP, no_port, 1)
                self._socket.bind((source, 0))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.connect((address, port))
        except BaseException:
            self._socket.close()
            raise
        self._received = b""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """The socket, for those who wait for several."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def ask(self, request: bytes, count: int = 1) -> list[Answer]:
        """Sends `count` copies of a request at once and reads as many answers."""
        self.send(request * count)
        return [self.read() for _ in range(count)]

    def send(self, data: bytes) -> None:
        """Sends bytes at once, also parts of a request."""
        self._socket.sendall(data)

    def _receive(self) -> None:
        data = self._socket.recv(RECEIVE)
        if not data:
            raise ServerFailure("it closed the connection instead of answering")
        self._received += data

    def read(self) -> Answer:
        """Reads the answer to what was sent."""
        while b"\r\n\r\n" not in self._received:
            self._receive()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")
        fields = {}
        for line in lines:
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        if "content-length" in fields:
            body = self._take(int(fields["content-length"]))
        elif fields.get("transfer-encoding", "").lower() == "chunked":
            body = self._chunks()
        else:
            body = self._rest()
        return Answer(int(status_line.split(" ")[1]), fields.get("content-type", ""), body)

    def _rest(self) -> bytes:
        """All until the connection is closed."""
        while data := self._socket.recv(RECEIVE):
            self._received += data
        return self._take(len(self._received))

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            self._receive()
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    def _chunks(self) -> bytes:
        body = b""
        while True:
            while b"\r\n" not in self._received:
                self._receive()
            size = self._take(self._received.index(b"\r\n") + 2)
            # Behind each chunk there is an end of line; no server here sends trailer fields.
            chunk = self._take(int(size, 16) + 2)[:-2]
            if not chunk:
                return body
            body += chunk
