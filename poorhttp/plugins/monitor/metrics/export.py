"""Sends metrics from the admin process: to StatsD (`statsd`), by OpenTelemetry (`otel`).

A thread of the admin process asks the main process for the status document at each interval, as a
scraper would. So the main process only gets the usual question, and a receiver that hangs delays
nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence

from poorhttp import logs
from poorhttp.config.settings import Settings
from poorhttp.plugins.monitor.metrics import changes
from poorhttp.plugins.monitor.metrics.families import Family, Sample, collect
from poorhttp.plugins.monitor.options import Monitoring
from poorhttp.process import fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.address import Address
    from poorhttp.plugins.monitor.admin.model import Status
    from poorhttp.plugins.monitor.metrics.changes import Numbers
    from poorhttp.plugins.monitor.metrics.otlp import Exporter
    from poorhttp.supervisor.binary_upgrade import Memory

    Metrics = Sequence[tuple[Family, Sequence[Sample]]]

#: Seconds for the last sending, when the process ends.
LAST = 2.0

#: What is left to the next main process, by its kind.
KIND = "sent"


def wanted(settings: Settings) -> list[str]:
    """Return the receivers of metrics, by their options."""
    options = settings.of(Monitoring)
    found = ["statsd"] if options.statsd is not None else []
    return [*found, "otel"] if options.otel in ("on", "metrics") else found


class SharedMemory:
    """What was sent to each receiver: of the main process, and of the processes that send.

    Attributes:
        forking: a process that sends is being forked; any other child closes the memory.
    """

    def __init__(self) -> None:
        self.forking = False
        self._sent: dict[str, changes.Sent] = {}
        #: Descriptors for the next main process, which is forked from this one too.
        self._left: list[int] = []
        fork.after_fork_in_child.append(self._close_after_fork)

    def __getitem__(self, receiver: str) -> changes.Sent:
        return self._sent[receiver]

    def open(self, settings: Settings, *, is_upgraded: bool) -> None:
        """Make what is missing, in the main process before it forks a process that sends.

        All that has been counted is to be sent; if this main process is upgraded, and what was sent
        is not known, that begins with the first document.
        """
        for name in wanted(settings):
            if name not in self._sent:
                self._sent[name] = changes.Sent()
                if not is_upgraded:
                    self._sent[name].write({})

    def inherit(self, memory: Iterable[Memory]) -> None:
        """Go on with what the main process before this one has sent."""
        for kind, name, _, fd in memory:
            if kind == KIND and name not in self._sent:
                self._sent[name] = changes.Sent(os.dup(fd))

    def memory(self) -> list[Memory]:
        """Return what the next main process inherits."""
        while self._left:
            os.close(self._left.pop())
        self._left = [os.dup(sent.fd) for sent in self._sent.values()]
        return [
            (KIND, name, os.getpid(), fd) for name, fd in zip(self._sent, self._left, strict=True)
        ]

    def _close_after_fork(self) -> None:
        while self._sent and not self.forking:
            self._sent.popitem()[1].close()


#: The one of this process.
shared = SharedMemory()


class _StatsD:
    """Sends to StatsD."""

    def __init__(self, options: Monitoring, address: Address) -> None:
        from poorhttp.plugins.monitor.metrics import statsd

        self.interval = statsd.INTERVAL
        self._address = address
        self._prefix = options.statsd_prefix and f"{options.statsd_prefix}."
        self._tags = options.statsd_tags
        self._module = statsd
        self._problem = ""

    def send(self, metrics: Metrics, grown: Numbers, _before: float, _now: float) -> None:
        """Send everything; log a problem once, and its end."""
        try:
            lines = self._module.lines(metrics, grown, self._prefix, self._tags)
            self._module.send(self._address, lines)
        except OSError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                logs.write("warning", f"metrics do not reach StatsD at {self._address}: {error}")
        else:
            if self._problem:
                logs.write("info", f"metrics are sent to StatsD at {self._address} again")
            self._problem = ""

    def close(self) -> None:
        """Do nothing: there is no connection."""


class _Receiver:
    """A receiver of metrics, and when something is due for it."""

    def __init__(self, name: str, sender: _StatsD | Exporter) -> None:
        self._sent = shared[name]
        self._sent.take_over()
        self._sender = sender
        self._before = time.time()
        # At once, if it is not known what was sent: that is noted then.
        is_known = self._sent.read() is not None
        self.due = time.monotonic() + (sender.interval if is_known else 0.0)

    @property
    def is_ours(self) -> bool:
        """Whether no successor of this process sends already."""
        return self._sent.is_ours

    def send(self, status: Status) -> None:
        """Send what the document says, and what has grown since the last one."""
        self.due = time.monotonic() + self._sender.interval
        metrics = collect(status)
        now = changes.numbers(metrics)
        before = self._sent.read()
        grown = changes.growth(now, now if before is None else before)
        # Before it is sent: killed in between, something is missing rather than counted twice.
        self._sent.write(now)
        self._sender.send(metrics, grown, self._before, status["now"])
        self._before = status["now"]

    def close(self) -> None:
        """Close its connections."""
        self._sender.close()


def start(settings: Settings, ask: Callable[[], Status]) -> Callable[[], None]:
    """Begin to send, in the admin process.

    Args:
        settings: those of the first service.
        ask: returns the status document; raises an OSError if the main process does not answer.

    Returns:
        A function that sends a last time, and ends the thread.

    Raises:
        ConfigError: an exporter that the environment names is not there.
    """
    import threading

    receivers = [_Receiver(name, _sender(name, settings)) for name in wanted(settings)]
    over = threading.Event()

    def tick(*, last: bool) -> None:
        now = time.monotonic()
        due = [each for each in receivers if each.is_ours and (last or each.due <= now)]
        if not due:
            return
        try:
            status = ask()
        except OSError:
            # It is sent with the next.
            for each in due:
                each.due = now + 1
            return
        for each in due:
            each.send(status)

    def run() -> None:
        while not over.wait(max(0.0, min(each.due for each in receivers) - time.monotonic())):
            tick(last=False)
        tick(last=True)
        for each in receivers:
            each.close()

    thread = threading.Thread(target=run, name="poorhttp-metrics", daemon=True)
    thread.start()

    def stop() -> None:
        over.set()
        thread.join(LAST)

    return stop


def _sender(name: str, settings: Settings) -> _StatsD | Exporter:
    if name == "statsd":
        options = settings.of(Monitoring)
        assert options.statsd is not None
        return _StatsD(options, options.statsd)
    from poorhttp.plugins.monitor.metrics import otlp

    return otlp.Exporter()
