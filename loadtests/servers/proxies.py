"""Servers behind a proxy: started together, sampled separately, stopped together.

In the files of a proxy $first and $second stand for the ports of the servers behind it, and ADDRESS
for where the only one listens; $port, $folder and the like for what they do in commands.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from loadtests.measure import resources
from loadtests.servers.application import Application
from loadtests.servers.registry import content
from loadtests.servers.registry.commands import LOOPBACK, UWSGI, configured, ours
from loadtests.servers.registry.proxied import shipped
from loadtests.servers.registry.server import Server
from loadtests.servers.running import Running

THREADS, PROCESSES = 8, 2
THREADING, FORKING = f"threading --threads {THREADS}", f"forking --workers {PROCESSES}"
PROXIES = ("lighttpd", "nginx", "HAProxy")
UNIX = " (Unix)"
"""End of the name of a setup whose server listens at a Unix socket."""
KEPT = "http, kept"
"""The protocol, where nginx keeps connections to the server."""
_SOCKET = "{folder}/socket"


@dataclass(frozen=True)
class Setup(Server):
    """Servers behind a proxy, or one that stands alone: all of it as one server.

    With `mute` servers nobody can speak but through the proxy. `against` names the setup that this
    one is compared with.
    """

    servers: tuple[Server, ...] = ()
    proxy: Server | None = None
    mute: bool = False
    against: str = ""


def _setup(name: str, servers: Sequence[Server], proxy: Server | None = None, **more: Any) -> Setup:
    parts = [*servers, *([proxy] if proxy else [])]
    return Setup(
        name,
        "",
        " & ".join(part.command for part in parts),
        servers[0].package,
        programs=tuple(program for part in parts for program in part.programs),
        servers=tuple(servers),
        proxy=proxy,
        **more,
    )


class Mute(Running):
    """A server that speaks with a proxy only: ready when it listens."""

    def is_ready(self) -> bool:
        """Whether it listens. What it answers is looked at through the proxy."""
        unix = _SOCKET in self.server.command
        with socket.socket(socket.AF_UNIX if unix else socket.AF_INET) as probe:
            path, address = str(self.folder / "socket"), ("127.0.0.1", self.port)
            return probe.connect_ex(path if unix else address) == 0


@dataclass(frozen=True)
class Chain:
    """A setup that runs. What looks at it raises ServerFailure if a part of it has died."""

    setup: Setup
    servers: Sequence[Running]
    proxy: Running | None

    @property
    def front(self) -> Running:
        """The server that clients connect to: the proxy if there is one."""
        return self.proxy or self.servers[0]

    def processes(self) -> list[int]:
        parts = [*self.servers, *([self.proxy] if self.proxy else [])]
        return [process for part in parts for process in part.processes()]

    def spent(self) -> tuple[float, float]:
        """Seconds of CPU time so far, of the servers and of the proxy."""
        servers = sum(resources.cpu_seconds(server.processes()) for server in self.servers)
        return servers, resources.cpu_seconds(self.proxy.processes()) if self.proxy else 0.0


@contextmanager
def running(
    setup: Setup, application: Application, target: str, core: int | None
) -> Iterator[Chain]:
    """All of a setup on `core`, when a GET of `target` is answered rightly.

    By all servers and by the proxy; where servers are mute by the proxy.
    """
    with ExitStack() as stack:

        def start(kind: type[Running], server: Server) -> Running:
            return stack.enter_context(kind(server, application, target=target, core=core))

        servers = [start(Mute if setup.mute else Running, one) for one in setup.servers]
        proxy = start(Running, _told(setup.proxy, servers)) if setup.proxy else None
        yield Chain(setup, servers, proxy)


def _told(proxy: Server, servers: Sequence[Running]) -> Server:
    """The proxy with the places of the servers in its files."""
    first = servers[0]
    unix = _SOCKET in first.server.command
    address = f"unix:{first.folder}/socket" if unix else f"127.0.0.1:{first.port}"
    places = {"ADDRESS": address, "$first": first.port, "$second": servers[-1].port}
    files = dict(proxy.files)
    for word, place in places.items():
        files = {name: text.replace(word, str(place)) for name, text in files.items()}
    return replace(proxy, files=tuple(files.items()))


def studied() -> list[Setup]:
    """As in the study: ours alone, then one and two of `single` behind each proxy."""
    table = "dispatch:{root}"
    alone = {mode.split()[0]: mode for mode in ("single", FORKING, THREADING)}
    # HAProxy asks servers how they are.
    server = ours("single", "", "single", table, "--trusted-proxies 127.0.0.1 --health /-")
    return [
        *(_setup(name.capitalize(), [ours(name, "", alone[name], table)]) for name in alone),
        *(
            _setup(f"{name} + {words}", [server] * count, shipped(name, count), against="Single")
            for name in PROXIES
            for count, words in ((1, "Single"), (2, "2 × Single"))
        ),
    ]


# What Debian's files of these names have; SCGI wants the length first.
_VARIABLES = (
    *("content_length", "query_string", "request_method", "content_type", "request_uri"),
    *("path_info", "document_root", "server_protocol", "request_scheme", "remote_addr"),
    *("remote_port", "server_port", "server_name"),
)
_CALLED = {"path_info": "document_uri", "request_scheme": "scheme"}
"""Those variables that have another name in nginx."""


def _passing(protocol: str) -> list[str]:
    """Directives of nginx for a gateway protocol with the usual variables, or for HTTP."""
    if protocol in ("http", KEPT):
        kept = ["proxy_http_version 1.1", 'proxy_set_header Connection ""']
        return [
            "proxy_pass http://application",
            *(kept if protocol == KEPT else ()),
            "proxy_set_header Host $http_host",
        ]
    return [
        f"{protocol}_pass application",
        *(["fastcgi_keep_conn on"] if protocol == "fastcgi" else ()),
        *(f"{protocol}_param {one.upper()} ${_CALLED.get(one, one)}" for one in _VARIABLES),
        *(["scgi_param SCGI 1"] if protocol == "scgi" else ()),
    ]


def nginx(protocol: str) -> Server:
    """nginx before one server that speaks this protocol."""
    kept = "\n        keepalive 64;\n        keepalive_requests 1000000000;"
    lines = "\n".join(f"            {line};" for line in _passing(protocol)).replace("$", "$$")
    keeping = kept if protocol in (KEPT, "fastcgi") else ""
    return content.nginx("nginx", "", configured("nginx/gateway.conf", KEEPING=keeping, PASS=lines))


def _uwsgi(name: str, options: str, unix: bool) -> Setup:
    command = (
        f"{UWSGI} --socket {_SOCKET if unix else LOOPBACK} --listen {{backlog}} --strict --master "
        "--need-app --single-interpreter --die-on-term --disable-logging --pythonpath . "
        f"--module {{module}}:{{callable}} {options}"
    )
    server = Server(f"uWSGI {name}{UNIX if unix else ''}", "", command.strip(), "uWSGI")
    return _setup(server.name, [server], nginx("uwsgi"), mute=True)


def _ours(mode: str, options: str, protocol: str, peer: str, unix: bool = False) -> Setup:
    scheme = "" if protocol in ("http", KEPT) else f"{protocol}+" if unix else f"{protocol}://"
    address = scheme + (f"unix:{_SOCKET}" if unix else LOOPBACK)
    trusting = "--trusted-proxies 127.0.0.1 --trusted-proxies unix"
    server = ours(mode, "", options, options=trusting, bind=address)
    words = {"http": "HTTP (closed)", KEPT: "HTTP (kept)"}.get(protocol, protocol)
    where = UNIX if unix else ""
    name = f"{server.name} by {words}{where}"
    return _setup(name, [server], nginx(protocol), mute=True, against=f"uWSGI {peer}{where}")


def _gateways() -> Iterator[Setup]:
    for mode, options, peer, peer_options in (
        ("single", "single", "1 process", ""),
        (f"threading {THREADS}", THREADING, f"{THREADS} threads", f"--threads {THREADS}"),
        (f"forking {PROCESSES}", FORKING, f"{PROCESSES} processes", f"--processes {PROCESSES}"),
    ):
        # One mode with all that there is, the others with what is recommended.
        everything = mode == "single"
        sockets = (False, True) if everything else (False,)
        yield from (_ours(mode, options, "uwsgi", peer, unix) for unix in sockets)
        for protocol in (KEPT, "http", "scgi", "fastcgi") if everything else (KEPT,):
            yield _ours(mode, options, protocol, peer)
        yield from (_uwsgi(peer, peer_options, unix) for unix in sockets)


GATEWAYS: Sequence[Setup] = tuple(_gateways())
