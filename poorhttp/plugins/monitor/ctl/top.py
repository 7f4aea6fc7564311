"""`poorhttp top`: a live view of a server in a terminal.

Made from the status document, which is fetched again and again. `curses` is a part of Python, so
nothing has to be installed where the server runs.
"""

from __future__ import annotations

import curses
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

from poorhttp.errors import visible
from poorhttp.plugins.monitor.ctl.top_tables import TABLES, Table
from poorhttp.plugins.monitor.derived import units
from poorhttp.plugins.monitor.derived.notices import notices
from poorhttp.plugins.monitor.derived.rates import Recent, added, quantile, queue_length
from poorhttp.process.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from poorhttp.plugins.monitor.admin.model import Service, Status

#: Milliseconds between two looks at keys and at new documents.
TICK = 100

#: Seconds between two documents: the choices, and which is the first.
INTERVALS = (0.5, 1.0, 2.0, 5.0, 10.0)
FIRST_INTERVAL = 2

#: Lines of notices, at most.
MOST_NOTICES = 3

HELP = (
    "w r s e f  workers, requests in flight, slowest requests, errors, refusals",
    "← →        sort by the column to the left or right; or < >",
    "i          invert the order",
    "↑ ↓        scroll; also Page Up, Page Down, Home, End",
    "+ -        refresh more or less often",
    "space      pause",
    "h          this help; any key closes it",
    "q          quit",
)


class Fetcher:
    """Fetches documents in a thread of its own, so that keys work while a server is silent.

    Attributes:
        interval: seconds between two documents.
        status: the last document; `None`: there was none yet.
        error: why there is no newer one; empty if the last question was answered.
        number: how many answers there were, failures included.
    """

    def __init__(self, fetch: Callable[[], Status], interval: float) -> None:
        self.interval = interval
        self.status: Status | None = None
        self.error = ""
        self.number = 0
        self.is_paused = False
        self._fetch = fetch
        self._wakes = Event()
        Thread(target=self._run, daemon=True).start()

    def wake(self) -> None:
        """Ask now."""
        self._wakes.set()

    def _run(self) -> None:
        while True:
            if not self.is_paused:
                try:
                    self.status, self.error = self._fetch(), ""
                except Exception as error:
                    self.error = f"{error}" or type(error).__name__
                self.number += 1
            self._wakes.wait(self.interval)
            self._wakes.clear()


