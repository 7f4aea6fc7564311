"""A process that has imported what lies outside of the project, and is forked for each version.

It never imports a module of the project, has no threads and opens nothing, so that what is forked
from it is as good as a fresh process. A version is forked twice: the first child ends at once, and
the main process adopts the second.
"""

from __future__ import annotations

import gc
import os
import posix
import sys
import time
from contextlib import suppress

# Before gevent has put others in their place, which would wait for its hub.
from select import POLLIN, poll

from poorhttp import logs, modes
from poorhttp.dev.reload.generation import Version
from poorhttp.dev.reload.preforked import Standby
from poorhttp.process import fork as birth
from poorhttp.process.fd_passing import receive, send
from poorhttp.process.worker_context import WorkerContext
from poorhttp.worker import start

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Iterator, Sequence
    from typing import NoReturn

    from poorhttp.dev.reload.preimport.preimport import Warmth
    from poorhttp.dev.reload.shared_state import Lineage
else:
    # Without their enumerations, which every process would pay for (docs/design.md).
    import _signal as signal
    import _socket as socket

#: Seconds that it may take to fork a version, by a process that does nothing else.
PATIENCE = 30.0

#: Seconds that imports must have taken to be worth a process.
WORTH = 0.01

#: Seconds without an order after which the next version is forked in advance.
REST = 0.1

#: Octets of a message.
ROOM = 1 << 16

# The first octet of what it is told.
FORK = b"f"
LEARN = b"l"
WAIT = b"w"

# The first octet of what it says.
WARM = b"+"
IDLE = b"-"
COLD = b"!"
IMPORTING = b"*"
FORKED = b"="
LEARNED = b"."
WAITS = b"?"


class Keeper:
    """The process, as the main process sees it.

    Attributes:
        pid: its process.
        ready: it has imported what it knows of.
        idle: there was nothing worth keeping, and it has ended.
        cold: why it cannot be forked for versions, and has ended; empty: it can.
        importing: the module that it has begun with.
    """

    def __init__(self, lineage: Lineage, known: Sequence[str] = ()) -> None:
        """Fork it; `known` is what versions had to import so far."""
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.setblocking(False)
        self.ready = False
        self.idle = False
        self.cold = ""
        self.importing = ""
        self._forked: int | None = None
        #: How often it was told what to import, and how often it has done so.
        self._told = self._learned = 0
        #: It was asked to wait for an order, and does.
        self._asked = self._waits = False
        parent = os.getpid()
        services = lineage.services

        def live() -> None:
            self._line.close()
            nursery = _Nursery(lineage, theirs, parent)
            start.run_child(
                lambda signals: nursery.live(known), parent, "keeper", services[0], services
            )

        try:
            self.pid = birth.fork(live)
        except OSError:
            self._line.close()
            raise
        finally:
            theirs.close()
        birth.after_fork_in_child.append(self._line.close)

    @property
    def is_over(self) -> bool:
        """Whether it has said that versions have to come from somewhere else."""
        return self.idle or bool(self.cold)

    @property
    def is_gone(self) -> bool:
        """Whether they have to, said or not."""
        return self.is_over or self.fileno() < 0

    def is_free(self) -> bool:
        """Whether it forks at once. If it is importing, it is asked to wait behind that module."""
        if self._learned == self._told or self._waits:
            return True
        if not self._asked:
            with suppress(OSError):
                self._line.send(WAIT)
                self._asked = True
        return False

    def fileno(self) -> int:
        """Return what is readable when it has something to say; -1 when it has ended."""
        return self._line.fileno()

    def hear(self) -> None:
        """Hear what it has to say."""
        while self.fileno() >= 0:
            try:
                said = self._line.recv(ROOM)
            except BlockingIOError:
                return
            except OSError:
                said = b""
            if not said:
                # Whoever buries it knows how it has ended.
                self.close()
                return
            kind, text = said[:1], said[1:].decode("utf-8", "replace")
            if kind == IMPORTING:
                self.importing = text
                continue
            if kind == WAITS:
                # If it has been told to import more since, it does that.
                self._waits = int(text) == self._told
                continue
            if kind == LEARNED:
                self._learned = int(text)
            self.importing = ""
            self.ready |= kind == WARM
            self.idle |= kind == IDLE
            if kind == COLD:
                self.cold = text
            elif kind == FORKED:
                self._forked = int(text)

    def fork(self, version: Version, context: WorkerContext) -> int:
        """Have a process of a version forked; return it, or 0 if that does not work."""
        words = (
            version.number,
            version.which,
            context.index,
            context.slot,
            int(context.balance_fd is not None),
        )
        self._asked = self._waits = False
        try:
            send(self._line, FORK + " ".join(map(str, words)).encode(), context.channel)
        except OSError:
            return 0
        poller = poll()
        poller.register(self._line.fileno(), POLLIN)
        while poller.poll(PATIENCE * 1000):
            self.hear()
            forked, self._forked = self._forked, None
            if forked is not None:
                self._waits = False
                return forked
            if self.fileno() < 0:
                break
        return 0

    def learn(self, names: Sequence[str]) -> None:
        """Have it import what a version had to, for the next one."""
        with suppress(OSError):
            self._line.send(LEARN + "\n".join(names).encode()[: ROOM - 1])
            self._told += 1
            # It goes on behind that, without an order.
            self._asked = self._waits = False

    def end(self) -> None:
        """End it: it has nothing to lose."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Forget it."""
        if self._line.close in birth.after_fork_in_child:
            birth.after_fork_in_child.remove(self._line.close)
        self._line.close()


