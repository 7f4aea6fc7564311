"""Streams of a connection of HTTP/2: beside each other, in turn, slow, left by their client."""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest

from loadtests.clients.http2_connection import Http2Connection
from loadtests.clients.http2_frames import AUTHORITY, METHOD_GET, SCHEME_HTTP, request
from tests.conftest import Serve
from tests.support.certificate import certificate
from tests.support.http2_client import client
from tests.testkit import process
from tests.testkit.server import AT_ONCE, Server, alone, wait_for

ALONE = True

ANSWERS = "tests/apps/answers.py"
GATE = "tests/apps/gate.py"
ON = "--http2=on"
ONE = alone("threading")


@pytest.mark.each_mode("single")
def test_streams_beside_each_other(serve: Serve, mode: str, tmp_path: Path) -> None:
    at_once = min(AT_ONCE[mode], 8) if mode != "forking" else 1
    server = serve(GATE, ON)
    with client(server) as made:
        gates = [tmp_path / str(number) for number in range(at_once)]
        held = [made.begin(f"/wait?{gate}") for gate in gates]
        for gate in gates:
            server.wait_log(f"entered {gate}\n")
        # They end in the opposite order.
        for stream, gate in reversed([*zip(held, gates, strict=True)]):
            if at_once > 1 and gate is gates[-2]:
                assert made.get("/run").status == 200
            gate.touch()
            assert made.whole(stream).status == 200
        many = [made.begin("/process") for _ in range(50)]
        assert {made.whole(stream).status for stream in many} == {200}


@pytest.mark.parametrize("mode", ["single", "threading", "gevent"], indirect=True)
def test_a_response_does_not_wait_for_the_next(serve: Serve, tmp_path: Path) -> None:
    """Requests that come together are answered together, unless one takes long."""
    gate = tmp_path / "gate"
    with client(serve(GATE, ON)) as made:
        with patch.object(made, "flush"):
            quick, slow = made.begin("/process"), made.begin(f"/wait?{gate}")
        made.flush()
        assert made.whole(quick).status == 200
        assert not slow.is_over
        gate.touch()
        assert made.whole(slow).status == 200


@pytest.mark.each_mode("single")
def test_a_slow_reader_of_one_stream_holds_up_no_other(mode: str) -> None:
    """Nor a thread: there are more slow readers than threads."""
    count = 10 if mode == "threading" else 3
    with (
        Server(ANSWERS, mode, ON, *alone(mode)) as server,
        client(server, window=70_000, reads=False) as made,
    ):
        slow = [made.begin("/large_generated") for _ in range(count)]
        made.until(lambda: all(len(stream.body) >= 65_535 for stream in slow))
        assert made.get("/one").body == b"hello"
        with server.connect() as connection:
            assert connection.request("GET", "/one").body == b"hello"
        made.reads = True
        for stream in slow:
            made.read(stream)
        assert {len(made.whole(stream).body) for stream in slow} == {5_000_000}


@pytest.mark.parametrize("mode", ["single", "gevent", "asyncio"])
def test_many_streams_without_an_application(mode: str, tmp_path: Path) -> None:
    """An event loop that only polls is told that more of them are ready."""
    (tmp_path / "f").write_bytes(b"content")
    head = METHOD_GET + SCHEME_HTTP + b"\x04\x02/f" + AUTHORITY
    with (
        Server(f"static:{tmp_path}", mode, ON, *alone(mode)) as server,
        Http2Connection(server.port) as made,
    ):
        made.finish(b"".join(request(1 + 2 * number, head) for number in range(250)), 250)
        assert (len(made.over), made.error) == (250, None)


def test_streams_that_wait_for_content_have_no_buffers() -> None:
    """2,000 of them need at most 4 KiB each, and with a part of their content as well."""
    with Server("tests/apps/echo.py", "threading", ON, "--workers", "1") as server:
        (worker,) = process.workers(server.process.pid)
        clients = [client(server) for _ in range(10)]
        for made in clients:
            made.post("/", b"warm")
        before = psutil.Process(worker).memory_info().rss
        streams = [(made, made.begin("/", method="POST", ended=False)) for made in clients * 200]
        for made in clients:
            made.ping()
        for made, stream in streams:
            made.send(stream, b"part")
        for made in clients:
            made.ping()
        assert psutil.Process(worker).memory_info().rss - before <= 8 << 20
        for made, stream in streams[::100]:
            made.send(stream, ended=True)
            assert made.whole(stream).status == 200
        for made in clients:
            made.close()


