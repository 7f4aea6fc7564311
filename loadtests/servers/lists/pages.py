"""The pages of the study of 2010, for each server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from loadtests.clients.connection import Answer
from loadtests.servers.application import Application, expected
from loadtests.servers.registry import Server

PAGES = ("light", "heavy")
PROXIED = Application("loadtests/apps", "proxied", dated=True)


@dataclass(frozen=True)
class Table(Application):
    """The pages of a dispatch table, which is served from its own folder."""

    folder: str = "apps/lightheavy"
    module: str = ""
    dated: bool = True

    def answer(self, target: str, body: bytes) -> Answer:
        """What the same pages give elsewhere."""
        return expected(PROXIED, target, body)


TABLE = Table()

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