class _Nursery:
    """What the process does."""

    def __init__(self, lineage: Lineage, line: socket.socket, parent: int) -> None:
        self.lineage = lineage
        self.line = line
        self.parent = parent
        #: Modules that are left to each version, and of which that has been said.
        self.told: set[str] = set()
        #: How often it was told what to import.
        self.learned = 0
        #: The next version, in advance.
        self.standby: Standby | None = None

    def live(self, known: Sequence[str]) -> None:
        """Import, then fork versions as they are ordered, and learn; end with the main process."""
        # A terminal tells everybody of Ctrl-C. The main process ends us, and nothing is in hand.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # In the holes that the collector leaves, versions would write to what is shared.
        gc.disable()
        from poorhttp.dev.reload.preimport.preimport import Warmth

        begun = time.monotonic()
        for service in self.lineage.services:
            modes.prepare(service.mode, service.settings)
        settings = [service.settings for service in self.lineage.services]
        warmth = Warmth(self.lineage.project, settings)
        warmth.learn(known)
        for _ in self._import(warmth):
            pass
        if time.monotonic() - begun < WORTH:
            self.line.send(IDLE)
            return
        if self._settles(warmth):
            self.line.send(WARM)
            self._serve(warmth)

    def _serve(self, warmth: Warmth) -> None:
        """Do what is ordered; go on importing when nothing is."""
        poller = poll()
        poller.register(self.line.fileno(), POLLIN)
        steps: Iterator[None] | None = None
        waits = False
        while True:
            # Whoever waits for a version goes before what may be of use for the next.
            rest = None if waits or self.standby is not None else REST * 1000
            if poller.poll(rest if waits or steps is None else 0):
                words, fds = receive(self.line, ROOM)
                if not words:
                    return
                waits = words[:1] == WAIT
                if waits:
                    self.line.send(WAITS + str(self.learned).encode())
                elif words[:1] == FORK:
                    self._fork(words[1:], fds[0], warmth)
                else:
                    self._dismiss()
                    self.learned += 1
                    warmth.learn(words[1:].decode().split("\n"))
                    steps = self._import(warmth)
            elif steps is None:
                self._stand_by(warmth)
            elif next(steps, self) is self:
                steps = None
                if not self._settles(warmth):
                    return

    def _import(self, warmth: Warmth) -> Iterator[None]:
        """Import one module after another, and tell which."""
        for name in warmth.steps():
            self.line.send(IMPORTING + name.encode())
            yield

    def _settles(self, warmth: Warmth) -> bool:
        """Whether we can be forked, with what has been imported by now."""
        if warmth.obstacle:
            self.line.send(COLD + warmth.obstacle.encode())
            return False
        for name in warmth.failed.keys() - self.told:
            self.told.add(name)
            why = warmth.failed[name]
            logs.write("debug", f"{name} cannot be kept warm, each version imports it: {why}")
        self.lineage.tell_folders(sorted(warmth.folders()))
        # What modules have printed is printed once, and not by each version.
        sys.stdout.flush()
        sys.stderr.flush()
        # What exists by now is shared with all versions; the collector shall not write to it.
        gc.freeze()
        self.line.send(LEARNED + str(self.learned).encode())
        return True

    def _fork(self, words: bytes, channel: int, warmth: Warmth) -> None:
        """Have what is ordered live, and tell its process."""
        pid = 0
        if self.standby is not None:
            if self.standby.begin(words, channel):
                pid = self.standby.pid
            self._dismiss()
        try:
            pid = pid or birth.fork_twice(lambda: self._live(words, channel, warmth))
        except OSError as error:
            logs.write("error", f"a version cannot be forked: {error}")
        self.line.send(FORKED + str(pid).encode())
        posix.close(channel)

    def _stand_by(self, warmth: Warmth) -> None:
        """Fork the next version in advance."""
        # Where there is no room the order will meet the same, and tell.
        with suppress(OSError):
            self.standby = Standby(lambda words, fd: self._live(words, fd, warmth))

    def _dismiss(self) -> None:
        if self.standby is not None:
            self.standby.close()
            self.standby = None

    def _live(self, words: bytes, channel: int, warmth: Warmth) -> NoReturn:
        """Be what is ordered, in a process that was forked for it."""
        self.line.close()
        number, which, index, slot, shared = map(int, words.split())
        scoreboard = self.lineage.scoreboards[which]
        balance_fd = scoreboard.balance_fd if shared else None
        context = WorkerContext(index, slot, channel, balance_fd, scoreboard.open(slot), 0)
        Version(number, self.lineage, which).live(context, self.parent, warmth)
