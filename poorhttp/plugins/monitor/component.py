"""The address `admin`: runs its process, answers `ctl`, keeps the history of an hour."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress

from poorhttp import logs
from poorhttp.config.settings import Settings
from poorhttp.net.listener import Listener
from poorhttp.plugins.monitor import log_level
from poorhttp.plugins.monitor.answers import answering, full
from poorhttp.plugins.monitor.options import Monitoring
from poorhttp.plugins.monitor.pings import Pings
from poorhttp.supervisor.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from poorhttp.plugins.monitor.admin.commands import Commands
    from poorhttp.plugins.monitor.admin.endpoint import AdminEndpoint
    from poorhttp.plugins.monitor.admin.status import StatusDocument
    from poorhttp.plugins.monitor.derived.history import History, Inherited
    from poorhttp.supervisor.binary_upgrade import Memory
    from poorhttp.supervisor.component import Main, Reloads
    from poorhttp.supervisor.worker_pool import WorkerPool

    class Past(TypedDict):
        """What the next main process goes on with, as JSON."""

        reloads: Reloads
        history: Inherited | None


#: What is left to the next main process (`Memory`): a JSON object. The name changes with its form.
KIND = "past"

#: Bytes of it, at most.
LARGEST = 1 << 26


class Monitor(Component):
    """Opens the address, replaces it at a reload, and answers the questions of its process.

    Attributes:
        history: the last hour; `None`: there is no address.
    """

    def __init__(self, main: Main) -> None:
        super().__init__(main)
        #: What the main process before this one has left.
        self._past: Past | None = None
        #: Reloads of main processes before this one.
        self._reloads: Reloads = {"succeeded": 0, "failed": 0, "last": None}
        self.history: History | None = None
        self._pings = Pings()
        #: Clients are accepted.
        self._started = False
        #: Made when they are needed for the first time: they take memory.
        self._document: StatusDocument | None = None
        self._commands: Commands | None = None
        self._endpoint: AdminEndpoint | None = None
        #: Endpoints before this one, until their processes have ended.
        self._previous: list[AdminEndpoint] = []
        #: That of a configuration that is being loaded.
        self._next: AdminEndpoint | None = None
        #: Why the server was not ready at the last check; empty if it was.
        self._unready = ""
        #: What was left to the next main process, until it has been started; -1: nothing.
        self._memory = -1

    def open(self, services: Sequence[Settings], have: Sequence[Listener]) -> None:
        """Open the address, which the first service has; go on with what was left.

        Raises:
            Failure: the address cannot be used.
        """
        takeover = self.main.takeover
        if takeover is not None and not self.main.started:
            self._past = _inherited(takeover.memory)
            if self._past is not None:
                self._reloads = self._past["reloads"]
            if services[0].of(Monitoring).sends_metrics:
                from poorhttp.plugins.monitor.metrics import export  # takes memory

                export.shared.inherit(takeover.memory)
        self._endpoint = self._opened(services, have)

    def listeners(self) -> Sequence[Listener]:
        """Return the listening sockets."""
        return self._endpoint.listeners if self._endpoint is not None else ()

    def pools(self) -> list[WorkerPool]:
        """Return the pools of one process each: the present one, and previous ones that end."""
        return [each.pool for each in self._endpoints] if self._started else []

    @property
    def _endpoints(self) -> list[AdminEndpoint]:
        return [*self._previous, *([self._endpoint] if self._endpoint is not None else [])]

    def start(self) -> None:
        """Accept clients."""
        self._started = True
        self._keep_history()
        self._begin(())

    def prepare(self, services: Sequence[Settings]) -> None:
        """Open the address of a configuration that is being loaded.

        Raises:
            BindError: it cannot be used.
        """
        self._next = self._opened(services, self.listeners())

    def commit(self) -> None:
        """Go on at the address that `prepare` has opened; clients are served for a moment."""
        previous, self._endpoint, self._next = self._endpoint, self._next, None
        self._keep_history()
        self._begin(previous.listeners if previous is not None else ())
        if previous is not None and self._endpoint is not None:
            previous.pool.retire()
            previous.close_listeners(keep=self.listeners())
            self._previous.append(previous)
        elif previous is not None:
            previous.close()
        log_level.set_level("")
        self.tick(time.monotonic())

    def cancel(self) -> None:
        """Close the address that `prepare` has opened."""
        if self._next is not None:
            self._next.close(keep=self.listeners())
            self._next = None

    @property
    def reloads(self) -> Reloads:
        """How many reloads have succeeded and failed in all main processes, and the last one."""
        before, now = self._reloads, self.main.reloads
        return {
            "succeeded": before["succeeded"] + now["succeeded"],
            "failed": before["failed"] + now["failed"],
            "last": now["last"] or before["last"],
        }

    def why_not_ready(self) -> str:
        """Return why `/-/ready` is 503; empty if it is 200."""
        main = self.main
        if 0 < main.drain_until < float("inf") or main.stop_signal:
            return "the server was told to stop"
        if not main.started:
            return "the server is starting"
        if main.replaced:
            # The new main process serves.
            return ""
        if main.drain_until:
            return "an operator has drained the server"
        now = time.monotonic()
        pools = main.generations.serving
        silent = next((pool for pool in pools if not answering(pool, now)), None)
        if silent is None:
            return ""
        if number := full(silent, now):
            workers = "the worker" if silent.count == 1 else f"{number} of {silent.count} workers"
            return f"{silent.name}all threads of {workers} run requests, and no worker answers"
        return f"{silent.name}no worker answers"

    def _log_readiness(self) -> None:
        """Log changes of `/-/ready`; the start and the stop have lines of their own."""
        main = self.main
        if self._endpoint is None or not main.started or main.drain_until or main.stop_signal:
            return
        before, self._unready = self._unready, self.why_not_ready()
        if self._unready and not before:
            logs.write("warning", f"/-/ready is 503 from now on: {self._unready}")
        elif before and not self._unready:
            logs.write("info", "/-/ready is 200 again")

    def begun(self, kind: str) -> None:
        """Note that a reload or a restart begins, for the commands that wait for it."""
        if self._commands is not None:
            self._commands.begin(kind)

    def ended(self, kind: str, message: str, *, succeeded: bool) -> None:
        """Note the end of a reload or a restart."""
        if self._commands is not None:
            self._commands.end(kind, message, succeeded=succeeded)

    def filenos(self) -> list[int]:
        """Return the descriptors that are readable when a process asks something."""
        fds = [each.fileno() for each in self._endpoints]
        return fds + self._commands.filenos() if self._commands is not None else fds

    def due(self) -> float:
        """Return when `tick` has to be called, besides the pools."""
        kept = self.history.due if self.history is not None else float("inf")
        asked = self._commands.due() if self._commands is not None else float("inf")
        return min(kept, asked, self._pings.due())

    def tick(self, now: float) -> None:
        """Do what is due for the processes, answer their questions, and note what has happened."""
        for each in list(self._previous):
            if each.pool.ended:
                self._previous.remove(each)
                each.close(keep=each.listeners)
        if self._commands is not None:
            self._commands.tick(now)
        if self._started:
            for each in self._endpoints:
                each.tick(now, self._answer)
        if self.history is not None:
            self.history.tick(self.main.generations, now)
        self._log_readiness()
        self._pings.tick(self.main.generations.serving, time.monotonic())

    def _keep_history(self) -> None:
        """Begin to keep the last hour, if somebody can ask for it; go on with what is known."""
        if self._endpoint is None:
            self.history = None
        elif self.history is None:
            from poorhttp.plugins.monitor.derived.history import History

            inherited = self._past["history"] if self._past is not None else None
            self.history = History(self.main.generations, inherited)
            self._past = None

    def _answer(self, kind: bytes, words: str) -> str:
        """Return the answer to a question (see `questions.py`)."""
        # What is not asked for takes no memory.
        from poorhttp.plugins.monitor.admin import questions

        if kind in (questions.READY, questions.STATUS):
            self._pings.on_question()
        if kind == questions.READY:
            return self.why_not_ready()
        if kind == questions.STATUS:
            if self._document is None:
                from poorhttp.plugins.monitor.admin.status import StatusDocument

                self._document = StatusDocument(self)
            return questions.to_json(self._document.build(time.monotonic()))
        if self._commands is None:
            from poorhttp.plugins.monitor.admin.commands import Commands

            self._commands = Commands(self.main)
        return (
            self._commands.run(words) if kind == questions.COMMAND else self._commands.result(words)
        )

    def memory(self) -> list[Memory]:
        """Return what the next main process inherits; see `close_memory`."""
        if self._endpoint is None:
            return []
        return [*self._endpoint.memory(), *self._left()]

    def _left(self) -> list[Memory]:
        from poorhttp.plugins.monitor.admin.questions import to_json

        history = self.history.inheritance() if self.history is not None else None
        past: Past = {"reloads": self.reloads, "history": history}
        self.close_memory()
        self._memory = os.memfd_create("poorhttp-past")
        try:
            with open(self._memory, "wb", closefd=False) as file:
                file.write(to_json(past).encode())
        except OSError:
            # Large files may be forbidden. The hour begins anew.
            return []
        return [(KIND, "", os.getpid(), self._memory)]

    def close_memory(self) -> None:
        """Close what `memory` has opened, when the next main process has been started."""
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1

    def detach(self) -> None:
        """Leave the address to a new main process, which has the same sockets."""
        for listener in self.listeners():
            listener.owned = False
        for pool in self.pools():
            if not pool.retiring:
                pool.retire()

    def stop(self) -> None:
        """End the processes and close everything."""
        self.cancel()
        if self._commands is not None:
            self._commands.close()
        for each in self._endpoints:
            if self._started:
                each.finish(self._answer)
            each.close()

    def _begin(self, have: Sequence[Listener]) -> None:
        """Log the address, unless it is that of `have`."""
        listeners = self.listeners()
        if listeners and listeners != have:
            where = ", ".join(map(_page_url, listeners))
            others = "/-/live, /-/ready, /-/metrics and /-/status beside it"
            logs.write("info", f"the status page is at {where} ({others})")
            if self._endpoint is not None and self._endpoint.open_to_users:
                logs.write(
                    "warning",
                    f"every user of this machine, and the application, can stop the server at "
                    f"{self._endpoint.open_to_users[0].url}: set admin_token_file, or a Unix "
                    "socket with a path",
                )

    def _opened(
        self, services: Sequence[Settings], have: Sequence[Listener]
    ) -> AdminEndpoint | None:
        """Open the address of the first service; `None`: it has none, and sends no metrics."""
        options = services[0].of(Monitoring)
        if options.admin is None and not options.sends_metrics:
            return None
        from poorhttp.plugins.monitor.admin.endpoint import AdminEndpoint
        from poorhttp.plugins.monitor.inspection.worker import area, handler

        log_level.share()
        # Before workers are forked.
        area.area.open()
        handler.ignore()
        is_upgraded = self.main.takeover is not None
        return AdminEndpoint(services[0], have, is_upgraded=is_upgraded)


def _page_url(listener: Listener) -> str:
    """Return the address of the status page; of a Unix socket, its path."""
    return (
        f"{listener.url}/"
        if listener.protocol == "http" and "://" in listener.url
        else listener.url
    )


def _inherited(memory: Sequence[Memory]) -> Past | None:
    """Return what the main process before this one has left; `None`: nothing that is known."""
    import json  # takes memory

    for kind, _, _, fd in memory:
        if kind == KIND:
            # Another version of this package may leave something else.
            with suppress(OSError, ValueError, TypeError, KeyError):
                found = json.loads(os.pread(fd, LARGEST, 0))
                past: Past = {"reloads": found["reloads"], "history": found["history"]}
                return past
    return None
