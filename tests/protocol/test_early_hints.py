"""103 Early Hints (RFC 8297) that an application sends before its response."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.hinting import LINK, OTHER, REFUSED
from tests.conftest import Serve
from tests.testkit.cases.gateway import FIRST_LINE, pack
from tests.testkit.client import Connection, receive

ALONE = True

APP = "tests/apps/hinting.py"


def interim(fields: list[tuple[str, str]]) -> bytes:
    """A response 103 as it is sent."""
    lines = [f"{name}: {value}\r\n" for name, value in fields]
    return f"HTTP/1.1 103 Early Hints\r\n{''.join(lines)}\r\n".encode()


@pytest.mark.each_mode
def test_hints_come_at_once(serve: Serve, tmp_path: Path) -> None:
    """The application goes on only when the client has them."""
    expected = interim([LINK]) + interim([OTHER, ("X-Other", "1")])
    with serve(APP).connect() as connection:
        for number in range(3):
            gate = tmp_path / str(number)
            connection.send_request("GET", f"/gate?{gate}")
            assert receive(connection, len(expected)) == expected
            gate.touch()
            answer = connection.response()
            assert (answer.status, answer.body, answer.get("Link")) == (200, b"done", None)


@pytest.mark.each_mode
def test_hints_between_the_start_of_a_response_and_its_body(serve: Serve) -> None:
    """Those behind the head are ignored."""
    with serve(APP).connect() as connection:
        for _ in range(2):
            answer = connection.request("GET", "/started")
            assert (answer.interim, answer.get("X-Final"), answer.body) == ([103], "yes", b"done")
            answer = connection.request("GET", "/late")
            assert (answer.interim, answer.body) == ([], b"done")


def test_other_requests_get_none(serve: Serve) -> None:
    """HEAD gets them, and HTTP/1.0 does not."""
    server = serve(APP)
    with server.connect() as connection:
        assert connection.request("HEAD", "/one").interim == [103]
    with server.connect() as connection:
        assert connection.request("GET", "/one", version="HTTP/1.0").interim == []


def test_gateway_protocols_get_none(serve: Serve) -> None:
    variables = [(b"REQUEST_METHOD", b"GET"), (b"PATH_INFO", b"/one"), (b"CONTENT_LENGTH", b"0")]
    variables += [(b"SERVER_PROTOCOL", b"HTTP/1.1"), (b"REQUEST_URI", b"/one")]
    binds = [f"--bind={protocol}://127.0.0.1:0" for protocol in FIRST_LINE]
    server = serve(APP, "--trusted-proxies", "127.0.0.1", *binds)
    for protocol in FIRST_LINE:
        with Connection(("127.0.0.1", server.port_of(protocol))) as connection:
            connection.send(pack(protocol, variables))
            answer = connection.rest()
        assert b"done" in answer
        assert b"103" not in answer


def test_what_is_refused(serve: Serve) -> None:
    """Nothing of it is sent, nor of what stands before."""
    server = serve(APP)
    paths = ("/refused", "/types", "/interim?100%20Continue", "/interim?101%20Upgrade")
    with server.connect() as connection:
        for path in (*paths, "/interim?103%20Early%20Hints"):
            answer = connection.request("GET", path)
            assert (answer.status, answer.interim, answer.body) == (200, [], b"done")
    for word in REFUSED:
        server.wait_log(f"refused {word}: ")
    server.wait_log("wrong: the value of header Link must be a str, not bytes")
    server.wait_log("wrong: a header must be a tuple of name and value, not list")
