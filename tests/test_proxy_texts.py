"""The configurations of Caddy and Apache: read by their programs, and tried in short."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proxies import APP, Pair, Proxy


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair(APP) as pair:
        yield pair


@pytest.fixture(scope="module", params=["apache2", "caddy"])
def proxy(
    request: pytest.FixtureRequest, pair: Pair, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp(request.param)
    with Proxy(request.param, "balanced", folder, pair.ports) as proxy:
        yield proxy.wait()


def test_pages(proxy: Proxy) -> None:
    with proxy.connect() as connection:
        for path in ("/light", "/heavy"):
            assert connection.request("GET", path).status == 200
            head = connection.request("HEAD", path)
            assert (head.status, head.body) == (200, b"")


def test_uploads(proxy: Proxy) -> None:
    with proxy.connect() as connection:
        for size in (0, 3_000_000):
            answer = connection.request("POST", "/echo", body=b"x" * size).json()
            assert answer["body"] == "x" * size


def test_pieces_arrive_one_by_one(proxy: Proxy, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with proxy.connect() as connection:
        connection.send_request("GET", f"/pieces?{gate}")
        received = b""
        for piece in (b"first\n", b"second\n"):
            while piece not in received:
                received += connection.socket.recv(65536)
            gate.touch()


def test_keep_alive(proxy: Proxy, pair: Pair) -> None:
    begin = f"/echo/{proxy.program.name}/"
    with proxy.connect() as connection:
        for number in range(50):
            assert connection.request("GET", f"{begin}{number}").status == 200
    assert pair.connections(begin, 50) <= 8


def test_upgrade(proxy: Proxy) -> None:
    wanted = ("Upgrade: websocket", "Connection: Upgrade")
    with proxy.connect() as connection:
        environ = connection.request("GET", "/echo", *wanted).json()["environ"]
        assert environ["HTTP_UPGRADE"] == "websocket"


def test_one_server_stops(proxy: Proxy, pair: Pair) -> None:
    pair.servers[0].stop()
    with proxy.connect() as connection:
        for _ in range(20):
            assert connection.request("GET", "/light").status == 200
    pair.restart(0)
