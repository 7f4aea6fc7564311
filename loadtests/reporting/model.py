"""The parts of a report, without their layout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from loadtests.stats.results import Spread

MIB = 2**-20
"""Scale of a column that shows bytes in MiB."""

Cell: TypeAlias = str | float | Spread | None
"""None: not measured."""


@dataclass(frozen=True)
class Column:
    """`scale` makes the unit of the cells from that of the values; text has no places."""

    name: str
    unit: str = ""
    places: int = 0
    scale: float = 1.0


@dataclass(frozen=True)
class Table:
    """`name` is that of its file. The first column says whose a row is; `strong` rows are ours.

    `ranking` is the name of the column by which the rows are ordered, best first.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    strong: frozenset[str] = frozenset()
    note: str = ""
    ranking: str = ""


@dataclass(frozen=True)
class Axis:
    """The label names the quantity, the unit stands behind it.

    With `nines` the value is one slower request of how many, and a tick says 99 % in place of 100.
    """

    label: str
    unit: str = ""
    log: bool = False
    low: float | None = None
    high: float | None = None
    nines: bool = False


@dataclass(frozen=True)
class Line:
    """Points by x. `band` has for some x the lowest and the highest over all rounds."""

    name: str
    colour: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()
    strong: bool = False


@dataclass(frozen=True)
class Lines:
    """A figure of lines. `marks` shows the points, too; `steps` draws no slopes between them."""

    name: str
    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    subtitle: str = ""
    caption: str = ""
    marks: bool = False
    steps: bool = False


@dataclass(frozen=True)
class Bar:
    """A row: a value for each of the figure's parts, with its spread as a whisker."""

    name: str
    colour: str
    values: Sequence[Spread | None]
    strong: bool = False


@dataclass(frozen=True)
class Bars:
    """A figure of horizontal bars: one to a row, or several with `parts` as their names.

    `stacked` puts the parts of a row behind each other.
    """

    name: str
    title: str
    axis: Axis
    bars: Sequence[Bar]
    parts: Sequence[str] = ()
    subtitle: str = ""
    caption: str = ""
    stacked: bool = False


@dataclass(frozen=True)
class Panels:
    """Figures of lines side by side, or below each other where there is no room; one legend."""

    name: str
    title: str
    panels: Sequence[Lines]
    subtitle: str = ""
    caption: str = ""


Figure: TypeAlias = Lines | Bars | Panels


@dataclass(frozen=True)
class Listing:
    """Lines of a log or of a configuration, as they are."""

    name: str
    title: str
    text: str


Part: TypeAlias = Table | Figure | Listing


@dataclass(frozen=True)
class Section:
    """Paragraphs (Markdown within a line only) above figures and tables.

    `answer` is what was found, in one sentence. `detail`: only in the whole report, not where its
    results are shown in short.
    """

    title: str
    text: Sequence[str] = ()
    parts: Sequence[Part] = ()
    answer: str = ""
    detail: bool = False


def method(module: str, *names: str, more: str = "", **values: object) -> Section:
    """How something is measured: each item of a list in Markdown is a paragraph.

    The file, which begins with a title, is beside the module and has its name, or those `names`.
    Its braces stand for `values`; `more` are further items.
    """
    files = [Path(module).with_name(f"{name}.md") for name in names or [Path(module).stem]]
    lists = (file.read_text(encoding="utf-8").partition("\n")[2] for file in files)
    text = "".join(lists).format(**values)
    items = f"\n{text}{more}".split("\n- ")[1:]
    return Section("Method", [" ".join(item.split()) for item in items], detail=True)


def named(sections: Sequence[Section]) -> Iterator[tuple[Section, list[tuple[str, Part]]]]:
    """Each section with its parts, each of which has another name that a file may have."""
    taken: set[str] = set()
    for section in sections:
        parts: list[tuple[str, Part]] = []
        for part in section.parts:
            plain = re.sub(r"[^\w.+-]+", "-", part.name).strip("-.") or "part"
            name, number = plain, 1
            while name in taken:
                number += 1
                name = f"{plain}-{number}"
            taken.add(name)
            parts.append((name, part))
        yield section, parts
