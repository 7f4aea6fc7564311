"""Connections being established when a server stops: none is reset."""

from __future__ import annotations

import errno
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loadtests.network.hosts import Network
from poorhttp.net import handshakes
from poorhttp.net.handshakes import drain_handshakes
from poorhttp.net.listener import Listener
from tests.supervisor.stops import wait_end
from tests.support.network import hosts
from tests.testkit.client import HANG
from tests.testkit.process import children, stopped
from tests.testkit.server import ROOT, Server, wait_for

ECHO = str(ROOT / "tests/apps/echo.py")


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """A client far from the server: half a second for a handshake."""
    with hosts("client", "server") as network:
        network["client"].disturb(delay=0.1)
        yield network


def may_filter() -> bool:
    """Whether this user may attach a socket filter: some systems have that for root only."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        try:
            handshakes._drop_syn(sock)
        except PermissionError:
            return False
    return True


def test_who_comes_later_is_kept_out_and_who_waits_is_heard(mode: str) -> None:
    if not may_filter():
        pytest.skip("this user may not attach a socket filter")
    with Server(ECHO, mode) as server:
        with ExitStack() as stack:
            for pid in children(server.process.pid):
                stack.enter_context(stopped(pid))
            early = server.connect()
            server.process.terminate()
            # Few get in before that; the queue has room for 2,048.
            assert any(not connects(server.port) for _ in range(1000))
        assert early.request("GET", "/").status == 200
        wait_end(server)


def connects(port: int) -> bool:
    """Whether a connection is made at once."""
    time.sleep(0.002)
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_who_has_begun_is_waited_for(family: int, network: Network) -> None:
    """A client of IPv4, also at a socket of both families."""
    with ExitStack() as stack:
        stack.enter_context(network["client"].inside())
        far = stack.enter_context(socket.socket())
        far.setblocking(False)
        stack.enter_context(network["server"].inside())
        both = family == socket.AF_INET6
        sock = socket.create_server(("", 0), family=family, dualstack_ipv6=both)
        sock.setblocking(False)
        listener = Listener(sock, ("", 0, 0, None))
        stack.callback(listener.release)
        port = sock.getsockname()[1]
        far.connect_ex((network["server"].address, port))
        # The socket that listens, and the one of the handshake.
        wait_for(lambda: table().count(f":{port:04X} ") == 2, "the first segment")
        drain_handshakes([listener], timeout=HANG)
        sock.accept()[0].close()


def test_where_the_kernel_may_not_be_asked(mode: str) -> None:
    """It is said once, and who has begun is waited for all the same."""
    launcher = (sys.executable, "-m", "tests.support.without_netlink")
    with Server(ECHO, mode, launcher=launcher) as server:
        assert server.get("/").status == 200
        server.process.terminate()
        assert server.wait() == 0
        assert server.log().count("the kernel cannot be asked about connections") == 1
        assert "AF_NETLINK: Address family not supported by protocol" in server.log()
        server.ended()


def test_unknown_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a handshake takes; the last look is after that."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "refused")

    waited: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as sock, monkeypatch.context() as patch:
        patch.setattr("_socket.socket", refuse)
        patch.setattr(time, "monotonic", lambda: sum(waited))
        patch.setattr(time, "sleep", waited.append)
        drain_handshakes([Listener(sock, ("", 0, 0, None))])
    assert sum(waited) >= handshakes.TIMEOUT


def table() -> str:
    """The connections of the network that this thread is in."""
    return "".join(Path(f"/proc/thread-self/net/tcp{six}").read_text() for six in ("", "6"))
