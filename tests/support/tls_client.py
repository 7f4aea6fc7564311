"""TLS clients for tests: contexts, requests, and the certificate and environ variables they get."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trustme

from tests.support.certificate import certificate
from tests.support.load import Clients
from tests.testkit.client import HANG
from tests.testkit.server import Server, wait_for

#: An application that answers with its environ variables of TLS.
APP = "tests/apps/secure.py"
BIND = ("https://127.0.0.1:0",)
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def write(folder: Path, name: str, issued: trustme.LeafCert) -> str:
    """Write a key and its chain into one file, in place of one that is there."""
    path = folder / name
    new = folder / f"{name}.new"
    new.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    new.chmod(0o600)
    new.rename(path)
    return str(path)


def context(version: str = "", **client: trustme.LeafCert) -> ssl.SSLContext:
    """What a client connects with, of one version, perhaps with a certificate."""
    made = certificate().client_context()
    if version:
        made.minimum_version = made.maximum_version = VERSIONS[version]
    for issued in client.values():
        issued.configure_cert(made)
    return made


@contextmanager
def connected(
    server: Server | int,
    host: str = "localhost",
    made: ssl.SSLContext | None = None,
    session: ssl.SSLSession | None = None,
) -> Iterator[ssl.SSLSocket]:
    """A connection to a server that has the name `host`."""
    made = made or context()
    port = server if isinstance(server, int) else server.port
    with (
        socket.create_connection(("127.0.0.1", port), HANG) as plain,
        made.wrap_socket(plain, server_hostname=host, session=session) as sock,
    ):
        yield sock


def ask(sock: ssl.SSLSocket, path: str = "/") -> tuple[str, dict[str, Any]]:
    """Head and JSON of the answer to one request, which closes the connection."""
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    received = b""
    while data := sock.recv(65536):
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    return head.decode(), json.loads(body)


def told(server: Server, host: str = "localhost", made: ssl.SSLContext | None = None) -> Any:
    """What the application is told of one connection."""
    with connected(server, host, made) as sock:
        return ask(sock)[1]


def names(server: Server | int, host: str) -> set[str]:
    """The hosts of the certificate that a client gets, which is not verified."""
    made = context()
    made.check_hostname = False
    with connected(server, host, made) as sock:
        found = sock.getpeercert()
    assert found is not None
    alternatives: Any = found["subjectAltName"]
    return {name for _, name in alternatives}


class Asking(Clients):
    """Clients that ask over TLS again and again, on new connections and on kept ones."""

    def __init__(self, server: Server, clients: int = 3) -> None:
        self.server = server
        self.faults: list[str] = []
        self.answers = 0
        super().__init__(*[self._ask] * clients)

    def end(self) -> None:
        super().end()
        assert not self.faults, self.faults

    def _ask(self) -> None:
        made = context()
        while not self._over.wait(0.005):
            try:
                told(self.server, made=made)
            except Exception as error:
                self.faults.append(repr(error))
                return
            self.answers += 1

    def wait_more(self) -> None:
        """Wait until some more requests were answered, or one was not."""
        until = self.answers + 10
        wait_for(lambda: self.faults or self.answers >= until, "more answers")
