"""The main process's side of the process that watches files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress

# Here, before the fork: what two processes have is shared.
from poorhttp.dev.reload.watch.watcher_process import WatcherProcess
from poorhttp.process import fork
from poorhttp.process.control_channel import ControlChannel
from poorhttp.process.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.dev.reload.watch.project import Project

#: Between two processes, a message is words that end with NUL each, and one more at its end.
END = b"\0\0"

#: When it ends more often than that within so many seconds, another one would end too.
MOST_ENDS = 3
ENDS_WITHIN = 30.0

GIVEN_UP = (
    f"files are no longer watched: the process that does has ended {MOST_ENDS} times within "
    f"{ENDS_WITHIN:.0f} seconds; restart the server"
)


class Watcher:
    """A process of its own, which watches files and tells what has changed.

    Attributes:
        pid: its number; 0 if there is none any more.
    """

    def __init__(self, project: Project) -> None:
        """Start it. What is saved from now on is told."""
        self.pid = 0
        self._project = project
        self._also: dict[str, None] = {}
        self._ends: list[float] = []
        self._received = b""
        self._start(time.time_ns())

    def fileno(self) -> int:
        """Return what is readable when there is something to `receive`; another one after `reap`.

        -1 while there is no process.
        """
        return self._channel.fileno()

    def receive(self) -> list[tuple[str, str]]:
        """Return what has changed, and never wait.

        Returns:
            Pairs of a kind, as of `Project.kind`, and a path; of a burst, all at once. Or `notice`
            and what a person should know.
        """
        self._send()
        while self.fileno() >= 0:
            try:
                data = self._channel.socket.recv(65536)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                data = b""
            if not data:
                self._channel.close()
                break
            self._received += data
        whole, end, rest = self._received.rpartition(END)
        if not end:
            return []
        self._received = rest
        words = [os.fsdecode(word) for word in whole.replace(END, b"\0").split(b"\0")]
        return list(zip(words[::2], words[1::2], strict=True))

    def watch_also(self, folders: Iterable[str]) -> None:
        """Have folders of loaded modules watched that are not below the project's.

        Those of before stay. What changes there is `outside`, or `code` if it is the user's own.
        """
        fresh = [folder for folder in folders if folder not in self._also]
        self._also.update(dict.fromkeys(fresh))
        self._order(fresh)

    def reap(self, pid: int) -> bool:
        """Start another one if a process that has ended was ours; tell whether it was."""
        if pid != self.pid or pid == 0:
            return False
        self.pid = 0
        now = time.monotonic()
        self._ends = [end for end in self._ends if now - end < ENDS_WITHIN] + [now]
        # What it had told, and nobody has heard, is not lost.
        received = self._received
        while self.fileno() >= 0:
            try:
                data = self._channel.socket.recv(65536)
            except OSError:
                break
            if not data:
                break
            received += data
        self._channel.close()
        whole, end, _ = received.rpartition(END)
        self._received = whole + end
        if len(self._ends) < MOST_ENDS:
            # It ended a moment ago: what was saved since is told by the next.
            self._start(time.time_ns() - 1_000_000_000)
            self._order(self._also)
        else:
            self._received += b"notice\0" + GIVEN_UP.encode() + END
            self._make_readable()
        return True

    def close(self) -> None:
        """End it, and wait for that."""
        if self.pid:
            pid, self.pid = self.pid, 0
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self._channel.close()

    def _start(self, since: int) -> None:
        self._channel = ControlChannel()
        self._unsent = b""
        theirs = self._channel.child_fd
        parent = os.getpid()

        def live() -> None:
            WatcherProcess(self._project, theirs, parent, since).run()

        self.pid = fork.fork(live)
        self._channel.close_child_end()

    def _make_readable(self) -> None:
        """Be readable once more, though nobody is there."""
        self._channel = ControlChannel()
        self._channel.close_child_end()

    def _order(self, folders: Iterable[str]) -> None:
        words = b"".join(os.fsencode(folder) + b"\0" for folder in folders)
        if words:
            self._unsent += words
            self._send()

    def _send(self) -> None:
        while self._unsent and self.fileno() >= 0:
            try:
                sent = self._channel.socket.send(self._unsent)
            except OSError:
                # Full, or its end is near: then there is another time, or another process.
                return
            self._unsent = self._unsent[sent:]
