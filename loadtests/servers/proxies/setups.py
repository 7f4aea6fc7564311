"""Pairs of proxy and server, and how both are started.

In the files of a proxy FIRST and SECOND stand for the ports of the servers behind it, and ADDRESS
for where the only one listens; $port, $folder and the like for what they do in commands.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadtests.errors import LabError
from loadtests.servers.nginx import configuration
from loadtests.servers.registry.commands import LOOPBACK, UWSGI, ours
from loadtests.servers.registry.proxied import shipped_files
from loadtests.servers.registry.server import Server

THREADS, PROCESSES = 8, 2
CONNECTIONS = 2048
UNIX = " (Unix)"
"""End of the name of a pair whose server listens at a Unix socket."""
KEPT = "http, kept"
"""The protocol, where nginx keeps connections to the server."""

# nginx gives up root's rights otherwise, and may not write into the folder any more.
_NGINX = "{nginx} -e stderr -p {folder} -c {folder}/balanced.conf" + (
    " -g user~root;" if os.geteuid() == 0 else ""
)
PROXIES: dict[str, Server] = {
    "lighttpd": Server(
        "lighttpd", "", "{lighttpd} -D -f {folder}/balanced.conf", programs=("lighttpd",)
    ),
    "nginx": Server("nginx", "", _NGINX, programs=("nginx",)),
    "HAProxy": Server(
        "HAProxy",
        "",
        "{haproxy} -db -f {folder}/common.cfg -f {folder}/balanced.cfg",
        programs=("haproxy",),
    ),
}


@dataclass(frozen=True)
class Setup:
    """Servers behind a proxy, or one that stands alone.

    With `mute` servers nobody can speak but through the proxy. `against` names the setup that this
    one is compared with.
    """

    name: str
    servers: tuple[Server, ...]
    proxy: Server | None = None
    mute: bool = False
    against: str = ""

    def whole(self) -> Server:
        """All of it as one, for those who have to know what takes part."""
        first = self.servers[0]
        parts = [*self.servers, *([self.proxy] if self.proxy else [])]
        return replace(
            first,
            name=self.name,
            command=" & ".join(part.command for part in parts),
            programs=tuple(program for part in parts for program in part.programs),
        )


def shipped(name: str, servers: int) -> Server:
    """A proxy with the configuration of `proxy/`, before one server or two."""
    texts = dict(shipped_files(name.lower(), servers))
    if not any(file.startswith("balanced.") for file in texts):
        raise LabError(f"proxy/{name.lower()} has no balanced.* configuration")
    return replace(PROXIES[name], files=tuple(texts.items()))


_UNIX = "unix:{folder}/socket"
_TRUSTING = "--trusted-proxies 127.0.0.1 --trusted-proxies unix"


def studied() -> list[Setup]:
    """As in the study: ours alone, then one and two of `single` behind each proxy.

    Raises LabError if a shipped configuration is missing.
    """
    table = "dispatch:{root}"
    alone = [
        Setup(name.capitalize(), (ours(name, "", mode, table),))
        for name, mode in (
            ("single", "single"),
            ("forking", f"forking --workers {PROCESSES}"),
            ("threading", f"threading --threads {THREADS}"),
        )
    ]
    # HAProxy asks servers how they are.
    server = ours("single", "", "single", table, "--trusted-proxies 127.0.0.1 --health /-")
    return alone + [
        Setup(f"{name} + {words}", (server,) * count, shipped(name, count), against="Single")
        for name in PROXIES
        for count, words in ((1, "Single"), (2, "2 × Single"))
    ]


_GATEWAY = configuration(
    CONNECTIONS,
    """\
    upstream application {
        server ADDRESS;KEEPING
    }
    server {
        listen 127.0.0.1:$port backlog=$backlog;
        location / {
PASS
        }
    }
