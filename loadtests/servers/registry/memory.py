"""The configurations of the study `memory`: our modes, behind a proxy, and other servers."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.servers.registry.commands import backend, ours, script
from loadtests.servers.registry.proxied import PROXIED
from loadtests.servers.registry.server import Server, chosen
from loadtests.servers.registry.wsgi import SERVERS, WSGI

OURS: Sequence[Server] = (
    ours("single alone", "#5b8fd0", "single --supervisor off"),
    *chosen(SERVERS, ["poorhttp single"]),
    ours("single × 4", "#083a75", "single --workers 4"),
    ours("single × 4 + preload", "#3d74b8", "single --workers 4 --preload"),
    *chosen(SERVERS, ("poorhttp forking 1", "poorhttp forking 2", "poorhttp forking 4")),
    ours("forking 4 + preload", "#0e5a6b", "forking --workers 4 --preload"),
    *chosen(SERVERS, ["poorhttp threading 8"]),
    ours("threading 8 × 2", "#136190", "threading --threads 8 --workers 2"),
    ours("threading 8 × 4", "#0d4466", "threading --threads 8 --workers 4"),
    ours("threading 8 × 4 + preload", "#4b9cc9", "threading --threads 8 --workers 4 --preload"),
    *chosen(SERVERS, ["poorhttp gevent"]),
    ours("gevent × 4", "#5fb3cd", "gevent --workers 4"),
    ours("gevent × 4 + preload", "#a5dcec", "gevent --workers 4 --preload"),
)
"""A mode with one worker and with several. Only `alone` has no main process beside its worker."""

_BACKENDS = range(4)
_PLACES = ",\n".join(f'    ("socket" => "$folder/{number}")' for number in _BACKENDS)
_LIGHTTPD = f"""\
server.modules += ("mod_proxy")
server.document-root = "$folder"
server.bind = "127.0.0.1"
server.port = $port
server.listen-backlog = $backlog
server.errorlog = "$folder/error.log"
proxy.server = ("" => (
{_PLACES}
))
"""
_MANY = Server(
    "lighttpd + 4 × single",
    "#f0a592",
    script(
        "".join(backend(str(number), f"unix:{{folder}}/{number}") for number in _BACKENDS)
        + "exec {lighttpd} -D -f {folder}/lighttpd.conf"
    ),
    "poorhttp",
    programs=("sh", "lighttpd"),
    files=(("lighttpd.conf", _LIGHTTPD),),
)
"""At Unix sockets, as in the study of 2010."""


def servers() -> list[Server]:
    """All configurations, ours first."""
    peers = [one for one in WSGI if not one.ours and "poll" not in one.name]
    return [*OURS, *chosen(PROXIED, ["lighttpd + single"]), _MANY, *peers]
