"""Compression of responses: which are compressed, in what coding, and what the client decodes."""

from __future__ import annotations

import gzip
import os
import socket
import zlib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from urllib.parse import quote, urlencode

import brotli
import pytest
import zstandard

from tests.apps.compressed import text
from tests.conftest import Serve
from tests.testkit.client import Response
from tests.testkit.server import Server, alone

ALONE = True

APP = "tests/apps/compressed.py"

#: Accept-Encoding of browsers of 2026.
BROWSER = "Accept-Encoding: gzip, deflate, br, zstd"


def unzstd(data: bytes) -> bytes:
    """Decode one frame, and nothing behind it."""
    decoder = zstandard.ZstdDecompressor().decompressobj()
    decoded = decoder.decompress(data)
    assert (decoder.eof, decoder.unused_data) == (True, b"")
    return bytes(decoded)


#: How a client decodes the whole of a body; each refuses one that is cut short.
DECODED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "br": brotli.decompress,
    "zstd": unzstd,
}

#: How a client decodes what has come until now.
DECODER: dict[str, Callable[[], Callable[[bytes], bytes]]] = {
    "gzip": lambda: zlib.decompressobj(31).decompress,
    "br": lambda: brotli.Decompressor().process,
    "zstd": lambda: zstandard.ZstdDecompressor().decompressobj().decompress,
}


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(APP, "--compress", "on", tracebacks=True)


def ask(server: Server, *headers: str, method: str = "GET", **query: object) -> Response:
    """The answer to a request for this shape, size and these fields."""
    return server.request(method, f"/?{urlencode(query, doseq=True)}", *headers)


def decoded(response: Response, coding: str) -> bytes:
    """The content of a response that must have this coding."""
    assert response.get("Content-Encoding") == coding
    assert response.get("Vary") == "Accept-Encoding"
    return DECODED[coding](response.body)


def is_plain(response: Response, body: bytes, vary: str | None) -> bool:
    """Whether it is not compressed."""
    assert response.get("Content-Encoding") is None
    assert response.get("Vary") == vary
    return response.body == body


@pytest.mark.parametrize("coding", DECODED)
@pytest.mark.parametrize("shape", ["list", "parts", "generator", "one", "write"])
def test_clients_decode_what_was_sent(server: Server, coding: str, shape: str) -> None:
    for size, declares in product((1024, 10_000, 1_100_000), (False, True)):
        field = [f"Content-Length:{size}"] if declares else []
        response = ask(server, f"Accept-Encoding: {coding}", shape=shape, size=size, field=field)
        assert decoded(response, coding) == text(size)
        assert len(response.body) < size * 2 / 3
        # What is larger than this is not gathered, so its length is not known before.
        whole = shape in ("list", "parts") or (declares and shape == "one")
        assert response.framing == ("length" if whole and size < 1 << 20 else "chunked")


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, br", "br"),
        ("br;q=0.5, gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("*", "zstd"),
        ("*;q=0.5, zstd;q=0", "br"),
        ("gzip;q=0", None),
        ("identity;q=0.5, gzip;q=0.5", "gzip"),
        ("", None),
        (None, None),
    ],
)
def test_accept_encoding(server: Server, accepted: str | None, coding: str | None) -> None:
    response = ask(server, *([] if accepted is None else [f"Accept-Encoding: {accepted}"]))
    if coding:
        assert decoded(response, coding) == text(10_000)
    else:
        assert is_plain(response, text(10_000), "Accept-Encoding")


@pytest.mark.parametrize(
    ("status", "fields", "size"),
    [
        ("200 OK", ["Content-Encoding:identity"], 10_000),
        ("200 OK", ["Cache-Control:max-age=9, No-Transform"], 10_000),
        ("200 OK", ["Set-Cookie:a=b"], 10_000),
        ("200 OK", ["Content-Type:image/png"], 10_000),
        ("200 OK", ["Content-Digest:sha-256=:AAAA:"], 10_000),
        ("200 OK", ["X-Compress:off"], 10_000),
        ("200 OK", [], 1023),
        ("200 OK", ["Content-Range:bytes 0-9999/10000"], 10_000),
    ],
)
def test_what_is_not_compressed(server: Server, status: str, fields: list[str], size: int) -> None:
    response = ask(server, BROWSER, status=status, field=fields, size=size)
    assert response.body == text(size)
    assert response.get("Vary") is None
    assert response.get("X-Compress") is None
    assert response.get("Content-Length") == str(size)
    assert response.get("Content-Encoding") in (None, "identity")


def test_an_application_may_force_it(server: Server) -> None:
    fields = ["Set-Cookie:a=b", "Content-Type:x/y", "X-Compress:on"]
    response = ask(server, BROWSER, field=fields, size=900)
    assert decoded(response, "zstd") == text(900)
    assert response.get("X-Compress") is None
    # What is encoded, and what must not be changed, stays so.
    fields = ["Content-Encoding:br", "X-Compress:on"]
    response = ask(server, BROWSER, field=fields)
    assert (response.body, response.get("X-Compress")) == (text(10_000), None)


