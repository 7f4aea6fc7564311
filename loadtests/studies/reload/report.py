"""Report of the experiments `develop`, from stored figures to Markdown and a plot.

Measures nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from loadtests.reporting import ending, markdown_insert
from loadtests.reporting.figures import plot
from loadtests.reporting.model import MIB
from loadtests.servers.projects import KINDS, Kind
from loadtests.servers.registry.reload import MODES, OURS, SERVE, SERVERS
from loadtests.stats.results import Results
from loadtests.studies.lifecycle.promises import values
from loadtests.studies.lifecycle.report import commands, faults
from loadtests.studies.reload.experiments import (
    BURST,
    FULL,
    LIMIT,
    NEVER,
    NOT_WAITED,
    REQUESTS,
    STALE,
    WHEN,
)
from loadtests.studies.reload.promises import fastest_other, memory_ratio, seconds, table

PLOT = "save-to-answer.svg"
FAULTS = ("refused", "reset", "closed", "5xx", "half-loaded", "backwards")
"""Those that have a column; all of them are listed below the tables."""


def _count(results: Results, experiment: str, server: str, name: str) -> float:
    return sum(values(results, experiment, server, name))


def _failures(results: Results, experiment: str, server: str) -> list[str]:
    """Cells: requests, all that failed, and by kind; a dash is none."""
    kinds = [_count(results, experiment, server, f"failed: {kind}") for kind in FAULTS]
    failed = _count(results, experiment, server, "failed")
    counts = [failed, *kinds, failed - sum(kinds)]
    requests = f"{_count(results, experiment, server, 'requests'):,.0f}"
    return [requests, *(f"{count:,.0f}" if count else "–" for count in counts)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*columns: str) -> list[str]:
    return [_row(["", *columns]), f"|---|{'--:|' * len(columns)}"]


_COUNTED = ("requests", "failed", *FAULTS, "otherwise")


def times(results: Results, kind: Kind) -> list[str]:
    """Everyone with a project: from a save to its first answer, and what failed meanwhile."""
    lines = [
        f"### {kind.title}",
        "",
        *_head("saves", "median, ms", "worst, ms", "× ours", "never", *_COUNTED, "longest, ms"),
    ]
    ours = seconds(results, kind, OURS.name)
    for one in SERVERS:
        found = seconds(results, kind, one.name)
        never = _count(results, kind.name, one.name, NEVER)
        if not found:
            continue
        middle = statistics.median(found)
        longest = values(results, kind.name, one.name, "longest request")
        lines.append(
            _row(
                [
                    f"**{one.name}**" if one.ours else one.name,
                    f"{len(found) + never:.0f}",
                    f"{middle * 1e3:,.0f}",
                    f"{max(found) * 1e3:,.0f}",
                    f"{middle / statistics.median(ours):.1f}" if ours else "",
                    f"{never:.0f}" if never else "–",
                    *_failures(results, kind.name, one.name),
                    f"{max(longest) * 1e3:,.0f}",
                ]
            )
        )
    return lines if len(lines) > 4 else []


def many_saves(results: Results) -> list[str]:
    """Ours in each mode, with all sorts of clients."""
    lines = _head("saves", "pages", "pages lost", "never", *_COUNTED, "longest, ms")
    for one in MODES:
        if not (made := _count(results, "saves", one.name, "saves")):
            continue
        longest = max(values(results, "saves", one.name, "longest request"))
        pages, lost, never = (
            _count(results, "saves", one.name, name) for name in ("pages", "pages lost", NEVER)
        )
        cells = [
            f"**{one.name}**",
            f"{made:.0f}",
            f"{pages:,.0f}",
            f"{lost:,.0f}" if lost else "–",
            f"{never:.0f}" if never else "–",
        ]
        lines.append(
            _row(
                [*cells, *_failures(results, "saves", one.name), f"{longest * 1e3:,.0f}"],
            )
        )
    return lines if len(lines) > 2 else []


def cost(results: Results) -> list[str]:
    """Bursts of saves that left an old version, and CPU time while nothing changes."""
    lines = _head("stale after a burst", "of", "idle, % of a core", "processes")
    for one in SERVERS:
        bursts = _count(results, "quick", one.name, "bursts")
        shares = values(results, "idle", one.name, "share of a core")
        if not bursts and not shares:
            continue
        processes = values(results, "idle", one.name, "processes")
        cells = [
            f"**{one.name}**" if one.ours else one.name,
            f"{_count(results, 'quick', one.name, STALE):.0f}" if bursts else "",
            f"{bursts:.0f}" if bursts else "",
            f"{statistics.median(shares) * 100:.2f}" if shares else "",
            f"{statistics.median(processes):.0f}" if processes else "",
        ]
        lines.append(_row(cells))
    return lines if len(lines) > 2 else []


def memory(results: Results) -> list[str]:
    """PSS of ours beside `serve`, in MiB, and how much more that is within the rounds."""
    lines = _head("when", f"{SERVE.name}, MiB", f"{OURS.name}, MiB", "×")
    for kind in KINDS.values():
        for when in WHEN:
            name = f"{kind.name}: pss {when}"
            both = [values(results, "memory", one.name, name) for one in (SERVE, OURS)]
            ratio = memory_ratio(results, kind, when)
            if ratio is None:
                continue
            cells = [f"{statistics.median(found) * MIB:.1f}" for found in both]
            told = f"{ratio.median:.2f} ({ratio.low:.2f} – {ratio.high:.2f})"
            lines.append(_row([kind.title, when, *cells, told]))
    return lines if len(lines) > 2 else []


def drawn(results: Results) -> str:
    """The plot: every save of everyone, by project."""
    groups = []
    for kind in KINDS.values():
        rows = [
            plot.Scatter(
                one.name,
                one.colour,
                [value * 1e3 for value in found],
                strong=one.ours,
            )
            for one in SERVERS
            if (found := seconds(results, kind, one.name))
        ]
        if rows:
            groups.append((kind.title, rows))
    if not groups:
        return ""
    return plot.scatters(
        "From a save to the first answer of the new version",
        "every save is a dot, the line is the median; requests are sent all the time",
        "milliseconds from os.replace (logarithmic)",
        groups,
        "The main module and one that it imports, in turn. Lower is better; whoever polls has a "
        "second between two looks. Made by `python -m loadtests develop`.",
    )


def summary(results: Results) -> list[str]:
    """What a person wants to see at the end of a run."""
    return ["\n".join(part) + "\n" for part in (*_sections(results), faults(results)) if part]


def _sections(results: Results) -> list[list[str]]:
    titled = (
        ("### 200 saves, in every mode", many_saves(results)),
        ("### Saves within a second, and rest", cost(results)),
        ("### Memory", memory(results)),
    )
    return [
        *(part for kind in KINDS.values() if (part := times(results, kind))),
        *([title, "", *part] for title, part in titled if part),
    ]


BEGIN, END = "<!-- measured -->", "<!-- end of what was measured -->"


def insert(results: Results, page: Path) -> None:
    """Puts plot and tables into a page that somebody has written, between BEGIN and END.

    The plot goes into a folder of the page's name beside it.
    Raises LabError if there is no such place.
    """
    parts = [table(results), compared(results)]
    if svg := drawn(results):
        folder = page.parent / page.stem
        folder.mkdir(exist_ok=True)
        (folder / PLOT).write_text(svg, encoding="utf-8")
        parts.insert(0, [f"![From a save to the first answer]({page.stem}/{PLOT})"])
    markdown_insert.insert_parts(page, BEGIN, END, parts)


def compared(results: Results) -> list[str]:
    """All servers in one table: median and worst with each project, and what failed."""
    kinds = [kind for kind in KINDS.values() if fastest_other(results, kind)]
    lines = _head(*(f"{kind.title}: median (worst), ms" for kind in kinds), "failed requests")
    for one in SERVERS:
        found = [seconds(results, kind, one.name) for kind in kinds]
        if not any(found):
            continue
        failed = sum(_count(results, kind.name, one.name, "failed") for kind in kinds)
        requests = sum(_count(results, kind.name, one.name, "requests") for kind in kinds)
        cells = [
            f"{statistics.median(one) * 1e3:,.0f} ({max(one) * 1e3:,.0f})" if one else ""
            for one in found
        ]
        name = f"**{one.name}**" if one.ours else one.name
        lines.append(_row([name, *cells, f"{failed:,.0f} of {requests:,.0f}"]))
    return lines if len(lines) > 2 else []


def markdown(results: Results) -> str:
    """The page: promises, what was measured, what failed, and how."""
    parts: list[Sequence[str]] = [
        ["# The development server, measured"],
        [
            "Made by `python -m loadtests report --development "
            "loadtests/results/development.jsonl`; not",
            "edited by hand. What it means stands in [development.md](../development.md).",
        ],
        ["## Promised and measured"],
        table(results),
        ["## All servers"],
        *_sections(results),
    ]
    if found := faults(results):
        parts += [["## What failed"], found]
    return ending.page([*parts, *ending.ending(results, METHOD.splitlines(), commands(results))])


METHOD = f"""\
- The server and all its processes have one core, the clients the other, so that the clients take
  nothing from any of them. Ours has most processes, and of two versions one begins while the other
  finishes: it is not helped by that.
