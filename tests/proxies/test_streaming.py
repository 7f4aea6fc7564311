"""nginx, HAProxy and Caddy that pass uploads and early hints on as they come."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from proxy.programs import PROGRAMS
from tests.apps.streamed import summary
from tests.packages import need
from tests.support.each_value import DIFFERENT
from tests.support.proxies import HAPROXY, WebServer, nginx_text, reserve
from tests.testkit.client import Connection, chunked
from tests.testkit.server import Server, join, wait_for

UPLOADS = "tests/apps/streamed.py"
HINTS = "tests/apps/hinting.py"
NAMES = ["nginx", "haproxy", "caddy"]
MUCH = 3_000_000


def configuration(name: str, folder: Path, port: int, server: int) -> str:
    """Of a proxy that passes on what comes, and answers at once."""
    if name == "nginx":
        place = (
            f"location / {{ proxy_pass http://127.0.0.1:{server}; proxy_http_version 1.1; "
            'proxy_set_header Connection ""; proxy_request_buffering off; proxy_buffering off; }'
        )
        servers = [f"server {{ listen 127.0.0.1:{port}; {place} }}"]
        return nginx_text(folder, servers).replace("100m", "0")
    if name == "haproxy":
        return (
            f"{HAPROXY}    retries 0\nlisten all\n    bind 127.0.0.1:{port}\n"
            f"    server one 127.0.0.1:{server}\n"
        )
    return (
        f"{{\n    admin off\n    auto_https off\n}}\nhttp://:{port} {{\n    bind 127.0.0.1\n"
        f"    reverse_proxy 127.0.0.1:{server} {{\n        flush_interval -1\n    }}\n}}\n"
    )


class Front(WebServer):
    """A proxy in front of one server."""

    def __init__(self, name: str, folder: Path, server: Server) -> None:
        need(name)
        reserved = reserve()
        self.port: int = reserved.getsockname()[1]
        self.name, self.server = name, server
        file = folder / "configuration"
        file.write_text(configuration(name, folder, self.port, server.port))
        program = PROGRAMS[name]
        words = program.words(folder, file.name)
        if name == "haproxy":
            words = ["-db", "-f", str(file)]
        environment = program.environment(folder)
        super().__init__(program.path(), *words, reserved=[reserved], cwd=folder, env=environment)
        wait_for(self.is_listening, f"{name} listening")

    def connect(self) -> Connection:
        """A new connection."""
        return Connection(("127.0.0.1", self.port))


@pytest.fixture(scope="module", params=NAMES)
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """One before a server of each mode that receives bodies while it runs."""
    folder, mode = tmp_path_factory.mktemp("front"), DIFFERENT[NAMES.index(request.param)]
    with (
        Server(UPLOADS, mode, "--stream-request-body", "on") as server,
        Front(request.param, folder, server) as front,
    ):
        yield front


def test_an_upload_is_read_as_it_comes(front: Front) -> None:
    """The application runs before the client has sent the other half."""
    content = bytes(range(256)) * (MUCH // 256)
    for framing in (f"Content-Length: {len(content)}", "Transfer-Encoding: chunked"):
        with front.connect() as connection:
            half = len(content) // 2
            sent = content
            if framing.endswith("chunked"):
                sent = chunked(content[:half], content[half:])
            before = front.server.log().count("entered whole")
            connection.send_request("POST", "/whole", framing)
            connection.send(sent[:half])
            front.server.wait_log("entered whole", before + 1)
            connection.send(sent[half:])
            assert connection.response().body == summary(content)


def test_an_answer_comes_before_the_body(front: Front) -> None:
    """Caddy has to receive some more of the body before it passes the answer on."""

    def go_on() -> None:
        with suppress(OSError):
            for _ in range(64):
                connection.send(bytes(1 << 20))

    for begin in (b"", bytes(100_000)):
        with front.connect() as connection:
            connection.send_request("POST", "/refuse", f"Content-Length: {10**9}")
            connection.send(begin)
            sender = Thread(target=go_on)
            if front.name == "caddy":
                sender.start()
                assert connection.response().status == 413
                connection.socket.shutdown(socket.SHUT_RDWR)
                join(sender)
            else:
                assert connection.response().status == 413
    with front.connect() as connection:
        assert connection.request("POST", "/whole", body=b"a").body == summary(b"a")


def test_a_client_that_leaves(front: Front) -> None:
    with front.connect() as connection:
        connection.send_request("POST", "/caught", "Content-Length: 1000000")
        connection.send(bytes(500_000))
        front.server.wait_log("entered caught")
    front.server.wait_log("caught ConnectionResetError")


@pytest.mark.parametrize("name", NAMES)
def test_early_hints(name: str, tmp_path: Path) -> None:
    """nginx before 1.29 takes a 103 for the final response (docs/guides/early-hints.md)."""
    options = ("--early-hints", "off") if name == "nginx" else ()
    with (
        Server(HINTS, "threading", *options) as server,
        Front(name, tmp_path, server) as front,
        front.connect() as connection,
    ):
        for path in ("/one", "/started", "/late", "/none"):
            answer = connection.request("GET", path)
            assert (answer.status, answer.body) == (200, b"done")
            passed = name != "nginx" and path in ("/one", "/started")
            assert answer.interim == ([103] if passed else [])
