"""Flask and Django applications, served in every mode."""

from __future__ import annotations

import pytest

from tests.conftest import Serve
from tests.testkit.client import chunked
from tests.testkit.server import Server

BOUNDARY = "----test-boundary"


@pytest.fixture(params=["flask", "django"])
def files(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return serve(f"tests/apps/{request.param}_files.py")


@pytest.mark.parametrize(("size", "is_chunked"), [(0, False), (3_000_000, True)])
def test_files(files: Server, size: int, is_chunked: bool) -> None:
    content = (bytes(range(256)) * (size // 256 + 1))[:size]
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="b"\r\n\r\n\u0158\r\n'
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="name.bin"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    body = head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()
    kind = f"Content-Type: multipart/form-data; boundary={BOUNDARY}"
    with files.connect() as connection:
        if is_chunked:
            connection.send_request("POST", "/form", kind, "Transfer-Encoding: chunked")
            starts = range(0, len(body), 50_000)
            connection.send(chunked(*(body[start : start + 50_000] for start in starts)))
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
