"""Flask and Django applications, served in every mode."""

from __future__ import annotations

import pytest

from tests.conftest import Serve
from tests.testkit.server import Server

FLASK = "tests/apps/flask_files.py"
DJANGO = "tests/apps/django_files.py"

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


# Files


@pytest.fixture(params=[FLASK, DJANGO], ids=["flask", "django"])
def files(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return serve(request.param)


@pytest.mark.parametrize(("size", "chunked"), [(0, False), (3_000_000, True)])
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


def test_stream(files: Server) -> None:
    with files.connect() as connection:
        response = connection.request("GET", "/stream")
        assert response.framing == "chunked"
        assert response.body == b"".join(b"%d /stream\n" % number for number in range(1_000))
        assert connection.request("GET", "/url").status == 200
