"""The report of soaks, made of their records: counts, memory and descriptors, for each mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from loadtests.clients.steady.known_requests import Nature
from loadtests.measure import disturbance
from loadtests.reporting.model import MIB, Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.store import Record

NAME = "soak"
COLOURS = {
    "threading": "#1a7fb8",
    "forking": "#c8452c",
    "single": "#0b4f9e",
    "gevent": "#3f8f3f",
    "asyncio": "#c8452c",
}
LASTING = "anonymous memory of processes that were not replaced"

Found: TypeAlias = Mapping[str, tuple[Record, Sequence[Record]]]
"""The outcome and the readings of each mode."""
Read: TypeAlias = Callable[[Record, Sequence[Record]], Cell]
"""What a table says of an outcome and its readings."""


def _total(what: str) -> Read:
    return lambda outcome, _: sum(outcome.get(what, {}).values())


def _count(what: str, kind: str) -> Read:
    return lambda outcome, _: outcome.get(what, {}).get(kind, 0)


def _quiet(tell: Callable[[Record], object]) -> Read:
    """Something of each quiet reading, one after the other."""
    return lambda _, readings: " ".join(str(tell(one)) for one in readings if one["quiet"])


ROWS: dict[str, Read] = {
    "minutes of load": lambda outcome, _: f"{outcome['seconds'] / 60:.1f}",
    "answers that were right": _total("right"),
    "answers that were wrong, crossed or missing": _total("wrong"),
    **{f"of these {nature.value}": _count("natures", nature.value) for nature in Nature},
    "clients that left, fell silent, dripped or sent nonsense": _total("faults"),
    "upgrades (USR2)": _count("incidents", "upgrade"),
    "reloads (HUP)": _count("incidents", "reload"),
    "workers killed and replaced": _total("killed"),
    "times that the disk was full": _count("incidents", "disk"),
    "jumps of the clock": _count("incidents", "clock"),
    "requests lost with a worker": _total("lost"),
    "requests sent again, on a connection that was just closed": _total("retried"),
    "lines of the error log, all of them expected": _total("log"),
    "PSS when quiet, MiB": _quiet(lambda one: f"{one['pss'] * MIB:.1f}"),
    "anonymous memory when quiet, MiB": _quiet(lambda one: f"{one['anonymous'] * MIB:.1f}"),
    f"{LASTING} when quiet, MiB": lambda _, readings: " ".join(
        f"{size:.1f}" for _, size in _lasting(readings)
    ),
    "descriptors when quiet": _quiet(lambda one: one["descriptors"]),
    "threads when quiet": _quiet(lambda one: one["threads"]),
    "processes when quiet": _quiet(lambda one: one["processes"]),
    "temporary files when quiet": _quiet(lambda one: one["temporary"]),
}


def sections(records: Sequence[Record]) -> list[Section]:
    """Of the soaks that came to an end; of several of a mode the last one."""
    outcomes = {one["mode"]: one for one in records if one["record"] == "outcome"}
    if not outcomes:
        return []
    readings = [one for one in records if one["record"] == "reading"]
    found = {
        mode: (last, [r for r in readings if (r["mode"], r["run"]) == (mode, last["run"])])
        for mode, last in sorted(outcomes.items())
    }
    failures = [f"{mode}: {what}." for mode, (one, _) in found.items() for what in one["failures"]]
    right, wrong = (sum(sum(o[w].values()) for o in outcomes.values()) for w in ("right", "wrong"))
    busy = disturbance.warning(one for one in records if one["record"] == "done")
    answer = f"{busy}{right:,} answers were right, and {wrong:,} wrong, crossed or missing."
    kinds = [
        _table(found, what, {kind: _count(what, kind) for kind in sorted(names)})
        for what in ("right", "faults", "log", "lost", "retried", "wrong")
        if (names := {kind for one in outcomes.values() for kind in one.get(what, ())})
    ]
    return [
        Section("Soak", failures, [_table(found, "", ROWS), _figure(found)], answer),
        Section("By kind", parts=kinds, detail=True),
    ]


def _table(found: Found, name: str, rows: Mapping[str, Read]) -> Table:
    """A column for each mode."""
    columns = [Column(name), *map(Column, found)]
    cells = [(what, *(read(*one) for one in found.values())) for what, read in rows.items()]
    return Table(f"{NAME}-{name or 'outcome'}", "", columns, cells)


def _figure(found: Found) -> Panels:
    """Over time: memory and descriptors, under load and when all clients have gone; answers."""
    panels = []
    kinds = ("PSS", "MiB", "pss", MIB), ("descriptors", "", "descriptors", 1.0)
    for what, unit, name, scale in kinds:
        for quiet, when in ((False, "under load"), (True, "when all clients have gone")):
            title = f"{what} of all processes, {when}"
            lines = _lines(found, name, scale, quiet=quiet)
            panels.append(_panel(name, title, Axis(what, unit, low=0), lines, marks=quiet))
    title = f"{LASTING}, when all clients have gone"
    stays = [
        Line(mode, COLOURS[mode], [(at / 60, size) for at, size in _lasting(readings)])
        for mode, (_, readings) in found.items()
    ]
    panels.append(_panel("lasting", title, Axis("memory", "MiB", low=0), stays, marks=True))
    for name, title in (("right", "answers that were right"), ("incidents", "incidents")):
        lines = _lines(found, name, 1.0, quiet=False)
        if lines:
            panels.append(_panel(name, f"{title}, so far", Axis(title, "", low=0), lines))
    return Panels(NAME, "Memory, descriptors and answers under load with all faults", panels)


def _lasting(readings: Sequence[Record]) -> list[tuple[float, float]]:
    """Times of quiet moments, and what those processes have that lived through the second half."""
    quiet = [one for one in readings if one["quiet"]]
    late = [set(one["each"]) for one in quiet[len(quiet) // 2 :]]
    lasting = set.intersection(*late) if late else set()
    return [
        (one["at"], sum(one["each"][process][0] for process in lasting) * MIB)
        for one in quiet
        if lasting <= set(one["each"])
    ]


def _panel(name: str, title: str, y: Axis, lines: list[Line], *, marks: bool = False) -> Lines:
    return Lines(name, title, Axis("time", "min", low=0), y, lines, marks=marks)


def _lines(found: Found, name: str, scale: float, *, quiet: bool) -> list[Line]:
    """A line for each mode whose readings have this."""
    return [
        Line(mode, COLOURS[mode], [(one["at"] / 60, one[name] * scale) for one in own])
        for mode, (_, readings) in found.items()
        if (own := [one for one in readings if one["quiet"] == quiet and name in one])
    ]
