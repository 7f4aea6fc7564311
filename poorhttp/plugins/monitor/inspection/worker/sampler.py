"""Profile of this process: which stacks take the time, by a thread that looks at them.

It measures time, not work: a request that waits for a database counts as one that computes. Other
threads and greenlets count only while they compute. A stack counts for the time since the sampler
last looked, as C code may keep it from looking.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from types import CodeType, FrameType

from poorhttp.plugins.monitor.inspection.worker.stacks import (
    frames_of,
    greenlets,
    is_ours,
    thread_name,
    unpatched,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from greenlet import greenlet

#: Frames of a stack: of deeper ones the innermost.
MOST_FRAMES = 120

#: Different stacks; time in others is added up under one name.
MOST_STACKS = 10_000
OTHER = "(other stacks)"

#: Part of the time for which greenlets are looked for, which takes long in a large process.
SEARCH = 0.05

#: Part of the time since the last sample for which a thread has computed, so that it counts.
COMPUTES = 0.3

#: Ends of the paths of folders with libraries, the last one that of Python's own.
LIBRARIES = ("/site-packages/", "/dist-packages/", os.path.dirname(os.__file__) + "/")

#: What stands between frames, and what may not stand in one.
SEPARATORS = str.maketrans({";": ",", "\n": " ", "\r": " "})


class Sampler:
    """Takes samples until a time.

    Attributes:
        milliseconds: for each stack, the code objects of its frames by their identity.
        samples: how many were taken.
    """

    def __init__(self, until: float, interval: float) -> None:
        """Take samples every `interval` seconds until `until`, monotonic; from the main thread."""
        self.until = until
        self.interval = interval
        self.milliseconds: dict[tuple[str | int, ...], float] = {}
        self.samples = 0
        self._codes: dict[int, CodeType] = {}
        self._greenlets: list[weakref.ref[greenlet]] = []
        self._search_due = 0.0
        self._computed: dict[int, int] = {}
        self._main = unpatched("_thread", "get_ident")()

    def run(self) -> dict[str, Any]:
        """Sample; return the stacks, as `OUTER;INNER`, with their milliseconds."""
        sleep = unpatched("time", "sleep")
        ours = unpatched("_thread", "get_ident")()
        begin = last = time.monotonic()
        while last < self.until:
            sleep(min(self.interval, self.until - last))
            now = time.monotonic()
            self._sample(ours, now - last)
            last = now
        self._greenlets.clear()
        return {
            "stacks": {self._text(key): round(took) for key, took in self.milliseconds.items()},
            "samples": self.samples,
            "seconds": last - begin,
        }

    def _sample(self, ours: int, elapsed: float) -> None:
        self.samples += 1
        for ident, frame in sys._current_frames().items():
            if ident != ours:
                self._add(frame, elapsed, ident)
        for each in self._waiting_greenlets():
            self._add(each.gr_frame, elapsed, None)

    def _add(self, frame: FrameType | None, elapsed: float, ident: int | None) -> None:
        """Add a stack, if it is that of a request, or of a thread that computes."""
        if frame is None:
            return
        frames, request = frames_of(frame)
        outer: tuple[str, ...] = ()
        if not request:
            if ident is None or is_ours(frame) or not self._computes(ident, elapsed):
                return
            outer = (f"[thread {thread_name(ident)[0] or hex(ident)}]",)
        codes = [each.f_code for each in frames[-MOST_FRAMES:]]
        key: tuple[str | int, ...] = (*outer, *map(id, codes))
        if key not in self.milliseconds:
            if len(self.milliseconds) >= MOST_STACKS:
                key = (OTHER,)
            else:
                # A code object that has ended could leave its identity to another one.
                self._codes.update((id(code), code) for code in codes)
        self.milliseconds[key] = self.milliseconds.get(key, 0.0) + elapsed * 1000

    def _waiting_greenlets(self) -> list[greenlet]:
        now = time.monotonic()
        if now >= self._search_due:
            self._greenlets = [weakref.ref(each) for each in greenlets()]
            took = time.monotonic() - now
            self._search_due = now + took / SEARCH
        return [each for ref in self._greenlets if (each := ref()) is not None]

    def _computes(self, ident: int, elapsed: float) -> bool:
        """Whether a thread has computed for most of the time; `False` if that is not known."""
        thread = os.getpid() if ident == self._main else thread_name(ident)[1]
        try:
            with open(f"/proc/self/task/{thread}/schedstat", "rb") as file:
                computed = int(file.read().split()[0])
        except (OSError, IndexError, ValueError):
            return False
        before = self._computed.get(thread, computed)
        self._computed[thread] = computed
        return computed - before > COMPUTES * elapsed * 1e9

    def _text(self, key: tuple[str | int, ...]) -> str:
        names = [each if isinstance(each, str) else label(self._codes[each]) for each in key]
        return ";".join(name.translate(SEPARATORS) for name in names)


def label(code: CodeType) -> str:
    """Return the name of a function, with its file and first line: `Shop.cart (shop/app.py:7)`."""
    name = getattr(code, "co_qualname", code.co_name)
    return f"{name} ({short_file(code.co_filename)}:{code.co_firstlineno})"


def short_file(file: str) -> str:
    """Return the end of a path: that of a library's file from the folder of libraries on."""
    folder = next((each for each in LIBRARIES if each in file), "")
    if folder:
        place = file.index(folder) + folder.rindex("/", 0, -1) + 1
        return file[place:]
    return "/".join(file.rsplit("/", 2)[-2:])
