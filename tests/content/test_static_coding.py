"""Compression of files that the core serves: once for each version, and never for ranges."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.apps.compressed import text
from tests.testkit.client import Response
from tests.testkit.server import Server, alone

# The core compresses and sends these files, in all modes alike.
GZIP = "Accept-Encoding: gzip"
OLD = (1_700_000_000, 1_700_000_000)

#: Names of files, their content, and whether they are compressed.
FILES = {
    "small.json": (text(2_000), True),
    "page.html": (text(60_000), True),
    "large.js": (text(300_000), True),
    "huge.css": (text(1 << 20) + b"!", False),
    "tiny.txt": (text(1_000), False),
    "picture.png": (text(20_000), False),
    "random.txt": (os.urandom(5_000), False),
    "empty.txt": (b"", False),
}


def write(path: Path, content: bytes) -> None:
    """Write a file of long ago."""
    path.write_bytes(content)
    os.utime(path, OLD)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with these files, and one that was compressed beforehand."""
    folder = tmp_path_factory.mktemp("folder")
    for name, (content, _) in FILES.items():
        write(folder / name, content)
    write(folder / "ready.txt", text(5_000))
    write(folder / "ready.txt.gz", gzip.compress(b"compressed beforehand"))
    write(folder / "404.html", b"<p>there is no such file</p>" * 100)
    (folder / "many").mkdir()
    for number in range(100):
        write(folder / f"many/{number}", b"")
    return folder


@pytest.fixture(scope="module", params=["4M", "0"])
def server(folder: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of the folder, with a cache and without."""
    options = ("--compress=on", "--static-listing=on", "--static-not-found", "404.html")
    options += ("--static-cache", request.param, *alone("threading"))
    with Server(f"static:{folder}", "threading", *options) as server:
        yield server


def content(response: Response) -> bytes:
    """The content of a response, decoded."""
    if response.get("Content-Encoding") is None:
        return response.body
    assert response.get("Content-Encoding") == "gzip"
    assert response.get("Vary") == "Accept-Encoding"
    return gzip.decompress(response.body)


@pytest.mark.parametrize("name", FILES)
def test_files(server: Server, name: str) -> None:
    expected, is_compressed = FILES[name]
    for _ in range(3):
        response = server.get(f"/{name}", GZIP)
        assert content(response) == expected
        assert (response.get("Content-Encoding") == "gzip") == is_compressed
        assert response.framing == "length"
        assert response.get("Accept-Ranges") == (None if is_compressed else "bytes")
        plain = server.get(f"/{name}")
        assert (plain.body, plain.get("Content-Encoding")) == (expected, None)
        # That of random bytes is not compressed, but it might have been.
        assert plain.get("Vary") == (
            "Accept-Encoding" if is_compressed or name == "random.txt" else None
        )


def test_conditional_requests(server: Server) -> None:
    name = "large.js"
    plain, coded = server.get(f"/{name}"), server.get(f"/{name}", GZIP)
    strong = plain.get("ETag")
    assert strong is not None
    assert coded.get("ETag") == f"W/{strong}"
    for tag in (strong, f"W/{strong}", "*"):
        response = server.get(f"/{name}", GZIP, f"If-None-Match: {tag}")
        assert (response.status, response.body) == (304, b"")
        assert response.get("ETag") == f"W/{strong}"
        assert response.get("Vary") == "Accept-Encoding"
        assert response.get("Content-Encoding") is None
        response = server.get(f"/{name}", f"If-None-Match: {tag}")
        # As the 200 would have (RFC 9110 section 15.4.5).
        assert (response.status, response.get("Vary")) == (304, "Accept-Encoding")
    assert server.get(f"/{name}", GZIP, 'If-None-Match: "other"').status == 200
    date = plain.get("Last-Modified")
    assert server.get(f"/{name}", GZIP, f"If-Modified-Since: {date}").status == 304


def test_ranges_are_those_of_the_plain_file(server: Server) -> None:
    strong = server.get("/large.js").get("ETag")
    response = server.get("/large.js", GZIP, "Range: bytes=100-199")
    assert (response.status, response.body) == (206, text(300_000)[100:200])
    assert (response.get("ETag"), response.get("Content-Encoding")) == (strong, None)
    assert response.get("Vary") == "Accept-Encoding"
    response = server.get("/large.js", GZIP, "Range: bytes=100-199", f"If-Range: W/{strong}")
    assert (response.status, content(response)) == (200, text(300_000))


def test_head_and_copies(server: Server) -> None:
    """A copy beside the file wins."""
    ignored = ("Date", "Content-Length")
    for name in ("small.json", "large.js", "huge.css"):
        get, head = server.get(f"/{name}", GZIP), server.request("HEAD", f"/{name}", GZIP)
        assert not head.body
        expected = [pair for pair in get.headers if pair[0] not in ignored]
        assert [pair for pair in head.headers if pair[0] not in ignored] == expected, name
    assert content(server.get("/ready.txt", GZIP)) == b"compressed beforehand"
    assert server.get("/ready.txt", "Accept-Encoding: identity").body == text(5_000)


def test_a_page_for_what_is_not_there_and_a_listing(server: Server, folder: Path) -> None:
    response = server.get("/nothing", GZIP)
    assert (response.status, response.get("Content-Encoding")) == (404, "gzip")
    assert content(response) == (folder / "404.html").read_bytes()
    response = server.get("/many/", GZIP)
    assert response.get("Content-Encoding") == "gzip"
    assert content(response).count(b"<a ") >= 100


def test_a_file_that_an_application_names(folder: Path) -> None:
    with Server(
        "tests/apps/compressed.py", "threading", "--compress=on", "--x-sendfile", str(folder)
    ) as server:
        for name, compressed in (("large.js", True), ("huge.css", False)):
            target = f"/?shape=empty&field={quote(f'X-Sendfile:{folder / name}')}"
            response = server.get(target, GZIP)
            assert content(response) == FILES[name][0]
            assert (response.get("Content-Encoding") == "gzip") == compressed
            response = server.get(f"{target}&field={quote('X-Compress:off')}", GZIP)
            assert response.body == FILES[name][0]
            assert response.get("X-Compress") is None


def test_static_files_alone(folder: Path) -> None:
    options = ("--compress=static", "--static", f"/files={folder}")
    with Server("tests/apps/compressed.py", "threading", *options) as server:
        response = server.get("/files/large.js", GZIP)
        assert (response.get("Content-Encoding"), content(response)) == ("gzip", text(300_000))
        response = server.get("/?size=300000", GZIP)
        assert (response.get("Content-Encoding"), response.body) == (None, text(300_000))
        assert response.get("Vary") is None
