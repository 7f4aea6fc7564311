"""The configurations `http2` of proxy/: HAProxy, Apache and Caddy speak HTTP/2 to our server.

nginx can from 1.29.4 on (`proxy_http_version 2`), which Debian does not have yet; lighttpd cannot.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.programs import PROGRAMS
from tests.packages import need
from tests.support.load import Load
from tests.support.proxies import APP, HAPROXY, Proxy, WebServer, check_client, check_hints, reserve
from tests.testkit.client import Connection, chunked, receive_until
from tests.testkit.server import Server, wait_for
from tests.testkit.versions import Versions

NAMES = [name for name, program in PROGRAMS.items() if "http2" in program.cases()]
CONFIG = ("-c", "proxy/http2.ini")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(APP, "threading", *CONFIG, "--early-hints=on") as server:
        yield server


@pytest.fixture(scope="module", params=NAMES)
def proxy(
    request: pytest.FixtureRequest, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    with Proxy(
        request.param, "http2", tmp_path_factory.mktemp(request.param), (server.port,)
    ) as proxy:
        yield proxy.wait_listening()


def test_requests(proxy: Proxy, server: Server) -> None:
    with proxy.connect() as connection:
        for path in ("/light", "/heavy"):
            direct, response = server.get(path), connection.request("GET", path)
            # The heavy page has digests of the time.
            times = rb"\d\d:\d\d:\d\d|[0-9a-f]{32,}"
            bodies = [re.sub(times, b"a time", got.body) for got in (response, direct)]
            assert (response.status, bodies[0]) == (200, bodies[1])
            head = connection.request("HEAD", path)
            assert (head.status, head.body) == (200, b"")
        assert connection.request("GET", "/nowhere").status == 404
        for size in (0, 10, 1_000_000):
            body = (bytes(range(251)) * (size // 251 + 1))[:size]
            answer = connection.request("POST", "/echo/p%C3%A9?q=%20", body=body).json()
            assert answer["body"].encode("latin-1") == body
            assert answer["environ"]["SERVER_PROTOCOL"] == "HTTP/2"
            assert answer["environ"]["PATH_INFO"].encode("latin-1").decode() == "/echo/pé"
            assert answer["environ"]["QUERY_STRING"] == "q=%20"
        connection.send_request("POST", "/echo", "Transfer-Encoding: chunked")
        connection.send(chunked(*[b"hello"] * 1_000))
        assert connection.response().json()["body"] == "hello" * 1_000


def test_client_address(proxy: Proxy) -> None:
    check_client(proxy, proxy.port, "http")


def test_a_streamed_response(proxy: Proxy, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with proxy.connect() as connection:
        connection.send_request("GET", f"/pieces?{gate}")
        assert b"second\n" not in receive_until(connection, b"first\n")
        gate.touch()
        receive_until(connection, b"second\n")


def test_requests_beside_each_other(proxy: Proxy, server: Server, tmp_path: Path) -> None:
    gates = [tmp_path / f"{proxy.program.name}{number}" for number in range(5)]
    connections = [proxy.connect() for _ in gates]
    for gate, connection in zip(gates, connections, strict=True):
        connection.send_request("GET", f"/wait?{gate}")
    for gate in gates:
        server.wait_log(f"entered {gate}\n")
    for gate, connection in reversed([*zip(gates, connections, strict=True)]):
        gate.touch()
        assert connection.response().json() == "waited"
        connection.close()


@pytest.mark.parametrize("name", NAMES)
def test_early_hints(name: str, tmp_path: Path) -> None:
    with (
        Server("tests/apps/hinting.py", "threading", *CONFIG, "--early-hints=on") as server,
        Proxy(name, "http2", tmp_path, (server.port,)) as proxy,
    ):
        # Apache has none for clients of HTTP/1.
        check_hints(proxy.wait_listening(), passed=name != "apache2")


# Reloads and health checks


@pytest.mark.parametrize("name", NAMES)
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
        Server(APP, "threading", *CONFIG, "--drain-delay=600") as server,
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


# The PROXY protocol

PROXIED = """{defaults}
frontend all
    bind 127.0.0.1:{port}
    default_backend server
backend server
    http-reuse always
    server only 127.0.0.1:{behind} proto h2 send-proxy-v2
"""


def test_the_proxy_protocol_before_http2(tmp_path: Path) -> None:
    """HAProxy has a connection for each client address."""
    need("haproxy")
    config = tmp_path / "haproxy.cfg"
    options = ("--trusted-proxies=127.0.0.1", "--proxy-protocol=on")
    with reserve() as reserved, Server(APP, "threading", *options) as server:
        port: int = reserved.getsockname()[1]
        config.write_text(PROXIED.format(defaults=HAPROXY, port=port, behind=server.port))
        words = (PROGRAMS["haproxy"].path(), "-db", "-f", str(config))
        with WebServer(*words, reserved=[reserved]) as haproxy:
            wait_for(haproxy.is_listening, "HAProxy")
            for source in ("127.0.0.2", "127.0.0.3", "127.0.0.2"):
                with Connection(("127.0.0.1", port), source) as connection:
                    for _ in range(3):
                        field = "X-Forwarded-For: 192.0.2.66"
                        environ = connection.request("GET", "/echo", field).json()["environ"]
                        assert environ["SERVER_PROTOCOL"] == "HTTP/2"
                        assert environ["REMOTE_ADDR"] == source
