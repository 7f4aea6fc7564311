"""One worker, as the main process sees it."""

from __future__ import annotations

import os
import time

from poorhttp import logs
from poorhttp.config.settings import Settings
from poorhttp.process import signals
from poorhttp.process.control_channel import (
    ACTIVE,
    AGAIN,
    BROKEN,
    FULL,
    GREENLETS,
    OWN_USR1,
    PING,
    PONG,
    RECYCLE,
    REPLACED,
    RETIRE,
    SERVING,
    STUCK,
    ControlChannel,
)
from poorhttp.process.signals import Disposition, signal
from poorhttp.worker.stop_signals import GRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp._core import WorkerStatus

#: Reasons for which a worker is replaced: at once, also if another is being replaced; and because
#: an operator has named it.
CANNOT_WAIT = "a request in it cannot be interrupted"
ASKED = "an operator has asked for it"

#: Seconds between two looks at the memory of a worker that has requests.
CHECK_INTERVAL = 1.0

#: Seconds that a process may be stopped (SIGSTOP) before it is killed and replaced; in development
#: it is not. A process that a debugger holds does not count as stopped.
STOPPED = 10.0


class WorkerHandle:
    """A worker process. Times are those of the monotonic clock.

    Attributes:
        index: its number among the workers of its service, from 0.
        slot: its number in the scoreboard.
        balances: its accepts are balanced with those of its siblings.
        started: when it was forked.
        last_answer: when it last answered a ping, or began to serve.
        reported: all messages that it has sent, also those for the spawner.
    """

    pid = 0  # its process ID; 0 as long as it is not known (`WorkerPool.ordered`)
    pinged = 0.0  # since when a ping has no answer; 0: none is open
    memory_due = 0.0  # when `max_rss` is checked next; infinite until it gets a request

    # What it has reported

    serves = False
    active = False  # a request began, since this was last false
    full = False  # all its threads have requests, and it is not being checked yet
    broken = False  # it serves an error page, because its application could not be loaded
    again = False  # its application could not be loaded, perhaps because an older version runs
    replaced = False  # the application has replaced the handler of a signal to stop
    own_usr1 = False  # a library handles SIGUSR1, past Python
    greenlets: str | None = None  # the package by whose greenlets it has replaced threads

    # How it goes on

    recycle_reason = ""  # why it is to be replaced
    successor: WorkerHandle | None = None  # the worker that replaces it
    timeout = ""  # why it is given up, in words
    timeout_reported = False  # the functions of `worker_timeout` have been told
    kill_at = 0.0  # it has been told to end, and is killed then; 0: it has not
    kill_stopped_at = 0.0  # it is stopped (SIGSTOP), and is killed then; 0: it is not stopped
    killed_stopped = False  # it was killed because it was stopped
    next_term = 0.0  # when SIGTERM is sent again, if it does not serve yet; 0: never

    def __init__(self, index: int, slot: int, channel: ControlChannel, *, balances: bool) -> None:
        self.index = index
        self.slot = slot
        self.channel = channel
        self.balances = balances
        self.reported: set[int] = set()
        self.started = self.last_answer = time.monotonic()

    def receive(self, now: float) -> None:
        received = self.channel.receive()
        self.serves |= SERVING in received
        self.full |= FULL in received
        if ACTIVE in received:
            self.active = True
            self.memory_due = min(self.memory_due, now + CHECK_INTERVAL)
        self.broken |= BROKEN in received
        self.again |= AGAIN in received
        if SERVING in received or PONG in received:
            self.last_answer = now
            self.pinged = 0.0
        if RECYCLE in received:
            self.recycle_reason = self.recycle_reason or "it has begun max_requests requests"
        self.reported.update(received)
        self.replaced |= REPLACED in received
        self.own_usr1 |= OWN_USR1 in received
        for package, message in GREENLETS.items():
            if message in received:
                self.greenlets = package
        if STUCK in received:
            self.recycle_reason = self.timeout = CANNOT_WAIT

    def is_late(self, now: float) -> bool:
        """Whether it should have ended, or has been stopped (SIGSTOP) for too long."""
        return 0 < self.kill_at <= now or 0 < self.kill_stopped_at <= now

    def give_up(self, in_flight: str, noun: str, now: float, *, asked: bool) -> None:
        """Kill it, because it `is_late`.

        `in_flight` are its requests; `asked`: an operator has stopped the server.
        """
        if 0 < self.kill_at <= now:
            if in_flight:
                why = f"still had requests in flight and was killed: {in_flight}"
                if self.replaced:
                    why += "; the application has replaced the handler of a signal to stop"
            elif self.serves:
                why = (
                    "had answered everything, but did not end (an atexit handler or a thread "
                    "of the application holds it up) and was killed"
                )
            else:
                why = "was still loading the application and was killed: "
                if verb := Disposition(str(self.pid)).withheld(signal.SIGTERM):
                    why += f"the application {verb} SIGTERM"
                else:
                    why += (
                        "SIGTERM has not ended that, because the application has replaced the "
                        "handler, has caught the exception, or waits in a library"
                    )
            # After a signal to stop, `graceful_timeout` is what the operator has chosen.
            logs.write("warning" if asked else "error", f"worker {self.pid} {why}")
            self.timeout = self.timeout or "it did not end in time (graceful_timeout)"
            self.kill_at = now + GRACE
        else:
            logs.write("error", f"{noun} {self.pid} is still stopped (SIGSTOP), and is killed")
            self.timeout = self.timeout or "it was still stopped (SIGSTOP)"
            self.kill_stopped_at, self.killed_stopped = 0.0, True
        signals.send(self.pid, signal.SIGKILL)

    def stop(self, number: int) -> None:
        """Send it a signal to stop, which must not have the default action while it serves."""
        (signals.send_if_handled if self.serves else signals.send)(self.pid, number)

    def has_served(self) -> bool:
        """Whether it has reported that it serves; if it has not, it cannot from now on."""
        # Once it has sent that, it may have accepted connections.
        self.serves = self.serves or SERVING in self.channel.stop_receiving()
        return self.serves

    def ping(self, now: float) -> None:
        self.pinged = self.pinged or now
        self.channel.send(PING)

    def on_stopped(self, number: int, *, kill: bool) -> None:
        """Handle that a signal has stopped it, or that it was continued (0).

        `kill`: it is killed and replaced if it is not continued in time.
        """
        if number == 0:
            if self.kill_stopped_at:
                logs.write("info", f"worker {self.pid} continues")
            self.kill_stopped_at = 0.0
            return
        self.kill_stopped_at = float("inf")
        then = "it serves no requests until SIGCONT"
        if kill:
            self.kill_stopped_at = time.monotonic() + STOPPED
            then = f"{then}, and is killed and replaced in {STOPPED:.0f} s"
        logs.write("warning", f"worker {self.pid} was stopped by {signals.name(number)}: {then}")

    def limits_due(self, settings: Settings) -> float:
        if self.recycle_reason or not self.serves:
            return float("inf")
        ends = self.started + settings.max_lifetime if settings.max_lifetime else float("inf")
        return min(ends, self.memory_due if settings.max_rss else float("inf"))

    def check_limits(self, settings: Settings, status: WorkerStatus | None, now: float) -> None:
        """Have it replaced if it exceeds `max_lifetime` or `max_rss`."""
        if settings.max_lifetime and now - self.started >= settings.max_lifetime:
            self.recycle_reason = "max_lifetime is over"
        elif settings.max_rss and self.memory_due <= now:
            if status is not None:
                # Before its requests are counted, so that none begins unnoticed.
                status.await_request()
            is_idle = status is not None and not status.counts()[1]
            # Nobody has to look at it until it gets another request.
            self.memory_due = float("inf") if is_idle else now + CHECK_INTERVAL
            if (resident := self.usage()[1]) > settings.max_rss:
                self.recycle_reason = f"it holds {resident >> 20} MiB (max_rss)"

    def retire(self, kill_at: float, message: bytes = RETIRE) -> None:
        """Have it finish its requests and end; it is killed at `kill_at`."""
        self.kill_at = kill_at
        self.channel.send(message)

    def pss(self) -> int:
        """Return its proportional memory (PSS) in bytes; 0 if it is unknown."""
        try:
            with open(f"/proc/{self.pid}/smaps_rollup", "rb") as file:
                return next(int(line.split()[1]) << 10 for line in file if line.startswith(b"Pss:"))
        except (OSError, StopIteration):
            return 0

    def usage(self) -> tuple[float, int]:
        """Return its seconds of CPU time, and its resident memory in bytes; 0: unknown."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                # The name, in parentheses, may contain anything.
                user, system, *_, resident = file.read().rpartition(b")")[2].split()[11:22]
            ticks = int(user) + int(system)
            return ticks / os.sysconf("SC_CLK_TCK"), int(resident) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError):
            return 0.0, 0
