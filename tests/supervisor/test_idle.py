"""An idle server sleeps: no process of it wakes up, in any mode and with any option."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.certificate import certificate
from tests.support.development import answering
from tests.support.each_value import DIFFERENT
from tests.support.tls_client import APP, BIND, told, write
from tests.testkit.client import HANG, Connection
from tests.testkit.process import children
from tests.testkit.server import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Seconds for which no thread may wake up: everything periodic comes more often.
QUIET = 4.0

#: Options for which something is done at some time.
OPTIONS = (
    *("--max-rss", "1G", "--max-lifetime", "86400", "--max-requests", "100000"),
    *("--request-timeout", "3600", "--slow-request", "3600", "--queue-timeout", "3600"),
)


def wake_ups(server: Server) -> dict[str, int]:
    """How often each thread of each process has begun to wait, which it does when it wakes up."""
    counts = {}
    for pid in (server.process.pid, *children(server.process.pid)):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            # A thread may end meanwhile: that of a connection that was taken over.
            with suppress(OSError):
                status = (thread / "status").read_text()
                counts[thread.name] = int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return counts


def sleeps_at_last(servers: Sequence[Server]) -> None:
    """Wait until no thread wakes up for `QUIET` seconds, which a busy machine cannot prevent."""
    began = quiet_since = time.monotonic()
    before: object = None
    while time.monotonic() - quiet_since < QUIET:
        now = [wake_ups(server) for server in servers]
        if now != before:
            assert time.monotonic() - began < HANG, f"threads wake up: {before}, then {now}"
            before, quiet_since = now, time.monotonic()
        time.sleep(0.25)


def test_nothing_wakes_an_idle_server(folder: Path) -> None:
    """All modes, with all options, TLS and the development server at once: they only wait.

    Files of certificates are watched, and keys of tickets are replaced by a clock. The longer
    nothing is saved, the more seldom is looked for what inotify does not report.
    """
    tls = ("--tls-certificate", write(folder, "both.pem", certificate().issued))
    (folder / "app.py").write_text(answering("b''"))
    with ExitStack() as stack:
        servers = []
        for mode in DIFFERENT:
            admin = folder / mode
            more = ["--admin", f"unix:{admin}", "--access-log", f"{admin}.log"]
            more += ["--pidfile", f"{admin}.pid", "--health", "/-"]
            server = Server("dispatch:apps/lightheavy", mode, *OPTIONS, *more)
            servers.append(stack.enter_context(server))
            for connection in [server.connect() for _ in range(6)]:
                connection.request("GET", "/light")
            with Connection(str(admin)) as connection:
                assert connection.request("GET", "/-/ready").status == 200
        for mode, options in (("threading", ()), ("single", ("--supervisor", "off"))):
            server = stack.enter_context(Server(APP, mode, *tls, *options, bind=BIND))
            assert told(server)["scheme"] == "https"
            servers.append(server)
        servers.append(stack.enter_context(Server("app:application", cwd=folder, verb="dev")))
        assert servers[-1].get("/").status == 200
        sleeps_at_last(servers)
