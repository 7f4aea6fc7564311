"""Shows requests and messages as lines in the terminal.

The main process reads requests from a pipe, to which the core of each worker logs them in a format
that is easy to parse. Equal requests in a row become one line. Only whole lines are written and the
cursor is never moved, since applications print as well.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from poorhttp.config.settings import Settings
from poorhttp.plugins.dev.debug.responses import MARK
from poorhttp.plugins.dev.escape import for_terminal
from poorhttp.plugins.dev.options import PREFIX, Development
from poorhttp.plugins.dev.profiler import DEFAULT_SLOW, Profiles
from poorhttp.process import fork

#: Seconds without an equal request after which counted requests are shown.
RUN_PAUSE = 1.0

#: Seconds after which they are shown although more arrive.
MAX_RUN = 5.0

#: Durations that are kept for the median.
MOST_DURATIONS = 1024

#: Bytes not yet written to the terminal above which no more are read: then lines wait in the pipe
#: and in the workers, and the core counts those that it has no room for.
MOST_WAITING = 1 << 16

#: Bytes that the pipe holds, if the system allows it.
PIPE_SIZE = 1 << 20

#: Reads before the main process does other work.
READS_PER_TURN = 16

#: Bytes that are written at once. A terminal takes so many as a whole.
WRITE_SIZE = 2048

#: Seconds that the terminal may take for the last lines.
CLOSE_TIMEOUT = 0.1

#: Columns for a request's target, however narrow the terminal is.
MIN_TARGET_WIDTH = 16

#: Codes of styles (ECMA-48 section 8.3.117).
STYLES = {
    "": "",
    "good": "32",
    "info": "36",
    "warning": "33",
    "bad": "1;31",
    "quiet": "2",
}

#: Prefix of the targets of the development server's own requests, which are not shown.
OWN_PATHS = f"{PREFIX}/".encode()

#: Part of the query of the debugger's own requests.
DEBUGGER = MARK.encode()

#: Styles by the first digit of the status.
STATUS_STYLES = {"2": "good", "3": "info", "4": "warning", "5": "bad"}


class Terminal:
    """The terminal, or a file that standard error leads to.

    Attributes:
        lines: descriptor of the pipe that workers log requests to.
        profiles: profiles of slow requests, if there are any.
    """

    def __init__(self, services: Sequence[Settings], out: int = 2) -> None:
        """Take the services whose requests are shown, and the descriptor `out`; before the fork."""
        import fcntl

        self._read, self.lines = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        # For requests that arrive while the terminal or the main process is busy. It fails above
        # the user's limit of pipe pages; the default size will do.
        with suppress(OSError):
            fcntl.fcntl(self.lines, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        self._out = out
        self._coloured = is_coloured(os.environ, out)
        self._encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        self.profiles: Profiles | None = None
        #: The beginning of a line whose end has not been read.
        self._partial_line = b""
        #: Bytes to be written, and the number of lines that could not be written.
        self._waiting = bytearray()
        self._lost = 0
        self._run = Run()
        self.take(services)
        fork.after_fork_in_child.append(self._close_in_child)

    def take(self, services: Sequence[Settings]) -> None:
        """Use these settings from now on."""
        self._slow = int(min(s.slow_request or DEFAULT_SLOW for s in services) * 1e6)
        options = [each.of(Development) for each in services]
        self._debugs = any(each.debug != "off" or each.profile for each in options)
        self._has_own = any(
            each.live or each.profile or each.autoreload != "off" for each in options
        )

    # Called by the main process

    def filenos(self) -> list[int]:
        """Return the descriptor that is readable when there are requests to show."""
        return [self._read] if len(self._waiting) < MOST_WAITING else []

    def filenos_to_write(self) -> list[int]:
        """Return the descriptor of the terminal if lines wait for it."""
        return [self._out] if self._waiting else []

    def due(self) -> float:
        """Return the time at which `serve` has work although nothing is readable."""
        return self._run.due

    def serve(self) -> None:
        """Show pending requests, without waiting."""
        self._read_requests()
        if self._run.due <= time.monotonic():
            self._show_run()
        self._flush()

    def say(self, text: str, style: str = "") -> None:
        """Show a message of the server, below the requests before it."""
        self._read_requests()
        self._show_run()
        first, *others = text.split("\n")
        clock = self._styled(time.strftime("%H:%M:%S"), "quiet")
        self._write_line(f"{clock} {self._styled(for_terminal(first), style)}")
        for line in others:
            self._write_line(f"         {self._styled(for_terminal(line), style)}")
        self._flush()

    def close(self) -> None:
        """Show the remaining requests, after the last worker has ended."""
        while self._read_requests():
            pass
        self._show_run()
        until = time.monotonic() + CLOSE_TIMEOUT
        self._flush()
        while self._waiting and (rest := until - time.monotonic()) > 0:
            poller = select.poll()
            poller.register(self._out, select.POLLOUT)
            poller.poll(rest * 1000 + 1)
            self._flush()
        fork.after_fork_in_child.remove(self._close_in_child)
        os.close(self._read)
        os.close(self.lines)

    def _close_in_child(self) -> None:
        """Close the reading end in a forked child, which only writes to the pipe."""
        if self._read >= 0:
            # Once: if the child forks, the number may stand for another file by then.
            os.close(self._read)
            self._read = -1

    # Requests

    def _read_requests(self) -> bool:
        """Read what workers have logged; `True` if there may be more."""
        for _ in range(READS_PER_TURN):
            if len(self._waiting) >= MOST_WAITING and not self._flush():
                return False
            try:
                data = os.read(self._read, 1 << 16)
            except BlockingIOError:
                return False
            *lines, self._partial_line = (self._partial_line + data).split(b"\n")
            now = time.monotonic()
            for line in lines:
                self._take(line, now)
        return True

    def _take(self, line: bytes, now: float) -> None:
        """Show a request, or count it if it equals the one before."""
        try:
            _, _, process, number, status, _, duration, method, target = line.split(b" ", 8)
            microseconds = int(duration)
        except ValueError:
            # Mixed with another worker's line: the core writes long ones in pieces.
            self._show_run()
            self._write_line(self._styled(for_terminal(line.decode("ascii", "replace")), "quiet"))
            return
        path, _, query = target.partition(b"?")
        if self._has_own and path.startswith(OWN_PATHS) and status < b"4":
            return
        if self._debugs and DEBUGGER in query and status < b"5":
            return
        slow = microseconds >= self._slow
        # A slow or failed request is shown alone: it has a profile or a traceback.
        kind = None if slow or status >= b"5" else (method, path, status)
        if self._run.continues(kind, now):
            self._run.add(line, microseconds, now)
            return
        self._show_run()
        self._run.begin(kind, now)
        self._show(line)
        if slow and self.profiles is not None:
            address = self.profiles.address(process.decode(), number.decode())
            if address:
                self._write_line(f"         {self._styled('profile: ' + address, 'info')}")

    def _show(self, line: bytes) -> None:
        """Show the line of a request, in which the core has escaped control characters."""
        fields = line.decode("ascii", "replace").split(" ", 8)
        when, _, _, _, status, size, duration, method, target = fields
        microseconds = int(duration)
        slow = microseconds >= self._slow
        if method == "-":
            # A malformed request, or a connection that is not HTTP.
            target = "(a connection)" if status == "-" else "(not understood)"
        style = STATUS_STYLES.get(status[0], "")
        columns = [
            (when[13:21], "quiet"),
            (f"{method:<7}", ""),
            (f"{status:>3}", style),
            (f"{_duration(microseconds):>8}{'!' if slow else ' '}", "bad" if slow else ""),
            (f"{_size(size):>8} ", "quiet"),
        ]
        taken = sum(len(text) + 1 for text, _ in columns)
        target = for_terminal(self._shortened(target, taken))
        columns.append((target, style if status[0] in "45" else ""))
        self._write_line(" ".join(self._styled(text, style) for text, style in columns))

    def _show_run(self) -> None:
        """Show how many equal requests there were, and reset the count."""
        run = self._run
        if run.count == 1:
            self._show(run.last)
        elif run.count:
            times = f"x {run.count} more, median {_duration(run.median())}"
            if (longest := _duration(run.longest)) != _duration(run.median()):
                times += f", longest {longest}"
            self._write_line(f"{'':8} {self._styled(times, 'quiet')}")
        run.end()

    def _shortened(self, target: str, column: int) -> str:
        """Return a target shortened to the space after `column`, if `out` is a terminal."""
        try:
            room = max((os.get_terminal_size(self._out).columns or 80) - column, MIN_TARGET_WIDTH)
        except OSError:
            return target
        return target if len(target) <= room else target[: room - 3] + "..."

    # Writing

    def _styled(self, text: str, style: str) -> str:
        code = STYLES[style]
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured and code else text

    def _write_line(self, line: str) -> None:
        self._waiting += line.encode(self._encoding, "backslashreplace") + b"\n"

    def _flush(self) -> bool:
        """Write as much as the terminal takes now; `True` if that is all."""
        while self._waiting:
            poller = select.poll()
            poller.register(self._out, select.POLLOUT)
            if not poller.poll(0):
                return False
            end = self._waiting.rfind(b"\n", 0, WRITE_SIZE) + 1 or WRITE_SIZE
            try:
                del self._waiting[: os.write(self._out, self._waiting[:end])]
            except BlockingIOError:
                return False
            except OSError:
                # Closed, or the disk is full, perhaps only for a while.
                self._lost += self._waiting.count(b"\n")
                self._waiting.clear()
                return True
            if self._lost:
                lost, self._lost = self._lost, 0
                self._write_line(f"{lost} lines could not be written here, and are lost")
        return True


class Run:
    """Equal requests in a row, of which the first has been shown.

    Attributes:
        count: the number of the others.
        last: the line of the last one.
        longest: microseconds of the slowest.
        due: when the count is to be shown.
    """

    def __init__(self) -> None:
        #: The value that is equal.
        self._kind: object = None
        self._began = self._seen = 0.0
        self._durations: list[int] = []
        #: The duration of every `_step`-th request is kept.
        self._step = 1
        self.count = self.longest = 0
        self.last = b""
        self.due = float("inf")

    def begin(self, kind: object, now: float) -> None:
        """Note the first request; equal ones have the same `kind`, and `None` equals nothing."""
        self._kind = kind
        self._began = self._seen = now

    def continues(self, kind: object, now: float) -> bool:
        """Whether a request of this kind continues the row."""
        if kind is None or kind != self._kind or now - self._seen > RUN_PAUSE:
            return False
        return now - self._began < MAX_RUN

    def add(self, line: bytes, microseconds: int, now: float) -> None:
        """Count one more."""
        self.last = line
        self._seen = now
        if self.count % self._step == 0:
            self._durations.append(microseconds)
            if len(self._durations) == MOST_DURATIONS:
                # Keep every second one, from the beginning and from now on.
                del self._durations[1::2]
                self._step *= 2
        self.count += 1
        self.longest = max(self.longest, microseconds)
        self.due = min(now + RUN_PAUSE, self._began + MAX_RUN)

    def median(self) -> int:
        """Return the median duration in microseconds, of the durations that were kept."""
        return sorted(self._durations)[len(self._durations) // 2]

    def end(self) -> None:
        """Reset everything."""
        self._kind = None
        self._durations.clear()
        self._step = 1
        self.count = self.longest = 0
        self.due = float("inf")


def is_coloured(environ: Mapping[str, str], fd: int) -> bool:
    """Whether colours are wanted and understood there (no-color.org, force-color.org)."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return environ.get("TERM", "dumb") != "dumb" and os.isatty(fd)


def _duration(microseconds: int) -> str:
    """Return a duration with two or three significant digits."""
    milliseconds = microseconds / 1000
    if milliseconds < 0.1:
        return "<0.1 ms"
    if milliseconds < 9.95:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"


def _size(text: str) -> str:
    """Return a number of bytes in decimal units (B, kB, MB, GB)."""
    if not text.isdecimal():
        return text
    size = float(text)
    if size < 1000:
        return f"{text} B"
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.5 or unit == "GB":
            break
    return f"{size:.1f} {unit}" if size < 99.5 else f"{size:.0f} {unit}"