def test_one_connection_does_not_take_all_turns(tmp_path: Path) -> None:
    """Requests that have come on it take turns with those of other connections."""
    gate, log = tmp_path / "gate", tmp_path / "access"
    options = ("--threads=1", "--access-log", str(log), "--access-log-format", "%H", *ONE)
    with Server(GATE, "threading", ON, *options) as server, client(server) as made:
        held = made.begin(f"/wait?{gate}")
        server.wait_log(f"entered {gate}\n")
        many = [made.begin("/process") for _ in range(20)]
        with server.connect() as connection:
            connection.send_request("GET", "/process")
            gate.touch()
            assert connection.response().status == 200
        assert {made.whole(stream).status for stream in [held, *many]} == {200}
        wait_for(lambda: log.read_text().count("\n") == 22, "22 lines")
        assert log.read_text().splitlines().index("HTTP/1.1") < 5


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mode", ["threading", "gevent"], indirect=True)
def test_another_connection_is_next(serve: Serve, mode: str, version: int, tmp_path: Path) -> None:
    """Also if all threads run streams of one connection, and many more of its streams wait."""
    gates = [tmp_path / str(number) for number in range(100)]
    at_once = AT_ONCE[mode] if mode == "threading" else len(gates)
    server = serve(GATE, ON)
    before = server.log_size()
    with client(server) as made, client(server) as second, server.connect() as other:
        many = [made.begin(f"/wait?{gate}") for gate in gates]
        for gate in gates[:at_once]:
            server.wait_log(f"entered {gate}\n")
        last = tmp_path / "last"
        if version == 1:
            other.send_request("GET", f"/wait?{last}")
        else:
            second.begin(f"/wait?{last}")
        gates[0].touch()
        server.wait_log(f"entered {last}\n")
        entered = re.findall(r"^entered .*/(\w+)$", server.log(before), re.MULTILINE)
        assert entered.index("last") == at_once
        for gate in (*gates, last):
            gate.touch()
        assert {made.whole(stream).status for stream in many} == {200}


