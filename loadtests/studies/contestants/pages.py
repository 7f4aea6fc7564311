"""The pages of the study of 2010, for each server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from loadtests.application import Application
from loadtests.behind.experiments import PROXIED, TABLE
from loadtests.servers import Server

PAGES = ("light", "heavy")
_CALLABLE, _TABLE = "{module}.py:{callable}", "dispatch:{root}"
# The pages say no length, and uWSGI would keep the connection for 4 s behind them.
_KEPT, _CLOSED = "--http11-socket", "--http-socket"


def with_pages(servers: Iterable[Server]) -> list[Server]:
    """These servers with the pages: ours with the dispatch table itself as their target."""
    return [
        replace(one, command=one.command.replace(_CALLABLE, _TABLE).replace(_KEPT, _CLOSED))
        for one in servers
    ]


def application_of(server: Server) -> Application:
    """What such a server serves: the dispatch table, or the same pages as a WSGI application."""
    return TABLE if _TABLE in server.command else PROXIED
