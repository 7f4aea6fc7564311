"""A server behind a proxy is reloaded, replaced, stopped or killed, under load."""

from __future__ import annotations

import csv
import io
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxy.programs import PROGRAMS
from tests.packages import need
from tests.support.binary_upgrade import end, upgrade
from tests.support.load import Load
from tests.support.proxies import APP as GATES
from tests.support.proxies import HAPROXY, Pair, Proxy, WebServer, reserve
from tests.testkit.client import Connection, receive_until
from tests.testkit.process import children
from tests.testkit.server import ROOT, Server, wait_for
from tests.testkit.versions import APP, Versions

NAMES = ["lighttpd", "nginx", "haproxy"]
#: nginx speaks it from 1.29.4 on, which Debian does not have yet; lighttpd does not.
HTTP2 = [name for name, program in PROGRAMS.items() if "http2" in program.cases()]
CONFIG = ("-c", "proxy/http2.ini")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Each test leaves both servers running."""
    versions = Versions(tmp_path_factory.mktemp("versions"))
    with Pair(APP, env={"VERSION_FILE": str(versions.path)}) as pair:
        yield pair


@pytest.fixture(scope="module", params=NAMES)
def proxy(
    request: pytest.FixtureRequest, pair: Pair, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("proxy") / "proxy"
    with Proxy(request.param, "balanced", folder, pair.ports) as proxy:
        yield proxy.wait_listening()


def test_stopped_and_started_again(proxy: Proxy, pair: Pair) -> None:
    """Each in turn: its requests are finished, and others go to the other one."""
    with Load(proxy.port, clients=4) as load:
        for number in (0, 1):
            load.wait_more(20)
            pair.servers[number].stop()
            load.wait_more(20)
            server = pair.restart(number)
            pids = children(server.process.pid)
            # lighttpd may leave it alone again for a request that was refused just before.
            wait_for(lambda: sum(load.pids[pid] for pid in pids) >= 20, "its answers")  # noqa: B023
    load.check()


@pytest.mark.parametrize("name", NAMES)
def test_replaced_on_the_same_sockets(name: str, tmp_path: Path) -> None:
    """By a reload and by a binary upgrade: no request of a kept connection is lost."""
    versions, pidfile = Versions(tmp_path), tmp_path / "pid"
    options = ("-c", str(ROOT / "proxy/balanced.ini"), "--pidfile", str(pidfile))
    with versions.serve("threading", *options) as server:
        # Nobody stands in for it.
        ports = [server.port] * 2
        with Proxy(name, "balanced", tmp_path / "proxy", ports) as proxy:
            proxy.wait_listening()
            with Load(proxy.port, clients=4) as load:
                load.wait_version("1")
                versions.set("2")
                server.process.send_signal(signal.SIGHUP)
                load.wait_version("2")
                versions.set("3")
                pid = upgrade(server, pidfile)
                load.wait_version("3")
                load.wait_more(20)
            load.check()
        end(server, pid)


@pytest.mark.parametrize("name", ["apache2", "caddy"])
def test_stopped_behind_the_others(name: str, pair: Pair, tmp_path: Path) -> None:
    """Whoever comes then is answered by the other one."""
    with (
        Proxy(name, "balanced", tmp_path / "proxy", pair.ports) as proxy,
        proxy.wait_listening().connect() as client,
    ):
        assert client.request("GET", "/").status == 200
        pair.servers[0].stop()
        for _ in range(20):
            assert client.request("GET", "/").status == 200
        pair.restart(0)


@contextmanager
def in_hand(
    name: str, folder: Path, methods: dict[Path, str]
) -> Iterator[tuple[Proxy, Server, Server, dict[Path, Connection]]]:
    """Two servers with requests by these methods, each of which waits for its file."""
    with (
        Pair(GATES, ("threading", "threading")) as pair,
        Proxy(name, "balanced", folder, pair.ports) as proxy,
    ):
        proxy.wait_listening()
        connections = {gate: proxy.connect() for gate in methods}
        for gate, method in methods.items():
            body = b"body" if method == "POST" else None
            connections[gate].send_request(method, f"/wait?{gate}", body=body)
        first, second = pair.servers
        wait_for(
            lambda: (first.log() + second.log()).count("entered") == len(methods),
            "all requests in hand",
        )
        yield proxy, first, second, connections


@pytest.mark.parametrize("name", NAMES)
def test_what_a_killed_server_has_in_hand(name: str, tmp_path: Path) -> None:
    """The other one is asked, if the method is idempotent; what that has in hand is not touched."""
    methods = {
        tmp_path / f"{method}{number}": method for method in ("GET", "POST") for number in range(4)
    }

    def entered(server: Server) -> set[Path]:
        return {gate for gate in methods if f"entered {gate}\n" in server.log()}

    with in_hand(name, tmp_path / "proxy", methods) as (_, first, second, connections):
        lost = entered(first)
        assert 0 < len(lost) < 8
        first.kill()
        again = {gate for gate in lost if methods[gate] == "GET" and name != "lighttpd"}
        wait_for(lambda: again <= entered(second), "those that are sent again")
        for gate, connection in connections.items():
            gate.touch()
            expected = (500 if name == "lighttpd" else 502) if gate in lost - again else 200
            assert connection.response().status == expected, gate.name
        assert not (lost - again) & entered(second)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_stopped_server_has_in_hand(name: str, tmp_path: Path) -> None:
    """It is finished, and nothing new is begun there; an answer that is cut is seen by a client."""
    methods = {tmp_path / f"gate{number}": "POST" for number in range(8)}
    with in_hand(name, tmp_path / "proxy", methods) as (proxy, first, second, connections):
        first.process.send_signal(signal.SIGTERM)
        with proxy.connect() as connection:
            for _ in range(50):
                assert connection.request("POST", "/echo", body=b"body").status == 200
        for gate, connection in connections.items():
            gate.touch()
            assert connection.response().json() == "waited"
        assert first.wait() == 0
        first.ended()
        with proxy.connect() as connection:
            connection.send_request("GET", f"/pieces?{tmp_path}/gate")
            receive_until(connection, b"first\n")
            second.kill()
            assert not connection.rest().endswith(b"0\r\n\r\n")


# Behind the configurations `http2`


@pytest.mark.parametrize("name", HTTP2)
def test_reloads_lose_nothing(name: str, versions: Versions, tmp_path: Path) -> None:
    with (
        versions.serve("threading", *CONFIG, "--workers=2") as server,
        Proxy(name, "http2", tmp_path / "proxy", (server.port,)) as proxy,
    ):
        proxy.wait_listening()
        with Load(proxy.port, clients=4) as load:
            for number in range(2, 6):
                load.wait_more(20)
                versions.set(str(number))
                server.process.send_signal(signal.SIGHUP)
                load.wait_version(str(number))
        # If GOAWAY comes just before a stream begins, the transport of Caddy closes the body, and
        # then wants to send it.
        closed = proxy.log().count("http: invalid Read on closed Body")
        assert len(load.faults) == closed, load.faults[:10]
        assert all(fault.startswith("POST") and "502" in fault for fault in load.faults)
        assert closed == 0 or name == "caddy"


@pytest.mark.parametrize("name", ["haproxy", "caddy"])
def test_health_checks(name: str, tmp_path: Path) -> None:
    """A server that is about to stop says so, and gets no requests any more."""
    with (
        Server(GATES, "threading", *CONFIG, "--drain-delay=600") as server,
        Proxy(name, "http2", tmp_path / "proxy", (server.port,)) as proxy,
        proxy.wait_listening().connect() as connection,
    ):
        assert connection.request("GET", "/light").status == 200
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: connection.request("GET", "/light").status == 503, "503 of the proxy")
        assert server.get("/light").status == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        server.ended()


# HAProxy takes out a server that says that it stops

#: The health path, and what decides: a server is taken out by its second refusal in a row.
DRAINING = """
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
        config.write_text(DRAINING.format(**places, one=one, two=two))
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
        with Connection(self._stats) as asking:
            asking.send(b"show stat\n")
            text = asking.rest().decode()
        rows = csv.DictReader(io.StringIO(text.removeprefix("# ")))
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
