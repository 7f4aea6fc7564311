"""Compressed responses through nginx, by HTTP and as a gateway: never compressed twice."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.apps.compressed import text
from tests.packages import need
from tests.support.proxies import WebServer, nginx_text, reserve
from tests.testkit.client import Connection, Response
from tests.testkit.server import Server, wait_for

PROTOCOLS = ("http", "uwsgi", "scgi", "fastcgi")
GZIP = "Accept-Encoding: gzip"


class Ways:
    """Ours behind nginx, which compresses too, and not compressing behind another port of it."""

    def __init__(self) -> None:
        need("nginx")
        # Short: the name of a Unix socket has some hundred bytes.
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        binds = [f"unix:{folder}/http"]
        binds += [f"{protocol}+unix:{folder}/{protocol}" for protocol in PROTOCOLS[1:]]
        self._reserved = {protocol: reserve() for protocol in PROTOCOLS}
        servers = []
        for protocol, reserved in self._reserved.items():
            address = f"unix:{folder}/{protocol}"
            passed = f"{protocol}_pass {address}; include /etc/nginx/{protocol}_params;"
            if protocol == "http":
                passed = f"proxy_pass http://{address}:/; proxy_http_version 1.1;"
            port = reserved.getsockname()[1]
            servers.append(
                f"server {{ listen 127.0.0.1:{port}; location / {{ {passed} }} "
                "fastcgi_buffering off; proxy_buffering off; scgi_buffering off; "
                "uwsgi_buffering off; }"
            )
        compressing = "gzip on; gzip_types *; gzip_min_length 0; gzip_proxied any;"
        text = nginx_text(folder, servers, f"{compressing} gzip_http_version 1.0;")
        (folder / "nginx.conf").write_text(text)
        options = ("--compress=on", "--trusted-proxies", "unix")
        self.server = Server("tests/apps/compressed.py", "threading", *options, bind=tuple(binds))
        self.nginx = WebServer(
            *("nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")),
            *(("-g", "user root;") if os.geteuid() == 0 else ()),
            reserved=list(self._reserved.values()),
        )
        wait_for(self.nginx.is_listening, "nginx listening")

    def connect(self, protocol: str) -> Connection:
        """A connection to nginx, which passes its requests on by this protocol."""
        return Connection(self._reserved[protocol].getsockname())

    def get(self, protocol: str, target: str, *headers: str) -> Response:
        """The answer to a request."""
        with self.connect(protocol) as connection:
            return connection.request("GET", target, *headers)


@pytest.fixture(scope="module")
def ways() -> Iterator[Ways]:
    ways = Ways()
    with ways.folder, ways.server, ways.nginx:
        yield ways


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_decoded_once(ways: Ways, protocol: str) -> None:
    for shape, size in product(["list", "generator", "write", "one"], [10_000, 1_500_000]):
        response = ways.get(protocol, f"/?shape={shape}&size={size}", GZIP)
        assert response.get_all("Content-Encoding") == ["gzip"], (shape, size)
        assert gzip.decompress(response.body) == text(size), (shape, size)
        assert "Accept-Encoding" in response.get_all("Vary"), (shape, size)
    # Tags come back as they were sent.
    assert ways.get(protocol, "/?field=ETag:%22a%22", GZIP).get("ETag") == 'W/"a"'


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_ours_leaves_alone_is_compressed_by_nginx(ways: Ways, protocol: str) -> None:
    for field in ("X-Compress:off", "Set-Cookie:a=b"):
        response = ways.get(protocol, f"/?field={quote(field)}", GZIP)
        assert gzip.decompress(response.body) == text(10_000)
    for target in ("/?field=Cache-Control:no-transform", "/"):
        assert ways.get(protocol, target).body == text(10_000)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_events_arrive_when_they_are_made(ways: Ways, protocol: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    field = quote("Content-Type:text/event-stream")
    with ways.connect(protocol) as connection:
        connection.send_request("GET", f"/?shape=gate&gate={gate}&field={field}", GZIP)
        received = b""
        for number in range(3):
            events = b"".join(b"data: event %d\n\n" % one for one in range(number + 1))
            while unchunked(received) != events:
                received += connection.socket.recv(65_536)
            Path(f"{gate}{number + 1}").touch()


def unchunked(received: bytes) -> bytes:
    """What has come of a chunked body in gzip, decoded."""
    _, _, rest = received.partition(b"\r\n\r\n")
    decoder, found = zlib.decompressobj(31), b""
    while b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        found += decoder.decompress(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    return found
