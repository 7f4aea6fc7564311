"""The configurations `site` of proxy/: TLS and files before one server at a Unix socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.proxies import APP, TRUST, Proxy, check_client
from tests.testkit.server import Server

#: In the folders of files, those for everybody and those that the application hands out.
PUBLIC, SECRET = b"for everybody\n", b"for those whom the application lets\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """At a socket in a folder of its own, which is `server.folder`."""
    with TemporaryDirectory() as name:
        socket = Path(name) / "poorhttp.sock"
        options = ("-c", "proxy/site.ini", *TRUST)
        with Server(APP, "threading", *options, bind=(f"unix:{socket}",)) as server:
            yield server


@pytest.fixture(scope="module", params=["lighttpd", "nginx", "haproxy"])
def proxy(request: pytest.FixtureRequest, server: Server) -> Iterator[Proxy]:
    socket = Path(server.urls.removeprefix("unix:"))
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "poorhttp.sock").symlink_to(socket)
        for kind, content in (("static", PUBLIC), ("downloads/files", SECRET)):
            (folder / kind).mkdir(parents=True)
            (folder / kind / "file.txt").write_bytes(content)
        with Proxy(request.param, "site", folder) as proxy:
            yield proxy.wait_listening()


#: HAProxy has no files.
with_files = pytest.mark.parametrize("proxy", ["lighttpd", "nginx"], indirect=True)


def test_pages(proxy: Proxy) -> None:
    body = b"x" * 3_000_000
    with proxy.connect() as connection:
        for _ in range(10):
            assert connection.request("GET", "/light").status == 200
            head = connection.request("HEAD", "/heavy")
            assert (head.status, head.body) == (200, b"")
        answer = connection.request("POST", "/echo", body=body).json()
        assert answer["body"].encode() == body
    check_client(proxy, proxy.port, "https")


@with_files
def test_files(proxy: Proxy, server: Server) -> None:
    """The server does not hear of them."""
    before = server.log()
    with proxy.connect() as connection:
        answer = connection.request("GET", "/static/file.txt")
        assert (answer.status, answer.body) == (200, PUBLIC)
        assert (answer.get("Content-Type") or "").startswith("text/plain")
        etag = answer.get("ETag")
        again = connection.request("GET", "/static/file.txt", f"If-None-Match: {etag}")
        assert again.status == 304
        assert connection.request("GET", "/static/nothing.txt").status == 404
        assert connection.request("GET", "/static/../site.pem.key").status in (400, 404)
    assert server.log() == before


@with_files
def test_the_application_names_a_file(proxy: Proxy) -> None:
    """It decides, and the proxy sends; nobody else can have the file."""
    if proxy.program.name == "nginx":
        name, other = "/accel?/protected/file.txt", "/accel?/protected/../site.pem.key"
    else:
        folder = proxy.folder
        name, other = (
            f"/sendfile?{folder}/downloads/files/file.txt",
            f"/sendfile?{folder}/site.pem.key",
        )
    with proxy.connect() as connection:
        answer = connection.request("GET", name)
        assert (answer.status, answer.body) == (200, SECRET)
        assert not answer.get_all("X-Sendfile")
        assert not answer.get_all("X-Accel-Redirect")
        part = connection.request("GET", name, "Range: bytes=4-8")
        assert (part.status, part.body) == (206, SECRET[4:9])
    with proxy.connect() as connection:
        assert connection.request("GET", "/protected/file.txt").status == 404
    with proxy.connect() as connection:
        assert connection.request("GET", other).status >= 400
