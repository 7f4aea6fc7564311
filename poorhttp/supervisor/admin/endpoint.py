"""The process that answers `/-/live`, `/-/ready` and `/-/metrics` at the address `admin`.

Imported only where `admin` is set. Requests are parsed by a process of its own, which has dropped
the privileges of the main process and is replaced if it dies. It asks the main process by messages
of fixed length, and reads the answer from shared memory, so no client can reach the main process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

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
#: number follows that the answer repeats, so that a process ignores answers to its predecessor.
READY = b"r"
METRICS = b"m"
QUESTION_SIZE = 9


class _Service(Service):
    """Ignores the signals to stop: it reports the shutdown until the main process ends."""

    def serve(
        self,
        ready: Callable[[], object],
        signals: StopSignals,
        context: WorkerContext | None = None,
    ) -> bool:
        """Serve, also if a terminal or systemd signals all processes."""
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        return super().serve(ready, signals, context)


class AdminEndpoint:
    """The address, and the process that answers there.

    Attributes:
        listeners: its listening sockets.
        pool: the worker pool of the one process.
    """

    def __init__(self, service: Settings, have: Sequence[Listener]) -> None:
        """Open the address that `service` names, unless it is among the open listeners `have`.

        Raises:
            BindError: it cannot be used.
        """
        assert service.admin is not None
        settings = Settings(bind=service.admin, **LIMITS)
        for name in COMMON:
            settings.copy_option(name, service)
        settings.service = NAME
        served = _Service(settings, self.application, have)
        served.loaded = served.serving = True
        self.listeners = served.listeners
        self.pool = WorkerPool(served, Totals())
        self.pool.noun = "the process that answers at admin,"
        # However often it dies, it is replaced.
        self.pool.complete = True
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self._theirs.settimeout(TIMEOUT)
        #: The last answer: a line with why the server is not ready, and the metrics.
        self._memory = os.memfd_create("poorhttp-admin")
        self._asked = 0
        self._forking = False
        fork.after_fork_in_child.append(self._close_after_fork)

    # In the main process

    def fileno(self) -> int:
        """Return the descriptor that is readable when the process asks something."""
        return self._ours.fileno()

    def tick(self, now: float, generations: Generations, why_not_ready: Callable[[], str]) -> None:
        """Do what is due for the process, and answer its questions, which come one at a time."""
        self._forking = True
        self.pool.tick(now)
        self._forking = False
        for _ in range(AT_ONCE):
            try:
                question = self._ours.recv(QUESTION_SIZE)
            except OSError:
                return
            why_not = why_not_ready()
            text = f"{why_not}\n"
            if question[:1] == METRICS:
                text += metrics.text(generations, ready=not why_not, now=time.monotonic())
            answer = text.encode()
            os.pwrite(self._memory, answer, 0)
            os.ftruncate(self._memory, len(answer))
            # The buffer is full only if the process does not read its answers.
            with suppress(OSError):
                self._ours.send(question)

    def close_listeners(self, keep: Iterable[Listener]) -> None:
        """Close the listeners but those in `keep`."""
        for listener in set(self.listeners).difference(keep):
            listener.close()

    def close(self, keep: Iterable[Listener] = ()) -> None:
        """Kill the process if it runs, and close everything but the listeners in `keep`."""
        self.close_listeners(keep)
        for pid, worker in self.pool.workers.items():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            worker.channel.close()
        self._close_after_fork()
        fork.after_fork_in_child.remove(self._close_after_fork)

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
