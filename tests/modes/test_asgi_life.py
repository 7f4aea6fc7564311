"""Mode asyncio: a reload, a worker that is killed, an upgrade, a stop, while clients are served."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from loadtests.studies.websocket.cases import Frame
from tests.modes.test_asgi import APP, events
from tests.modes.test_asgi_websocket import GOING_AWAY, HANDSHAKE, receive
from tests.support import binary_upgrade
from tests.support.certificate import certificate
from tests.support.http2_client import Client, Stream, client, tls
from tests.testkit.client import BadResponse, Closed
from tests.testkit.process import workers
from tests.testkit.server import Server, wait_for

HALF = b"a" * 10


class UnderWay:
    """Streams, uploads and WebSockets of HTTP/1.1, streams and uploads of HTTP/2; also over TLS."""

    def __init__(self, server: Server, gate: Path) -> None:
        self._gate = gate
        plain = [server.connect() for _ in range(6)]
        for connection in plain[3:]:
            connection.socket.close()
            connection.socket = tls(server)
        self._streams, self._uploads, self.websockets = plain[::3], plain[1::3], plain[2::3]
        for stream in self._streams:
            stream.send_request("GET", f"/pieces?{gate}")
        for upload in self._uploads:
            upload.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n" + HALF)
        for websocket in self.websockets:
            websocket.send_request("GET", "/", *HANDSHAKE)
            assert websocket.interim() == 101
        self._clients = [client(server), Client(tls(server, "h2"))]
        self._pairs = [(each, *self._begin(each)) for each in self._clients]
        what = ["begun"] * 4 + ["got 10"] * 4
        wait_for(lambda: sorted(events(server)) == what, "requests of which a half has come")

    def _begin(self, made: Client) -> tuple[Stream, Stream]:
        upload = made.begin("/echo", method="POST", ended=False)
        made.send(upload, HALF)
        return made.begin(f"/pieces?{self._gate}"), upload

    def check_closed(self) -> None:
        """The WebSockets are closed as promised."""
        for websocket in self.websockets:
            assert receive(websocket, 4) == GOING_AWAY
            websocket.send(Frame("close", GOING_AWAY[2:]).encoded())
            assert websocket.rest() == b""

    def check_whole(self) -> None:
        """All requests are answered."""
        self._gate.touch()
        for connection in self._uploads:
            connection.send(HALF)
            assert connection.response().body == b"20 {97}"
        for connection in self._streams:
            assert connection.response().body == b"0\n1\n2\n"
        for made, stream, upload in self._pairs:
            made.send(upload, HALF, ended=True)
            assert (made.whole(upload).body, upload.ended) == (b"20 {97}", True)
            assert (made.whole(stream).body, stream.ended) == (b"0\n1\n2\n", True)
            made.close()
        self._gate.unlink()

    def check_cut(self) -> None:
        """Nothing looks as if it were whole."""
        for connection in (*self._streams, *self._uploads):
            with pytest.raises((BadResponse, Closed)):
                connection.response()
        assert [websocket.rest() for websocket in self.websockets] == [b"", b""]
        for made, stream, upload in self._pairs:
            with suppress(OSError):
                made.ends()
            made.close()
            assert [stream.is_over, upload.is_over] == [False, False]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_nothing_is_lost(loop: str, tmp_path: Path) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    certificate().write(tmp_path / "pem")
    gate, notes, pidfile = (tmp_path / name for name in ("gate", "notes", "pid"))
    options = (
        *("--asgi-loop", loop, "--workers=1", "--http2=on", "--pidfile", str(pidfile)),
        *("--tls-certificate", str(tmp_path / "pem")),
    )
    bind = ("127.0.0.1:0", "https://127.0.0.1:0")
    with Server(f"{APP}:app", "asyncio", *options, bind=bind, env={"NOTES": str(notes)}) as server:
        for number, done in ((signal.SIGHUP, "reloaded"), (signal.SIGUSR2, "has taken over")):
            held, before = UnderWay(server, gate), int(pidfile.read_text())
            os.kill(before, number)
            held.check_closed()
            server.wait_log(done)
            assert server.get("/").body == b"asgi"
            held.check_whole()
        binary_upgrade.wait_for_end(before, server)

        main = int(pidfile.read_text())
        held, (worker,) = UnderWay(server, gate), workers(main)
        os.kill(worker, signal.SIGKILL)
        held.check_cut()
        server.wait_log(f"worker {worker} was killed by SIGKILL")

        held = UnderWay(server, gate)
        os.kill(main, signal.SIGTERM)
        held.check_closed()
        held.check_whole()
        binary_upgrade.wait_for_end(main, server)
        server.ended()
        # The application that was killed is not told.
        assert sorted(notes.read_text().split()) == ["started"] * 4 + ["stopped"] * 3