class Top:
    """The view.

    Attributes:
        table: which table is shown.
        offset: rows above the first one that is shown.
    """

    def __init__(self, screen: curses.window, fetch: Callable[[], Status]) -> None:
        self._screen = screen
        self._step = FIRST_INTERVAL
        self._fetcher = Fetcher(fetch, INTERVALS[self._step])
        self._recent = Recent()
        self._added: Status | None = None
        self._tables: dict[str, Table] = {key: make() for key, make in TABLES.items()}
        self.table = self._tables["w"]
        self.offset = 0
        self._shows_help = False
        self._bad = self._good = curses.A_BOLD
        if curses.has_colors() and "NO_COLOR" not in os.environ:
            curses.use_default_colors()
            curses.init_pair(1, curses.COLOR_RED, -1)
            curses.init_pair(2, curses.COLOR_GREEN, -1)
            self._bad = curses.color_pair(1) | curses.A_BOLD
            self._good = curses.color_pair(2) | curses.A_BOLD
        with suppress(curses.error):
            # Not every terminal can hide it.
            curses.curs_set(0)
        screen.keypad(True)
        screen.timeout(TICK)

    def run(self) -> None:
        """Show the server until somebody quits."""
        shown = -1
        while True:
            if shown != self._fetcher.number:
                shown = self._fetcher.number
                self._draw()
            key = self._screen.getch()
            if key == -1:
                continue
            if not self._press(key):
                return
            self._draw()

    # Keys

    def _press(self, key: int) -> bool:
        """Do what a key asks for; return whether to go on."""
        if self._shows_help:
            self._shows_help = False
            return True
        letter = chr(key) if 0 < key < 128 else ""
        page = max(1, self._screen.getmaxyx()[0] // 2)
        moves = {
            curses.KEY_UP: -1,
            curses.KEY_DOWN: 1,
            curses.KEY_PPAGE: -page,
            curses.KEY_NPAGE: page,
            curses.KEY_HOME: -(1 << 30),
            curses.KEY_END: 1 << 30,
        }
        if letter in ("q", "Q", "\x03", "\x04"):
            return False
        if letter in self._tables:
            self.table, self.offset = self._tables[letter], 0
        elif key in moves:
            self.offset += moves[key]
        elif key == curses.KEY_LEFT or letter == "<":
            self.table.sort_by(-1)
        elif key == curses.KEY_RIGHT or letter == ">":
            self.table.sort_by(1)
        elif letter == "i":
            self.table.is_descending = not self.table.is_descending
        elif letter in ("+", "-"):
            step = self._step + (-1 if letter == "+" else 1)
            self._step = min(max(step, 0), len(INTERVALS) - 1)
            self._fetcher.interval = INTERVALS[self._step]
            self._fetcher.wake()
        elif letter == " ":
            self._fetcher.is_paused = not self._fetcher.is_paused
            self._fetcher.wake()
        elif letter in ("h", "?"):
            self._shows_help = True
        elif key == curses.KEY_RESIZE:
            curses.update_lines_cols()
        return True

    # The screen

    def _draw(self) -> None:
        self._screen.erase()
        status = self._fetcher.status
        if self._shows_help:
            for place, text in enumerate(HELP):
                self._line(place, text)
        elif status is None:
            self._line(
                0, self._fetcher.error or "connecting", self._bad * bool(self._fetcher.error)
            )
        else:
            if status is not self._added:
                self._added = status
                self._recent.add(status)
            self._draw_status(status)
        self._screen.refresh()

    def _draw_status(self, status: Status) -> None:
        height, width = self._screen.getmaxyx()
        host = f"{visible(status['host_name'])}: "
        state, notes = ("ready" if status["ready"] else "not ready"), ""
        if self._fetcher.error:
            state, notes = "silent", f", {self._fetcher.error}"
        elif self._fetcher.is_paused:
            notes = ", paused"
        up = units.age(status["now"] - status["started"])
        clock = time.strftime("%H:%M:%S", time.localtime(status["now"]))
        about = f"poorhttp {status['version']}, up {up}, at {clock}"
        self._line(0, f"{host}{state}{notes}; {about}")
        self._line(0, state, self._good if state == "ready" else self._bad, len(host))
        place = 1
        for service in status["services"]:
            if place <= height // 2:
                place = self._draw_service(place, service, width)
        for text in notices(status, self._recent)[:MOST_NOTICES]:
            self._line(place, f"! {text}", self._bad)
            place += 1
        rows = self.table.rows(status, self._recent)
        room = max(0, height - place - 3)
        self.offset = min(max(0, self.offset), max(0, len(rows) - room))
        heading, lines = self.table.lines(rows, width, self.offset, room)
        self._line(place + 1, heading.ljust(width), curses.A_REVERSE)
        for number, line in enumerate(lines):
            self._line(place + 2 + number, line)
        last = min(self.offset + room, len(rows))
        which = f"{self.offset + 1}–{last} of {len(rows)}" if rows else "none"
        keys = "w workers  r requests  s slowest  e errors  f refusals  ←→ sort  h help  q quit"
        self._line(height - 1, f"{self.table.title}: {which}   {keys}", curses.A_DIM)

    def _draw_service(self, place: int, service: Service, width: int) -> int:
        """Draw the figures of a service; return the next line."""
        figures, rates = service["figures"], self._recent.rates(service)
        application = added(slot["application"] for slot in service["history"])
        p50, p99 = (units.seconds(quantile(application, part)) for part in (0.5, 0.99))
        capacity = f"/{service['capacity']}" if service["capacity"] else ""
        parts = [
            f"{units.rate(rates['requests'])} requests/s",
            f"{units.rate(rates['errors'])} errors/s",
            f"p50 {p50}, p99 {p99}",
            f"{figures['in_flight']}{capacity} in flight",
            *([f"{figures['streaming']} streaming"] if figures["streaming"] else ()),
            f"{queue_length(service)} waiting",
            f"{service['answering']}/{service['wanted']} workers"
            + (f" and {service['full']} full" if service["full"] else ""),
            f"{sum(figures['connections'].values())} connections",
            f"{units.octets(rates['sent'])}/s sent",
        ]
        text = f"{service['name']}: " if service["name"] else ""
        for number, part in enumerate(parts):
            more = part if number == len(parts) - 1 else f"{part}, "
            if len(visible(text + more)) > width and text.strip():
                self._line(place, text)
                place, text = place + 1, "  "
            text += more
        self._line(place, text)
        return place + 1

    def _line(self, place: int, text: str, look: int = 0, column: int = 0) -> None:
        """Write a line, cut at the edge."""
        height, width = self._screen.getmaxyx()
        if not 0 <= place < height or column >= width:
            return
        room = width - column
        # The terminal may wrap behind the last cell, where curses reports an error.
        if place == height - 1:
            room -= 1
        try:
            self._screen.addnstr(place, column, visible(text), room, look)
        except curses.error:
            # The terminal has become smaller since its size was read.
            return


def run(fetch: Callable[[], Status]) -> int:
    """Show a server until somebody quits; return the exit code.

    Args:
        fetch: returns a status document, or raises an exception whose text says why not.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("poorhttp: top needs a terminal; `poorhttp ctl status` prints once", file=sys.stderr)
        return 2

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    # Otherwise the terminal would stay as it is.
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    # Otherwise the view would not follow the size of the window.
    for name in ("LINES", "COLUMNS"):
        os.environ.pop(name, None)
    # A lone Escape is no prefix of a key for long.
    os.environ.setdefault("ESCDELAY", "25")
    try:
        curses.wrapper(lambda screen: Top(screen, fetch).run())
    except KeyboardInterrupt:
        pass
    except curses.error as error:
        print(f"poorhttp: top cannot use this terminal (TERM): {error}", file=sys.stderr)
        return 2
    return 0
