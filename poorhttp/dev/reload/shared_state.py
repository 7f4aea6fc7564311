"""What all versions of a server have in common, from one reading of the configuration on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from poorhttp.dev.reload.stack_dump import StackDump
from poorhttp.dev.reload.watch.project import Project
from poorhttp.dev.reload.watch.watcher import Watcher
from poorhttp.process.c_socket import socket
from poorhttp.supervisor.scoreboard import Scoreboard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.worker.service import Service

#: Workers of a service, of all its generations together, that a scoreboard has room for.
SCOREBOARD_SIZE = 64

#: Octets of a message.
MAX_MESSAGE = 1 << 18

# The first octet of what is told.
MODULES = b"m"
FOLDERS = b"f"


class SharedState:
    """It.

    Attributes:
        services: what versions serve.
        scoreboards: one for each service, for the workers of all its versions.
        project: what is the user's own.
        watcher: tells what has changed there.
        stack_dump: tells where a version is that takes long.
        name: what the names of its versions begin with; no other lineage has it.
    """

    def __init__(self, services: Sequence[Service], file: str | None) -> None:
        """Begin; `file` is that of the configuration, if there is one."""
        self.services = services
        self.scoreboards = [Scoreboard(SCOREBOARD_SIZE) for _ in services]
        self.project = Project.of([service.settings for service in services], file)
        self.watcher = Watcher(self.project)
        self.stack_dump = StackDump()
        self.name = f"{os.getpid()}-{time.time_ns():x}"
        #: Of each service, on which idle connections go from one version to the next.
        self._handoff_sockets = [
            socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in services
        ]
        self._receiver, self._sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in (
            *(end for way in self._handoff_sockets for end in way),
            self._receiver,
            self._sender,
        ):
            end.setblocking(False)

    def handoff_sockets(self, which: int) -> tuple[int, int]:
        """Return the descriptors of the way of a service, to give and to take."""
        give, take = self._handoff_sockets[which]
        return give.fileno(), take.fileno()

    # What the keeper and versions tell the main process

    def fileno(self) -> int:
        """Return what is readable when something was told."""
        return self._receiver.fileno()

    def report_modules(self, names: Iterable[str]) -> None:
        """Tell what a version had to import from outside of the project."""
        self._send(MODULES, names)

    def report_folders(self, folders: Iterable[str]) -> None:
        """Tell where modules lie that are loaded, to have them watched."""
        self._send(FOLDERS, folders)

    def receive_modules(self) -> list[str]:
        """Return the modules that were told; have the folders watched."""
        names: list[str] = []
        while True:
            try:
                message = self._receiver.recv(MAX_MESSAGE)
            except BlockingIOError:
                return names
            words = os.fsdecode(message[1:]).split("\n")
            if message[:1] == MODULES:
                names += words
            else:
                self.watcher.watch_also(words)

    def _send(self, kind: bytes, words: Iterable[str]) -> None:
        text = os.fsencode("\n".join(words))
        if text:
            # Without room for it, the next version imports and tells it once more.
            with suppress(OSError):
                self._sender.send(kind + text)

    def close(self) -> None:
        """End the watcher, and close everything."""
        self.watcher.close()
        self.stack_dump.close()
        for scoreboard in self.scoreboards:
            scoreboard.close()
        for end in (
            *(end for way in self._handoff_sockets for end in way),
            self._receiver,
            self._sender,
        ):
            end.close()
