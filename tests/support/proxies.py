"""Starts the web servers of proxy/ with their configurations, on other ports."""

from __future__ import annotations

import json
import socket
import ssl
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proxy.programs import PROGRAMS
from tests.packages import need
from tests.testkit.client import Connection
from tests.testkit.server import ROOT, Program, Server, wait_for

APP = "tests/apps/behind_proxy.py"


def reserve() -> socket.socket:
    """A socket with a port of its own, which only a server that sets SO_REUSEADDR can listen on."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


#: The beginning of a configuration of HAProxy.
HAPROXY = """
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
"""


def nginx_text(folder: Path, servers: Iterable[str]) -> str:
    """A configuration of nginx with these servers, whose files are in a folder."""
    parts = ("client_body", "proxy", "fastcgi", "scgi", "uwsgi")
    temporary = " ".join(f"{part}_temp_path {folder}/{part}-files;" for part in parts)
    return f"""
        daemon off; pid {folder}/nginx.pid; error_log stderr info; worker_processes 1;
        events {{ worker_connections 512; }}
        http {{
            access_log off; client_max_body_size 100m; {temporary}
            {" ".join(servers)}
        }}
    """


class WebServer(Program):
    """Another server as a program, at ports that nobody else is given until it ends."""

    def __init__(
        self,
        *words: str,
        reserved: Sequence[socket.socket],
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._reserved = reserved
        super().__init__(*words, cwd=cwd, env=env, merged=True)

    def __exit__(self, kind: object, *_: object) -> None:
        self.stop()

    def is_listening(self) -> bool:
        """Whether it does so at all of its ports."""
        assert self.process.poll() is None, self.log()
        try:
            for each in self._reserved:
                socket.create_connection(each.getsockname()).close()
        except ConnectionRefusedError:
            return False
        return True

    def stop(self) -> None:
        self.process.terminate()
        self.wait()
        self._close()

    def _close(self) -> None:
        super()._close()
        for each in self._reserved:
            each.close()


class Proxy(WebServer):
    """A proxy in a folder, in front of servers at `servers`: their ports, if they have some.

    What is at a Unix socket has it in the folder, before or after the proxy has been started.
    """

    def __init__(self, name: str, case: str, folder: Path, servers: Sequence[int] = ()) -> None:
        need(name, *(["openssl"] if case == "site" else []))
        self.program = PROGRAMS[name]
        self.folder = folder
        self.secure = case == "site"
        shipped = self.program.ports(case)
        ours, theirs = (shipped[:1], shipped[1:]) if servers else (shipped, [])
        reserved = [reserve() for _ in ours]
        self.ports: list[int] = [each.getsockname()[1] for each in reserved]
        self.port = self.ports[0]
        ports = zip([*ours, *theirs], [*self.ports, *servers], strict=True)
        self.program.prepare(case, folder, dict(ports))
        self._connections: list[Connection] = []
        super().__init__(
            *self.program.command(case, folder),
            reserved=reserved,
            cwd=folder,
            env=self.program.environment(folder),
        )

    def wait_listening(self) -> Proxy:
        wait_for(self.is_listening, f"{self.program.name} listening")
        return self

    def connect(self, port: int = 0) -> Connection:
        """A new connection, by TLS where it speaks that; closed at the end, if not before."""
        connection = Connection(("127.0.0.1", port or self.port))
        self._connections.append(connection)
        if self.secure:
            context = ssl.create_default_context(cafile=str(self.folder / "site.pem"))
            connection.socket = context.wrap_socket(connection.socket, server_hostname="localhost")
        return connection

    def echo(self, *headers: str, port: int = 0) -> dict[str, Any]:
        """What an application hears of a request, which is asked on a connection of its own."""
        with self.connect(port) as connection:
            environ: dict[str, Any] = connection.request("GET", "/echo", *headers).json()["environ"]
            return environ

    def _close(self) -> None:
        for connection in self._connections:
            connection.close()
        super()._close()


class Pair:
    """Two servers, each at a port that it keeps when it is started again."""

    def __init__(
        self, app: str, modes: tuple[str, str] = ("threading", "forking"), **more: Any
    ) -> None:
        self._app, self.modes, self._more = app, modes, more
        self._folder = tempfile.TemporaryDirectory()
        self.pidfiles = [Path(self._folder.name) / name for name in ("first", "second")]
        self._reserved = [reserve() for _ in range(2)]
        self.ports: list[int] = [reserved.getsockname()[1] for reserved in self._reserved]
        self.servers: list[Server] = []

    def __enter__(self) -> Pair:
        try:
            for number in range(2):
                self.servers.append(self.start(number))
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            for server in self.servers:
                server.__exit__(kind)
        finally:
            self.end()

    def start(self, number: int) -> Server:
        """Start one of them."""
        options = ["-c", str(ROOT / "proxy/balanced.ini"), "--pidfile", str(self.pidfiles[number])]
        return Server(
            self._app,
            self.modes[number],
            *options,
            *("--access-log", "-", "--access-log-format", "json"),
            bind=(f"127.0.0.1:{self.ports[number]}",),
            **self._more,
        )

    def restart(self, number: int) -> Server:
        """Start one of them again that has ended."""
        self.servers[number] = self.start(number)
        return self.servers[number]

    def end(self) -> None:
        """Give up the ports."""
        self._folder.cleanup()
        for reserved in self._reserved:
            reserved.close()

    def connections(self, begin: str, requests: int) -> int:
        """How many connections were opened for so many requests, whose targets begin so."""

        def logged() -> list[dict[str, Any]]:
            # Whole ones: another may just be written.
            texts = [server.output().rpartition("\n")[0] for server in self.servers]
            lines = [json.loads(line) for text in texts for line in text.splitlines()]
            # Of a request that was refused there is no target.
            return [line for line in lines if (line["target"] or "").startswith(begin)]

        wait_for(lambda: len(logged()) == requests, f"{requests} lines about {begin}")
        return sum(line["kept"] == 0 for line in logged())


# Who the client is

#: What a client may write, in the hope that somebody believes it.
FORGED = [
    "Forwarded: for=192.0.2.66;proto=gopher;host=forged.example",
    'forwarded: for="[2001:db8::66]:66"',
    "X-Forwarded-For: 192.0.2.66",
    "X-Forwarded-For: 127.0.0.1, 192.0.2.66, 127.0.0.1",
    "x-forwarded-for: 192.0.2.66:66",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Proto: http",
    "X-Forwarded-Host: forged.example",
    "X-Forwarded-Port: 66",
    "X-Forwarded-Prefix: /forged",
    "X_Forwarded_For: 192.0.2.66",
    "X_Forwarded_Proto: https",
    "X_Forwarded_Prefix: /forged",
    "Script-Name: /forged",
    "Remote-Addr: 192.0.2.66",
    "HTTPS: on",
]

#: Even where the addresses of clients are trusted, whatever for: with `balanced`, they are.
TRUST = ("--trusted-proxies", "unix", "--trusted-proxies", "127.0.0.1")

#: Signs of them in what an application hears.
SIGNS = ("192.0.2.66", "2001:db8", "forged", "gopher", "'66'")


def _heard(environ: dict[str, Any]) -> dict[str, Any]:
    """What an application is told of who asks, and how."""
    names = ("REMOTE_ADDR", "wsgi.url_scheme", "SERVER_NAME", "SERVER_PORT", "SCRIPT_NAME")
    forwarded = [name for name in environ if "FORWARDED" in name]
    return {name: environ.get(name) for name in (*names, "PATH_INFO", "HTTP_HOST", *forwarded)}


def check_client(proxy: Proxy, port: int, scheme: str) -> None:
    """The application hears the truth, whatever a client writes."""
    honest = _heard(proxy.echo(port=port))
    assert honest["REMOTE_ADDR"] == "127.0.0.1"
    assert honest["wsgi.url_scheme"] == scheme
    assert honest["SCRIPT_NAME"] == ""
    assert honest["PATH_INFO"] == "/echo"
    for field in [*FORGED, *(f"{field}\r\n{field}" for field in FORGED[:10])]:
        environ = proxy.echo(field, port=port)
        assert _heard(environ) == honest, field
        del environ["REMOTE_PORT"]
        if "FORWARDED" in field.upper():
            assert not [sign for sign in SIGNS if sign in str(environ)], field


def check_hints(proxy: Proxy, *, passed: bool) -> None:
    """Ask the application `hinting`; whether its early hints are `passed` to a client of HTTP/1."""
    with proxy.connect() as connection:
        for path in ("/one", "/started", "/late", "/none"):
            answer = connection.request("GET", path)
            assert (answer.status, answer.body) == (200, b"done")
            has_hints = passed and path in ("/one", "/started")
            assert answer.interim == ([103] if has_hints else [])
