"""The studies `websocket`, `tls`, `http2`, `uploads`, `compress`: a small run of each."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from loadtests.clients import sockets
from loadtests.clients.http2_attacks import ATTACKS
from loadtests.clients.native import compiled
from loadtests.clients.native import tls as tls_client
from loadtests.reporting import markdown
from loadtests.servers.application import Application
from loadtests.servers.certificate import certificate
from loadtests.stats.results import Results
from loadtests.studies import command, compress, tls, uploads
from loadtests.studies.http2 import attacks as http2_attacks
from loadtests.studies.http2 import events as http2_events
from loadtests.studies.http2 import memory as http2_memory
from loadtests.studies.http2 import study as http2
from loadtests.studies.http2.study import Streams
from loadtests.studies.http2.study import scenarios as http2_scenarios
from loadtests.studies.study import Study
from loadtests.studies.tls import scenarios
from loadtests.studies.websocket import cases
from loadtests.studies.websocket import study as websocket
from loadtests.studies.websocket.cases import Case, Frame
from tests.lab.studies import small_run
from tests.packages import need
from tests.testkit.server import join


def test_frames() -> None:
    assert Frame("text", b"a").encoded() == b"\x81\x81ZZZZ;"
    assert Frame("op11", b"", False, 5).encoded() == b"\x5b\x80ZZZZ"
    assert Frame("binary", bytes(126)).encoded()[:4] == b"\x82\xfe\x00\x7e"
    assert Frame("binary", bytes(65536)).encoded()[:10] == b"\x82\xff" + (65536).to_bytes(8, "big")


ECHO = b"\x81\x05hello"
GOODBYE = b"\x88\x02\x03\xe8"


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([ECHO, GOODBYE], "OK"),
        ([ECHO, b""], "OK, unclean close"),
        ([ECHO, b"\x88\x02\x03\xea"], "OK, wrong close code"),
        ([ECHO + GOODBYE], "OK, no failure of the connection"),
        ([b"\x81\x05world", GOODBYE], "failed"),
        ([ECHO + ECHO, GOODBYE], "failed"),
        ([b"\x01\x03hel", b"\x80\x02lo", GOODBYE], "OK"),
    ],
)
def test_verdicts(answers: Sequence[bytes], verdict: str) -> None:
    """Of a server that sends these, one after each frame, and then ends the connection."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with theirs:
            theirs.recv(100)
            for answer in answers[:-1]:
                theirs.sendall(answer)
            if len(answers) > 1:
                theirs.recv(100)
            theirs.sendall(answers[-1])

    thread = threading.Thread(target=serve)
    thread.start()
    with ours:
        assert cases.run(cases.HELLO, ours) == verdict
    join(thread)


def test_whoever_should_fail_the_connection() -> None:
    case = Case("x", [Frame("text", b"\xff")], [[]], "refuse", [1007])
    for answers, verdict in (
        (b"\x88\x02\x03\xef", "OK"),
        (b"", "OK"),
        (b"\x88\x02\x03\xea", "OK, wrong"),
    ):
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                theirs.sendall(answers)
            assert cases.run(case, ours).startswith(verdict)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert cases.run(case, ours) == "failed, no failure of the connection"


def run(study: Study, server: str, folder: Path, *names: str, seconds: float = 0) -> Results:
    """A tiny run with one server, in which nothing fails. Skips if it cannot run here."""
    results = small_run.run(study, folder, small_run.chosen(study, server), seconds, names=names)
    assert not results.failures
    return results


#: For what measures for longer if nothing was answered.
SHORT = 0.05


def told(study: Study, results: Results) -> str:
    """The page without its figures."""
    return markdown.tables(command.sections(results, [study]))


