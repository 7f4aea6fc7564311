"""The configurations of the study `memory`: our modes, behind a proxy, and other servers."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.servers.lists import PROXIED, WSGI
from loadtests.servers.registry import Server, named

BACKENDS = 4
"""Processes of `single` behind lighttpd, as in the study of 2010."""


def _ours(name: str, colour: str, options: str, extra: str = "") -> Server:
    return Server(
        f"poorhttp {name}",
        colour,
        "{python} -m poorhttp serve {module}.py:{callable} --bind 127.0.0.1:{port} "
        f"{options} --access-log off",
        "poorhttp",
        extra,
    )


OURS: Sequence[Server] = (
    _ours("single alone", "#5b8fd0", "--mode single --supervisor off"),
    *named(["poorhttp single"]),
    _ours("single × 4", "#083a75", "--mode single --workers 4"),
    _ours("single × 4 + preload", "#3d74b8", "--mode single --workers 4 --preload"),
    *named(["poorhttp forking 1", "poorhttp forking 2", "poorhttp forking 4"]),
    _ours("forking 4 + preload", "#0e5a6b", "--mode forking --workers 4 --preload"),
    *named(["poorhttp threading 8"]),
    _ours("threading 8 × 2", "#136190", "--mode threading --threads 8 --workers 2"),
    _ours("threading 8 × 4", "#0d4466", "--mode threading --threads 8 --workers 4"),
    _ours(
        "threading 8 × 4 + preload", "#4b9cc9", "--mode threading --threads 8 --workers 4 --preload"
    ),
    *named(["poorhttp gevent"]),
    _ours("gevent × 4", "#5fb3cd", "--mode gevent --workers 4", "gevent"),
    _ours("gevent × 4 + preload", "#a5dcec", "--mode gevent --workers 4 --preload", "gevent"),
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
    script = ""
    for number in range(BACKENDS):
        script += (
            "{python} -m poorhttp serve {module}.py:{callable} --mode single --access-log off "
            f"--bind unix:{{folder}}/{number} --pidfile {{folder}}/{number}.pid & "
            f"until test -s {{folder}}/{number}.pid; do kill -0 $! 2>/dev/null || exit 1; "
            "sleep 0.02; done; "
        )
    script += "exec {lighttpd} -D -f {folder}/lighttpd.conf"
    backends = ",\n".join(f'    ("socket" => "$folder/{number}")' for number in range(BACKENDS))
    return Server(
        f"lighttpd + {BACKENDS} × single",
        "#f0a592",
        "{sh} -c " + script.replace(" ", "~"),
        "poorhttp",
        programs=("sh", "lighttpd"),
        files=(("lighttpd.conf", _LIGHTTPD.replace("BACKENDS", backends)),),
    )


def servers() -> list[Server]:
    """All configurations, ours first."""
    before = [one for one in PROXIED if one.name == "lighttpd + single"]
    peers = [one for one in WSGI if not one.ours and "poll" not in one.name]
    return [*OURS, *before, _many(), *peers]