def test_other_statuses(server: Server) -> None:
    """Those with a body are compressed."""
    for status in ("404 Not Found", "500 Wrong", "203 Other", "299 New"):
        response = ask(server, BROWSER, status=status)
        assert f"{response.status} {response.reason}" == status
        assert decoded(response, "zstd") == text(10_000)
    for status in ("204 No Content", "304 Not Modified", "200 OK"):
        response = ask(server, BROWSER, status=status, shape="empty", field='ETag:"a"')
        assert is_plain(response, b"", None)
        assert response.get("ETag") == '"a"'
        assert response.get("Content-Length") == ("0" if status == "200 OK" else None)


@pytest.mark.parametrize(
    ("tag", "sent"), [('"a"', 'W/"a"'), ('W/"a"', 'W/"a"'), ("a", None), ('""', 'W/""')]
)
def test_a_tag_becomes_weak(server: Server, tag: str, sent: str | None) -> None:
    assert ask(server, BROWSER, field=f"ETag:{tag}").get("ETag") == sent
    assert ask(server, field=f"ETag:{tag}").get("ETag") == tag


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (["Cookie"], ["Cookie, Accept-Encoding"]),
        (["accept-encoding"], ["accept-encoding"]),
        (["*"], ["*"]),
        (["Cookie", "Origin"], ["Cookie, Accept-Encoding", "Origin"]),
    ],
)
def test_vary_names_accept_encoding_once(server: Server, given: list[str], sent: list[str]) -> None:
    for headers in ((BROWSER,), ()):
        response = ask(server, *headers, field=[f"Vary:{value}" for value in given])
        assert response.get_all("Vary") == sent


@pytest.mark.parametrize("shape", ["list", "generator", "write"])
@pytest.mark.parametrize("accepted", ["gzip", "identity"])
def test_head_has_the_fields_of_get(server: Server, shape: str, accepted: str) -> None:
    for size, declares in product((500, 10_000, 1_100_000), (False, True)):
        field = [f"Content-Length:{size}"] if declares else []

        def fields(method: str) -> list[tuple[str, str]]:
            query = {"shape": shape, "size": size, "field": field}  # noqa: B023
            response = ask(server, f"Accept-Encoding: {accepted}", method=method, **query)
            assert method == "GET" or not response.body
            ignored = ("date", "transfer-encoding")
            return [pair for pair in response.headers if pair[0].lower() not in ignored]

        get, head = fields("GET"), fields("HEAD")
        if ("Content-Encoding", "gzip") in get:
            # It would have to be compressed for that.
            get = [pair for pair in get if pair[0] != "Content-Length"]
        assert head == get, (size, declares)


