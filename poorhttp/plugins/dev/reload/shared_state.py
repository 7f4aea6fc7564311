"""State that all generations of the application share: file watcher, scoreboards, sockets."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from mmap import mmap

from poorhttp.plugins.dev.reload.own_writes import OwnWrites
from poorhttp.plugins.dev.reload.stack_dump import StackDump
from poorhttp.plugins.dev.reload.watch.project import WatchedProject
from poorhttp.plugins.dev.reload.watch.watcher import Watcher
from poorhttp.process.c_socket import socket
from poorhttp.supervisor.scoreboard import Scoreboard
from poorhttp.worker.service import Service

#: Workers of a service, of all its generations together, that a scoreboard has room for.
SCOREBOARD_SIZE = 64

#: Bytes of a report.
MAX_MESSAGE = 1 << 18

#: States of the older versions of a service in place of the time at which they ended: `RUNNING`,
#: they are retiring; `SERVING`, one serves until the next version has loaded. Other values are that
#: time, in nanoseconds of the monotonic clock; 0: there was no older version.
RUNNING, SERVING = -1, -2

# The first byte of a report.
MODULES = b"m"
FOLDERS = b"f"
WRITTEN = b"w"


class SharedState:
    """State shared by all generations until the configuration is read again.

    Attributes:
        services: the services that generations load.
        scoreboards: one for each service, for the workers of all its generations.
        project: the user's own files.
        watcher: reports changes of these files.
        own_writes: which files the application writes itself.
        stack_dump: shows the line at which a slow generation is.
        name: prefix of the generations' names, unique among all servers.
    """

    def __init__(
        self, services: Sequence[Service], file: str | None, own_writes: OwnWrites, since: int
    ) -> None:
        """Start the watcher; `file` is the configuration file, if there is one.

        `since`: a time in nanoseconds before that was read.
        """
        self.services = services
        self.scoreboards = [Scoreboard(SCOREBOARD_SIZE) for _ in services]
        self.project = WatchedProject.of([service.settings for service in services], file)
        self.watcher = Watcher(self.project, since)
        self.own_writes = own_writes
        self.stack_dump = StackDump()
        self.name = f"{os.getpid()}-{time.time_ns():x}"
        #: For each service, whether versions before the latest one run; read by generations.
        self._older = memoryview(mmap(-1, 8 * len(services))).cast("q")
        #: For each service, the sockets on which idle connections pass to the next generation.
        self._handoff_sockets = [
            socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in services
        ]
        self._receiver, self._sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sockets = [*chain(*self._handoff_sockets), self._receiver, self._sender]
        for end in self._sockets:
            end.setblocking(False)

    def handoff_sockets(self, which: int) -> tuple[int, int]:
        """Return the descriptors on which a service sends and receives idle connections."""
        give, take = self._handoff_sockets[which]
        return give.fileno(), take.fileno()

    # Versions before the latest one, which may hold what that needs

    def note_older(self, which: int, state: int) -> None:
        """Note in the main process that older versions of a service run (`RUNNING`, `SERVING`).

        0: none does; they have ended now if some did.
        """
        if state or self._older[which] < 0:
            self._older[which] = state or time.monotonic_ns()

    def forget_older(self, which: int) -> None:
        """Have no generation wait for older versions, which have ended."""
        self._older[which] = 0

    def older(self, which: int) -> int:
        """Return `RUNNING`, `SERVING`, or when the last older version of a service has ended."""
        return self._older[which]

    # Reports of the fork server and of generations to the main process

    def fileno(self) -> int:
        """Return the descriptor that is readable when there are reports."""
        return self._receiver.fileno()

    def report_modules(self, names: Iterable[str]) -> None:
        """Report library modules that a generation had to import itself."""
        self._send(MODULES, names)

    def report_folders(self, folders: Iterable[str]) -> None:
        """Report folders of loaded modules, which are then watched."""
        self._send(FOLDERS, folders)

    def report_written(self, path: str) -> None:
        """Report a file of the project that the application opens for writing."""
        self._send(WRITTEN, [path])

    def report_program(self) -> None:
        """Report that the application has started a program."""
        with suppress(OSError):
            self._sender.send(WRITTEN)

    def receive_modules(self) -> list[str]:
        """Return reported modules; note reported files, and have reported folders watched."""
        names: list[str] = []
        while True:
            try:
                message = self._receiver.recv(MAX_MESSAGE)
            except BlockingIOError:
                return names
            words = os.fsdecode(message[1:]).split("\n")
            if message[:1] == MODULES:
                names += words
            elif message[:1] == WRITTEN:
                self.own_writes.note(words[0])
            else:
                self.watcher.watch_also(words)

    def _send(self, kind: bytes, words: Iterable[str]) -> None:
        text = os.fsencode("\n".join(words))
        if text:
            # A report that does not fit into the socket is made again by the next generation.
            with suppress(OSError):
                self._sender.send(kind + text)

    def close(self) -> None:
        """End the watcher, and close everything."""
        self.watcher.close()
        self.stack_dump.close()
        for end in self._sockets:
            end.close()
