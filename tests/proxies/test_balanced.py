"""The configurations `balanced` of proxy/: two servers behind each of the web servers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.programs import PROGRAMS
from tests.support.proxies import APP, Pair, Proxy, check_client, check_hints
from tests.testkit.client import chunked, receive, receive_until
from tests.testkit.server import Server, wait_for

#: More of them than a server can have requests in hand.
CROWD = 24

#: What asks for a WebSocket.
WEBSOCKET = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair(APP) as pair:
        yield pair


@pytest.fixture(scope="module", params=list(PROGRAMS))
def proxy(
    request: pytest.FixtureRequest, pair: Pair, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp(request.param)
    with Proxy(request.param, "balanced", folder, pair.ports) as proxy:
        yield proxy.wait_listening()


def test_pages(proxy: Proxy, pair: Pair) -> None:
    with proxy.connect() as connection:
        for path in ("/light", "/heavy"):
            direct = pair.servers[0].get(path)
            response = connection.request("GET", path)
            assert response.status == direct.status == 200
            assert len(response.body) == len(direct.body)
            assert response.get("Content-Type") == direct.get("Content-Type")
            head = connection.request("HEAD", path)
            assert (head.status, head.body) == (200, b"")
        assert connection.request("GET", "/nowhere").status == 404


def test_client_address(proxy: Proxy) -> None:
    check_client(proxy, proxy.port, "http")


# Uploads


def test_uploads(proxy: Proxy) -> None:
    with proxy.connect() as connection:
        for size in (0, 10, 5_000_000):
            body = (bytes(range(251)) * (size // 251 + 1))[:size]
            answer = connection.request("POST", "/echo", body=body).json()
            assert answer["body"].encode("latin-1") == body, size
        connection.send_request("POST", "/echo", "Transfer-Encoding: chunked")
        connection.send(chunked(*[b"hello"] * 1_000))
        assert connection.response().json()["body"] == "hello" * 1_000


# Caddy passes on what comes until it is too much.
@pytest.mark.parametrize("proxy", ["lighttpd", "nginx", "haproxy", "apache2"], indirect=True)
def test_what_is_too_large_is_refused_before_it_is_sent(proxy: Proxy) -> None:
    """The limit of each configuration is that of the server behind."""
    with proxy.connect() as connection:
        connection.send_request("POST", "/echo", f"Content-Length: {2**30 + 1}")
        assert connection.response().status == 413


# Slow clients


def others_are_answered(proxy: Proxy, pair: Pair) -> None:
    """Each of the servers answers others, and has nothing in hand."""
    for server in pair.servers:
        assert server.get("/light").status == 200
    with proxy.connect() as connection:
        for _ in range(10):
            assert connection.request("GET", "/light").status == 200


def test_slow_uploads_occupy_no_server(proxy: Proxy, pair: Pair) -> None:
    connections = [proxy.connect() for _ in range(CROWD)]
    for connection in connections:
        connection.send_request("POST", "/echo/slow", "Content-Length: 1000")
        connection.send(b"x" * 500)
    others_are_answered(proxy, pair)
    for connection in connections:
        connection.send_slowly(b"y" * 500)
        assert connection.response().json()["body"] == "x" * 500 + "y" * 500
        connection.close()


def test_slow_readers_occupy_no_server(proxy: Proxy, pair: Pair) -> None:
    size = 4_000_000
    connections = [proxy.connect() for _ in range(CROWD)]
    for connection in connections:
        connection.send_request("GET", f"/large?{size}")
    others_are_answered(proxy, pair)
    for connection in connections:
        assert len(connection.response().body) == size
        connection.close()


# Connections


def test_keep_alive(proxy: Proxy, pair: Pair) -> None:
    """Many requests on one connection, of which the servers hear on few, or on many."""
    name = proxy.program.name
    with proxy.connect() as one, proxy.connect() as two:
        for number in range(50):
            one.send_request("GET", f"/echo/{name}/{number}")
            two.send_request("GET", f"/echo/{name}/{number}")
            for connection in (one, two):
                environ = connection.response().json()["environ"]
                assert environ["PATH_INFO"] == f"/echo/{name}/{number}"
    count = pair.connections(f"/echo/{name}/", 100)
    # lighttpd uses none twice.
    assert (count == 100) if name == "lighttpd" else (count <= 8), count


def test_each_server_has_its_share(proxy: Proxy, pair: Pair, tmp_path: Path) -> None:
    """While one has a request in hand, the other is asked."""
    gate = tmp_path / "gate"

    def busy() -> list[Server]:
        return [server for server in pair.servers if f"entered {gate}\n" in server.log()]

    with proxy.connect() as one, proxy.connect() as two:
        one.send_request("GET", f"/wait?{gate}")
        wait_for(busy, "a request in hand")
        (other,) = set(pair.servers) - set(busy())
        for number in range(10):
            assert two.request("GET", f"/echo/share/{number}").status == 200
            assert f"/echo/share/{number}\n" in other.log()
        gate.touch()
        assert one.response().json() == "waited"


# Answers


def test_pieces_arrive_one_by_one(proxy: Proxy, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with proxy.connect() as connection:
        connection.send_request("GET", f"/pieces?{gate}")
        assert b"second\n" not in receive_until(connection, b"first\n")
        gate.touch()
        receive_until(connection, b"second\n")


def test_upgrade(proxy: Proxy) -> None:
    """The server is asked for a WebSocket, and for no other protocol; its answer comes back."""
    with proxy.connect() as connection:
        for protocol in ("websocket", "websocket", "h2c"):
            fields = (f"Upgrade: {protocol}", *WEBSOCKET[1:])
            environ = connection.request("GET", "/echo", *fields).json()["environ"]
            if protocol == "websocket":
                assert environ["HTTP_UPGRADE"] == "websocket"
                assert "upgrade" in environ["HTTP_CONNECTION"].lower()
                assert environ["HTTP_SEC_WEBSOCKET_KEY"] == "dGhlIHNhbXBsZSBub25jZQ=="
            else:
                assert "HTTP_UPGRADE" not in environ


@pytest.fixture(scope="module")
def tunnels() -> Iterator[tuple[int, int]]:
    target = "tcp:tests.apps.tunnel:handler"
    with Server(target) as first, Server(target) as second:
        yield first.port, second.port


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_follows_an_upgrade(name: str, tunnels: tuple[int, int], tmp_path: Path) -> None:
    """Octets go to and fro, as they come, until one end closes.

    What applications send over it stands in tests/modes/test_websocket_libraries.py.
    """
    with (
        Proxy(name, "balanced", tmp_path, tunnels) as proxy,
        proxy.wait_listening().connect() as connection,
    ):
        connection.send_request("GET", "/", *WEBSOCKET)
        assert connection.interim() == 101
        for number in (0, 1, 10, 1_000, 20_000):
            message = f"{number}\n".encode() * (1 + number)
            connection.send(message)
            assert receive(connection, len(message)) == message
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.at_end()


@pytest.mark.parametrize("name", ["nginx", "haproxy", "caddy"])
def test_early_hints(name: str, tmp_path: Path) -> None:
    """nginx before 1.29 takes a 103 for the final response (docs/guides/early-hints.md)."""
    options = ("--early-hints", "off") if name == "nginx" else ()
    with (
        Server("tests/apps/hinting.py", "threading", *options) as server,
        Proxy(name, "balanced", tmp_path, (server.port, server.port)) as proxy,
    ):
        check_hints(proxy.wait_listening(), passed=name != "nginx")
