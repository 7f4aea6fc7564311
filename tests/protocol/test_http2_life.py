"""The life of a connection of HTTP/2: stop, reload, binary upgrade, idle time, metrics."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from loadtests.clients.http2_frames import GOAWAY, frame
from tests.conftest import Serve
from tests.support import binary_upgrade
from tests.support.certificate import certificate
from tests.support.http2_client import Client, Stream, client, tls
from tests.testkit.client import Connection
from tests.testkit.server import AT_ONCE, Server, wait_for

ALONE = True

GATE = "tests/apps/gate.py"
ON = "--http2=on"

#: Codes of errors (RFC 9113 section 7).
NO_ERROR, PROTOCOL_ERROR = 0, 1


def entered(server: Server, made: Client, gate: Path) -> Stream:
    """A stream whose request waits in the application until the file `gate` exists."""
    stream = made.begin(f"/wait?{gate}")
    server.wait_log(f"entered {gate}\n")
    return stream


@pytest.mark.each_mode("single")
def test_a_stop(mode: str, tmp_path: Path) -> None:
    """Streams under way are answered, those begun before the second GOAWAY too."""
    gate = tmp_path / "gate"
    options = ("--workers=1", "--drain-timeout=60")
    with Server(GATE, mode, ON, *options) as server, client(server) as made, client(server) as idle:
        idle.ping()
        held = entered(server, made, gate)
        server.process.terminate()
        if AT_ONCE[mode] > 2:
            wait_for(server.is_refusing, "a server that stops")
        # This client has not answered the PING behind the first GOAWAY.
        late = made.begin("/process")
        gate.touch()
        assert made.whole(held).status == 200
        assert made.whole(late).status == 200
        assert made.ends() == [(NO_ERROR, 2**31 - 1), (NO_ERROR, late.number)]
        assert idle.ends() == [(NO_ERROR, 2**31 - 1), (NO_ERROR, 0)]
        assert server.wait() == 0
        server.ended()


@pytest.mark.parametrize("mode", ["single", "threading"])
def test_a_client_that_announces_its_end(mode: str, tmp_path: Path) -> None:
    """Its connection is closed as soon as its requests are answered."""
    gate = tmp_path / "gate"
    options = (ON, "--workers=1", "--keepalive-timeout=3600")
    with Server(GATE, mode, *options) as server, client(server) as made:
        held = entered(server, made, gate)
        made.socket.sendall(frame(GOAWAY, 0, 0, bytes(8)))
        made.ping()
        gate.touch()
        assert made.whole(held).status == 200
        assert made.ends() == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_end_destroys_nothing(scheme: str, tmp_path: Path) -> None:
    """What a client sends when all is answered is no reason for a reset of the connection."""
    certificate().write(tmp_path / "pem")
    bind = ("127.0.0.1:0", "https://127.0.0.1:0")
    options = (ON, "--workers=1", "--tls-certificate", str(tmp_path / "pem"))
    with Server(GATE, "threading", *options, bind=bind) as server:
        made = Client(tls(server, "h2") if scheme == "https" else ("127.0.0.1", server.port))
        with made:
            assert made.get("/process").status == 200
            server.process.terminate()
            assert made.ends() == [(NO_ERROR, 2**31 - 1), (NO_ERROR, 1)]
            # If there is a reset, it follows the first frame, and the second one fails.
            for _ in range(2):
                made.h2.ping(b"12345678")
                made.flush()
        server.ended()


@pytest.mark.parametrize("options", [(), ("--keepalive-timeout=0.5",)], ids=["stop", "keepalive"])
def test_an_end_waits_for_a_slow_reader(tmp_path: Path, options: tuple[str, ...]) -> None:
    """What has yet to be sent is not destroyed by the end, nor by what the client sends then."""
    (tmp_path / "file").write_bytes(b"x" * 1_000_000)
    with Server(f"static:{tmp_path}", "threading", ON, "--workers=1", *options) as server:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sock.connect(("127.0.0.1", server.port))
        with Client(sock) as made:
            stream = made.begin("/file")
            # Or until the rest has been handed over for sending, which is the end for the stream.
            made.until(lambda: len(stream.body) > (700_000 if options else 0))
            if not options:
                server.process.terminate()
            # The time of a connection that lingers passes, or of one that is idle.
            time.sleep(3)
            assert len(made.whole(stream).body) == 1_000_000
            assert [code for code, _ in made.ends()] == [NO_ERROR] * (1 if options else 2)
        if not options:
            server.ended()


@pytest.mark.each_mode
def test_no_stream_is_lost_by_reloads(mode: str) -> None:
    with Server(GATE, mode, ON) as server:
        answered = 0
        for _ in range(2):
            generations = server.log().count("reloaded")
            server.process.send_signal(1)
            while server.log().count("reloaded") == generations:
                with client(server) as made:
                    streams = [made.begin("/process") for _ in range(5)]
                    assert {made.whole(stream).status for stream in streams} == {200}
                    answered += 5
        assert answered


def test_a_binary_upgrade(tmp_path: Path) -> None:
    """What is under way is answered by the old processes; their client is told to connect again."""
    gate, pidfile = tmp_path / "gate", tmp_path / "pid"
    options = (ON, "--pidfile", str(pidfile), "--workers=1", "--drain-timeout=60")
    with Server(GATE, "threading", *options) as server, client(server) as made:
        held = entered(server, made, gate)
        os.kill(int(pidfile.read_text()), signal.SIGUSR2)
        made.until(lambda: made.terminated)
        late = made.begin("/process")
        gate.touch()
        assert made.whole(held).status == 200
        assert made.ends() == [(NO_ERROR, 2**31 - 1), (NO_ERROR, held.number)]
        # The client has answered the PING before: a proxy sends this one again.
        assert not late.is_over
        with client(server) as again:
            assert again.get("/process").status == 200
        server.wait_log("has taken over")
        binary_upgrade.wait_for_end(server.process.pid, server)
        binary_upgrade.end(server, int(pidfile.read_text()))


def test_metrics(tmp_path: Path) -> None:
    """Connections and streams that are open, resets by either side, failed connections."""
    gate, admin = tmp_path / "gate", str(tmp_path / "admin")

    def metrics() -> list[int]:
        with Connection(admin) as asking:
            text = asking.request("GET", "/-/metrics").body.decode()
        return [int(n) for n in re.findall(r"^poorhttp_http2_\S+ (\d+)$", text, re.MULTILINE)]

    def await_metrics(*expected: int) -> None:
        wait_for(lambda: metrics() == [*expected], f"metrics {expected}, not {metrics()}")

    options = ("--workers=1", f"--admin=unix:{admin}", "--keepalive-timeout=3600")
    with Server(GATE, "threading", ON, *options) as server, client(server) as made:
        held = made.begin(f"/wait?{gate}")
        made.begin(f"/wait?{gate}")
        assert made.get("/process").status == 200
        await_metrics(1, 2, 0, 0, 0)
        made.reset(held)
        # A window that is opened by nothing (RFC 9113 section 6.9).
        made.socket.sendall(b"\0\0\x04\x08\0\0\0\0\x03" + b"\0\0\0\0")
        await_metrics(1, 2, 1, 1, 0)
        gate.touch()
        await_metrics(1, 0, 1, 1, 0)
        # PUSH_PROMISE, which no client may send.
        made.socket.sendall(b"\0\0\0\x05\0\0\0\0\x01")
        assert made.ends() == [(PROTOCOL_ERROR, 5)]
        made.close()
        await_metrics(0, 0, 1, 1, 1)


def test_idle_connections(serve: Serve) -> None:
    server = serve(GATE, ON, "--keepalive-timeout=0.2", "--header-timeout=0.2")
    with client(server) as made:
        assert made.ends() == [(NO_ERROR, 0)]
    with client(server) as made:
        stream = made.get("/process")
        assert made.ends() == [(NO_ERROR, stream.number)]


def test_an_idle_connection_makes_room_for_another(serve: Serve) -> None:
    server = serve(GATE, ON, "--max-connections=2")
    with client(server) as idle, client(server) as other:
        for made in (idle, other):
            assert made.get("/process").status == 200
            # The stream has ended for the server as well.
            made.ping()
        with client(server) as made:
            assert made.get("/process").status == 200
            assert idle.ends() == [(NO_ERROR, 1)]
        assert other.get("/process").status == 200
