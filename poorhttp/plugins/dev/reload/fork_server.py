"""Process that has imported the project's libraries and is forked for each generation.

It never imports a module of the project, has no threads and opens nothing, so that its children are
like fresh processes. A generation is forked twice: the first child ends at once, and the main
process adopts the second, which reports itself over its control channel.
"""

from __future__ import annotations

import gc
import os
import posix
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

# Imported before gevent may replace them by its own, which would wait for its hub.
from select import POLLIN, poll

from poorhttp import logs
from poorhttp.plugins.dev.reload.preforked import PreforkedProcess
from poorhttp.plugins.dev.reload.spawner import VersionSpawner
from poorhttp.process import fork, signals
from poorhttp.process.c_socket import socket
from poorhttp.process.fd_passing import receive, send
from poorhttp.process.signals import signal
from poorhttp.process.worker_context import WorkerContext
from poorhttp.worker import mode, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from poorhttp.plugins.dev.reload.preimport.preimport import Preimporter
    from poorhttp.plugins.dev.reload.shared_state import SharedState

#: Seconds of imports that make the process worth its memory.
WORTH_A_PROCESS = 0.01

#: Seconds without an order after which the next generation is forked in advance.
IDLE_BEFORE_FORK = 0.1

#: Bytes of a message.
MAX_MESSAGE = 1 << 16

# The first byte of an order.
FORK = b"f"
IMPORT = b"l"
WAIT = b"w"

# The first byte of a report.
READY = b"+"
NOT_NEEDED = b"-"
REFUSED = b"!"
IMPORTING = b"*"
IMPORTED = b"."
WAITING = b"?"


