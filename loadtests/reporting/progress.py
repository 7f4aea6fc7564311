"""Progress of a run: a moving bar on a terminal, a line per step elsewhere."""

from __future__ import annotations

import sys
import time

from rich import progress
from rich.console import Console


class Progress(progress.Progress):
    """Shows steps out of `total` on standard error. Draws only between measurements."""

    def __init__(self, total: int) -> None:
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

    def step(self, what: str, outcome: str = "") -> None:
        """One step is done; `what` it was and how it went."""
        self._done += 1
        told = f"{what}  {outcome}"
        if self.disable:
            left = (time.monotonic() - self._begun) / self._done * max(self._total - self._done, 0)
            self.say(f"[{self._done}/{self._total}, {left / 60:.0f} min left] {told}")
        else:
            self.update(self._steps, advance=1, description=told, refresh=True)

    def say(self, text: str) -> None:
        """A line that stays, for what could not be done."""
        if self.disable:
            print(text, file=sys.stderr, flush=True)
        else:
            self.console.print(text, highlight=False)
