"""Servers of the five pages: as files, and some as an application."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from loadtests.servers.pages import FIVE, TARGETS, published
from loadtests.servers.registry import STATIC, WSGI
from loadtests.servers.registry.server import Server, chosen
from loadtests.servers.running import Running
from tests.testkit.network.hosts import Host

_FILES = (
    *("poorhttp single", "poorhttp forking 2", "poorhttp threading 8", "poorhttp gevent"),
    *("Apache event", "Apache prefork", "lighttpd", "nginx", "granian", "webfsd", "mini_httpd"),
)
_APPLICATION = (
    *("poorhttp single", "gunicorn sync 2", "gunicorn gthread 8"),
    *("waitress 8 threads", "cheroot 8 threads"),
)


def servers() -> Sequence[Server]:
    """All of them: ours, those of the study and of its kind, and peers."""
    applications = [
        replace(one, name=f"{one.name}, WSGI") if one.name in _FILES else one
        for one in chosen(WSGI, _APPLICATION)
    ]
    return [*chosen(STATIC, _FILES), *applications]


@contextlib.contextmanager
def running(server: Server, core: int | None, host: Host | None = None) -> Iterator[Running]:
    """The server with the pages, on a host of a network or on the machine itself."""
    with published() as files:
        serves = FIVE if "{module}" in server.command else files
        with Running(server, serves, target=TARGETS[0], core=core, host=host) as one:
            yield one
