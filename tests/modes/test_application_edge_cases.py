"""Edge cases of applications: broken exceptions, pipelined answers, forks, clients that leave."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.testkit.client import BadResponse
from tests.testkit.process import children
from tests.testkit.server import ROOT, Server, wait_for

ROBUST = str(ROOT / "tests/apps/robust.py")


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(ROBUST, tracebacks=True)


def lives(server: Server) -> None:
    """Check that the server answers, and that no worker had to be replaced."""
    assert server.get("/pid").status == 200
    assert "is replaced" not in server.log()


@pytest.mark.parametrize("path", ["/surrogate", "/unspeakable"])
def test_exceptions_that_cannot_be_shown(server: Server, path: str) -> None:
    for _ in range(3):
        assert server.get(path).status == 500
    lives(server)


def test_start_response_without_headers(server: Server) -> None:
    assert server.get("/no_headers").status == 500
    helps = re.compile(r"TypeError: .*start_response.*")
    wait_for(lambda: helps.search(server.log()), "a TypeError that helps")


@pytest.mark.each_mode
def test_earlier_answers_are_sent_before_one_that_is_cut(server: Server) -> None:
    """Although its beginning still waits for the client when it fails."""
    for _ in range(5):
        with server.connect() as connection:
            line = "GET {} HTTP/1.1\r\nHost: test\r\n\r\n"
            connection.send((line.format("/pid") * 5 + line.format("/wrong_late")).encode())
            server.get("/pid")
            for _ in range(5):
                assert connection.response().status == 200
            with pytest.raises(BadResponse):
                connection.response()
    lives(server)


def test_end_of_a_connection_is_no_end_of_an_answer(server: Server) -> None:
    """To HTTP/1.0 nothing else tells that an answer is complete; one that is not is reset."""
    connection = server.connect()
    connection.send_request("GET", "/wrong_late", version="HTTP/1.0")
    with pytest.raises(ConnectionResetError):
        list(iter(lambda: connection.socket.recv(65_536), b""))


@pytest.mark.each_mode
def test_fork_in_a_handler(mode: str) -> None:
    """The child's way back ends it, without a word to the client."""
    with Server(ROBUST, mode, tracebacks=True) as server:
        serving = set(children(server.process.pid))
        for target in ("/fork?exit", "/fork?raise", "/fork?return", "/fork_between"):
            connection = server.connect()
            answer = connection.request("GET", target)
            assert answer.status == 200
            assert int(answer.body.removeprefix(b"before ")) in serving
            # Whatever came of the child would stand before this.
            answer = connection.request("GET", "/pid", "Connection: close")
            assert int(answer.body) in serving
            assert connection.at_end()
            assert {int(server.get("/pid").body) for _ in range(10)} <= serving
        group = server.process.pid
        server.stop()
        with pytest.raises(ProcessLookupError):
            os.killpg(group, 0)


@pytest.mark.each_mode
def test_connection_ends_although_a_child_lives_on(server: Server) -> None:
    connection = server.connect()
    child = int(connection.request("GET", "/child").body)
    try:
        assert connection.request("GET", "/pid", "Connection: close").status == 200
        assert connection.at_end()
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.each_mode
def test_client_that_left_before_a_file(mode: str, tmp_path: Path) -> None:
    with Server(ROBUST, mode, "--log-level", "info") as server:
        connection = server.enter(tmp_path / "gate", "/gated_file")
        port = connection.socket.getsockname()[1]
        # The server's end of the connection, as the kernel sees it.
        ends = f" 0100007F:{server.port:04X} 0100007F:{port:04X} 01 "
        connection.reset()
        wait_for(lambda: ends not in Path("/proc/net/tcp").read_text(), "the reset at the server")
        (tmp_path / "gate").touch()
        wait_for(lambda: re.search("info.* left ", server.log()), "that the client left")
        assert "error" not in server.log()
