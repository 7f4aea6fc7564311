"""Compression of responses: which are compressed, in what coding, and what the client decodes."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from urllib.parse import quote, urlencode

import brotli
import pytest
import zstandard

from tests.apps.compressed import text
from tests.conftest import Serve
from tests.testkit.client import Response
from tests.testkit.server import Server

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
