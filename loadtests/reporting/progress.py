"""Progress of a run: a moving bar on a terminal, a line per step elsewhere."""

from __future__ import annotations

import sys
import time

from rich import progress
from rich.console import Console


def left(took: float, done: int, total: int) -> str:
    """Words on the time that the other steps take if they are like those that are done."""
    seconds = took / done * max(total - done, 0)
    if done >= total:
        return ""
    return f", {max(seconds, 1):.0f} s left" if seconds < 90 else f", {seconds / 60:.0f} min left"


class Progress(progress.Progress):
    """Shows steps out of `total` on standard error. Draws only between measurements.

    A run of which the steps are fewer than `total` if its time is over takes `limit` seconds.
    """

    def __init__(self, total: int, limit: float = 0.0) -> None:
        super().__init__(
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.description}"),
            console=Console(stderr=True),
            auto_refresh=False,
            disable=not sys.stderr.isatty(),
        )
        self._steps = self.add_task("", total=total)
        self._total, self._done, self._begun = total, 0, time.monotonic()
        self._limit = limit

    def begin(self, what: str) -> None:
        self.update(self._steps, description=f"now: {what}", refresh=True)

    def step(self, what: str, outcome: str = "") -> None:
        """One step is done; `what` it was and how it went."""
        self._done += 1
        told = f"{what}  {outcome}"
        if self.disable:
            took = time.monotonic() - self._begun
            steps = f"{self._done}/{self._total}{left(took, self._done, self._total)}"
            if self._limit:
                steps = f"{took:.0f} s of at most {self._limit:.0f} s"
            self.say(f"[{steps}] {told}")
        else:
            self.update(self._steps, advance=1, description=told, refresh=True)

    def say(self, text: str) -> None:
        """A line that stays, for what could not be done."""
        if self.disable:
            print(text, file=sys.stderr, flush=True)
        else:
            self.console.print(text, highlight=False)