class ForkServer:
    """The fork server, seen from the main process.

    Attributes:
        pid: of the process.
        ready: it has imported all modules that were known when it was started.
        not_needed: it has ended because its imports take next to no time.
        refusal: why it has ended and cannot be forked for generations; empty if it can.
        importing: the module that it imports now.
    """

    def __init__(self, shared: SharedState, known: Sequence[str] = ()) -> None:
        """Fork it; `known` are the modules that generations had to import so far."""
        self._socket, child_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        self.ready = False
        self.not_needed = False
        self.refusal = ""
        self.importing = ""
        #: Lists of modules that were sent to it, and that it has imported.
        self._lists_sent = self._lists_imported = 0
        #: It was asked to wait for an order, and it has confirmed that it waits.
        self._wait_requested = self._is_waiting = False
        parent = os.getpid()
        services = shared.services

        def run() -> None:
            self._socket.close()
            process = _ForkServerProcess(shared, child_socket, parent)
            start.run_child(
                lambda signals: process.run(known), parent, "fork server", services[0], services
            )

        try:
            self.pid = fork.fork(run)
        except OSError:
            self._socket.close()
            raise
        finally:
            child_socket.close()
        fork.after_fork_in_child.append(self._socket.close)

    @property
    def has_given_up(self) -> bool:
        """Whether it has reported that it cannot fork generations or need not."""
        return self.not_needed or bool(self.refusal)

    @property
    def is_unavailable(self) -> bool:
        """Whether generations must be forked from the main process."""
        return self.has_given_up or self.fileno() < 0

    def is_free(self) -> bool:
        """Whether it forks at once. If it is importing, ask it to wait after the current module."""
        if self._lists_imported == self._lists_sent or self._is_waiting:
            return True
        if not self._wait_requested:
            with suppress(OSError):
                self._socket.send(WAIT)
                self._wait_requested = True
        return False

    def fileno(self) -> int:
        """Return the descriptor that is readable when it has reported; -1 when it has ended."""
        return self._socket.fileno()

    def receive_reports(self) -> None:
        """Read its reports."""
        while self.fileno() >= 0:
            try:
                report = self._socket.recv(MAX_MESSAGE)
            except BlockingIOError:
                return
            except OSError:
                report = b""
            if not report:
                # `Reloader.reap` reports how it has ended.
                self.close()
                return
            kind, text = report[:1], report[1:].decode("utf-8", "replace")
            if kind == IMPORTING:
                self.importing = text
                continue
            if kind == WAITING:
                # Confirmed, unless another list was sent since: it imports that first.
                self._is_waiting = int(text) == self._lists_sent
                continue
            if kind == IMPORTED:
                self._lists_imported = int(text)
            self.importing = ""
            self.ready |= kind == READY
            self.not_needed |= kind == NOT_NEEDED
            if kind == REFUSED:
                self.refusal = text

    def order(self, generation: VersionSpawner, context: WorkerContext) -> bool:
        """Have a worker of a generation forked; `False` if that fails."""
        words = [generation.number, generation.service_index, context.index, context.slot]
        words.append(int(context.siblings is not None))
        self._wait_requested = self._is_waiting = False
        try:
            send(self._socket, FORK + " ".join(map(str, words)).encode(), context.channel)
        except OSError:
            return False
        return True

    def preimport(self, names: Sequence[str]) -> None:
        """Have it import modules that a generation had to import itself."""
        with suppress(OSError):
            self._socket.send(IMPORT + "\n".join(names).encode()[: MAX_MESSAGE - 1])
            self._lists_sent += 1
            # It does not wait for an order after importing this list.
            self._wait_requested = self._is_waiting = False

    def end(self) -> None:
        """Kill it: it has no state to lose."""
        signals.send(self.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._socket.close in fork.after_fork_in_child:
            fork.after_fork_in_child.remove(self._socket.close)
        self._socket.close()


class _ForkServerProcess:
    """The fork server, in its own process."""

    def __init__(self, shared: SharedState, orders: socket.socket, parent: int) -> None:
        self.shared = shared
        self.orders = orders
        self.parent = parent
        #: Modules left to each generation of which the log says so already.
        self.reported: set[str] = set()
        #: Lists of modules received from the main process.
        self.lists_imported = 0
        #: The next generation, forked in advance.
        self.preforked: PreforkedProcess | None = None

    def run(self, known: Sequence[str]) -> None:
        """Import, then fork generations and import more on orders, until the main process ends."""
        # Ctrl-C reaches every process of the terminal; the main process kills this one.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # Collected objects leave gaps in shared pages, which generations would write to.
        gc.disable()
        from poorhttp.plugins.dev.reload.preimport.preimport import Preimporter
        from poorhttp.plugins.dev.reload.pyc_loader import forget_folders

        # The main process may have read archives that were replaced since.
        forget_folders()
        begun = time.monotonic()
        for service in self.shared.services:
            mode.prepare(service.mode, service.settings)
        settings = [service.settings for service in self.shared.services]
        preimporter = Preimporter(self.shared.project, settings)
        preimporter.add(known)
        for _ in self._import(preimporter):
            pass
        if time.monotonic() - begun < WORTH_A_PROCESS:
            self.orders.send(NOT_NEEDED)
            return
        if self._report_imported(preimporter):
            self.orders.send(READY)
            self._run_orders(preimporter)

    def _run_orders(self, preimporter: Preimporter) -> None:
        """Execute orders, and import when there are none."""
        poller = poll()
        poller.register(self.orders.fileno(), POLLIN)
        steps: Iterator[None] | None = None
        waits = False
        while True:
            # An ordered generation comes before imports, which only help the next one.
            rest = None if waits or self.preforked is not None else IDLE_BEFORE_FORK * 1000
            if poller.poll(rest if waits or steps is None else 0):
                words, fds = receive(self.orders, MAX_MESSAGE)
                if not words:
                    return
                waits = words[:1] == WAIT
                if waits:
                    self.orders.send(WAITING + str(self.lists_imported).encode())
                elif words[:1] == FORK:
                    self._fork(words[1:], fds[0], preimporter)
                else:
                    self._discard_preforked()
                    self.lists_imported += 1
                    preimporter.add(words[1:].decode().split("\n"))
                    steps = self._import(preimporter)
            elif steps is None:
                self._prefork(preimporter)
            elif next(steps, self) is self:
                steps = None
                if not self._report_imported(preimporter):
                    return

    def _import(self, preimporter: Preimporter) -> Iterator[None]:
        """Import one module a step, and report its name."""
        for name in preimporter.steps():
            self.orders.send(IMPORTING + name.encode())
            yield

    def _report_imported(self, preimporter: Preimporter) -> bool:
        """Report the imports; `False` if this process cannot be forked for generations."""
        if preimporter.obstacle:
            self.orders.send(REFUSED + preimporter.obstacle.encode())
            return False
        for name in preimporter.failed.keys() - self.reported:
            self.reported.add(name)
            why = preimporter.failed[name]
            logs.write("debug", f"{name} cannot be preimported, each version imports it: {why}")
        self.shared.report_folders(sorted(preimporter.folders()))
        # Modules' output is written now, not once more by each generation.
        sys.stdout.flush()
        sys.stderr.flush()
        # Generations share the objects that exist now; the collector must not write to them.
        gc.freeze()
        self.orders.send(IMPORTED + str(self.lists_imported).encode())
        return True

    def _fork(self, words: bytes, channel: int, preimporter: Preimporter) -> None:
        """Fork the generation that is ordered."""
        is_started = self.preforked is not None and self.preforked.start(words, channel)
        self._discard_preforked()
        try:
            if not is_started:
                fork.fork_twice(lambda: self._run_generation(words, channel, preimporter))
        except OSError as error:
            logs.write("error", f"a version cannot be forked: {error}")
        # This tells the main process if no process has it.
        posix.close(channel)

    def _prefork(self, preimporter: Preimporter) -> None:
        """Fork the next generation in advance."""
        # After a failure here, the order fails too and reports it.
        with suppress(OSError):
            self.preforked = PreforkedProcess(
                lambda words, fd: self._run_generation(words, fd, preimporter)
            )

    def _discard_preforked(self) -> None:
        if self.preforked is not None:
            self.preforked.close()
            self.preforked = None

    def _run_generation(self, words: bytes, channel: int, preimporter: Preimporter) -> NoReturn:
        """Run the generation that is ordered, in the process forked for it."""
        self.orders.close()
        number, service_index, index, slot, balanced = map(int, words.split())
        scoreboard = self.shared.scoreboards[service_index]
        siblings = scoreboard.memory if balanced else None
        context = WorkerContext(index, slot, channel, siblings, scoreboard.open(slot), 0)
        VersionSpawner(number, self.shared, service_index).run(context, self.parent, preimporter)
