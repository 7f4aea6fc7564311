"""PEP 3333 over real connections, in every mode."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from tests.apps.pep3333 import WRONG
from tests.conftest import Serve
from tests.support.each_value import DIFFERENT, each_value
from tests.testkit.client import BadResponse, Response, chunked
from tests.testkit.server import Server

ALONE = True

PEP3333 = "tests/apps/pep3333.py"

tokens = count(1)
DIGITS = b"0123456789" * 30_000


@pytest.fixture(params=[PEP3333, f"{PEP3333}:bare"], ids=["validate", "bare"])
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    """A server for what keeps to the PEP: with wsgiref.validate around it, and without."""
    return serve(request.param, tracebacks=True)


@pytest.fixture
def bare(serve: Serve) -> Server:
    """A server for what does not."""
    return serve(f"{PEP3333}:bare", tracebacks=True)


# start_response and write()


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/plain", 200, b"plain"),
        ("/late_empty_pieces", 404, b"changed"),
        ("/replaced", 404, b"replaced"),
        ("/headers_changed_later", 200, b"kept"),
        ("/written_and_returned", 200, b"one two three"),
        ("/written_result", 200, b"written [None, None]"),
        ("/written_large", 200, b"0123456789" * 100_000),
    ],
)
def test_answer(server: Server, path: str, status: int, body: bytes) -> None:
    with server.connect() as connection:
        response = connection.request("GET", path)
        assert (response.status, response.body) == (status, body)
        head = connection.request("HEAD", path)
        assert head.status == status
        assert connection.request("GET", "/plain").body == b"plain"
    with server.connect() as connection:
        response = connection.request("GET", path, version="HTTP/1.0")
        assert (response.status, response.body) == (status, body)


def test_headers_of_a_replaced_start_are_gone(server: Server) -> None:
    response = server.get("/replaced")
    assert response.get("X-First") is None
    assert response.get("X-Second") == "yes"
    assert response.get("Content-Length") in (None, "8")
    assert server.get("/headers_changed_later").get("X-Kept") == "yes"


# close()


@contextmanager
def closed(server: Server) -> Iterator[str]:
    """The iterable of a request that is made within, with this query, is closed, once."""
    token = f"t{next(tokens)}"
    yield token
    server.wait_log(f"closed {token}.")
    server.get("/plain")
    assert server.log().count(f"closed {token}.") == 1


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/closing", 200, b"one two"),
        ("HEAD", "/closing", 200, b""),
        ("GET", "/closing_empty", 200, b""),
        ("GET", "/closing_generator", 200, b"one two"),
        ("GET", "/closing_broken", 500, b"500 Internal Server Error\n"),
        ("GET", "/file_like", 200, DIGITS),
    ],
)
def test_close(server: Server, method: str, path: str, status: int, body: bytes) -> None:
    with closed(server) as token:
        response = server.request(method, f"{path}?{token}")
        assert (response.status, response.body) == (status, body)


#: A server of either kind, each in a mode at least, and in each mode one.
EITHER = pytest.mark.parametrize(
    ("mode", "server"), each_value(DIFFERENT, [f"{PEP3333}:bare", PEP3333]), indirect=True
)


@EITHER
def test_close_when_the_iteration_fails_midway(server: Server) -> None:
    with closed(server) as token, pytest.raises(BadResponse):
        server.get(f"/closing_broken_midway?{token}")


@EITHER
def test_close_when_the_client_vanishes(server: Server) -> None:
    with closed(server) as token:
        connection = server.connect()
        connection.send_request("GET", f"/closing_endless?{token}")
        assert connection.socket.recv(1)
        connection.reset()


def test_bodies_that_only_some_servers_take(bare: Server) -> None:
    """A list with `close()`, one whose `close()` raises, the old protocol of sequences."""
    with closed(bare) as token:
        response = bare.get(f"/closing_list?{token}")
        assert (response.framing, response.body) == ("length", b"one two")
    before = bare.log().count("close() failed")
    assert bare.get("/closing_raises").body == b"one two"
    bare.wait_log("close() failed", before + 1)
    assert bare.get("/sequence").body == b"one two"


# wsgi.file_wrapper


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/file", DIGITS),
        ("/file?299995", b"56789"),
        ("/file?400000", b""),
        ("/file_length", DIGITS),
        ("/file_empty", b""),
        ("/file_like", DIGITS),
        ("/file_pipe", b"from a pipe"),
        ("/file_without_size", Path("/proc/version").read_bytes()),
    ],
)
def test_file_wrapper(server: Server, target: str, body: bytes) -> None:
    with server.connect() as connection:
        response = connection.request("GET", target)
        assert (response.status, response.body) == (200, body)
        assert connection.request("HEAD", target).status == 200
        assert connection.request("GET", "/plain").body == b"plain"


def test_file_wrapper_keeps_to_the_length(bare: Server) -> None:
    with bare.connect() as connection:
        assert connection.request("GET", "/file_shorter").body == b"0123456789"
        assert connection.request("GET", "/plain").body == b"plain"


# wsgi.input and wsgi.errors

LINES = b"first\nsecond\r\n\nfourth without end"


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/read_some", b"0123456789", ["012", "", "34567", "89"]),
        ("/read_lines", LINES, ["first\n", "se", "cond\r\n", "\n", "fourth without end"]),
        ("/read_iterated", LINES, ["first\n", "second\r\n", "\n", "fourth without end"]),
        ("/read_nothing", b"0123456789", None),
    ],
)
def test_input(server: Server, path: str, body: bytes, expected: object) -> None:
    with server.connect() as connection:
        assert connection.request("POST", path, body=body).json() == expected
        connection.send_request("POST", path, "Transfer-Encoding: chunked")
        connection.send(chunked(*(bytes([octet]) for octet in body)))
        assert connection.response().json() == expected
        assert connection.request("GET", "/plain").body == b"plain"


def test_input_read_whole(bare: Server) -> None:
    assert bare.request("POST", "/read_all", body=LINES).json() == [LINES.decode(), "", []]
    lines = bare.request("POST", "/read_hint", body=LINES).json()
    assert "".join(lines).encode() == LINES[: len("".join(lines))]
    assert lines[0] == "first\n"


def test_errors(server: Server) -> None:
    before = server.log().count("printed\n")
    server.get("/errors")
    for text in ("printed\n", "noted \N{SNOWMAN}\n", "line one\nline two\n"):
        server.wait_log(text, before + 1)


# What is wrong


def is_500(response: Response) -> bool:
    assert response.get("X-Injected") is None
    assert response.get("X-First") is None
    assert b"Traceback" not in response.body, "a traceback is none of the client's business"
    return response.status == 500


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answer(bare: Server, name: str) -> None:
    before = bare.log().count("Traceback")
    assert is_500(bare.get(f"/wrong/{name}"))
    bare.wait_log("Traceback", before + 1)
    assert bare.get("/plain").body == b"plain"


def test_an_empty_answer_that_was_never_started(bare: Server) -> None:
    before = bare.log().count("start_response")
    assert is_500(bare.get("/never_started_empty"))
    bare.wait_log("start_response", before + 1)


@pytest.mark.each_mode
@pytest.mark.parametrize("path", ["/raised_midway", "/raised_midway_length", "/exc_info_too_late"])
def test_failure_midway_is_seen_by_the_client(bare: Server, path: str) -> None:
    """The answer must not look complete, and nothing is added to it."""
    with bare.connect() as connection:
        connection.send_request("GET", path)
        connection.send_request("GET", "/plain")
        data = connection.rest()
    assert data.count(b"HTTP/1.1") == 1
    assert re.search(rb"part(\r\n)?$", data)
    assert b"never" not in data
    before = bare.log().count("LookupError: too late")
    with pytest.raises(BadResponse):
        bare.get(path)
    if path == "/exc_info_too_late":
        bare.wait_log("LookupError: too late", before + 1)
    assert bare.get("/plain").body == b"plain"


@pytest.mark.parametrize("options", [(), ("--compress=gzip", "--compress-min-size=1")])
def test_too_many_octets_raise_in_write(serve: Serve, options: tuple[str, ...]) -> None:
    """From the piece that exceeds the length; an empty one exceeds nothing.

    tests/cases/answers.txt has what is sent of such answers.
    """
    server = serve(f"{PEP3333}:bare", *options, tracebacks=True)
    lines, before = "the application produced 10 bytes more", "ValueError: write() has given"
    logged = server.log().count(lines)
    response = server.get("/too_many_caught", "Accept-Encoding: gzip")
    body = gzip.decompress(response.body) if options else response.body
    assert (response.status, body) == (200, b"right")
    behind = "bytes more than the Content-Length; they were not sent"
    said = ["None", "None", f"{before} 5 {behind}", "None", f"{before} 10 {behind}"]
    server.wait_log(f"GET {said}\n")
    server.wait_log(lines, logged + 1)
    # Nobody gets anything, so nothing is too much.
    assert server.request("HEAD", "/too_many_caught").status == 200
    server.wait_log(f"HEAD {['None'] * 5}\n")


def test_too_many_octets_that_end_the_application_are_logged(bare: Server) -> None:
    with bare.connect() as connection:
        assert connection.request("GET", "/too_many_written").body == b"right"
        assert connection.request("GET", "/plain").body == b"plain"
    bare.wait_log("ValueError: write() has given 38 bytes more")
    bare.wait_log("/too_many_written: the application failed")


@pytest.mark.each_mode
def test_a_write_that_outlives_its_request(bare: Server) -> None:
    with bare.connect() as connection:
        for _ in range(4):
            assert connection.request("GET", "/stale_keep").body == b"kept"
            response = connection.request("GET", "/stale_use")
            assert b"earlier" not in response.body
            assert connection.request("GET", "/plain").body == b"plain"
