"""A worker, as its main process sees it."""

from __future__ import annotations

import os
import time

from poorhttp import logs
from poorhttp.process.control_channel import (
    BROKEN,
    FULL,
    PING,
    PONG,
    RECYCLE,
    RETIRE,
    SERVING,
    STUCK,
    ControlChannel,
)
from poorhttp.process.exit_status import signal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings

#: What makes a worker so bad that it is replaced whatever else is going on.
CANNOT_WAIT = "a request in it cannot be interrupted"

#: Seconds after which a worker that has not answered does not answer.
SILENCE = 3.0

#: Seconds that a process may be stopped (SIGSTOP), before it is killed and replaced. In development
#: it is not: somebody looks at it. A process that a debugger holds is none of these.
STOPPED = 10.0


class WorkerHandle:
    """A worker.

    Attributes:
        pid: its process.
        index: its number among the workers of its service, from 0.
        slot: its number among all that are alive, from 0.
        channel: the line to it.
        started: when, on the monotonic clock.
        answered: when it has last shown that it answers.
        asked: since when a question waits for its answer; 0: none does.
        full: all its threads have requests, it has said, and nobody checks that.
        serves: it has said so.
        broken: its application could not be loaded, and it serves a page that says why.
        balances: it counts its connections where its siblings see it.
        worn: why it is to be replaced; empty: it is not.
        successor: who takes its place.
        retired: when it must have ended; 0: it goes on.
        stopped: when it is killed because a signal has stopped it; 0: none has.
        next_term: when it is told to end once more, if it does not serve yet; 0: never.
    """

    def __init__(
        self, pid: int, index: int, slot: int, channel: ControlChannel, *, balances: bool
    ) -> None:
        self.pid = pid
        self.index = index
        self.slot = slot
        self.channel = channel
        self.started = self.answered = time.monotonic()
        self.asked = 0.0
        self.full = False
        self.serves = False
        self.broken = False
        self.balances = balances
        self.worn = ""
        self.successor: WorkerHandle | None = None
        self.retired = 0.0
        self.next_term = 0.0
        self.stopped = 0.0

    def hear(self, now: float) -> None:
        """Hear what it has to say."""
        heard = self.channel.receive()
        if SERVING in heard:
            self.serves = True
        if SERVING in heard or PONG in heard:
            self.answered = now
            self.asked = 0.0
        if FULL in heard:
            self.full = True
        if BROKEN in heard:
            self.broken = True
        if RECYCLE in heard:
            self.worn = self.worn or "it has begun max_requests requests"
        if STUCK in heard:
            self.worn = CANNOT_WAIT

    def has_begun(self) -> bool:
        """Whether it has said that it serves, read or not; if it has not, it never can."""
        # Who has said so may have let somebody in.
        self.serves = self.serves or SERVING in self.channel.stop_receiving()
        return self.serves

    def ask(self, now: float) -> None:
        """Ask whether it answers."""
        self.asked = self.asked or now
        self.channel.send(PING)

    def is_silent(self, now: float) -> bool:
        """Whether it has been asked some time ago, and has not answered."""
        return bool(self.asked) and now - self.asked >= SILENCE

    def on_stopped(self, number: int, settings: Settings) -> None:
        """Note that it was stopped by a signal, or continued (0)."""
        if number == 0:
            if self.stopped:
                logs.write("info", f"worker {self.pid} goes on")
            self.stopped = 0.0
            return
        self.stopped = float("inf")
        then = "it serves nobody until it is continued (SIGCONT)"
        if settings.autoreload == "off" and settings.debug == "off":
            self.stopped = time.monotonic() + STOPPED
            then = f"{then}, and is killed and replaced in {STOPPED:.0f} s"
        logs.write("warning", f"worker {self.pid} was stopped by {signal_name(number)}: {then}")

    def look(self, settings: Settings, now: float) -> None:
        """See whether it has lived too long or grown too large."""
        if self.worn or not self.serves:
            return
        if settings.max_lifetime and now - self.started >= settings.max_lifetime:
            self.worn = "max_lifetime is over"
        elif settings.max_rss and (resident := self._resident()) > settings.max_rss:
            self.worn = f"it holds {resident >> 20} MiB (max_rss)"

    def retire(self, until: float, how: bytes = RETIRE) -> None:
        """Have it finish what it has in hand, and end; it is killed if it has not by then."""
        self.retired = until
        self.channel.send(how)

    def _resident(self) -> int:
        """Octets of memory that it holds; 0 if that cannot be known."""
        try:
            with open(f"/proc/{self.pid}/statm", "rb") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            return 0