@pytest.mark.parametrize("coding", DECODED)
def test_each_event_is_decoded_before_the_next_is_made(
    server: Server, coding: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with server.connect() as connection:
        field = quote("Content-Type:text/event-stream; charset=utf-8")
        target = f"/?shape=gate&gate={gate}&field={field}"
        connection.send_request("GET", target, f"Accept-Encoding: {coding}")
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.socket.recv(65_536, socket.MSG_PEEK)
        for number in range(3):
            events = b"".join(b"data: event %d\n\n" % one for one in range(number + 1))
            while partly_decoded(connection.socket, coding) != events:
                pass
            Path(f"{gate}{number + 1}").touch()
        assert decoded(connection.response(), coding) == events


def partly_decoded(client: socket.socket, coding: str) -> bytes:
    """What has come of a chunked body until now, decoded; it stays to be read."""
    _, _, rest = client.recv(65_536, socket.MSG_PEEK).partition(b"\r\n\r\n")
    decode, found = DECODER[coding](), b""
    while b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if not length or len(rest) < length + 2:
            break
        found += decode(rest[:length])
        rest = rest[length + 2 :]
    return found


def test_a_file_of_the_application(server: Server, tmp_path: Path) -> None:
    for size in (500, 200_000):
        path = tmp_path / str(size)
        path.write_bytes(text(size))
        plain = ask(server, shape="file", path=path)
        assert is_plain(plain, text(size), "Accept-Encoding" if size > 1023 else None)
    response = ask(server, BROWSER, shape="file", path=path)
    assert decoded(response, "zstd") == text(size)


@pytest.mark.parametrize("declared", [9_000, 20_000])
@pytest.mark.parametrize("shape", ["list", "generator"])
def test_a_wrong_length(server: Server, declared: int, shape: str) -> None:
    words = f"/?shape={shape}&field={quote(f'Content-Length:{declared}')}"
    with server.connect() as connection:
        connection.send_request("GET", words, "Accept-Encoding: gzip")
        if declared < 10_000:
            response = connection.response()
            body = response.body
            if response.get("Content-Encoding"):
                body = gzip.decompress(body)
            assert body == text(10_000)[:declared]
        else:
            # The connection ends before the answer does.
            assert not connection.rest().endswith(b"\r\n0\r\n\r\n")
    server.wait_log("than its Content-Length")


def test_only_the_codings_of_the_option_in_its_order(serve: Serve) -> None:
    server = serve(APP, "--compress=gzip, br")
    assert decoded(ask(server, BROWSER), "gzip") == text(10_000)
    assert decoded(ask(server, "Accept-Encoding: br"), "br") == text(10_000)
    assert is_plain(ask(server, "Accept-Encoding: zstd"), text(10_000), "Accept-Encoding")


def test_nothing_changes_without_the_option(serve: Serve) -> None:
    response = ask(serve(APP, tracebacks=True), BROWSER, field=["X-Compress:on", 'ETag:"a"'])
    assert is_plain(response, text(10_000), None)
    assert (response.get("X-Compress"), response.get("ETag")) == ("on", '"a"')


# Files that the core serves, in all modes alike: once for each version, and never for ranges

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
def files(folder: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
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
def test_files(files: Server, name: str) -> None:
    expected, is_compressed = FILES[name]
    for _ in range(3):
        response = files.get(f"/{name}", GZIP)
        assert content(response) == expected
        assert (response.get("Content-Encoding") == "gzip") == is_compressed
        assert response.framing == "length"
        assert response.get("Accept-Ranges") == (None if is_compressed else "bytes")
        plain = files.get(f"/{name}")
        assert (plain.body, plain.get("Content-Encoding")) == (expected, None)
        # That of random bytes is not compressed, but it might have been.
        assert plain.get("Vary") == (
            "Accept-Encoding" if is_compressed or name == "random.txt" else None
        )


def test_conditional_requests_for_files(files: Server) -> None:
    name = "large.js"
    plain, coded = files.get(f"/{name}"), files.get(f"/{name}", GZIP)
    strong = plain.get("ETag")
    assert strong is not None
    assert coded.get("ETag") == f"W/{strong}"
    for tag in (strong, f"W/{strong}", "*"):
        response = files.get(f"/{name}", GZIP, f"If-None-Match: {tag}")
        assert (response.status, response.body) == (304, b"")
        assert response.get("ETag") == f"W/{strong}"
        assert response.get("Vary") == "Accept-Encoding"
        assert response.get("Content-Encoding") is None
        response = files.get(f"/{name}", f"If-None-Match: {tag}")
        # As the 200 would have (RFC 9110 section 15.4.5).
        assert (response.status, response.get("Vary")) == (304, "Accept-Encoding")
    assert files.get(f"/{name}", GZIP, 'If-None-Match: "other"').status == 200
    date = plain.get("Last-Modified")
    assert files.get(f"/{name}", GZIP, f"If-Modified-Since: {date}").status == 304


def test_ranges_are_those_of_the_plain_file(files: Server) -> None:
    strong = files.get("/large.js").get("ETag")
    response = files.get("/large.js", GZIP, "Range: bytes=100-199")
    assert (response.status, response.body) == (206, text(300_000)[100:200])
    assert (response.get("ETag"), response.get("Content-Encoding")) == (strong, None)
    assert response.get("Vary") == "Accept-Encoding"
    response = files.get("/large.js", GZIP, "Range: bytes=100-199", f"If-Range: W/{strong}")
    assert (response.status, content(response)) == (200, text(300_000))


def test_head_and_copies_of_files(files: Server) -> None:
    """A copy beside the file wins."""
    ignored = ("Date", "Content-Length")
    for name in ("small.json", "large.js", "huge.css"):
        get, head = files.get(f"/{name}", GZIP), files.request("HEAD", f"/{name}", GZIP)
        assert not head.body
        expected = [pair for pair in get.headers if pair[0] not in ignored]
        assert [pair for pair in head.headers if pair[0] not in ignored] == expected, name
    assert content(files.get("/ready.txt", GZIP)) == b"compressed beforehand"
    assert files.get("/ready.txt", "Accept-Encoding: identity").body == text(5_000)


def test_a_page_for_what_is_not_there_and_a_listing(files: Server, folder: Path) -> None:
    response = files.get("/nothing", GZIP)
    assert (response.status, response.get("Content-Encoding")) == (404, "gzip")
    assert content(response) == (folder / "404.html").read_bytes()
    response = files.get("/many/", GZIP)
    assert response.get("Content-Encoding") == "gzip"
    assert content(response).count(b"<a ") >= 100


def test_a_file_that_an_application_names(folder: Path) -> None:
    with Server(APP, "threading", "--compress=on", "--x-sendfile", str(folder)) as server:
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
    with Server(APP, "threading", *options) as server:
        response = server.get("/files/large.js", GZIP)
        assert (response.get("Content-Encoding"), content(response)) == ("gzip", text(300_000))
        response = server.get("/?size=300000", GZIP)
        assert (response.get("Content-Encoding"), response.body) == (None, text(300_000))
        assert response.get("Vary") is None
