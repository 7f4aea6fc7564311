"""The address `admin` of a server under test, as an operator of this machine uses it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.testkit.client import Connection
from tests.testkit.process import children, workers

if TYPE_CHECKING:
    from tests.testkit.server import Server


class Operator(Connection):
    """A connection whose requests have a name that nobody can give to another address."""

    host = "localhost"


class Admin:
    """The address of a server that was started with `--admin 127.0.0.1:0` or `unix:PATH`."""

    def __init__(self, server: Server) -> None:
        self.server = server
        found = re.search(
            r"the status page is at (?:(http://127\.0\.0\.1:(\d+))|unix:(\S+))", server.log()
        )
        assert found, server.log()
        self.url = found[1] or ""
        self._address = ("127.0.0.1", int(found[2])) if found[2] else found[3]

    def connect(self) -> Operator:
        return Operator(self._address)

    @property
    def process(self) -> int:
        """The process that answers there."""
        (found,) = set(children(self.server.process.pid)) - set(workers(self.server.process.pid))
        return found