@pytest.mark.parametrize("mode", ["single", "threading"])
def test_handshakes_between_streams(mode: str, tmp_path: Path) -> None:
    """They go on while requests of a connection wait that take long each."""
    certificate().write(tmp_path / "pem")
    (tmp_path / "pem").chmod(0o600)
    gates = [tmp_path / str(number) for number in range(100)]
    last = tmp_path / "last"
    bind = ("127.0.0.1:0", "https://127.0.0.1:0")
    options = (ON, *ONE, "--threads=2", "--tls-certificate", str(tmp_path / "pem"))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with (
        Server(GATE, mode, *options, bind=bind) as server,
        client(server) as made,
        socket.create_connection(("127.0.0.1", server.port_of("https"))) as raw,
    ):
        raw.setblocking(False)
        context = certificate().client_context()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        many = [made.begin(f"/wait?{gate}") for gate in gates]
        at_once = 2 if mode == "threading" else 1
        for number, gate in enumerate(gates):
            entered = min(number + at_once, len(gates))
            server.wait_log("entered ", entered)
            if tls.version() is None:
                with suppress(BlockingIOError):
                    incoming.write(raw.recv(65_536))
                with suppress(ssl.SSLWantReadError):
                    tls.do_handshake()
                    tls.write(f"GET /wait?{last} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                raw.sendall(outgoing.read())
            elif f"entered {last}\n" in server.log():
                break
            gate.touch()
        assert number < len(gates) - at_once
        for gate in (*gates, last):
            gate.touch()
        assert {made.whole(stream).status for stream in many} == {200}


@pytest.mark.each_mode
def test_connections_are_read_while_all_threads_run_requests(mode: str, tmp_path: Path) -> None:
    gate, large = tmp_path / "gate", tmp_path / "large"
    large.write_bytes(bytes(range(256)) * 20_000)
    options = (ON, f"--static=/f={tmp_path}", *alone(mode), "--workers=1", "--threads=1")
    with (
        Server("tests/apps/busy.py", mode, *options) as server,
        client(server, window=70_000, reads=False) as slow,
        client(server) as made,
    ):
        response = slow.begin("/f/large")
        slow.until(lambda: len(response.body) >= 65_535)
        held = made.begin(f"/hold?{gate}")
        server.wait_log(f"holds {gate}\n")
        for each in (slow, made):
            each.ping()
        slow.reads = True
        slow.read(response)
        assert slow.whole(response).body == large.read_bytes()
        gate.touch()
        assert made.whole(held).status == 200
        left = made.begin("/left")
        server.wait_log("waits\n")
        made.reset(left)
        server.wait_log("left\n")
        assert made.get("/after").status == 200


def test_memory_of_responses_that_are_not_read() -> None:
    """Bounded for all streams of a connection together: most responses wait in temporary files."""
    with (
        Server(ANSWERS, "single", ON) as server,
        client(server, window=1_000, reads=False) as made,
    ):
        (worker,) = process.workers(server.process.pid)
        whole = made.begin("/large")
        made.until(lambda: whole.body)
        before = process.resident(worker)
        streams = [made.begin("/large") for _ in range(40)]
        made.until(lambda: all(stream.body for stream in streams))
        assert process.resident(worker) - before < 24 << 20
        for stream in (whole, streams[-1]):
            made.h2.increment_flow_control_window(10_000_000, stream.number)
            made.flush()
            assert made.whole(stream).body == b"0123456789" * 500_000


LOGGED = ("--access-log-format", "%s %U %H", *ONE)


@pytest.mark.parametrize("mode", ["threading", "gevent"])
def test_a_client_that_leaves_a_stream(mode: str, tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "access"
    with Server(GATE, mode, ON, "--access-log", str(log), *LOGGED) as server:
        with client(server) as made:
            held = made.begin(f"/wait?{gate}")
            server.wait_log(f"entered {gate}\n")
            made.reset(held)
            made.ping()
            gate.touch()
            assert made.get("/process").status == 200
        wait_for(lambda: log.read_text().count("\n") == 2, "two lines")
        lines = sorted(log.read_text().splitlines())
        assert lines == ["200 /process HTTP/2.0", "499 /wait HTTP/2.0"]
        server.wait_log("the client left before the end of the response")


@pytest.mark.parametrize(("mode", "level"), [("single", "debug"), ("threading", "info")])
def test_a_client_that_leaves_streams_that_wait(mode: str, level: str, tmp_path: Path) -> None:
    """They are not run; as each costs an attacker nothing, only `debug` tells of each."""
    gate, log = tmp_path / "gate", tmp_path / "access"
    logged = ("--access-log", str(log), *LOGGED, f"--log-level={level}")
    with Server(GATE, mode, ON, *logged, "--threads=1") as server, client(server) as made:
        held = made.begin(f"/wait?{gate}")
        server.wait_log(f"entered {gate}\n")
        left = [made.begin(f"/wait?{gate}-never") for _ in range(3)]
        for stream in left:
            made.reset(stream)
        gate.touch()
        assert made.whole(held).status == 200
        wait_for(lambda: log.read_text().count("\n") == 4, "four lines")
        assert log.read_text().count("499 /wait HTTP/2.0\n") == 3
        told = server.log().count("not run, logged with 499: the client has reset the stream")
        assert told == (3 if level == "debug" else 0)
        assert "-never\n" not in server.log()


@pytest.mark.parametrize("mode", ["single", "threading", "gevent"])
def test_a_client_that_can_open_no_window_any_more(mode: str, tmp_path: Path) -> None:
    """It has ended its side of the connection: what waits for a window of it is given up."""
    log = tmp_path / "access"
    options = ("--write-timeout=600", "--access-log", str(log), *LOGGED)
    with (
        Server(ANSWERS, mode, ON, *options) as server,
        client(server, window=1_000, reads=False) as made,
    ):
        streams = [made.begin("/large") for _ in range(3)]
        made.until(lambda: all(len(stream.body) == 1_000 for stream in streams))
        made.socket.shutdown(socket.SHUT_WR)
        while made.socket.recv(1 << 16):
            pass
        wait_for(lambda: log.read_text().count("\n") == 3, "three lines")
        assert log.read_text() == "200 /large HTTP/2.0\n" * 3


def test_a_request_timeout_ends_its_stream_alone() -> None:
    options = (ON, "--request-timeout=0.6", *ONE)
    with Server("tests/apps/slow.py", "threading", *options) as server, client(server) as made:
        hanging = made.begin("/nap")
        assert made.get("/").status == 200
        assert made.whole(hanging).status == 504
        assert made.get("/").status == 200
