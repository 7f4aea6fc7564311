"""Attacks on HTTP/2: each has an allowance, an error that ends it and a line in the log.

The attacks are data (`loadtests/clients/http2_attacks.py`); the lab measures what they cost.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from loadtests.clients.http2_attacker import Attacker
from loadtests.clients.http2_attacks import ATTACKS, STREAMS, Attack, odd
from loadtests.clients.http2_frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GET,
    HEADERS,
    POST,
    PREFACE,
    SETTINGS,
    frame,
    literal,
    request,
    reset,
    setting,
)
from tests.conftest import Serve
from tests.testkit import process
from tests.testkit.client import receive_until
from tests.testkit.server import Server, wait_for

ALONE = True

ATTACKED = "loadtests/apps/attacked.py:app"
ON = "--http2=on"


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attacks(serve: Serve, attack: Attack) -> None:
    server = serve(ATTACKED, ON)
    before = len(server.log())
    with Attacker(server.port) as client:
        client.open(attack)
        client.take(attack, 0, attack.borne)
        client.exchange(attack.closing)
        assert client.is_served(), client.error
    if not attack.code:
        return
    with Attacker(server.port) as client:
        client.open(attack)
        # Seconds allow more: on a busy machine it may take longer.
        count = max(attack.borne // 10, 10)
        for first in itertools.count(0, count):
            if client.closed or client.error:
                break
            client.take(attack, first, count)
        client.until_closed()
        assert client.error is not None
        code, reason = client.error
        assert code == attack.code
        assert reason in attack.reasons
        line = f"a connection of 127.0.0.1:{client.port} is closed: {attack.line(reason)}\n"
    # Another test may have had this port.
    wait_for(lambda: line in server.log()[before:], line)
    assert server.log()[before:].count(f"127.0.0.1:{client.port} is closed") == 1


def test_half_open_streams(serve: Serve) -> None:
    """A thousand requests whose content does not come: 250 are kept, the others refused."""
    server = serve(ATTACKED, ON)
    numbers = [1 + 2 * number for number in range(1_000)]
    with Attacker(server.port) as client:
        client.exchange(b"".join(frame(HEADERS, END_HEADERS, number, POST) for number in numbers))
        client.flush()
        assert client.over == {*numbers[250:]}
        client.exchange(frame(DATA, END_STREAM, 1, b"content"), lambda: 1 in client.over)
        assert client.is_served()


def test_late_frames_of_streams_that_have_ended(serve: Serve) -> None:
    """Content and trailers of more streams than are remembered, which were refused early."""
    server = serve(ATTACKED, ON)
    numbers = [odd(number) for number in range(STREAMS)]
    head = POST + literal(b"content-length", b"1000000000000")
    trailers = literal(b"x", b"y")
    with Attacker(server.port) as client:
        heads = b"".join(frame(HEADERS, END_HEADERS, number, head) for number in numbers)
        client.finish(heads, len(numbers))
        for number in numbers:
            content = 20 * frame(DATA, 0, number, b"late")
            client.exchange(content + frame(HEADERS, END_HEADERS | END_STREAM, number, trailers))
        assert client.is_served(), client.error


@pytest.mark.parametrize("mode", ["single", "threading"])
def test_content_of_streams_that_are_left(mode: str, tmp_path: Path) -> None:
    """Their windows are open, and their content takes no memory, also if all threads are busy."""
    gate = tmp_path / "gate"
    with (
        Server("tests/apps/gate.py", mode, ON, "--workers=1", "--threads=1") as server,
        server.connect() as other,
        Attacker(server.port) as client,
    ):
        other.send_request("GET", f"/wait?{gate}")
        server.wait_log(f"entered {gate}\n")
        (worker,) = process.workers(server.process.pid)
        before = process.resident(worker)
        for number in range(1, 400, 2):
            content = 15 * frame(DATA, 0, number, bytes(16_384))
            client.exchange(frame(HEADERS, END_HEADERS, number, POST) + content + reset(number))
        client.flush()
        assert process.resident(worker) - before < 16 << 20
        gate.touch()
        assert other.response().status == 200
        assert client.error is None


def test_descriptors() -> None:
    """A connection has one, as the default of `max_connections` expects."""
    with Server(ATTACKED, "threading", ON, "--workers=1") as server, ExitStack() as held:
        (worker,) = map(psutil.Process, process.workers(server.process.pid))
        first = held.enter_context(Attacker(server.port))
        assert first.is_served()
        before = worker.num_fds()
        for _ in range(40):
            assert held.enter_context(Attacker(server.port)).is_served()
        assert worker.num_fds() - before <= 44


def test_memory_of_connections_that_have_had_many_streams() -> None:
    """They keep little of what these have needed."""
    with Server(ATTACKED, "single", ON, "--workers=1") as server, ExitStack() as held:
        (worker,) = process.workers(server.process.pid)
        clients = [held.enter_context(Attacker(server.port)) for _ in range(30)]
        heads = b"".join(frame(HEADERS, END_HEADERS, odd(n), POST) for n in range(STREAMS))
        ends = b"".join(frame(DATA, END_STREAM, odd(n)) for n in range(STREAMS))

        def use(client: Attacker) -> None:
            client.exchange(heads)
            client.finish(ends, STREAMS)
            client.flush()

        for client in clients[:10]:
            use(client)
        before = process.resident(worker)
        for client in clients[10:]:
            use(client)
        assert process.resident(worker) - before < 1 << 20


@pytest.mark.parametrize("window", [0, 1])
def test_windows_that_are_never_opened(serve: Serve, window: int) -> None:
    """More streams than threads wait for them, and then for nothing."""
    server = serve(ATTACKED, ON, "--write-timeout=0.3", "--threads=2")
    settings = frame(SETTINGS, 0, 0, setting(4, window))
    streams = {1 + 2 * number for number in range(10)}
    with Attacker(server.port) as client:
        client.exchange(settings + b"".join(map(request, sorted(streams))))
        with Attacker(server.port) as other:
            assert other.is_served()
        client.exchange(b"", lambda: client.over == streams)
        assert client.is_served()
    server.wait_log("the client does not read its response", len(streams))


def test_octet_by_octet(serve: Serve) -> None:
    server = serve(ATTACKED, ON)
    head = frame(HEADERS, 0, 1, GET[:2]) + frame(CONTINUATION, END_HEADERS, 1, GET[2:])
    content = frame(DATA, END_STREAM, 1, b"content")
    with server.connect() as connection:
        for octet in PREFACE + frame(SETTINGS, 0, 0) + head + content:
            connection.send(bytes([octet]))
        receive_until(connection, b"Hello, world!")


@pytest.mark.parametrize(
    "part",
    [
        PREFACE[:20],
        PREFACE + b"\0",
        PREFACE + frame(SETTINGS, 0, 0) + request(1)[:9],
        PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_STREAM, 1, GET),
        PREFACE + frame(SETTINGS, 0, 0) + request(1)[:-1],
    ],
    ids=["preface", "settings", "frame", "block", "field"],
)
def test_what_is_begun_and_not_ended(serve: Serve, part: bytes) -> None:
    server = serve(ATTACKED, ON, "--header-timeout=0.2")
    with server.connect() as connection:
        connection.send(part)
        port = connection.socket.getsockname()[1]
        connection.rest()
    server.wait_log(f"a connection of 127.0.0.1:{port} is closed: no error, but the rest of ")
