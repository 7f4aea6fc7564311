"""Long polls: responses that stay open without a thread, in every mode."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import pytest

from tests.support.each_value import DIFFERENT, each_value
from tests.support.main_process import MainProcess
from tests.testkit.cases import gateway
from tests.testkit.client import Connection
from tests.testkit.server import wait_for

#: Longer than any test: what happens earlier was not waited for.
NEVER = "600"

#: No limit of time matters to who is parked, and a stop does not wait for it. That of a head is
#: longer than a busy machine takes between a connection and its request.
TIMES = (
    *("header_timeout=2", "keepalive_timeout=0.05", "write_timeout=0.05"),
    *("request_timeout=1.5", "slow_request=1.5"),
    *(f"graceful_timeout={NEVER}", f"drain_timeout={NEVER}"),
)


@pytest.fixture
def main(mode: str) -> Iterator[MainProcess]:
    """A main process with a worker to come."""
    with MainProcess(mode, *TIMES) as process:
        yield process


def parked(main: MainProcess, version: str = "HTTP/1.1", packet: bytes = b"") -> Connection:
    """A connection whose answer has begun, and stays open."""
    connection = main.connect()
    if packet:
        connection.send(packet)
    else:
        connection.send_request("GET", "/parked", version=version)
    wait_for(lambda: b"waits;" in connection.socket.recv(9_999, socket.MSG_PEEK), "the beginning")
    return connection


def other(main: MainProcess) -> int:
    """The status of the answer to somebody else."""
    with main.connect() as connection:
        return connection.request("GET", "/other").status


def test_a_hundred_wait_while_others_are_answered(main: MainProcess) -> None:
    pid = main.start()
    waiting = [parked(main) for _ in range(100)]
    assert [other(main) for _ in range(3)] == [200] * 3
    # Longer than all limits: one that has connected later is closed by the longest of them.
    assert main.connect().at_end()
    late = main.connect()
    late.send_request("GET", "/parked?3600000")
    main.tell("say", pid, "l")
    for connection in [*waiting, late]:
        answer = connection.response()
        assert (answer.framing, answer.body) == ("chunked", b"waits;farewell")
        assert connection.at_end()
    # Who comes now has missed one if it has waited for so long.
    assert main.connect().request("GET", "/parked?3600000").body == b"waits;farewell"
    again = parked(main)
    assert other(main) == 200
    main.tell("say", pid, "l")
    assert again.response().body == b"waits;farewell"
    assert "ERROR" not in main.log()
    assert "took" not in main.log()


@pytest.mark.parametrize(
    ("mode", "how"),
    each_value(DIFFERENT, ["retire", "hand over", "TERM", "INT", "main process"]),
    indirect=["mode"],
)
def test_a_stop_ends_it_properly(main: MainProcess, how: str) -> None:
    pid = main.start()
    connection = parked(main)
    match how:
        case "retire":
            main.tell("say", pid, "r")
        case "hand over":
            main.tell("say", pid, "H")
        case "main process":
            main.tell("leave", pid)
        case _:
            main.tell("kill", pid, int(signal.Signals[f"SIG{how}"]))
    answer = connection.response()
    assert (answer.framing, answer.body) == ("chunked", b"waits;")
    assert connection.at_end()
    main.ended(pid)


@pytest.mark.each_mode
def test_a_client_that_leaves_is_forgotten(main: MainProcess) -> None:
    pid = main.start()
    waiting = [parked(main) for _ in range(4)]
    waiting[0].close()
    waiting[1].reset()
    waiting[2].socket.shutdown(socket.SHUT_WR)
    assert waiting[2].rest().endswith(b"waits;\r\n")
    wait_for(lambda: main.count(pid) == 1, "only one connection is left")
    # What it says is not answered, and does not disturb.
    waiting[3].send(b"GET /other HTTP/1.1\r\nHost: a\r\n\r\n" * 1_000)
    assert other(main) == 200
    main.tell("say", pid, "l")
    assert waiting[3].response().body == b"waits;farewell"
    assert waiting[3].rest() == b""


def test_http_1_0_and_head(main: MainProcess) -> None:
    pid = main.start()
    old = parked(main, version="HTTP/1.0")
    head = main.connect()
    assert head.request("HEAD", "/parked").body == b""
    assert head.at_end()
    main.tell("say", pid, "l")
    answer = old.response()
    assert (answer.framing, answer.body) == ("close", b"waits;farewell")


def test_it_counts_as_a_connection(mode: str) -> None:
    with MainProcess(mode, *TIMES, "max_connections=3") as main:
        main.start()
        waiting = [parked(main) for _ in range(3)]
        assert other(main) == 503
        waiting[0].close()
        wait_for(lambda: other(main) == 200, "there is room")


@pytest.mark.parametrize("protocol", ["uwsgi", "scgi", "fastcgi"])
def test_behind_a_web_server(protocol: str) -> None:
    """What it is told is framed as its protocol has it."""
    options = (*TIMES, f"bind={protocol}://127.0.0.1:0", "trusted_proxies=127.0.0.1")
    variables = [
        *((b"REQUEST_METHOD", b"GET"), (b"REQUEST_URI", b"/parked"), (b"HTTP_HOST", b"a")),
        *((b"SERVER_PROTOCOL", b"HTTP/1.1"), (b"SCGI", b"1")),
    ]
    packet = gateway.pack(protocol, variables)
    with MainProcess("single", *options) as main:
        pid = main.start()
        one, other, gone = (parked(main, packet=packet) for _ in range(3))
        gone.close()
        wait_for(lambda: main.count(pid) == 2, "who has left is forgotten")
        main.tell("say", pid, "l")
        for connection in (one, other):
            assert gateway.answer(connection.rest(), protocol).body == b"waits;farewell"
        last = parked(main, packet=packet)
        main.tell("say", pid, "r")
        assert gateway.answer(last.rest(), protocol).body == b"waits;"
        main.ended(pid)
