"""Progress of a run: a moving bar on a terminal, a line per step elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


class Progress:
    """Shows steps out of `total` on standard error. Draws only between measurements."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._started = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        if sys.stderr.isatty():
            try:
                from rich.console import Console
                from rich.progress import (
                    BarColumn,
                    MofNCompleteColumn,
                    TextColumn,
                    TimeRemainingColumn,
                )
                from rich.progress import Progress as Bar
            except ImportError:
                return
            self._bar = Bar(
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=Console(stderr=True),
                auto_refresh=False,
            )

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, what: str, outcome: str = "") -> None:
        """One step is done; `what` it was and how it went."""
        self._done += 1
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, description=f"{what}  {outcome}", refresh=True)
            return
        elapsed = time.monotonic() - self._started
        left = elapsed / self._done * max(self._total - self._done, 0)
        print(
            f"[{self._done}/{self._total}, {left / 60:.0f} min left] {what}  {outcome}",
            file=sys.stderr,
            flush=True,
        )

    def say(self, text: str) -> None:
        """A line that stays, for what could not be done."""
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)
