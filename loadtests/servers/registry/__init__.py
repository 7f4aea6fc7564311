"""Every server that can be measured, each declared once; studies take those they name.

Servers that are not installed are left out and named.

- `server`: a server: command, files and package; whether it can run here, and its version.
- `given`: servers that the command line names, by a command or by a URL.
- `listed`: servers of others that need no more than a command, as `servers.ini` and
  `develop.ini` list them.
- `commands`: command lines of the servers, with what varies as arguments.
- `apache`: configurations of Apache.
- `wsgi`: servers of WSGI applications: ours and others.
- `content`: servers of files, CGI programs, templates and PHP.
- `proxied`: proxies, and one and two of our `single` behind each.
- `operate`: servers that are reloaded, upgraded and stopped, each as its documentation says.
- `develop`: development servers, which reload on save.
- `studies`: servers of single studies.
- `wire`: servers of WebSockets, TLS, HTTP/2, uploads and compressed answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

from loadtests.arguments import unknown
from loadtests.servers.registry import content, develop
from loadtests.servers.registry.content import STATIC
from loadtests.servers.registry.proxied import PROXIED
from loadtests.servers.registry.server import Server, missing, require_release, version, versions
from loadtests.servers.registry.studies import AUTO, MEMORY
from loadtests.servers.registry.wsgi import FLOOR, OURS, SERVERS, WSGI

__all__ = [
    "ALONE_AND_PROXIED",
    "FLOOR",
    "OURS",
    "PROXIED",
    "SERVERS",
    "STATIC",
    "WSGI",
    "Server",
    "colour_of",
    "missing",
    "named",
    "require_release",
    "version",
    "versions",
]

ALONE_AND_PROXIED = (*OURS, *PROXIED, *(one for one in WSGI if not one.ours))
"""Servers of WSGI applications, also ours behind a proxy, in the order of tables."""


def named(names: Iterable[str]) -> list[Server]:
    """The servers of the benchmark of these names; a beginning stands for all that begin so.

    Raises LabError for a name that fits none.
    """
    chosen: list[Server] = []
    for name in names:
        fitting = [one for one in SERVERS if one.name == name] or [
            one for one in SERVERS if one.compared and one.name.startswith(name)
        ]
        if not fitting:
            raise unknown("server", name, [server.name for server in SERVERS], ", ")
        chosen += [server for server in fitting if server not in chosen]
    return chosen


OTHERS = ("#b3541e", "#2f6f4f", "#7d3c98", "#117a8b", "#a61e4d", "#5c6b2f")
"""Of servers that are in no registry."""
FAMILIES = {
    "poorhttp": "#0b4f9e",
    "single": "#0b4f9e",
    "forking": "#2ca6c4",
    "threading": "#1a7fb8",
    "gevent": "#7cc7df",
    "gunicorn": "#8c5a2b",
    "uwsgi": "#3f8f3f",
    "granian": "#b57fd0",
    "waitress": "#c03a78",
    "cheroot": "#e58fb4",
    "apache": "#d9a514",
    "lighttpd": "#c8452c",
    "nginx": "#2f7d32",
    "haproxy": "#5c6b9e",
}
"""Of those that have no colour of their own, by how their names begin."""


REGISTERED: Sequence[Server] = (
    *(*SERVERS, *WSGI, *PROXIED, *STATIC, *content.SERVERS.values()),
    *(*develop.SERVERS, *develop.MODES, *MEMORY, *AUTO),
)
"""All that have a colour, some more than once."""
_COLOURS = {one.name: one.colour for one in REGISTERED}


def colour_of(name: str) -> str:
    """The colour of a server by its name: its own, or else that of its family."""
    fitting = (hue for family, hue in FAMILIES.items() if name.lower().startswith(family))
    return _COLOURS.get(name) or next(fitting, OTHERS[crc32(name.encode()) % len(OTHERS)])
