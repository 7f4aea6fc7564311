"""Servers of the five pages: as files, and some as an application."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from loadtests.servers.pages import FIVE, TARGETS, published
from loadtests.servers.registry import STATIC, WSGI
from loadtests.servers.registry.server import Server
from loadtests.servers.running import Running
from tests.testkit.network.hosts import Host

_APPLICATION = ", WSGI"
"""Behind the name of a server that also serves files."""
_FILES = (
    *("poorhttp single", "poorhttp forking 2", "poorhttp threading 8", "poorhttp gevent"),
    *("Apache event", "Apache prefork", "lighttpd", "nginx", "granian", "webfsd", "mini_httpd"),
)
_WSGI = (
    *("poorhttp single", "gunicorn sync 2", "gunicorn gthread 8"),
    *("waitress 8 threads", "cheroot 8 threads"),
)


def _chosen(known: Sequence[Server], names: Sequence[str]) -> list[Server]:
    found = {server.name: server for server in known}
    return [found[name] for name in names]


def servers() -> Sequence[Server]:
    """All of them: ours, those of the study and of its kind, and peers."""
    files = _chosen(STATIC, _FILES)
    applications = _chosen(WSGI, _WSGI)
    doubled = {server.name for server in files}
    return [
        *files,
        *(
            replace(one, name=one.name + _APPLICATION) if one.name in doubled else one
            for one in applications
        ),
    ]


@contextlib.contextmanager
def running(server: Server, core: int | None, host: Host | None = None) -> Iterator[Running]:
    """The server with the pages, on a host of a network or on the machine itself."""
    with contextlib.ExitStack() as stack:
        serves = FIVE
        if "{module}" not in server.command:
            serves = stack.enter_context(published())
        yield stack.enter_context(Running(server, serves, target=TARGETS[0], core=core, host=host))
