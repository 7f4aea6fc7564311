"""Recognises files that the application writes itself, which must not cause endless reloads.

A generation reports what it opens for writing, by an audit hook (PEP 578), and the main process
compares that with the changes that the watcher reports.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.plugins.dev.reload.shared_state import SharedState

#: Events of functions that write, and the place of the path among their arguments.
WRITES = {
    "open": 0,
    "os.rename": 1,
    "os.link": 1,
    "os.symlink": 1,
    "os.remove": 0,
    "os.truncate": 0,
    "os.utime": 0,
}

#: Events of functions that start programs, which may write as well.
PROGRAMS = frozenset(("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork"))

#: Seconds between two reports of the same file.
AGAIN = 0.5

#: Seconds within which the watcher reports a file that was opened for writing.
RECENT = 6.0

#: Seconds within which a program that the application has started counts as the writer. A developer
#: who saves a file again and again takes longer.
RECENT_PROGRAM = 2.0

#: Changes by the application that take effect at once: of the same files, of other files each time
#: (in temporary folders), of the same files if only a program that it has started can have made
#: them, and of the same files while it was loaded by nobody knows whom (a library in C).
AT_ONCE = 2
AT_ONCE_OF_OTHERS = 6
AT_ONCE_BY_PROGRAM = 6
AT_ONCE_WHILE_LOADING = 12

#: Seconds of the first pause; each is twice as long as the one before.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0

#: Seconds without a change by the application after which the pauses begin anew.
QUIET = 10.0


def report(shared: SharedState) -> None:
    """Report from now on which files of the project this process opens for writing."""
    reported: dict[str, float] = {}
    reports_programs = True

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal reports_programs
        if event not in WRITES:
            if reports_programs and event in PROGRAMS:
                reports_programs = False
                shared.report_program()
            return
        if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        path = arguments[WRITES[event]]
        if isinstance(path, int):
            return
        path = os.path.abspath(os.fsdecode(path))
        now = time.monotonic()
        if now - reported.get(path, -AGAIN) < AGAIN:
            return
        if shared.project.kind(path) or shared.project.kind(os.path.realpath(path)):
            reported[path] = now
            shared.report_written(path)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        # An exception would end what the application is doing.
        try:
            note(event, arguments)
        except Exception:
            return

    sys.addaudithook(hook)


class OwnWrites:
    """The files that generations have written, and the pauses that follow.

    Attributes:
        writer: who has caused the last pause, for messages.
    """

    writer = "the application itself"

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a clock, in seconds."""
        self._clock = clock
        self._written: dict[str, float] = {}
        self._program_at = -RECENT_PROGRAM
        #: How often each file was changed by the application, one change soon after another.
        self._counts: dict[str, int] = {}
        #: The same for all files together, if it was certainly the application.
        self._total = 0
        self._last = 0.0
        self._pause = 0.0

    def note(self, path: str) -> None:
        """Note that a generation writes a file, or (empty) that it has started a program."""
        if path:
            self._written[os.path.realpath(path)] = self._clock()
        else:
            self._program_at = self._clock()

    def wrote(self, paths: Iterable[str]) -> bool:
        """Tell whether generations have just written all of these files."""
        now = self._clock()
        written = (self._written.get(os.path.realpath(path), -RECENT) for path in paths)
        return all(now - at < RECENT for at in written)

    def pause(self, paths: Iterable[str], *, is_loading: bool = False) -> float:
        """Return for how many seconds changed files are to have no effect, because of a cycle.

        `is_loading`: a generation is being loaded.
        """
        now = self._clock()
        names = [os.path.realpath(path) for path in paths]
        wrote = self.wrote(names)
        if wrote:
            at_once = AT_ONCE
        elif now - self._program_at < RECENT_PROGRAM:
            at_once = AT_ONCE_BY_PROGRAM
        elif is_loading:
            at_once = AT_ONCE_WHILE_LOADING
        else:
            return 0.0
        if now - self._last > self._pause + QUIET:
            self._counts.clear()
            self._total, self._pause = 0, 0.0
        self._last = now
        self._total += wrote
        self._counts = {name: self._counts.get(name, 0) + 1 for name in names}
        is_cycle = min(self._counts.values(), default=0) > at_once
        if not is_cycle and not (wrote and self._total > AT_ONCE_OF_OTHERS):
            return 0.0
        is_unknown = at_once == AT_ONCE_WHILE_LOADING
        self.writer = "some program" if is_unknown else "the application itself"
        self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
        return self._pause
