"""nginx, HAProxy and Caddy that pass uploads and early hints on as they come."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from threading import Thread

import pytest

from proxy.programs import PROGRAMS
from tests.apps.streamed import summary
from tests.packages import need
from tests.support.each_value import DIFFERENT, each_value
from tests.support.proxies import WebServer, reserve
from tests.testkit.client import Connection
from tests.testkit.server import Server, join, wait_for

UPLOADS = "tests/apps/streamed.py"
HINTS = "tests/apps/hinting.py"
NAMES = ["nginx", "haproxy", "caddy"]
in_front = pytest.mark.parametrize(
    ("mode", "name"), each_value(DIFFERENT, NAMES), indirect=["mode"]
)
MUCH = 3_000_000

CONFIGURATIONS = {
    "nginx": """
        daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;
        events {{ worker_connections 64; }}
        http {{
            access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
            fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
            client_max_body_size 0;
            server {{
                listen 127.0.0.1:{port};
                location / {{
                    proxy_pass http://127.0.0.1:{server};
                    proxy_http_version 1.1; proxy_set_header Connection "";
                    proxy_request_buffering off; proxy_buffering off;
                }}
            }}
        }}
    """,
    "haproxy": """
        defaults
            mode http
            timeout connect 60s
            timeout client 60s
            timeout server 60s
            retries 0
        frontend all
            bind 127.0.0.1:{port}
            default_backend servers
        backend servers
            server one 127.0.0.1:{server}
    """,
    "caddy": """
{{
    admin off
    auto_https off
}}
http://:{port} {{
    bind 127.0.0.1
    reverse_proxy 127.0.0.1:{server} {{
        flush_interval -1
    }}
}}
""",
}


def command(name: str, folder: Path, file: Path) -> list[str]:
    """The command that starts a proxy with a configuration."""
    program = PROGRAMS[name]
    if name == "haproxy":
        return [program.path(), "-db", "-f", str(file)]
    return [program.path(), *program.words(folder, file.name)]


class Front(WebServer):
    """A proxy in front of one server."""

    def __init__(self, name: str, folder: Path, server: Server) -> None:
        need(name)
        reserved = reserve()
        self.port: int = reserved.getsockname()[1]
        file = folder / "configuration"
        places = {"folder": folder, "port": self.port, "server": server.port}
        file.write_text(f"{dedent(CONFIGURATIONS[name].format(**places))}\n")
        environment = PROGRAMS[name].environment(folder)
        words = command(name, folder, file)
        super().__init__(*words, reserved=[reserved], cwd=folder, env=environment)
        wait_for(self.is_listening, f"{name} listening")

    def connect(self) -> Connection:
        """A new connection."""
        return Connection(("127.0.0.1", self.port))


@pytest.fixture
def uploads(mode: str) -> Iterator[Server]:
    with Server(UPLOADS, mode, "--stream-request-body", "on") as server:
        yield server


@in_front
def test_an_upload_is_read_as_it_comes(name: str, uploads: Server, tmp_path: Path) -> None:
    """The application runs before the client has sent the other half."""
    content = bytes(range(256)) * (MUCH // 256)
    with Front(name, tmp_path, uploads) as front:
        for count, framing in enumerate(
            (f"Content-Length: {len(content)}", "Transfer-Encoding: chunked"), 1
        ):
            with front.connect() as connection:
                half = len(content) // 2
                parts = [content[:half], content[half:]]
                if framing.endswith("chunked"):
                    parts = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts]
                    parts[1] += b"0\r\n\r\n"
                connection.send_request("POST", "/whole", framing)
                connection.send(parts[0])
                uploads.wait_log("entered whole", count)
                connection.send(parts[1])
                assert connection.response().body == summary(content)


@in_front
def test_an_answer_comes_before_the_body(name: str, uploads: Server, tmp_path: Path) -> None:
    """Caddy has to receive some more of the body before it passes the answer on."""

    def go_on() -> None:
        with suppress(OSError):
            for _ in range(64):
                connection.send(bytes(1 << 20))

    with Front(name, tmp_path, uploads) as front:
        for begin in (b"", bytes(100_000)):
            with front.connect() as connection:
                connection.send_request("POST", "/refuse", f"Content-Length: {10**9}")
                connection.send(begin)
                sender = Thread(target=go_on)
                if name == "caddy":
                    sender.start()
                    assert connection.response().status == 413
                    connection.socket.shutdown(socket.SHUT_RDWR)
                    join(sender)
                else:
                    assert connection.response().status == 413
        with front.connect() as connection:
            assert connection.request("POST", "/whole", body=b"a").body == summary(b"a")


@in_front
def test_a_client_that_leaves(name: str, uploads: Server, tmp_path: Path) -> None:
    with Front(name, tmp_path, uploads) as front:
        with front.connect() as connection:
            connection.send_request("POST", "/caught", "Content-Length: 1000000")
            connection.send(bytes(500_000))
            uploads.wait_log("entered caught")
        uploads.wait_log("caught ConnectionResetError")


@in_front
def test_early_hints(name: str, mode: str, tmp_path: Path) -> None:
    """nginx before 1.29 takes a 103 for the final response (docs/guides/early-hints.md)."""
    options = ("--early-hints", "off") if name == "nginx" else ()
    with Server(HINTS, mode, *options) as server, Front(name, tmp_path, server) as front:
        connection = front.connect()
        for path in ("/one", "/started", "/late", "/none"):
            answer = connection.request("GET", path)
            assert (answer.status, answer.body) == (200, b"done")
            passed = name != "nginx" and path in ("/one", "/started")
            assert answer.interim == ([103] if passed else [])
        connection.close()
