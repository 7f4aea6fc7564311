"""Pages of the studies: light and heavy of 2010, for each server; and the five of Uniserve."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from loadtests.apps.pages import PAGES as FIVE_PAGES
from loadtests.network.hosts import Host
from loadtests.servers.application import Application
from loadtests.servers.fixtures import Published
from loadtests.servers.registry.commands import CALLABLE
from loadtests.servers.registry.server import Server
from loadtests.servers.running import Running

PAGES = ("light", "heavy")
PROXIED = Application("loadtests/apps", "proxied", dated=True)
TABLE = Application("apps/lightheavy", dated=True, view=PROXIED)
"""The pages as a dispatch table, which is served from its own folder."""

# The pages say no length, and uWSGI would keep the connection for 4 s behind them.
_KEPT, _CLOSED = "--http11-socket", "--http-socket"


def with_pages(servers: Iterable[Server]) -> list[Server]:
    """These servers with the pages: ours with the dispatch table itself as their target."""
    return [
        one
        if one.own
        else replace(
            one,
            command=one.command.replace(CALLABLE, "dispatch:{root}").replace(_KEPT, _CLOSED),
            application=TABLE if CALLABLE in one.command else PROXIED,
        )
        for one in servers
    ]


TARGETS = tuple(FIVE_PAGES)
"""Of the five pages."""


@contextlib.contextmanager
def published(files: Mapping[str, bytes] = FIVE_PAGES) -> Iterator[Published]:
    """Files by their targets, without others the five pages, in a folder, which vanishes."""
    with tempfile.TemporaryDirectory(prefix="loadtests-site-") as name:
        folder = Path(name)
        # Some servers give up root's rights before they read anything.
        folder.chmod(0o755)
        for target, content in files.items():
            (folder / target[1:]).write_bytes(content)
        yield Published(name)


@contextlib.contextmanager
def running(server: Server, core: int | None, host: Host | None = None) -> Iterator[Running]:
    """The server with the five pages, on a host of a network or on the machine itself."""
    with published() as files:
        application = Application("loadtests/apps", "pages")
        serves = application if "{module}" in server.command else files
        with Running(server, serves, target=TARGETS[0], core=core, host=host) as one:
            yield one
