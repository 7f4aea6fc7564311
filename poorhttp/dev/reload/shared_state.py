"""What all versions of a server have in common, from one reading of the configuration on."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from poorhttp.dev.reload.stack_dump import Whereabouts
from poorhttp.dev.reload.watch.project import Project
from poorhttp.dev.reload.watch.watcher import Watcher
from poorhttp.supervisor.scoreboard import Scoreboard

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Sequence

    from poorhttp.worker.service import Service
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _socket as socket

#: Workers of a service that have a status, of all its versions that are alive.
KNOWN = 64

#: Octets of a message.
ROOM = 1 << 18

# The first octet of what is told.
MODULES = b"m"
FOLDERS = b"f"


class Lineage:
    """It.

    Attributes:
        services: what versions serve.
        scoreboards: one for each service, for the workers of all its versions.
        project: what is the user's own.
        watcher: tells what has changed there.
        whereabouts: tells where a version is that takes long.
        name: what the names of its versions begin with; no other lineage has it.
    """

    def __init__(self, services: Sequence[Service], file: str | None) -> None:
        """Begin; `file` is that of the configuration, if there is one."""
        self.services = services
        self.scoreboards = [Scoreboard(KNOWN) for _ in services]
        self.project = Project.of([service.settings for service in services], file)
        self.watcher = Watcher(self.project)
        self.whereabouts = Whereabouts()
        self.name = f"{os.getpid()}-{time.time_ns():x}"
        #: Of each service, on which idle connections go from one version to the next.
        self._ways = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in services]
        self._told, self._tell = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in (*(end for way in self._ways for end in way), self._told, self._tell):
            end.setblocking(False)

    def bequest(self, which: int) -> tuple[int, int]:
        """Return the descriptors of the way of a service, to give and to take."""
        give, take = self._ways[which]
        return give.fileno(), take.fileno()

    # What the keeper and versions tell the main process

    def fileno(self) -> int:
        """Return what is readable when something was told."""
        return self._told.fileno()

    def tell_modules(self, names: Iterable[str]) -> None:
        """Tell what a version had to import from outside of the project."""
        self._send(MODULES, names)

    def tell_folders(self, folders: Iterable[str]) -> None:
        """Tell where modules lie that are loaded, to have them watched."""
        self._send(FOLDERS, folders)

    def hear(self) -> list[str]:
        """Return the modules that were told; have the folders watched."""
        names: list[str] = []
        while True:
            try:
                told = self._told.recv(ROOM)
            except BlockingIOError:
                return names
            words = os.fsdecode(told[1:]).split("\n")
            if told[:1] == MODULES:
                names += words
            else:
                self.watcher.watch_also(words)

    def _send(self, kind: bytes, words: Iterable[str]) -> None:
        text = os.fsencode("\n".join(words))
        if text:
            # Without room for it, the next version imports and tells it once more.
            with suppress(OSError):
                self._tell.send(kind + text)

    def close(self) -> None:
        """End the watcher, and close everything."""
        self.watcher.close()
        self.whereabouts.close()
        for scoreboard in self.scoreboards:
            scoreboard.close()
        for end in (*(end for way in self._ways for end in way), self._told, self._tell):
            end.close()
