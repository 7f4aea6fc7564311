"""Servers of the study `deadconn`, configured for as many connections as it makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadtests.servers.registry import STATIC, WSGI, Server

SELECT = "waitress 8 threads"
"""The one that waits by select()."""
ROOM = 500
"""Descriptors beyond those of the dead."""
MOST = 19_000
"""Connections that servers are told to take, where they have to be told."""

_WSGI = (
    "poorhttp single",
    "poorhttp forking 2",
    "poorhttp threading 8",
    "poorhttp gevent",
    "gunicorn gevent",
    SELECT,
    "waitress 8 threads, poll",
)
_STATIC = ("nginx", "lighttpd")
# The dead shall be there while we measure, and nobody has to keep so many by default.
_PATIENCE = {
    "poorhttp": (" --access-log", " --header-timeout 3600 --keepalive-timeout 3600 --access-log"),
    "waitress": (" --connection-limit 900", f" --connection-limit {MOST} --channel-timeout 3600"),
    "gunicorn gevent": (
        " --worker-class gevent",
        f" --worker-class gevent --worker-connections {MOST}",
    ),
}
_ROOM_IN_FILES = (
    ("worker_connections 2048;", f"worker_connections {MOST};"),
    ("sendfile on;", "sendfile on; client_header_timeout 3600; keepalive_timeout 3600;"),
    ("server.max-fds = 16384", f"server.max-fds = {MOST + ROOM}"),
    ("server.max-connections = 2048", f"server.max-connections = {MOST}"),
    (
        "server.max-keep-alive-idle = 75",
        "server.max-keep-alive-idle = 3600\nserver.max-read-idle = 3600",
    ),
)


def servers() -> Sequence[Server]:
    """Those that wait by epoll, one by poll() and one by select()."""
    known = {server.name: server for server in (*STATIC, *WSGI)}
    return [_patient(known[name]) for name in (*_WSGI, *_STATIC)]


def _patient(server: Server) -> Server:
    command = server.command
    for beginning, (before, after) in _PATIENCE.items():
        if server.name.startswith(beginning):
            command = command.replace(before, after)
    files = []
    for name, text in server.files:
        changed = text
        for before, after in _ROOM_IN_FILES:
            changed = changed.replace(before, after)
        files.append((name, changed))
    return replace(server, command=command, files=tuple(files))
