"""Report of memory by line."""

from __future__ import annotations

from typing import Any

from loadtests.reporting.model import Cell, Column, Section, Table
from loadtests.stats.results import Results
from loadtests.studies.memory.lines.by_line import SCENARIO
from loadtests.studies.memory.lines.examples import Line

COLUMNS = (
    Column("line"),
    Column("code"),
    Column("held", "MiB", 2, 1 / 2**20),
    Column("increment", "KiB", 1, 1 / 2**10),
    Column("runs"),
)


def sections(results: Results) -> list[Section]:
    """A table for each example, if there are any."""
    found = {s["server"]: s for s in results.samples if s["scenario"] == SCENARIO}
    if not found:
        return []
    return [
        Section(
            "Memory by line",
            [
                "Which lines of the example applications take memory? memory_profiler looks at the "
                "resident set of the process after each line; increments are added up over all "
                "calls. The first line is where counting begins, so it has none.",
                *(_sentence(sample) for sample in found.values()),
            ],
            [_table(sample) for sample in found.values()],
        )
    ]


def _sentence(sample: dict[str, Any]) -> str:
    lines = [Line(*line) for line in sample["lines"]]
    grown = {line.number: line.grown for line in lines if line.grown}
    told = f"{sample['server']}: {sample['calls']:,} calls, "
    if not grown:
        return told + "no line takes any."
    most = max(grown, key=lambda number: grown[number])
    return told + (
        f"{sum(grown.values()) / 2**10:,.0f} KiB in all its lines, most in line {most} "
        f"({grown[most] / 2**10:,.0f} KiB)."
    )


def _table(sample: dict[str, Any]) -> Table:
    rows: list[list[Cell]] = [
        [str(line.number), line.text, line.held, line.grown, float(line.runs)]
        for line in (Line(*line) for line in sample["lines"])
        if line.text.strip()
    ]
    name = str(sample["server"])
    return Table(
        "memory-lines-" + "-".join(name.lower().replace(",", "").split()),
        f"{name}: {sample['function']} in {sample['file']}",
        COLUMNS,
        rows,
        note=f"{sample['calls']:,} calls.",
    )
