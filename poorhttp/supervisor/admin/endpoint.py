"""The process that tells how the server is: `/-/live`, `/-/ready`, `/-/metrics` at `admin`.

Imported only where that is set. Requests are parsed by a process of its own, which has given up the
rights of the main process and is replaced if it dies. It asks the main process by messages of fixed
length and reads the answer from memory that both have open; a client never gets further than to it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from poorhttp import logs
from poorhttp.config.settings import Settings
from poorhttp.process import fork
from poorhttp.process.c_socket import socket
from poorhttp.process.signals import STOP_SIGNALS, signal
from poorhttp.supervisor.admin import metrics
from poorhttp.supervisor.scoreboard import Totals
from poorhttp.supervisor.worker_pool import WorkerPool
from poorhttp.worker.service import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp.net.listener import Listener
    from poorhttp.process.worker_context import WorkerContext
    from poorhttp.supervisor.generations import Generations
    from poorhttp.worker.stop_signals import StopSignals

#: Who asks has a question of one line, and takes an answer of some kilobytes at once.
LIMITS: dict[str, object] = {
    "mode": "single",
    "access_log": "off",
    "max_connections": 64,
    "backlog": 64,
    "max_request_line": 1024,
    "max_header_size": 4096,
    "max_body": 1024,
    "header_timeout": 5,
    "body_timeout": 5,
    "write_timeout": 5,
    "keepalive_timeout": 75,
    "drain_timeout": 1,
    "graceful_timeout": 5,
    "static_cache": 0,
}

#: What it has in common with the server: whom it runs as, where it logs, who may connect.
COMMON = (
    *("user", "group", "error_log", "log_level", "log_config"),
    *("temp_dir", "socket_mode", "socket_owner", "server_header"),
)

#: Answers before the main process looks after its workers again.
AT_ONCE = 16

#: Seconds that the main process may take to answer.
TIMEOUT = 5.0

#: Stands where services have their names, of which none begins so.
NAME = "/admin"

#: What the main process is asked, before a number that it repeats: whether the server is ready, and
#: that together with all figures.
READY = b"r"
METRICS = b"m"
QUESTION = 9


class _Service(Service):
    """Goes on when all processes are told to stop: it tells of that until the main process ends."""

    def serve(
        self, ready: Callable[[], None], signals: StopSignals, context: WorkerContext | None = None
    ) -> None:
        """Serve, whatever a terminal or systemd tells all processes."""
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        super().serve(ready, signals, context)


class Admin:
    """The address, and the process that answers there.

    Attributes:
        listeners: its listening sockets.
    """

    def __init__(self, service: Settings, have: Sequence[Listener] = ()) -> None:
        """Open the address that `service` names, unless it is among those that are open.

        Raises:
            BindError: it cannot be used.
        """
        assert service.admin is not None
        settings = Settings(bind=service.admin, **LIMITS)
        for name in COMMON:
            settings.copy_option(name, service)
        settings.service = NAME
        self._service = _Service(settings, self.application, have)
        self._service.loaded = self._service.serving = True
        self.listeners = self._service.listeners
        self._make_pool: WorkerPool | None = None
        #: Those whose place we have taken, as long as clients of theirs may ask.
        self._past: list[Admin] = []
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self._theirs.settimeout(TIMEOUT)
        #: Holds the last answer: why the server is not ready, in a line, and the figures.
        self._memory = os.memfd_create("poorhttp-admin")
        self._asked = 0
        self._forks = False
        fork.after_fork_in_child.append(self._abandon)

    # In the main process

    def begin(
        self, generations: Generations, why_not: Callable[[], str], before: Admin | None = None
    ) -> None:
        """Let clients in.

        Args:
            generations: about what to tell.
            why_not: returns why the server is not ready; nothing if it is.
            before: whose place we take; those whom it has let in are heard for a moment.
        """
        self._fleet = generations
        self._why_not = why_not
        self._make_pool = WorkerPool(self._service, Totals())
        self._make_pool.noun = "the process that answers at admin,"
        # However often it dies: that ends nothing.
        self._make_pool.complete = True
        if before is not None:
            before.retire()
            self._past = [*before._past, before]
            before._past = []
        if before is None or before.listeners != self.listeners:
            where = ", ".join(listener.url for listener in self.listeners)
            logs.write("info", f"/-/live, /-/ready and /-/metrics are at {where}")

    def retire(self) -> None:
        """Let nobody in any more; who is there may still ask for a moment."""
        for pool in self._pools:
            if not pool.leaving:
                pool.retire()

    @property
    def _pools(self) -> list[WorkerPool]:
        return [one._make_pool for one in (self, *self._past) if one._make_pool is not None]

    @property
    def is_heard(self) -> bool:
        """Whether somebody may still ask."""
        return not all(pool.over for pool in self._pools)

    def filenos(self) -> Iterator[int]:
        """Return what is readable when it asks or tells something."""
        for one in (self, *self._past):
            yield one._ours.fileno()
        for pool in self._pools:
            yield from (channel.fileno() for channel in pool.channels())

    def due(self) -> float:
        """Return when there is something to do although nothing is readable."""
        return min((pool.due() for pool in self._pools), default=float("inf"))

    def tick(self, now: float) -> None:
        """See to the process, and answer what it asks."""
        self._forks = True
        for pool in self._pools:
            pool.tick(now)
        self._forks = False
        for one in list(self._past):
            if one._make_pool is not None and one._make_pool.over:
                self._past.remove(one)
                one._forget()
            else:
                one._answer()
        self._answer()

    def reap(self, pid: int, code: int) -> bool:
        """See to a child that has died; `False` if it was none of these."""
        return any(pool.reap(pid, code) for pool in self._pools)

    def on_stopped(self, pid: int, number: int) -> None:
        """Note that a child was stopped by a signal, or continued (0)."""
        for pool in self._pools:
            pool.on_stopped(pid, number)

    def signal(self, number: int) -> None:
        """Pass a signal on."""
        for pool in self._pools:
            pool.signal(number)

    def _answer(self) -> None:
        """Answer what was asked; it never asks more than once before it has its answer."""
        for _ in range(AT_ONCE):
            try:
                question = self._ours.recv(QUESTION)
            except OSError:
                return
            why_not = self._why_not()
            text = f"{why_not}\n"
            if question[:1] == METRICS:
                text += metrics.text(self._fleet, ready=not why_not, now=time.monotonic())
            answer = text.encode()
            os.pwrite(self._memory, answer, 0)
            os.ftruncate(self._memory, len(answer))
            # If there is no room, it does not read what it has asked for.
            with suppress(OSError):
                self._ours.send(question)

    def close(self, keep: Iterable[Listener] = ()) -> None:
        """Close everything but the listeners in `keep`, unless somebody goes on after us."""
        for listener in set(self.listeners).difference(keep):
            listener.close()
        if self._make_pool is None or not self._make_pool.leaving:
            self._end()

    def end(self) -> None:
        """End the process, and those before it, with the main process."""
        for one in (self, *self._past):
            one._end()
            for listener in one.listeners:
                listener.close()

    def _end(self) -> None:
        for pid in self._make_pool.workers if self._make_pool is not None else ():
            # Nothing is lost by it.
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self._forget()

    def _forget(self) -> None:
        self._abandon()
        fork.after_fork_in_child.remove(self._abandon)
        if self._make_pool is not None:
            for worker in self._make_pool.workers.values():
                worker.channel.close()
            self._make_pool.close()

    def _abandon(self) -> None:
        """Close what only the main process has, and in others than our process all of it."""
        self._ours.close()
        if not self._forks and self._memory >= 0:
            self._theirs.close()
            os.close(self._memory)
            self._memory = -1

    # In the process

    def application(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Be the application of this address (PEP 3333)."""
        status, content_type, text = self._respond(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        fields = [("Content-Type", content_type), ("Cache-Control", "no-store")]
        if status.startswith("405"):
            fields.append(("Allow", "GET, HEAD"))
        start_response(status, fields)
        return [text.encode()]

    def _respond(self, method: str, path: str) -> tuple[str, str, str]:
        plain = "text/plain; charset=utf-8"
        if path not in ("/-/live", "/-/ready", "/-/metrics"):
            return "404 Not Found", plain, "there are /-/live, /-/ready and /-/metrics\n"
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", plain, "health can be read only\n"
        try:
            why_not, text = self._ask(METRICS if path == "/-/metrics" else READY)
        except OSError:
            unavailable = "503 Service Unavailable"
            return unavailable, plain, "not ready: the main process does not answer\n"
        if path == "/-/metrics":
            return "200 OK", metrics.CONTENT_TYPE, text
        if path == "/-/live":
            return "200 OK", plain, "live\n"
        if why_not:
            return "503 Service Unavailable", plain, f"not ready: {why_not}\n"
        return "200 OK", plain, "ready\n"

    def _ask(self, what: bytes) -> tuple[str, str]:
        """Ask the main process; return why the server is not ready, and figures if asked for.

        Raises:
            OSError: it does not answer.
        """
        self._asked += 1
        # Nobody takes the answer to a process that has died for his own.
        number = (os.getpid() << 32 | self._asked & 0xFFFFFFFF).to_bytes(8, "big")
        self._theirs.send(what + number)
        while (heard := self._theirs.recv(QUESTION)) != what + number:
            if not heard:
                raise OSError("the main process has ended")
        text = os.pread(self._memory, os.fstat(self._memory).st_size, 0).decode()
        why_not, _, figures = text.partition("\n")
        return why_not, figures
