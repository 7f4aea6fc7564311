"""The configurations of the study `memory`: our modes, behind a proxy, and other servers."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.servers.registry.commands import backend, ours, script
from loadtests.servers.registry.proxied import PROXIED
from loadtests.servers.registry.server import Server
from loadtests.servers.registry.wsgi import SERVERS, WSGI

BACKENDS = 4
"""Processes of `single` behind lighttpd, as in the study of 2010."""


_KNOWN = {server.name: server for server in SERVERS}
OURS: Sequence[Server] = (
    ours("single alone", "#5b8fd0", "single --supervisor off"),
    _KNOWN["poorhttp single"],
    ours("single × 4", "#083a75", "single --workers 4"),
    ours("single × 4 + preload", "#3d74b8", "single --workers 4 --preload"),
    *(_KNOWN[f"poorhttp forking {count}"] for count in (1, 2, 4)),
    ours("forking 4 + preload", "#0e5a6b", "forking --workers 4 --preload"),
    _KNOWN["poorhttp threading 8"],
    ours("threading 8 × 2", "#136190", "threading --threads 8 --workers 2"),
    ours("threading 8 × 4", "#0d4466", "threading --threads 8 --workers 4"),
    ours("threading 8 × 4 + preload", "#4b9cc9", "threading --threads 8 --workers 4 --preload"),
    _KNOWN["poorhttp gevent"],
    ours("gevent × 4", "#5fb3cd", "gevent --workers 4"),
    ours("gevent × 4 + preload", "#a5dcec", "gevent --workers 4 --preload"),
)
"""A mode with one worker and with several. Only `alone` has no main process beside its worker."""

_LIGHTTPD = """\
server.modules += ("mod_proxy")
server.document-root = "$folder"
server.bind = "127.0.0.1"
server.port = $port
server.listen-backlog = $backlog
server.errorlog = "$folder/error.log"
proxy.server = ("" => (
BACKENDS
))
"""


def _many() -> Server:
    """Four of `single` behind lighttpd, at Unix sockets."""
    numbers = range(BACKENDS)
    started = "".join(backend(str(number), f"unix:{{folder}}/{number}") for number in numbers)
    places = ",\n".join(f'    ("socket" => "$folder/{number}")' for number in numbers)
    return Server(
        f"lighttpd + {BACKENDS} × single",
        "#f0a592",
        script(started + "exec {lighttpd} -D -f {folder}/lighttpd.conf"),
        "poorhttp",
        programs=("sh", "lighttpd"),
        files=(("lighttpd.conf", _LIGHTTPD.replace("BACKENDS", places)),),
    )


def servers() -> list[Server]:
    """All configurations, ours first."""
    before = [one for one in PROXIED if one.name == "lighttpd + single"]
    peers = [one for one in WSGI if not one.ours and "poll" not in one.name]
    return [*OURS, *before, _many(), *peers]
