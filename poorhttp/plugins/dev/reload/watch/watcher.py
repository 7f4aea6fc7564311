"""Starts the process that watches files, and reads its reports, in the main process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from poorhttp.plugins.dev.reload.watch.project import WatchedProject

# Imported before the fork, so that both processes share it.
from poorhttp.plugins.dev.reload.watch.watcher_process import WatcherProcess
from poorhttp.process import fork, signals
from poorhttp.process.control_channel import ControlChannel
from poorhttp.process.signals import signal

#: The end of a message: each of its words ends with NUL, and one more NUL follows.
END = b"\0\0"

#: A process that has ended so often within so many seconds is not started again.
MOST_ENDS = 3
ENDS_WITHIN = 30.0

GIVEN_UP = (
    f"files are no longer watched: the process for it has ended {MOST_ENDS} times within "
    f"{ENDS_WITHIN:.0f} seconds; restart the server"
)


class Watcher:
    """The watching process, seen from the main process.

    Attributes:
        pid: of the process; 0 if it has ended.
    """

    def __init__(self, project: WatchedProject, since: int | None = None) -> None:
        """Start the process. Reported are changes from now on, or `since` a time in nanoseconds."""
        self.pid = 0
        self._project = project
        self._also: dict[str, None] = {}
        self._ends: list[float] = []
        self._received = b""
        self._channel: ControlChannel
        self._start(time.time_ns() if since is None else since)

    def fileno(self) -> int:
        """Return the descriptor that is readable when there are reports; another one after `reap`.

        -1 while there is no process.
        """
        return self._channel.fileno()

    def receive(self) -> list[tuple[str, str]]:
        """Return the changes reported so far, without waiting.

        Returns:
            Pairs of a kind, as of `WatchedProject.kind`, and a path: those of a burst all at once.
            Or pairs of `notice` and a message for the user.
        """
        self._send()
        self._read()
        whole, end, rest = self._received.rpartition(END)
        if not end:
            return []
        self._received = rest
        words = [os.fsdecode(word) for word in whole.replace(END, b"\0").split(b"\0")]
        return list(zip(words[::2], words[1::2], strict=True))

    def watch_also(self, folders: Iterable[str]) -> None:
        """Watch further folders: those of loaded modules outside the project.

        A change there is of the kind `outside`, or `code` if the module is the user's own.
        """
        fresh = [folder for folder in folders if folder not in self._also]
        self._also.update(dict.fromkeys(fresh))
        self._order(fresh)

    def reap(self, pid: int) -> bool:
        """Start the process again if it was the child that has ended; `False` if it was not."""
        if pid != self.pid or pid == 0:
            return False
        self.pid = 0
        now = time.monotonic()
        self._ends = [end for end in self._ends if now - end < ENDS_WITHIN] + [now]
        # Its last reports count; half a report does not.
        self._read()
        self._channel.close()
        whole, end, _ = self._received.rpartition(END)
        self._received = whole + end
        if len(self._ends) < MOST_ENDS:
            # The new process also reports files saved since the old one ended.
            self._start(time.time_ns() - 1_000_000_000)
            self._order(self._also)
        else:
            self._received += b"notice\0" + GIVEN_UP.encode() + END
            # `fileno` returns a readable descriptor, so that the main process reads the notice.
            self._channel = ControlChannel()
            self._channel.close_child_end()
        return True

    def close(self) -> None:
        """Kill the process and wait for its end."""
        if self.pid:
            pid, self.pid = self.pid, 0
            signals.send(pid, signal.SIGKILL)
            fork.wait(pid)
        self._channel.close()

    def _start(self, since: int) -> None:
        self._channel = ControlChannel()
        self._unsent = b""
        theirs = self._channel.child_fd
        parent = os.getpid()
        self.pid = fork.fork(lambda: WatcherProcess(self._project, theirs, parent, since).run())
        self._channel.close_child_end()

    def _order(self, folders: Iterable[str]) -> None:
        words = b"".join(os.fsencode(folder) + b"\0" for folder in folders)
        if words:
            self._unsent += words
            self._send()

    def _read(self) -> None:
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

    def _send(self) -> None:
        while self._unsent and self.fileno() >= 0:
            try:
                sent = self._channel.socket.send(self._unsent)
            except OSError:
                # The socket is full, or the process is ending: `receive` or `reap` sends again.
                return
            self._unsent = self._unsent[sent:]
