"""The process that answers `/-/live`, `/-/ready` and `/-/metrics` at the address `admin`.

Imported only where `admin` is set. Requests are parsed by a process of its own, which has dropped
the privileges of the main process and is replaced if it dies. It asks the main process by messages
of fixed length, and reads the answer from shared memory, so no client can reach the main process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from poorhttp import logs
from poorhttp.config.settings import Settings
from poorhttp.net.listener import Listener
from poorhttp.process import fork
from poorhttp.process.c_socket import socket
from poorhttp.process.signals import STOP_SIGNALS, signal
from poorhttp.process.worker_context import WorkerContext
from poorhttp.supervisor.admin import metrics
from poorhttp.supervisor.generations import Generations
from poorhttp.supervisor.scoreboard import Totals
from poorhttp.supervisor.worker_pool import WorkerPool
from poorhttp.worker.service import Service
from poorhttp.worker.stop_signals import StopSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: Settings of the process: requests are one line, and responses a few kilobytes.
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

#: Options that are those of the server.
COMMON = (
    *("user", "group", "error_log", "log_level", "log_config"),
    *("temp_dir", "socket_mode", "socket_owner", "server_header"),
)

#: Questions that the main process answers at once.
AT_ONCE = 16

#: Seconds for an answer of the main process.
TIMEOUT = 5.0

#: In place of the name of a service, none of which begins with a slash.
NAME = "/admin"

#: The questions to the main process: whether the server is ready, and that with all metrics. A
#: number follows that the answer repeats, so that no process takes an answer for its own that a
#: process before it has asked for.
READY = b"r"
METRICS = b"m"
QUESTION_SIZE = 9


class _Service(Service):
    """Ignores the signals to stop: it reports the shutdown until the main process ends."""

    def serve(
        self, ready: Callable[[], None], signals: StopSignals, context: WorkerContext | None = None
    ) -> None:
        """Serve, also if a terminal or systemd signals all processes."""
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        super().serve(ready, signals, context)


class AdminEndpoint:
    """The address, and the process that answers there.

    Attributes:
        listeners: its listening sockets.
    """

    def __init__(self, service: Settings, have: Sequence[Listener] = ()) -> None:
        """Open the address that `service` names, unless it is among the open listeners `have`.

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
        self._pool: WorkerPool | None = None
        #: Endpoints before this one, until their processes have ended.
        self._previous: list[AdminEndpoint] = []
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self._theirs.settimeout(TIMEOUT)
        #: The last answer: a line with why the server is not ready, and the metrics.
        self._memory = os.memfd_create("poorhttp-admin")
        self._asked = 0
        self._forking = False
        fork.after_fork_in_child.append(self._close_after_fork)

    # In the main process

    def start(
        self,
        generations: Generations,
        why_not_ready: Callable[[], str],
        previous: AdminEndpoint | None = None,
    ) -> None:
        """Accept clients.

        Args:
            generations: their state is reported.
            why_not_ready: returns why the server is not ready; empty if it is.
            previous: the endpoint that this one replaces; its clients are served for a moment.
        """
        self._generations = generations
        self._why_not_ready = why_not_ready
        self._pool = WorkerPool(self._service, Totals())
        self._pool.noun = "the process that answers at admin,"
        # However often it dies, it is replaced.
        self._pool.complete = True
        if previous is not None:
            previous.retire()
            self._previous = [*previous._previous, previous]
            previous._previous = []
        if previous is None or previous.listeners != self.listeners:
            where = ", ".join(listener.url for listener in self.listeners)
            logs.write("info", f"/-/live, /-/ready and /-/metrics are at {where}")

    def retire(self) -> None:
        """Accept no more clients; those that are connected are served for a moment."""
        for pool in self.pools:
            if not pool.retiring:
                pool.retire()

    @property
    def pools(self) -> list[WorkerPool]:
        """The pools of this endpoint and of those before it, of one process each."""
        return [each._pool for each in (self, *self._previous) if each._pool is not None]

    def filenos(self) -> Iterator[int]:
        """Return the descriptors that are readable when a process asks something."""
        return (each._ours.fileno() for each in (self, *self._previous))

    def tick(self, now: float) -> None:
        """Do what is due for the processes, and answer their questions."""
        self._forking = True
        for pool in self.pools:
            pool.tick(now)
        self._forking = False
        for each in list(self._previous):
            if each._pool is not None and each._pool.ended:
                self._previous.remove(each)
                each._close_all()
            else:
                each._answer()
        self._answer()

    def _answer(self) -> None:
        """Answer questions; a process asks one at a time."""
        for _ in range(AT_ONCE):
            try:
                question = self._ours.recv(QUESTION_SIZE)
            except OSError:
                return
            why_not = self._why_not_ready()
            text = f"{why_not}\n"
            if question[:1] == METRICS:
                text += metrics.text(self._generations, ready=not why_not, now=time.monotonic())
            answer = text.encode()
            os.pwrite(self._memory, answer, 0)
            os.ftruncate(self._memory, len(answer))
            # The buffer is full only if the process does not read its answers.
            with suppress(OSError):
                self._ours.send(question)

    def close(self, keep: Iterable[Listener] = ()) -> None:
        """Close the listeners but those in `keep`, and end the process unless it is retiring."""
        for listener in set(self.listeners).difference(keep):
            listener.close()
        if self._pool is None or not self._pool.retiring:
            self._kill()

    def stop(self) -> None:
        """End the process and those before it, and close everything."""
        for each in (self, *self._previous):
            each._kill()
            for listener in each.listeners:
                listener.close()

    def _kill(self) -> None:
        for pid in self._pool.workers if self._pool is not None else ():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self._close_all()

    def _close_all(self) -> None:
        self._close_after_fork()
        fork.after_fork_in_child.remove(self._close_after_fork)
        if self._pool is not None:
            for worker in self._pool.workers.values():
                worker.channel.close()
            self._pool.close()

    def _close_after_fork(self) -> None:
        """Close the main process's end, and in other children than the process its end as well."""
        self._ours.close()
        if not self._forking and self._memory >= 0:
            self._theirs.close()
            os.close(self._memory)
            self._memory = -1

    # In the process

    def application(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
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

    def _ask(self, question: bytes) -> tuple[str, str]:
        """Ask the main process; return why the server is not ready, and the metrics if asked for.

        Raises:
            OSError: it does not answer.
        """
        self._asked += 1
        number = (os.getpid() << 32 | self._asked & 0xFFFFFFFF).to_bytes(8, "big")
        self._theirs.send(question + number)
        while (received := self._theirs.recv(QUESTION_SIZE)) != question + number:
            if not received:
                raise OSError("the main process has ended")
        text = os.pread(self._memory, os.fstat(self._memory).st_size, 0).decode()
        why_not, _, samples = text.partition("\n")
        return why_not, samples