- Each round has a new project in a temporary folder, {FULL.saves} saves, and servers take turns. A
  file is written beside the project and put in place by `os.replace`; the time begins before that
  call. It has another number in it each time, of the same length. The main module and one that it
  imports take turns; for Django the main module is the one with the view. The next save comes 0.6
  to 0.9 s after the answer, and up to 1.6 s for servers that look for changes once a second, so
  that they are met at any moment of it; for uWSGI and hupper 1.2 to 2.2 s, since they miss what is
  saved before their first look.
- Meanwhile two clients ask, each 5 ms after its last answer: one with a connection for each
  request, one that keeps its connection and looks whether it lives before it uses it. That is some
  300 requests a second, which leaves the server most of its core: a browser asks less, and more
  would compete with the loading of the new version. It is also how exactly the time is known. A
  request that waits until the new version is there is answered at that moment.
- Failed is a request that is refused or reset, has no or half an answer, none in 10 s, an answer
  that is not 200, or one by a version that was never on disk as a whole: of the modules' numbers,
  which the answer tells, no save left both (`half-loaded`). `backwards` is an answer of an older
  version than somebody had before it was asked. A save is `never` answered if that takes longer
  than {LIMIT:.0f} s.
- gunicorn looks once a second as it comes, and is told of changes where `inotify` is installed:
  both are here. granian is told by `watchfiles`. Flask's and Werkzeug's reloaders poll: with
  `watchdog`, which they would use, they watch all of Python's library, and with its present version
  (7.1) keep a core busy with what they read there themselves.
- `saves`: Flask with SQLAlchemy and pandas; {NOT_WAITED:.0%} of the saves are followed by the next
  one within 50 ms, without waiting for their version; one in three saves both modules. Two clients
  of each sort above, one whose requests take 50 ms, one that sends a body of 40 KB in two parts,
  one that loads pages: the page, then six parts on three connections.
- `quick`: {BURST} saves of equal size within one second, five times a round; stale if the last one
  is not answered in {LIMIT / 2:.0f} s.
- `idle`: 5,000 modules, all of which are imported, so that also servers that only watch what is
  imported watch them. CPU time of all processes for {FULL.seconds:.0f} s, by their own clocks.
- `memory`: PSS of all processes (`smaps_rollup`) in the default mode, after {REQUESTS} requests;
  then after {FULL.remembered} saves and {REQUESTS} more. The ratio is formed within each round.
"""
