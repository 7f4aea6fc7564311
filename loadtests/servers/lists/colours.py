"""Colours of servers in figures: one for each name, one hue for each family."""

from __future__ import annotations

from collections.abc import Iterator

from loadtests.servers import registry
from loadtests.servers.lists import content
from loadtests.servers.lists import reload as development
from loadtests.servers.lists.proxied import PROXIED
from loadtests.servers.lists.static import STATIC
from loadtests.servers.lists.wsgi import WSGI

UNKNOWN = "#8a8f98"
FAMILIES = {
    "poorhttp": "#0b4f9e",
    "single": "#0b4f9e",
    "forking": "#2ca6c4",
    "threading": "#1a7fb8",
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


def registered() -> Iterator[tuple[str, str]]:
    """Every name that has a colour, with it; some more than once."""
    for one in (*registry.SERVERS, *WSGI, *PROXIED, *STATIC, *content.CONTESTANTS.values()):
        yield one.name, one.colour
    for other in (*development.CONTESTANTS, *development.MODES):
        yield other.name, other.colour


_KNOWN = dict(registered())


def colour_of(name: str) -> str:
    """The colour of a server by its name: its own, or else that of its family."""
    if name in _KNOWN:
        return _KNOWN[name]
    fitting = (hue for family, hue in FAMILIES.items() if name.lower().startswith(family))
    return next(fitting, UNKNOWN)
