"""Where a version is that takes long to be loaded: asked by the main process, told in a file.

By a signal whose handler is no Python (`faulthandler`), so that a version tells it too that waits
for something, or is in the depths of a library; and without a thread, which would stay in whatever
it forks.
"""

from __future__ import annotations

import faulthandler
import os
from contextlib import suppress

from poorhttp.process.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.dev.reload.watch.project import Project

#: Who serves takes no notice of it.
SIGNAL = signal.SIGUSR2

#: Octets of an answer that are read; a recursion without an end has a long one.
MAX_DUMP = 1 << 16

_OWN_CODE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + "/"


class StackDump:
    """The file, which the main process and its versions share."""

    def __init__(self) -> None:
        self._file = os.memfd_create("poorhttp-whereabouts")

    # In a version

    def enable(self) -> None:
        """Tell when asked, from now on."""
        faulthandler.register(SIGNAL, self._file, all_threads=False)

    def disable(self) -> None:
        """Tell nothing any more."""
        faulthandler.unregister(SIGNAL)

    # In the main process

    def request(self, pid: int) -> None:
        """Have a process tell, soon, where it is; it may have ended."""
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        with suppress(ProcessLookupError):
            os.kill(pid, SIGNAL)

    def read(self, project: Project, here: str) -> tuple[str, str]:
        """Return the line of the project that it is at, and how it has come there, innermost first.

        Both are empty if it has not answered. Files are named as they are seen from `here`.
        """
        dump = os.pread(self._file, MAX_DUMP, 0).decode("utf-8", "backslashreplace")
        frames = [frame for line in dump.splitlines() if (frame := _Frame(line, here)).is_known]
        own = next((frame for frame in frames if project.owns(frame.path)), None)
        if own is None:
            return "", ""
        # What is behind the outermost of the project is ours, which has loaded it.
        while not project.owns(frames[-1].path):
            frames.pop()
        return own.place, "\n".join(f"{frame.place}, in {frame.name}" for frame in frames)

    def close(self) -> None:
        """Give up the file."""
        os.close(self._file)


class _Frame:
    """A line of an answer: `  File "/path/to/shop/models.py", line 12 in load`.

    Attributes:
        place: file and line.
        name: of the function.
        is_known: it is a line of a frame, and neither of the server nor of what imports modules.
    """

    def __init__(self, line: str, here: str) -> None:
        self.path, _, rest = line.strip().removeprefix('File "').rpartition('", line ')
        number, _, self.name = rest.partition(" in ")
        self.is_known = self.path.startswith("/") and not self.path.startswith(_OWN_CODE)
        self.place = f"{self.path.removeprefix(here + '/')}, line {number}"
