"""The process that answers at the address `admin`.

Imported only where `admin` is set. Requests are parsed by a process of its own, which has dropped
the privileges of the main process and is replaced if it dies. It asks the main process by messages
of few words (`questions.py`), so no client can reach the main process.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable, Sequence

from poorhttp.config.settings import Settings
from poorhttp.net.listener import Listener
from poorhttp.net.sockets import open_listeners
from poorhttp.plugins.monitor.admin.application import Application
from poorhttp.plugins.monitor.admin.protection import Protection
from poorhttp.plugins.monitor.admin.questions import Questions
from poorhttp.plugins.monitor.options import Monitoring
from poorhttp.process import fork, signals
from poorhttp.process.signals import STOP_SIGNALS, signal
from poorhttp.process.worker_context import WorkerContext
from poorhttp.supervisor import supervised_process
from poorhttp.worker.service import Service
from poorhttp.worker.stop_signals import StopSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp._core import Reactor
    from poorhttp.config.address import Address
    from poorhttp.plugins.monitor.metrics.export import SharedMemory
    from poorhttp.supervisor.binary_upgrade import Memory

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
    *("temp_dir", "socket_mode", "socket_owner", "server_header", "proc_name"),
)

#: Seconds for sending metrics a last time, when the server ends.
LAST = 3.0

#: Seconds for the end without metrics: open pages are told that the server has stopped.
CLOSING = 0.5

#: In place of the name of a service, none of which begins with a slash.
NAME = "/admin"


class _Service(Service):
    """Ignores the signals to stop: it reports the shutdown until the main process ends.

    Attributes:
        send_metrics: begins to send metrics, and returns a function that ends it; `None`: none are
            sent.
        signals: those of the process, which have its reactor.
    """

    send_metrics: Callable[[], Callable[[], None]] | None = None
    signals: StopSignals | None = None

    def reactor(self) -> Reactor | None:
        """Return the reactor of the process, once it serves."""
        return self.signals.reactor if self.signals is not None else None

    def serve(
        self,
        ready: Callable[[], object],
        signals: StopSignals,
        context: WorkerContext | None = None,
    ) -> bool:
        """Serve, also if a terminal or systemd signals all processes."""
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self.signals = signals
        stop = self.send_metrics() if self.send_metrics is not None else None
        try:
            return super().serve(ready, signals, context)
        finally:
            if stop is not None:
                stop()


class AdminEndpoint:
    """The address, and the process that answers there.

    Attributes:
        listeners: its listening sockets.
        open_to_users: those by which every user of the machine can control this process, whose user
            is another than that of the application.
        pool: the worker pool of the one process.
    """

    def __init__(self, service: Settings, have: Sequence[Listener], *, is_upgraded: bool) -> None:
        """Open the address that `service` names, unless it is among the open listeners `have`.

        Without one, the process only sends metrics.

        Args:
            service: settings of the first service.
            have: open listeners.
            is_upgraded: a main process before this one has sent metrics.

        Raises:
            Failure: the address cannot be used, or has to be protected by a token.
        """
        settings = _settings(service)
        served = _Service(settings, self._respond, have)
        self.listeners = served.listeners
        try:
            protection = Protection(service, self.listeners)
        except BaseException:
            self.close_listeners(keep=have)
            raise
        is_known = bool(protection.token) or not served.privileges.changes
        self.open_to_users = [
            each for each in self.listeners if not (is_known or each.url.startswith("unix:/"))
        ]
        self.pool = supervised_process.pool(served, "the process that answers at admin,")
        self._questions = Questions(" ".join(each.url for each in self.listeners))
        self._application = Application(self._questions, protection)
        self._application.reactor = served.reactor
        #: Of the metrics that were sent; `None`: the process sends none.
        self._sent: SharedMemory | None = None
        if service.of(Monitoring).sends_metrics:
            from poorhttp.plugins.monitor.metrics import export  # takes memory

            self._sent = export.shared
            self._sent.open(service, is_upgraded=is_upgraded)
            served.send_metrics = lambda: export.start(service, self._application.status)

    def fileno(self) -> int:
        """Return the descriptor that is readable when the process asks something."""
        return self._questions.fileno()

    def tick(self, now: float, respond: Callable[[bytes, str], str]) -> None:
        """Do what is due for the process, and answer its questions by `respond`."""
        self._set_forking(True)
        self.pool.tick(now)
        self._set_forking(False)
        self._questions.answer(respond)

    def _set_forking(self, is_forking: bool) -> None:
        """Keep descriptors open, in processes that are forked, which others than this close."""
        self._questions.forking = is_forking
        if self._sent is not None:
            self._sent.forking = is_forking

    def memory(self) -> list[Memory]:
        """Return what the next main process inherits."""
        return self._sent.memory() if self._sent is not None else []

    def _respond(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request in the process (PEP 3333)."""
        return self._application(environ, start_response)

    def close_listeners(self, keep: Iterable[Listener]) -> None:
        """Close the listeners but those in `keep`."""
        for listener in set(self.listeners).difference(keep):
            listener.close()

    def finish(self, respond: Callable[[bytes, str], str]) -> None:
        """Have the process tell open pages of the stop, send metrics a last time, and end."""
        if not self.pool.retiring:
            # Otherwise the next process answers at the address.
            self.pool.end_long_polls()
            self.pool.retire()
        deadline = time.monotonic() + (CLOSING if self._sent is None else LAST)
        while any(map(signals.is_running, self.pool.workers)) and time.monotonic() < deadline:
            select.select([self.fileno()], [], [], 0.01)
            self._questions.answer(respond)

    def close(self, keep: Iterable[Listener] = ()) -> None:
        """Kill the process if it runs, and close everything but the listeners in `keep`."""
        self.close_listeners(keep)
        for pid, worker in self.pool.workers.items():
            signals.send(pid, signal.SIGKILL)
            fork.wait(pid)
            worker.channel.close()
        self._questions.close()
        # Circles would keep the memory of its process, which is a descriptor.
        del self.pool.spawner.pool, self.pool


def check(service: Settings, is_ours: Callable[[Address], bool]) -> list[Listener]:
    """Open the address that `service` names as a server does, and read the token.

    An address is left out if `is_ours` says that a server of poorhttp listens there.

    Raises:
        Failure: the address cannot be used, or has to be protected by a token.
    """
    if service.of(Monitoring).admin is None:
        return []
    listeners = open_listeners(_settings(service), is_ours=is_ours)
    try:
        Protection(service, listeners)
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def _settings(service: Settings) -> Settings:
    """Return the settings of the process for a server whose first service has these."""
    settings = Settings(**LIMITS)
    address = service.of(Monitoring).admin
    if address is not None:
        settings.set("bind", [(service.origin("admin"), str(address))])
    else:
        settings.listen_nowhere()
    for name in COMMON:
        settings.copy_option(name, service)
    settings.service = NAME
    return settings
