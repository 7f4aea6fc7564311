"""The configurations of proxy/, run as they are but for their ports, in front of two servers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.client import Connection
from tests.server import ROOT, Server, wait_for, written

#: Debian keeps servers where only root looks for programs.
SEARCH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"

#: The ports that each configuration names, once each.
PROXY, FIRST, SECOND = "8000", "8080", "8081"


def lighttpd(program: str, config: Path) -> list[str]:
    return [program, "-D", "-f", str(config)]


def nginx(program: str, config: Path) -> list[str]:
    command = [program, "-e", "stderr", "-p", str(config.parent), "-c", str(config)]
    if os.geteuid() == 0:
        # Else it becomes another user, who may not write to our temporary folder.
        command += ["-g", "user root;"]
    return command


COMMANDS: dict[str, Callable[[str, Path], list[str]]] = {"lighttpd": lighttpd, "nginx": nginx}


def reserve() -> socket.socket:
    """A socket with a port of its own, which only a server that sets SO_REUSEADDR can listen on."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


class Proxy:
    """A proxy with the shipped configuration, in front of `servers`."""

    def __init__(self, name: str, folder: Path, servers: tuple[Server, Server]) -> None:
        program = shutil.which(name, path=SEARCH)
        assert program, f"{name} is not installed: apt install lighttpd nginx-light"
        # Kept until the proxy ends: nobody else is given the port meanwhile.
        self.reserved = reserve()
        self.port: int = self.reserved.getsockname()[1]
        text = (ROOT / "proxy" / f"{name}.conf").read_text()
        ports = {PROXY: self.port, FIRST: servers[0].port, SECOND: servers[1].port}
        for shipped, ours in ports.items():
            places = [line for line in text.splitlines() if shipped in line.partition("#")[0]]
            assert len(places) == 1, f"{name}.conf names port {shipped} in {places}"
            text = text.replace(shipped, str(ours))
        config = folder / f"{name}.conf"
        config.write_text(text)
        self.log = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            COMMANDS[name](program, config),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            cwd=ROOT,
        )

    def text(self) -> str:
        """What it has said."""
        return written(self.log)

    def is_listening(self) -> bool:
        assert self.process.poll() is None, self.text()
        try:
            self.connect().close()
        except ConnectionRefusedError:
            return False
        return True

    def connect(self) -> Connection:
        """A new connection to the proxy."""
        return Connection(("127.0.0.1", self.port))

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
        self.log.close()
        self.reserved.close()


APP = "tests/apps/behind_proxy.py"


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server]]:
    """Two servers, of two modes."""
    with Server(APP, "threading") as first, Server(APP, "forking") as second:
        yield first, second


@pytest.fixture(scope="module", params=list(COMMANDS))
def proxy(
    request: pytest.FixtureRequest,
    servers: tuple[Server, Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    proxy = Proxy(request.param, tmp_path_factory.mktemp(request.param), servers)
    try:
        wait_for(proxy.is_listening, f"{request.param} listening")
        yield proxy
    finally:
        proxy.stop()


@pytest.mark.parametrize("path", ["/light", "/heavy"])
def test_pages(proxy: Proxy, servers: tuple[Server, Server], path: str) -> None:
    direct = servers[0].get(path)
    assert direct.status == 200
    with proxy.connect() as connection:
        response = connection.request("GET", path)
        assert (response.status, len(response.body)) == (200, len(direct.body))
        assert response.get("Content-Type") == direct.get("Content-Type")
        head = connection.request("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert connection.request("GET", "/nowhere").status == 404


@pytest.mark.parametrize("size", [0, 10, 5_000_000])
def test_upload(proxy: Proxy, size: int) -> None:
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    with proxy.connect() as connection:
        answer = connection.request("POST", "/echo", body=body).json()
    assert answer["body"].encode("latin-1") == body


def test_chunked_upload(proxy: Proxy) -> None:
    with proxy.connect() as connection:
        connection.send_request("POST", "/echo", "Transfer-Encoding: chunked")
        connection.send(b"5\r\nhello\r\n" * 1_000 + b"0\r\n\r\n")
        assert connection.response().json()["body"] == "hello" * 1_000


def test_keep_alive(proxy: Proxy) -> None:
    """Many requests on one connection."""
    with proxy.connect() as one, proxy.connect() as two:
        for number in range(50):
            one.send_request("GET", f"/echo/{number}")
            two.send_request("GET", f"/echo/{number}")
            for connection in (one, two):
                environ = connection.response().json()["environ"]
                assert environ["PATH_INFO"] == f"/echo/{number}"


def test_each_server_has_its_share(
    proxy: Proxy, servers: tuple[Server, Server], tmp_path: Path
) -> None:
    """While one has a request in hand, the other is asked."""
    gate = tmp_path / "gate"

    def busy() -> list[Server]:
        return [server for server in servers if f"entered {gate}\n" in server.log()]

    with proxy.connect() as one, proxy.connect() as two:
        one.send_request("GET", f"/wait?{gate}")
        wait_for(busy, "a request in hand")
        (other,) = set(servers) - set(busy())
        for _ in range(10):
            environ = two.request("GET", "/echo").json()["environ"]
            assert environ["SERVER_PORT"] == str(other.port)
        gate.touch()
        assert one.response().json() == "waited"


def test_the_client_is_named(proxy: Proxy) -> None:
    with proxy.connect() as connection:
        environ = connection.request("GET", "/echo").json()["environ"]
    assert environ["HTTP_X_FORWARDED_FOR"] == "127.0.0.1"
    assert environ["HTTP_X_FORWARDED_PROTO"] == "http"


def test_one_server_stops(tmp_path: Path) -> None:
    """The proxies go on with the other one."""
    with Server(APP, "threading") as second:
        first = Server(APP, "threading")
        proxies = []
        try:
            for name in COMMANDS:
                (tmp_path / name).mkdir()
                proxies.append(Proxy(name, tmp_path / name, (first, second)))
                wait_for(proxies[-1].is_listening, f"{name} listening")
            first.stop()
            for proxy in proxies:
                with proxy.connect() as connection:
                    for _ in range(10):
                        assert connection.request("GET", "/light").status == 200
        finally:
            for proxy in proxies:
                proxy.stop()
