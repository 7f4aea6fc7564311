"""Every server of the studies, in the order of their tables.

Servers that are not installed are left out and named.

- `wsgi`: servers of WSGI applications: ours and others.
- `proxied`: one and two of our `single` behind a proxy.
- `static`: servers of static files.
- `pages`: the pages of the study of 2010, for each server.
- `content`: servers of each kind of content.
- `lifecycle`: servers that are reloaded, upgraded and stopped, each as its documentation says.
- `reload`: development servers.
- `memory`: the configurations whose memory is measured.
- `latency_distribution`: servers of each content of the study `ordered`.
- `uniserve`: servers of the five pages.
- `colours`: colours of servers in figures.
"""

from __future__ import annotations

from loadtests.servers.lists.colours import colour_of
from loadtests.servers.lists.pages import application_of, with_pages
from loadtests.servers.lists.proxied import PROXIED
from loadtests.servers.lists.static import NOT_PACKAGED, STATIC
from loadtests.servers.lists.wsgi import WSGI

__all__ = [
    "NOT_PACKAGED",
    "PROXIED",
    "STATIC",
    "WSGI",
    "application_of",
    "colour_of",
    "with_pages",
]
