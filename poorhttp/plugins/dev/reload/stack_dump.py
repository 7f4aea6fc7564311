"""Stack dump of a process that loads slowly, written to a shared memory file on a signal.

`faulthandler` handles the signal in C, so that a process that waits in a system call or in a
library writes its stack too. No thread is used: a thread would not survive a fork.
"""

from __future__ import annotations

import faulthandler
import os
import re
import sys
from types import FrameType
from typing import Any

from poorhttp.logs.frames import SERVER_FOLDER
from poorhttp.plugins.dev.reload.watch.project import WatchedProject, package_of
from poorhttp.process import signals
from poorhttp.process.signals import signal

#: Asks for the dump. Workers that serve ignore it.
SIGNAL = signal.SIGUSR2

#: Bytes of a dump that are read; that of an endless recursion is long.
MAX_DUMP = 1 << 16

#: Functions of the server that load and start the application: frames outside of them are those of
#: the start.
_SPAWNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spawner.py")
LOADERS = ((_SPAWNER, "_load"), (_SPAWNER, "_serve"))

#: Stands in the file before the stack of a greenlet or task that waits, behind that of what it
#: waits for: gevent's hub, or the event loop.
WAITING = b"waiting:\n"

#: How `faulthandler` writes characters that are not ASCII.
ESCAPE = re.compile(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")


class StackDump:
    """The file, shared by the main process and the generations."""

    def __init__(self) -> None:
        self._file = os.memfd_create("poorhttp-stack-dump")

    # In a generation

    def enable(self, mode: str) -> None:
        """Write the stack when the signal arrives, from now on.

        In modes with a loop, what waits for it is written as well, by a handler in Python. Others
        need no such handler, with which system calls of libraries in C would fail with EINTR.
        """
        write = {"gevent": self._write_greenlet, "asyncio": self._write_tasks}.get(mode)
        if write is not None:
            signals.install(SIGNAL, write)
        faulthandler.register(SIGNAL, self._file, all_threads=False, chain=write is not None)

    def disable(self) -> None:
        """Ignore the signal from now on."""
        faulthandler.unregister(SIGNAL)
        signals.install_ignored(SIGNAL)

    def _write_greenlet(self, _number: int, _frame: FrameType | None) -> None:
        """Write the stack of the main greenlet, which loads, if it waits for another greenlet."""
        module: Any = sys.modules.get("greenlet")
        if module is None:
            return
        loading = module.getcurrent()
        while loading.parent is not None:
            loading = loading.parent
        frames = []
        frame: FrameType | None = loading.gr_frame
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        self._write_waiting(frames)

    def _write_tasks(self, _number: int, _frame: FrameType | None) -> None:
        """Write the stacks of the server's tasks, which start applications, if none runs now."""
        module: Any = sys.modules.get("asyncio")
        loop = module and module._get_running_loop()
        if loop is None or module.current_task(loop) is not None:
            return
        for task in module.all_tasks(loop):
            frames: list[FrameType] = []
            coroutine = task.get_coro()
            while coroutine is not None:
                kind = "cr" if hasattr(coroutine, "cr_frame") else "gi"
                if (frame := getattr(coroutine, f"{kind}_frame", None)) is not None:
                    frames.insert(0, frame)
                waits = "cr_await" if kind == "cr" else "gi_yieldfrom"
                coroutine = getattr(coroutine, waits, None)
            if frames and frames[-1].f_code.co_filename.startswith(SERVER_FOLDER):
                self._write_waiting(frames)

    def _write_waiting(self, frames: list[FrameType]) -> None:
        """Write a stack, innermost frame first."""
        lines = [
            f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} '
            f"in {frame.f_code.co_name}\n"
            for frame in frames
        ]
        if lines:
            os.write(self._file, WAITING + "".join(lines).encode("utf-8", "surrogateescape"))

    # In the main process

    def request(self, pid: int) -> None:
        """Ask a child of this process for a dump; it may have ended."""
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        signals.send(pid, SIGNAL)

    def read(self, project: WatchedProject, here: str) -> tuple[str, str]:
        """Return the innermost line of the application, and the whole stack, innermost first.

        The application is the project, or if nothing of it is running, the package that the server
        has called. Both are empty if there is no dump. Files are named relative to `here`.
        """
        dump, *waiting = os.pread(self._file, MAX_DUMP, 0).split(WAITING)
        frames: list[_Frame] = []
        stack = b"".join(waiting) or dump
        for line in stack.decode("utf-8", "surrogateescape").splitlines():
            frame = _Frame(line, here)
            if (frame.path, frame.name.rpartition(".")[2]) in LOADERS:
                break
            if frame.is_known:
                frames.append(frame)
        own = [frame for frame in frames if project.owns(frame.path)]
        if not own:
            # The application is installed: what the server has called first belongs to it.
            others = [frame for frame in frames if not project.is_of_python(frame.path)]
            package = package_of(others[-1].path) if others else ""
            own = [frame for frame in others if f"{frame.path}/".startswith(f"{package}/")]
        if not own:
            return "", ""
        # Those that follow the outermost frame of the application have loaded it.
        shown = frames[: frames.index(own[-1]) + 1]
        return own[0].place, "\n".join(f"{frame.place}, in {frame.name}" for frame in shown)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class _Frame:
    """A line of a dump: `  File "/path/to/shop/models.py", line 12 in load`.

    Attributes:
        path: of the file; not absolute if the line is no frame.
        place: file and line.
        name: of the function.
        is_known: the line is a frame, and neither the server's nor the import system's.
    """

    def __init__(self, line: str, here: str) -> None:
        line = ESCAPE.sub(lambda found: chr(int(found[1] or found[2] or found[3], 16)), line)
        self.path, _, rest = line.strip().removeprefix('File "').rpartition('", line ')
        number, _, self.name = rest.partition(" in ")
        self.is_known = self.path.startswith("/") and not self.path.startswith(SERVER_FOLDER)
        self.place = f"{self.path.removeprefix(here + '/')}, line {number}"
