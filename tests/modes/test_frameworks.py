"""Flask and Django applications, served in every mode."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest

from tests.conftest import Serve
from tests.testkit.client import Response
from tests.testkit.server import ROOT, Server

FLASK = "tests/apps/flask_files.py"
DJANGO = "tests/apps/django_files.py"
FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"

BOUNDARY = "----test-boundary"


def multipart(fields: dict[str, str], files: dict[str, tuple[str, bytes]]) -> bytes:
    """The body of a form with files (RFC 7578)."""
    parts = []
    for name, value in fields.items():
        head = f'Content-Disposition: form-data; name="{name}"\r\n\r\n'
        parts.append(head.encode() + value.encode())
    for name, (filename, content) in files.items():
        head = (
            f'Content-Disposition: form-data; name="{name}"; filename="{filename}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        parts.append(head.encode() + content)
    mark = f"--{BOUNDARY}".encode()
    return b"".join(mark + b"\r\n" + part + b"\r\n" for part in parts) + mark + b"--\r\n"


# The examples


@pytest.fixture(params=["apps/flaskapp/app.py", "apps/djangoapp/app.py"])
def example(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return serve(request.param)


def ask(
    server: Server, method: str, target: str, *headers: str, body: bytes | None = None
) -> Response:
    """An HTTP/1.0 request that brings its own Host: Django answers to some names only."""
    with server.connect() as connection:
        return connection.request(
            method, target, "Host: localhost", *headers, body=body, version="HTTP/1.0"
        )


@pytest.mark.parametrize(
    ("method", "target", "status", "text"),
    [
        ("GET", "/", 200, "Hello, world!"),
        ("GET", "/hello/%C5%98eh%C3%A1k%20%26", 200, "Hello, \u0158eh\xe1k &amp;!"),
        ("POST", "/sum", 200, '{"sum":42}'),
        ("GET", "/nowhere", 404, "Nobody of that name"),
        ("HEAD", "/", 200, ""),
        ("GET", "/greet", 405, ""),
    ],
)
def test_answers(example: Server, method: str, target: str, status: int, text: str) -> None:
    body = b'{"numbers": [1, 2, 39]}' if method == "POST" else None
    response = ask(example, method, target, JSON, body=body)
    shown = response.body.decode()
    assert response.status == status
    assert text in (shown.replace(" ", "").strip() if method == "POST" else shown)


def test_form_and_redirect(example: Server) -> None:
    body = urlencode({"name": "\u0158eh\xe1k"}).encode()
    response = ask(example, "POST", "/greet", FORM, body=body)
    assert response.status == 303
    location = response.get("Location")
    assert location is not None
    target = re.sub("^http://[^/]+", "", location)
    assert "Hello, \u0158eh\xe1k!" in ask(example, "GET", target).body.decode()


# Files


@pytest.fixture(params=[FLASK, DJANGO], ids=["flask", "django"])
def files(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return serve(request.param)


@pytest.mark.each_mode
@pytest.mark.parametrize("size", [0, 10, 3_000_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_files(files: Server, size: int, chunked: bool) -> None:
    content = (bytes(range(256)) * (size // 256 + 1))[:size]
    body = multipart({"a": "1", "b": "\u0158"}, {"file": ("name.bin", content)})
    kind = f"Content-Type: multipart/form-data; boundary={BOUNDARY}"
    with files.connect() as connection:
        if chunked:
            connection.send_request("POST", "/form", kind, "Transfer-Encoding: chunked")
            for start in range(0, len(body), 50_000):
                piece = body[start : start + 50_000]
                connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            connection.send(b"0\r\n\r\n")
            answer = connection.response().json()
        else:
            answer = connection.request("POST", "/form", kind, body=body).json()
        assert answer["fields"] == {"a": ["1"], "b": ["\u0158"]}
        name, mimetype, received = answer["files"]["file"]
        assert (name, mimetype) == ("name.bin", "application/octet-stream")
        assert received.encode("latin-1") == content
        assert connection.request("GET", "/url").status == 200


def test_file_from_disk(files: Server, request: pytest.FixtureRequest) -> None:
    response = files.get("/itself")
    path = FLASK if "flask" in request.node.name else DJANGO
    assert response.body == (ROOT / path).read_bytes()


@pytest.mark.each_mode
def test_stream(files: Server) -> None:
    with files.connect() as connection:
        response = connection.request("GET", "/stream")
        assert response.framing == "chunked"
        assert response.body == b"".join(b"%d /stream\n" % number for number in range(1_000))
        assert connection.request("GET", "/url").status == 200


def test_url(files: Server) -> None:
    answer = files.get("/url?a=b").json()
    assert answer == {"url": "http://test/url?a=b", "remote": "127.0.0.1"}


def test_ranges(serve: Serve) -> None:
    server = serve(FLASK)
    response = server.get("/download/1000", "Range: bytes=5-14")
    assert (response.status, response.body) == (206, b"5678901234")
    assert response.get("Content-Range") == "bytes 5-14/1000"
    whole = server.get("/download/3000000")
    assert len(whole.body) == 3_000_000
    again = server.get("/download/1000", f"If-None-Match: {whole.get('ETag')}")
    assert (again.status, again.body) == (304, b"")


def test_session(serve: Serve) -> None:
    server = serve(FLASK)
    cookie: tuple[str, ...] = ()
    for visits in (1, 2, 3):
        response = server.get("/visits", *cookie)
        assert response.json() == visits
        value = response.get("Set-Cookie")
        assert value is not None
        cookie = (f"Cookie: {value.partition(';')[0]}",)
