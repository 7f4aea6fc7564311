"""Markdown and a plot from the records of a soak; measures nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from loadtests.clients.steady.known_requests import Nature
from loadtests.reporting.markdown import write_figures
from loadtests.reporting.model import MIB, Axis, Line, Lines, Panels, Section
from loadtests.soak.gauge import Reading
from loadtests.store import Record

COLOURS = {"threading": "#1a7fb8", "forking": "#c8452c", "single": "#0b4f9e", "gevent": "#3f8f3f"}
TIME = Axis("time", "min", low=0)


class Result:
    """The records of one mode."""

    def __init__(self, mode: str, records: Iterable[Record]) -> None:
        self.mode = mode
        self.outcome: Record = {}
        self.plan: Record = {}
        self.readings: list[Reading] = []
        for record in records:
            if record["record"] == "soak":
                self.plan = record
            elif record["record"] == "outcome":
                self.outcome = record
            elif record["record"] == "reading":
                values = {key: value for key, value in record.items() if key not in _FRAME}
                self.readings.append(Reading(**values))

    def quiet(self) -> list[Reading]:
        """The readings between which nothing may have grown."""
        return [reading for reading in self.readings if reading.quiet]

    def total(self, what: str) -> int:
        """The sum of a table of the outcome."""
        counts: dict[str, int] = self.outcome[what]
        return sum(counts.values())


_FRAME = ("record", "run", "mode")


def results(records: Sequence[Record]) -> list[Result]:
    """The soaks among the records that came to an end; of several of a mode the last one."""
    last: dict[str, str] = {}
    for record in records:
        if record["record"] == "outcome":
            last[record["mode"]] = record["run"]
    return [
        Result(mode, [r for r in records if r.get("mode") == mode and r["run"] == run])
        for mode, run in sorted(last.items())
    ]


def table(found: Sequence[Result]) -> list[str]:
    """Table of the counts, a column for each mode."""
    rows: list[tuple[str, list[Any]]] = [
        ("minutes of load", [f"{r.outcome['seconds'] / 60:.1f}" for r in found]),
        ("answers that were right", [r.total("right") for r in found]),
        ("answers that were wrong, crossed or missing", [r.total("wrong") for r in found]),
        *[
            (f"of these {nature.value}", [_nature(r, nature.value) for r in found])
            for nature in Nature
        ],
        (
            "clients that left, fell silent, dripped or sent nonsense",
            [r.total("faults") for r in found],
        ),
        ("workers killed and replaced", [r.outcome["killed"] for r in found]),
        ("requests lost with a worker", [r.total("lost") for r in found]),
        ("lines of the error log, all of them expected", [r.total("log") for r in found]),
    ]
    for name in ("pss", "anonymous"):
        label = {"pss": "PSS", "anonymous": "anonymous memory"}[name]
        rows.append((f"{label} when quiet, MiB", [_quiet(r, name, 2**20) for r in found]))
    for name in ("descriptors", "threads", "processes", "temporary"):
        label = {"temporary": "temporary files"}.get(name, name)
        rows.append((f"{label} when quiet", [_quiet(r, name, 1) for r in found]))
    return _table("", found, rows)


def _table(name: str, found: Sequence[Result], rows: Sequence[tuple[str, list[Any]]]) -> list[str]:
    """The lines of a table with a column for each mode."""
    lines = [f"|{f' {name} ' if name else ' '}| {' | '.join(result.mode for result in found)} |"]
    lines.append(f"|---|{'--:|' * len(found)}")
    for label, values in rows:
        cells = [f"{value:,}" if isinstance(value, int) else str(value) for value in values]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def kinds(found: Sequence[Result], what: str) -> list[str]:
    """A table of the outcome in full."""
    names = sorted({name for result in found for name in result.outcome[what]})
    rows = [(name, [result.outcome[what].get(name, 0) for result in found]) for name in names]
    return _table(what, found, rows)


def failures(found: Sequence[Result]) -> list[str]:
    """List of the failures."""
    return [
        f"- {result.mode}: {failure}" for result in found for failure in result.outcome["failures"]
    ]


def figure(found: Sequence[Result]) -> Panels:
    """Memory and descriptors over time: under load, and when all clients have gone."""

    def panel(what: str, unit: str, name: str, scale: float, *, quiet: bool) -> Lines:
        lines = [
            Line(
                result.mode,
                COLOURS[result.mode],
                [
                    (r.at / 60, getattr(r, name) * scale)
                    for r in result.readings
                    if r.quiet == quiet
                ],
            )
            for result in found
        ]
        when = "when all clients have gone" if quiet else "under load"
        title = f"{what} of all processes, {when}"
        return Lines(name, title, TIME, Axis(what, unit, low=0), lines, marks=quiet)

    panels = [
        panel(*what, quiet=quiet)
        for what in (("PSS", "MiB", "pss", MIB), ("descriptors", "", "descriptors", 1.0))
        for quiet in (False, True)
    ]
    title = "Memory and descriptors under mixed load with every fault at once"
    return Panels("soak", title, panels)


def markdown(found: Sequence[Result], folder: Path) -> str:
    """Table, details and a plot, which goes into `folder`."""
    (drawn,) = write_figures([Section("", parts=[figure(found)])], folder)
    parts = [
        table(found),
        failures(found),
        [f"![Memory and descriptors over time]({folder.name}/{drawn.name})"],
        *[kinds(found, what) for what in ("right", "faults", "log", "lost", "wrong")],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _nature(result: Result, name: str) -> int:
    count: int = result.outcome["natures"].get(name, 0)
    return count


def _quiet(result: Result, name: str, scale: int) -> str:
    values = [getattr(reading, name) / scale for reading in result.quiet()]
    return " ".join(f"{value:.1f}" if scale > 1 else f"{value:.0f}" for value in values)
