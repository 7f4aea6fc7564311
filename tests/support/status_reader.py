"""Reads the status document of a server under test, at the address `admin`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.testkit.client import Connection
from tests.testkit.server import wait_for

if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Figures, Service, Status


class Admin:
    """The admin address of a server: a Unix socket in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "admin")
        self.options = ("--admin", f"unix:{self.path}")

    def status(self) -> Status:
        with Connection(self.path) as connection:
            response = connection.request("GET", "/-/status", "Host: localhost", version="HTTP/1.0")
        assert response.status == 200, response.body
        found: Status = response.json()
        return found

    def service(self) -> Service:
        (service,) = self.status()["services"]
        return service

    def figures(self) -> Figures:
        return self.service()["figures"]

    def wait(self, condition: Callable[[Service], object], what: str) -> Service:
        found: list[Service] = []

        def came() -> object:
            found[:] = [self.service()]
            return condition(found[0])

        try:
            wait_for(came, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {found}") from None
        return found[0]
