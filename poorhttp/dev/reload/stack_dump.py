"""Stack dump of a process that loads slowly, written to a shared memory file on a signal.

`faulthandler` handles the signal in C, so that a process that waits in a system call or in a
library writes its stack too. No thread is used: a thread would not survive a fork.
"""

from __future__ import annotations

import faulthandler
import os

from poorhttp.dev.reload.watch.project import Project
from poorhttp.logs.frames import SERVER_FOLDER
from poorhttp.process import signals
from poorhttp.process.signals import signal

#: Asks for the dump. Workers that serve ignore it.
SIGNAL = signal.SIGUSR2

#: Bytes of a dump that are read; that of an endless recursion is long.
MAX_DUMP = 1 << 16


class StackDump:
    """The file, shared by the main process and the generations."""

    def __init__(self) -> None:
        self._file = os.memfd_create("poorhttp-stack-dump")

    # In a generation

    def enable(self) -> None:
        """Write the stack when the signal arrives, from now on."""
        faulthandler.register(SIGNAL, self._file, all_threads=False)

    def disable(self) -> None:
        """Ignore the signal from now on."""
        faulthandler.unregister(SIGNAL)

    # In the main process

    def request(self, pid: int) -> None:
        """Ask a child of this process for a dump; it may have ended."""
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        signals.send(pid, SIGNAL)

    def read(self, project: Project, here: str) -> tuple[str, str]:
        """Return the innermost line of the project, and the whole stack, innermost first.

        Both are empty if there is no dump. Files are named relative to the folder `here`.
        """
        dump = os.pread(self._file, MAX_DUMP, 0).decode("utf-8", "backslashreplace")
        frames = [frame for line in dump.splitlines() if (frame := _Frame(line, here)).is_known]
        own = next((frame for frame in frames if project.owns(frame.path)), None)
        if own is None:
            return "", ""
        # The frames that follow the outermost of the project are the server's, which loads it.
        while not project.owns(frames[-1].path):
            frames.pop()
        return own.place, "\n".join(f"{frame.place}, in {frame.name}" for frame in frames)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class _Frame:
    """A line of a dump: `  File "/path/to/shop/models.py", line 12 in load`.

    Attributes:
        place: file and line.
        name: of the function.
        is_known: the line is a frame, and neither the server's nor the import system's.
    """

    def __init__(self, line: str, here: str) -> None:
        self.path, _, rest = line.strip().removeprefix('File "').rpartition('", line ')
        number, _, self.name = rest.partition(" in ")
        self.is_known = self.path.startswith("/") and not self.path.startswith(SERVER_FOLDER)
        self.place = f"{self.path.removeprefix(here + '/')}, line {number}"
