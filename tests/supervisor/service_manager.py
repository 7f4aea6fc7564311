"""What systemd has for each service: a socket on which it is notified."""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING

from tests.testkit.client import HANG

if TYPE_CHECKING:
    from typing_extensions import Self


class ServiceManager:
    """That socket; `@` begins the address of an abstract one.

    Attributes:
        env: the environment of a service that notifies this, and has a watchdog.
    """

    def __init__(self, address: object) -> None:
        self.env = {"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "400000"}
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(address).replace("@", "\0", 1))
        self.socket.settimeout(HANG)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def heard(self) -> dict[str, str]:
        """The next message."""
        lines = self.socket.recv(4096).decode().split("\n")
        return dict(line.split("=", 1) for line in lines)

    def nothing(self) -> bool:
        """Whether there is no message."""
        return not select.select([self.socket], [], [], 0)[0]

    def forget(self) -> None:
        """Leave out the messages that are there."""
        while not self.nothing():
            self.heard()

    def until(self, name: str) -> dict[str, str]:
        """The next message that says something of `name`."""
        deadline = time.monotonic() + HANG
        while time.monotonic() < deadline:
            found = self.heard()
            if name in found:
                return found
        raise AssertionError(f"no {name} in {HANG:.0f} seconds")
