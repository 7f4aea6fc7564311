"""Compares the visits of a program, and prints a line for each and a table of all."""

from __future__ import annotations

import textwrap

from tests.programs.running.application import MODES
from tests.programs.running.visit import Visit, last_lines


def differences(reference: Visit, ours: Visit) -> list[str]:
    """What our clients saw that those of the reference did not see."""
    found: list[str] = []
    if reference.fault:
        return found
    for step, expected in reference.seen.items():
        if ours.seen.get(step) != expected:
            theirs, mine = (shown(each.seen.get(step)) for each in (reference, ours))
            found.append(f"{step}:\n    {reference.server}: {theirs}\n    {ours.server}: {mine}")
    found += [f"{step}: only under {ours.server}" for step in ours.seen.keys() - reference.seen]
    if "Traceback" in ours.log and "Traceback" not in reference.log:
        found.append(f"a traceback in the log, and none in the one of {reference.server}")
    return found


def shown(seen: object) -> str:
    """An observation as it is printed: its beginning."""
    text = repr(seen)
    return text if len(text) <= 400 else f"{text[:400]}… ({len(text)} characters)"


def judge(visits: list[Visit], ours: Visit) -> str:
    """Why a visit is a failure; empty if it is none. The first of all visits is the reference."""
    if ours.fault:
        return ours.fault
    reference = visits[0]
    return "" if ours is reference else "\n".join(differences(reference, ours))


def line(visit: Visit, failure: str) -> str:
    """The end of the line of a visit; of a failure, all that is known."""
    steps = f"{len(visit.seen)} steps in {visit.seconds:.1f} s"
    if not failure:
        return f"ok, {steps}"
    details = [*failure.splitlines(), "its log ends with:", *last_lines(visit.log).splitlines()]
    return f"FAILED, {steps}\n" + textwrap.indent("\n".join(details), "    ")


def table(cells: dict[str, list[str]]) -> str:
    """A row for each program, a column for each server; of a program that did not run, why."""
    rows = [["program", "reference", *MODES], *([name, *row] for name, row in cells.items())]
    whole = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        for row in rows
    )
    return "\n".join(each.rstrip() for each in lines)
