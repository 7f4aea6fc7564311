"""Nobody is reset who was connecting when a server stopped."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loadtests.network.hosts import Network
from poorhttp.handshakes import turn_away
from poorhttp.listener import Listener
from tests.client import HANG
from tests.network import hosts
from tests.process import children
from tests.server import ROOT, Server, wait_for

ECHO = str(ROOT / "tests/apps/echo.py")


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """A client far from the server: half a second for a handshake."""
    with hosts("client", "server") as network:
        network["client"].disturb(delay=0.1)
        yield network


def test_who_comes_later_is_kept_out_and_who_waits_is_heard(mode: str) -> None:
    with Server(ECHO, mode) as server, ExitStack() as stack:
        workers = children(server.process.pid)
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        early = stack.enter_context(server.connect())
        server.process.send_signal(signal.SIGTERM)
        # Few get in before that; the queue has room for 2,048.
        assert any(not connects(server.port) for _ in range(1000))
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        assert early.request("GET", "/").status == 200
        assert server.wait() == 0
        server.ended()


def connects(port: int) -> bool:
    """Whether a connection is made at once."""
    time.sleep(0.002)
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
    except TimeoutError:
        return False
    return True


def test_who_has_begun_is_waited_for(network: Network) -> None:
    with ExitStack() as stack:
        stack.enter_context(network["client"].inside())
        far = stack.enter_context(socket.socket())
        far.setblocking(False)
        stack.enter_context(network["server"].inside())
        sock = socket.create_server((network["server"].address, 0))
        sock.setblocking(False)
        listener = Listener(sock, ("", 0, 0, None))
        stack.callback(listener.release)
        address, port = sock.getsockname()
        far.connect_ex((address, port))
        # The socket that listens, and the one of the handshake.
        wait_for(lambda: table().count(f":{port:04X} ") == 2, "the first segment")
        turn_away([listener], patience=HANG)
        sock.accept()[0].close()


def table() -> str:
    """The connections of the network that this thread is in."""
    return Path("/proc/thread-self/net/tcp").read_text()
