"""HAProxy before two servers, one of which is stopped: no client sees an error."""

from __future__ import annotations

import csv
import io
import signal
import socket
from pathlib import Path

from proxy.programs import PROGRAMS
from tests.packages import need
from tests.support.load import Load
from tests.support.proxies import HAPROXY, WebServer, reserve
from tests.testkit.client import HANG
from tests.testkit.server import wait_for
from tests.testkit.versions import Versions

#: The health path, and what decides: a server is taken out by its second refusal in a row.
CONFIG = """
global
    stats socket {stats} mode 600 level user
{defaults}
    # For the answer to a check, or it would be `inter`, which a busy machine exceeds.
    timeout check 10s
    # Nothing is tried again behind our back: what fails is seen.
    retries 0
frontend all
    bind 127.0.0.1:{port}
    default_backend servers
backend servers
    balance roundrobin
    option httpchk GET /-/ready
    default-server check inter 200ms fall 2 rise 2
    server one 127.0.0.1:{one}
    server two 127.0.0.1:{two}
"""


class Balancer(WebServer):
    """HAProxy, before two servers."""

    def __init__(self, folder: Path, one: int, two: int) -> None:
        need("haproxy")
        reserved = reserve()
        self.port: int = reserved.getsockname()[1]
        self._stats = str(folder / "stats")
        config = folder / "haproxy.cfg"
        places = {"defaults": HAPROXY, "stats": self._stats, "port": self.port}
        config.write_text(CONFIG.format(**places, one=one, two=two))
        words = (PROGRAMS["haproxy"].path(), "-db", "-f", str(config))
        super().__init__(*words, reserved=[reserved])

    def is_listening(self) -> bool:
        """Whether it lets clients in, and answers questions."""
        try:
            # Its socket for questions gets its name later, and listens later still.
            return super().is_listening() and bool(self.told())
        except (ConnectionRefusedError, FileNotFoundError):
            return False

    def told(self) -> dict[str, dict[str, str]]:
        """What it knows of each server."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(HANG)
            sock.connect(self._stats)
            sock.sendall(b"show stat\n")
            text = b""
            while more := sock.recv(65536):
                text += more
        rows = csv.DictReader(io.StringIO(text.decode().removeprefix("# ")))
        return {row["svname"]: row for row in rows if row["pxname"] == "servers"}

    def is_as(self, one: str, two: str) -> bool:
        """Whether it has the servers in these states."""
        told = self.told()
        return (told["one"]["status"], told["two"]["status"]) == (one, two)


def test_who_is_told_to_stop_is_taken_out_before(
    mode: str, versions: Versions, folder: Path
) -> None:
    options = ("--health", "/-", "--drain-delay", "600", "--workers", "2")
    with (
        versions.serve(mode, *options) as two,
        versions.serve(mode, *options) as one,
        Balancer(folder, one.port, two.port) as balancer,
    ):
        wait_for(balancer.is_listening, "the balancer")
        wait_for(lambda: balancer.is_as("UP", "UP"), "two servers that are up")
        with Load(balancer.port, clients=4) as load:
            load.wait_more(50)
            one.process.send_signal(signal.SIGTERM)
            wait_for(lambda: balancer.is_as("DOWN", "UP"), "the balancer to take it out")
            # It has been taken out by what it said, while it served everybody.
            told = balancer.told()["one"]
            assert (told["check_status"], told["check_code"]) == ("L7STS", "503")
            assert not one.is_refusing()
            load.wait_more(50)
            before = balancer.told()["one"]["stot"]
            load.wait_more(50)
            assert balancer.told()["one"]["stot"] == before
            one.process.send_signal(signal.SIGTERM)
            assert one.wait() == 0
            load.wait_more(50)
        load.check()
        told = balancer.told()["one"]
        assert (told["econ"], told["eresp"]) == ("0", "0")
        one.ended()
        two.stop(signal.SIGINT)