class TestRuns:
    def test_messages_and_idle_websockets(self, tmp_path: Path) -> None:
        results = run(websocket.STUDY, "Werkzeug", tmp_path, "echo", "idle", seconds=SHORT)
        found = {one["scenario"]: one for one in results.samples}
        assert set(found) == {"echo32-64", "echo4096-64", "idle"}
        assert found["echo32-64"]["requests"] > 0
        assert found["idle"]["threads"] == 2
        assert "CPU per message" in told(websocket.STUDY, results)

    def test_tls(self, tmp_path: Path) -> None:
        need("openssl", "/usr/include/openssl/ssl.h")
        experiments = ("handshakes", "answers")
        results = run(tls.STUDY, "poorhttp single", tmp_path, *experiments, seconds=SHORT)
        known = {name: scenarios(uploads.HASHED)[name] for name in experiments}
        asked = {one.name for some in known.values() for _, one in some}
        assert {one["scenario"] for one in results.samples} == asked
        page = told(tls.STUDY, results)
        assert "TLS 1.2, full, RSA" in page

    def test_http2(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        need("openssl", "h2load")
        asked = {"page-h2c-1x1", "post-tls-1x1", "hello-h1-16x1"}

        def some(static: Application) -> list[Streams]:
            return [one for one in http2_scenarios(static) if one.name in asked]

        monkeypatch.setattr(http2, "scenarios", some)
        monkeypatch.setattr(http2_memory, "CONNECTIONS", 20)
        experiments = ("requests", "memory")
        results = run(http2.STUDY, "poorhttp single", tmp_path, *experiments, seconds=SHORT)
        assert {one["scenario"] for one in results.samples} == asked
        assert not any(one["errors"] for one in results.samples)
        assert {one["name"] for one in results.figures} == {"connection", "streams"}
        page = markdown.document(command.sections(results, [http2.STUDY]), tmp_path, "")
        assert "POST of 1 MB, TLS" in page
        assert "100 streams that wait for content" in page

    def test_http2_attacks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        some = ATTACKS[:1]
        monkeypatch.setattr(http2_attacks, "ATTACKS", some)
        results = run(http2.STUDY, "poorhttp single", tmp_path, "attacks")
        names = {http2_attacks.REQUESTS, some[0].name}
        assert {one["scenario"] for one in results.samples} == names
        assert all(one["octet_ns"] > 0 and one["connections"] > 0 for one in results.samples)
        page = told(http2.STUDY, results)
        assert some[0].name in page
        assert "p99 of another client" in page

    def test_http2_events(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        # Half of the threads answer the other client; nobody is starved, however busy the machine.
        small = {"STREAMS": 4, "EVERY": 0.02, "RATE": 100, "PARTS": 1, "SETTLING": 0, "STARVED": 60}
        for name, value in small.items():
            monkeypatch.setattr(http2_events, name, value)
        results = run(http2.STUDY, "poorhttp threading", tmp_path, "events")
        assert {one["scenario"] for one in results.samples} == {"http/1.1", "h2c"}
        assert {(one["begun"], one["ended"]) for one in results.samples} == {(4, 0)}
        assert all(one["events"] > 0 and one["p99_us"] > 0 for one in results.samples)
        page = told(http2.STUDY, results)
        assert "event streams over one of HTTP/2" in page
        assert "p99 of a client beside 200 event streams, of that without" in page

    def test_uploads(self, tmp_path: Path) -> None:
        results = run(uploads.STUDY, "poorhttp single", tmp_path)
        [one] = results.samples
        assert one["megabytes"] == pytest.approx(4 * 1.048576)
        assert "CPU per MB" in told(uploads.STUDY, results)

    def test_compress(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compress, "SIZES", (100,))
        results = run(compress.STUDY, "poorhttp single", tmp_path)
        sizes = {one["scenario"]: one["size"] for one in results.samples}
        assert sizes["json100-gzip-16"] < sizes["json100-none-16"] / 3
        codings = {one["coding"] for one in results.samples}
        assert codings == {"", "gzip", "br", "zstd"}
        assert "JSON of 100 KB, gzip" in told(compress.STUDY, results)


def test_what_a_client_negotiated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is on a line before the result; without it the run has none."""
    said = (
        "negotiated TLSv1.3 TLS_AES_128_GCM_SHA256 20 4\n"
        'loadtests {"requests": 20, "microseconds": 1000000, "bytes": 4000, "connect": 0, '
        '"read": 0, "write": 0, "status": 0, "timeout": 0}\n'
    )
    monkeypatch.setattr(tls_client, "outcome", lambda *_: (said, 0.5))
    monkeypatch.setattr(compiled, "program", lambda *_: tmp_path)
    load, found = tls_client.drive(1, 1.0, 4, "1.3", "resumed", "/", None)
    assert (load.requests, load.busy) == (20, 0.5)
    assert found == ("TLSv1.3", "TLS_AES_128_GCM_SHA256", 20, 4)


class Closing:
    """A server of WebSockets that echoes one message on each, and then closes it in some way."""

    def __init__(self, close: bytes) -> None:
        self._close = close

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        head = await reader.readexactly(6)
        payload = await reader.readexactly(head[1] & 0x7F)
        writer.write(bytes([0x81, len(payload)]) + payload + self._close)
        writer.close()

    async def run(self) -> sockets.World:
        """What one client, plain and over TLS, has counted after a while."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in certificate().items():
                (Path(folder) / name).write_text(text)
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(f"{folder}/both.pem")
        servers = [
            await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=one)
            for one in (None, context)
        ]
        ports = [server.sockets[0].getsockname()[1] for server in servers]
        world = sockets.World(*ports)
        clients = asyncio.create_task(world.run(1, 0))
        while sum(world.counts.values()) < 4 and sum(world.faults.values()) < 4:
            await asyncio.sleep(0.01)
        for server in servers:
            server.close()
        world.over.set()
        await clients
        return world


@pytest.mark.parametrize(
    ("close", "what"),
    [
        (b"\x88\x02\x03\xe9", ""),
        (b"\x88\x02\x03\xe8", "closed with 1000"),
        (b"", "0 bytes read"),
        (b"\x88\x02\x03\xe9x", "something comes behind"),
    ],
)
def test_clean_closes_of_websockets(
    close: bytes, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("openssl")
    monkeypatch.setattr(sockets, "PAUSE", 0.01)
    world = asyncio.run(Closing(close).run())
    assert world.counts["echoes"] >= 1
    if what:
        assert world.counts["closed with 1001"] == 0
        assert {what in one["what"] for one in world.shown[:4]} == {True}, world.shown
    else:
        assert world.counts["closed with 1001"] >= 1