""",
)
_KEEPING = "\n        keepalive 64;\n        keepalive_requests 1000000000;"
# What Debian's files of these names have; SCGI wants the length first.
VARIABLES = {
    "CONTENT_LENGTH": "content_length",
    "QUERY_STRING": "query_string",
    "REQUEST_METHOD": "request_method",
    "CONTENT_TYPE": "content_type",
    "REQUEST_URI": "request_uri",
    "PATH_INFO": "document_uri",
    "DOCUMENT_ROOT": "document_root",
    "SERVER_PROTOCOL": "server_protocol",
    "REQUEST_SCHEME": "scheme",
    "REMOTE_ADDR": "remote_addr",
    "REMOTE_PORT": "remote_port",
    "SERVER_PORT": "server_port",
    "SERVER_NAME": "server_name",
}


def _passing(protocol: str) -> str:
    """Directives of nginx for a gateway protocol with the usual variables, or for HTTP."""
    if protocol == "http":
        words = ["proxy_pass http://application", "proxy_set_header Host $http_host"]
    elif protocol == KEPT:
        words = ["proxy_pass http://application", "proxy_http_version 1.1"]
        words += ['proxy_set_header Connection ""', "proxy_set_header Host $http_host"]
    else:
        words = [f"{protocol}_pass application"]
        words += ["fastcgi_keep_conn on"] if protocol == "fastcgi" else []
        words += [f"{protocol}_param {name} ${one}" for name, one in VARIABLES.items()]
        words += ["scgi_param SCGI 1"] if protocol == "scgi" else []
    return "\n".join(f"            {line};" for line in words)


def nginx(protocol: str) -> Server:
    """nginx before one server that speaks this protocol."""
    kept = _KEEPING if protocol in (KEPT, "fastcgi") else ""
    text = _GATEWAY.replace("KEEPING", kept)
    text = text.replace("PASS", _passing(protocol).replace("$", "$$"))
    return Server(
        "nginx",
        "",
        "{nginx} -e stderr -c {folder}/nginx.conf",
        programs=("nginx",),
        files=(("nginx.conf", text),),
    )


def _uwsgi(name: str, options: str, unix: bool) -> Setup:
    socket = "{folder}/socket" if unix else "127.0.0.1:{port}"
    command = (
        f"{UWSGI} --socket {socket} --listen {{backlog}} --strict --master --need-app "
        "--single-interpreter --die-on-term --disable-logging --pythonpath . "
        f"--module {{module}}:{{callable}} {options}"
    )
    server = Server(name + UNIX if unix else name, "", command.strip(), "uWSGI")
    return Setup(server.name, (server,), nginx("uwsgi"), mute=True)


def _gateway(mode: str, options: str, protocol: str, peer: str, unix: bool = False) -> Setup:
    scheme = "" if protocol.startswith("http") else protocol
    address = _UNIX if unix else LOOPBACK
    if scheme:
        address = f"{scheme}+{address}" if unix else f"{scheme}://{address}"
    server = ours(mode, "", options, options=_TRUSTING, bind=address)
    words = {"http": "HTTP (closed)", KEPT: "HTTP (kept)"}.get(protocol, protocol)
    name = f"{server.name} by {words}" + (UNIX if unix else "")
    return Setup(name, (server,), nginx(protocol), mute=True, against=peer + (UNIX if unix else ""))


_MODES = (
    ("single", "single", "uWSGI 1 process", ""),
    (
        f"threading {THREADS}",
        f"threading --threads {THREADS}",
        f"uWSGI {THREADS} threads",
        f"--threads {THREADS}",
    ),
    (
        f"forking {PROCESSES}",
        f"forking --workers {PROCESSES}",
        f"uWSGI {PROCESSES} processes",
        f"--processes {PROCESSES}",
    ),
)


def _gateways() -> list[Setup]:
    setups = []
    for mode, options, peer, peer_options in _MODES:
        # One mode with all that there is, the others with what is recommended.
        everything = mode == "single"
        protocols = (KEPT, "http", "scgi", "fastcgi") if everything else (KEPT,)
        sockets = (False, True) if everything else (False,)
        setups += [_gateway(mode, options, "uwsgi", peer, unix) for unix in sockets]
        setups += [_gateway(mode, options, protocol, peer) for protocol in protocols]
        setups += [_uwsgi(peer, peer_options, unix) for unix in sockets]
    return setups


GATEWAYS: Sequence[Setup] = _gateways()
