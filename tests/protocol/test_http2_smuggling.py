"""Request smuggling in HTTP/2, and HTTP/2 where another version is spoken: each has its verdict.

The cases are in tests/cases/http2. tests/proxies/test_http2_smuggling.py sends those of requests
through proxies.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from loadtests.clients.http2_frames import GOAWAY, HEADERS, frames
from tests.conftest import Serve
from tests.support.certificate import certificate
from tests.support.check_each import check_each
from tests.support.http2_client import Client, Stream, client, tls
from tests.testkit.cases.http2 import ConnectionCase, StreamCase, read_connections, read_streams
from tests.testkit.client import HANG, Connection
from tests.testkit.server import Server

ALONE = True

ECHO = "tests/apps/echo.py"
ON = "--http2=on"

STREAMS = [*read_streams()]
CONNECTIONS = [*read_connections()]
GATEWAYS = ("uwsgi", "scgi", "fastcgi")


def ask(made: Client, case: StreamCase) -> Stream:
    """The answer to the request of a case."""
    stream = made.begin_with(case.fields, ended=case.body is None)
    if case.body is not None:
        made.send(stream, case.body, ended=True)
    return made.whole(stream)


def test_streams(serve: Serve) -> None:
    server = serve(ECHO, ON)

    def check(case: StreamCase) -> None:
        before = server.log_size()
        stream = ask(made, case)
        assert stream.status == case.status, stream.body
        if case.reason:
            assert stream.body.decode().endswith(f": {case.reason}\n"), stream.body
        else:
            answer = json.loads(stream.body)
            found = {key: answer["environ"].get(key) for key in case.environ}
            assert found == case.environ
            assert answer["body"].encode("latin-1") == (case.body or b"")
        # The connection goes on, and one request at most was run.
        assert made.get("/after").status == 200
        log = server.log(before)
        assert log.count("ran ") == 1 + (case.status == 200), log
        assert log.count(f"refused with {case.status} ({case.reason})") == (case.status != 200)

    with client(server) as made:
        check_each(STREAMS, check)


def test_cgi(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A program gets the same, and no other variable that begins with HTTP_."""
    folder = tmp_path_factory.mktemp("cgi")
    program = folder / "env.cgi"
    program.write_text("#!/bin/sh\nprintf 'A: b\\n\\n'; exec env -0\n")
    program.chmod(0o755)
    server = serve(f"cgi:{folder}", ON)
    path = (b":path", b"/env.cgi")

    def check(case: StreamCase) -> None:
        fields = [path if field[0] == b":path" else field for field in case.fields]
        stream = ask(made, replace(case, fields=fields))
        assert stream.status == 200
        texts = stream.body.decode("latin-1").split("\0")[:-1]
        variables = dict(text.split("=", 1) for text in texts)
        for key in case.environ.keys() - {"wsgi.url_scheme"}:
            assert variables.get(key) == case.environ[key], key
        sent = {name.decode().upper().replace("-", "_") for name, _ in case.fields}
        theirs = {key for key in variables if key.startswith("HTTP_")}
        assert theirs <= {"HTTP_HOST", *(f"HTTP_{name}" for name in sent)}

    with client(server) as made:
        served = [case for case in STREAMS if case.status == 200]
        check_each([case for case in served if not case.name.startswith("path-")], check)


# How connections begin


@pytest.fixture(scope="module")
def folder_of_sockets() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        certificate().write(Path(folder, "pem"))
        yield Path(folder)


def opened(server: Server, case: ConnectionCase, path: str) -> socket.socket:
    """A connection as a case wants it."""
    if case.over == "unix":
        return Connection(path).socket
    if case.over == "tls":
        return tls(server, *case.alpn)
    scheme = "http" if case.over == "tcp" else case.over
    return socket.create_connection(("127.0.0.1", server.port_of(scheme)), HANG)


def told(received: bytes) -> list[str]:
    """The statuses and errors in what a server has sent."""
    words: list[str] = []
    while received.startswith(b"HTTP/1.1 "):
        head, _, rest = received.partition(b"\r\n\r\n")
        lines = [line.lower().split(b": ") for line in head.split(b"\r\n")[1:]]
        length = int(dict(lines)[b"content-length"])
        if len(rest) < length:
            return words
        words.append(head[9:12].decode())
        received = rest[length:]
    for kind, _, stream, payload in frames(bytearray(received)):
        if kind == HEADERS:
            # `:status: 200` is the eighth field of the static table.
            assert (stream, payload.lstrip(b"\x20\x3f\xe1\x07")[:1]) == (1, b"\x88"), payload
            words.append("h2:200")
        elif kind == GOAWAY:
            words.append(f"goaway:{int.from_bytes(payload[4:8], 'big')}")
    return words


def check_connection(case: ConnectionCase, server: Server, path: str) -> None:
    before = server.log_size()
    *expected, end = case.expect
    with closing(opened(server, case, path)) as sock:
        sock.sendall(case.send)
        received, is_open = b"", True
        while is_open and (end == "close" or told(received) != expected):
            try:
                data = sock.recv(65_536)
            except ConnectionResetError:
                data = b""
            received, is_open = received + data, bool(data)
    assert told(received) == expected, received
    assert is_open == (end == "keep")
    log = server.log(before)
    assert "/never" not in log
    assert log.count("ran ") == sum(word in ("200", "h2:200") for word in expected), log


def test_connections(serve: Serve, folder_of_sockets: Path) -> None:
    certificate_of = ("--tls-certificate", str(folder_of_sockets / "pem"))
    options = sorted({case.options for case in CONNECTIONS})

    def check(case: ConnectionCase) -> None:
        path = f"{folder_of_sockets}/{options.index(case.options)}"
        bind: tuple[str, ...] = ("127.0.0.1:0", f"unix:{path}", "https://127.0.0.1:0")
        if "--trusted-proxies=127.0.0.1" in case.options:
            bind += tuple(f"{scheme}://127.0.0.1:0" for scheme in GATEWAYS)
        check_connection(case, serve(ECHO, *case.options, *certificate_of, bind=bind), path)

    check_each(CONNECTIONS, check)
