"""The study `develop`: from a save to the first new response of servers that reload."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from loadtests.reporting import faults
from loadtests.reporting.cells import brief
from loadtests.reporting.model import MIB, Axis, Cell, Column, Section, Table, method
from loadtests.reporting.promises import Places, Promise, all_finished, none, of_figures
from loadtests.servers.projects import KINDS, MAIN, SUB, Kind
from loadtests.servers.registry.develop import EVERYONE, MODES, OURS, SERVE, SERVERS
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies import comparison, tables
from loadtests.studies.comparison import Measure, figures
from loadtests.studies.develop import experiments
from loadtests.studies.develop.experiments import LIMIT, NEVER, STALE, WHEN
from loadtests.studies.study import Study

NAME = "develop"
WORDS = {
    one.name: one.name.removeprefix("poorhttp dev (").removesuffix(")")
    for one in EVERYONE
    if one.ours
}
"""The mode of each of ours, or else its name."""
SECONDS = tuple(f"seconds, {what}" for what in (MAIN, SUB))
"""The figures of the time from a save to its first answer."""
FAULTS = ("refused", "reset", "closed", "5xx", "half-loaded", "backwards")
"""Those that have a column; all of them are listed below the tables."""


def _saved(results: Results, kind: Kind) -> dict[str, Spread]:
    """The seconds from each save to its first answer, of each server."""
    return {
        one.name: found
        for one in SERVERS
        if (found := spread(results.values(kind.name, one.name, *SECONDS)))
    }


def _fastest_other(results: Results, kind: Kind) -> str | None:
    """The server of others with the best median."""
    saved = _saved(results, kind)
    return next((name for name in tables.ranked(saved, saved) if not tables.is_ours(name)), None)


def _ahead(kind: Kind) -> Callable[[Results], Places]:
    """Median against median; the lowest and the highest are those of single rounds."""

    def read(results: Results) -> Places:
        saved, other = _saved(results, kind), _fastest_other(results, kind)
        if other is None or OURS.name not in saved:
            return {}
        ratio = saved[other].median / saved[OURS.name].median
        rounds = results.figure_ratio(kind.name, other, OURS.name, *SECONDS)
        low, high, count = rounds[1:] if rounds else (ratio, ratio, 0)
        found = Spread(ratio, min(ratio, low), max(ratio, high), count)
        return {f"{kind.name}, to {other}": found}

    return read


def _memory_ratios(results: Results) -> Places:
    """The development server's PSS to that of `serve`, within each round."""
    return comparison.places(
        Results.figure_ratio,
        {
            f"{kind.name}, {when}": ("memory", OURS.name, SERVE.name, _pss(kind, when))
            for kind in KINDS.values()
            for when in WHEN
        },
    )(results)


def _pss(kind: Kind, when: str) -> str:
    return f"{kind.name}: pss {when}"


def _times_promised(kind: Kind) -> tuple[Promise, ...]:
    where = {OURS.name: kind.name}
    first = f"from a save to its first answer, {kind.title}: median"
    worst = f"{kind.title}: worst"
    ahead = f"{kind.title}: speed against the fastest of the others"
    return (
        of_figures(kind.name, first, 60, "ms", where, SECONDS, scale=1e3, places=0),
        of_figures(kind.name, worst, 150, "ms", where, SECONDS, max, scale=1e3, places=0),
        Promise(kind.name, ahead, 8, "×", _ahead(kind), at_least=True, places=1),
    )


IN_MODES = {one.name: WORDS[one.name] for one in MODES}
PROMISES = (
    *(promise for kind in KINDS.values() for promise in _times_promised(kind)),
    none(
        "saves",
        "requests refused, reset, failed or answered by a half-loaded or an older version",
        IN_MODES,
        "failed",
    ),
    none("saves", "pages that lost a part", IN_MODES, "pages lost"),
    none("saves", "saves whose version was never answered", IN_MODES, NEVER),
    none(
        "quick",
        "bursts of saves within a second whose last one was never answered",
        {one.name: WORDS[one.name] for one in SERVERS if one.ours},
        STALE,
    ),
    of_figures(
        "idle",
        "share of a core while nothing changes, 5,000 files",
        0.5,
        "%",
        {OURS.name: "on"},
        ["share of a core"],
        scale=100,
    ),
    Promise(
        "memory",
        "PSS against that of `poorhttp serve`",
        1.25,
        "×",
        _memory_ratios,
    ),
    all_finished(WORDS),
)


def report(results: Results) -> list[Section]:
    """Everyone with all projects; then each project, many saves, cost and memory."""
    return [
        *_compared(results),
        *(section for kind in KINDS.values() for section in _times(results, kind)),
        *_many_saves(results),
        *_cost(results),
        *_memory(results),
        *faults.sections(NAME, results),
        method(__file__, experiments=experiments, stale=LIMIT / 2),
    ]


def _section(title: str, table: Table, answer: str) -> list[Section]:
    return [Section(title, parts=[table], answer=answer, detail=True)] if table.rows else []


def _table(
    results: Results, part: str, servers: Sequence[str], measures: Sequence[Measure], ranking: str
) -> Table:
    """The figures of an experiment, without the columns in which nothing failed."""
    shown = [
        one
        for one in measures
        if one.column.name not in (NEVER, *FAULTS, "otherwise")
        or any(one.read(results, part, server) for server in servers)
    ]
    return comparison.of_figures(results, part, f"{NAME}-{part}", servers, shown, ranking)


def _otherwise(results: Results, *place: str) -> float:
    known = results.values(*place, *(f"failed: {kind}" for kind in FAULTS))
    return sum(results.values(*place, "failed")) - sum(known)


def _total(name: str, figure: str = "") -> Measure:
    return figures(Column(name), sum, figure or name, empty=0)


FAILURES = (
    _total("requests"),
    _total("failed"),
    *(_total(kind, f"failed: {kind}") for kind in FAULTS),
    Measure(Column("otherwise"), _otherwise),
    figures(Column("longest request", "ms", 0, 1e3), max),
)


def _sum(results: Results, what: str, experiments: Iterable[str], servers: Iterable[str]) -> float:
    places = itertools.product(experiments, servers)
    return sum(value for place in places for value in results.values(*place, what))


def _compared(results: Results) -> list[Section]:
    """All servers with all projects, and what failed."""
    found = {name: saved for name, kind in KINDS.items() if (saved := _saved(results, kind))}
    if not found:
        return []
    ratios: dict[str, list[float]] = {one.name: [] for one in SERVERS}
    for saved in found.values():
        for name, one in saved.items() if OURS.name in saved else ():
            ratios[name].append(one.median / saved[OURS.name].median)
    slower = {
        name: tables.once(statistics.geometric_mean(of), len(of))
        for name, of in ratios.items()
        if of
    }
    names = tables.ranked(slower, [one.name for one in SERVERS])
    times = {name: [saved.get(name) for saved in found.values()] for name in names}
    rows = [
        [name, slower.get(name), *times[name]]
        + [_sum(results, what, found, [name]) for what in ("failed", "requests")]
        for name in names
        if any(times[name])
    ]
    by = Column("of ours, geometric mean", "×", 1)
    shown = [Column(KINDS[kind].title, "ms", 0, 1e3) for kind in found]
    note = "The median save, and from the fastest to the slowest."
    columns = [Column("server"), by, *shown, Column("failed"), Column("requests")]
    table = tables.table(f"{NAME}-compared", "", columns, rows, note, by.name)
    figure = tables.bars(
        "save-to-answer",
        "From a save to the first answer of the new version",
        Axis("milliseconds from os.replace", log=True),
        {
            KINDS[kind].title: {name: tables.scaled(one, 1e3) for name, one in saved.items()}
            for kind, saved in found.items()
        },
        subtitle="The main module and one that it imports, in turn, while requests are sent all "
        "the time",
        caption="The mark is the median save; the line goes from the fastest to the slowest. "
        "Lower is better. A server that polls looks for changes once a second.",
    )
    order = [row[0] for row in rows]
    figure = replace(figure, bars=sorted(figure.bars, key=lambda bar: order.index(bar.name)))
    answer = ", ".join(
        f"{brief(saved[OURS.name].median * 1e3)} ms after a save of {KINDS[kind].title} "
        f"({brief(saved[other].median / saved[OURS.name].median)} times as fast as {other})"
        for kind, saved in found.items()
        if OURS.name in saved and (other := _fastest_other(results, KINDS[kind]))
    )
    answer = f"{OURS.name} answers {answer}." if answer else ""
    return [Section("From a save to the first answer", parts=[figure, table], answer=answer)]


def _times(results: Results, kind: Kind) -> list[Section]:
    saved = _saved(results, kind)
    ours = saved.get(OURS.name)

    def against_ours(found: Sequence[float]) -> Cell:
        return statistics.median(found) / ours.median if ours else None

    measures = (
        Measure(
            Column("saves"),
            lambda results, *place: saved[place[1]].rounds + sum(results.values(*place, NEVER)),
        ),
        figures(Column("median", "ms", 0, 1e3), statistics.median, *SECONDS),
        figures(Column("worst", "ms", 0, 1e3), max, *SECONDS),
        figures(Column("of ours", "×", 1), against_ours, *SECONDS),
        _total(NEVER),
        *FAILURES,
    )
    table = _table(results, kind.name, tables.ranked(saved, saved), measures, "median")
    times = {name: tables.scaled(found, 1e3) for name, found in saved.items()}
    answer = tables.answer("From a save to the first answer", times, "ms")
    return _section(kind.title, table, answer)


def _many_saves(results: Results) -> list[Section]:
    """Ours in each mode, with all sorts of clients."""
    names = [name for name in IN_MODES if results.values("saves", name, "saves")]
    measures = (*map(_total, ("saves", "pages", "pages lost", NEVER)), *FAILURES)
    table = _table(results, "saves", names, measures, "failed")
    saves, requests, failed = (
        _sum(results, what, ["saves"], names) for what in ("saves", "requests", "failed")
    )
    answer = f"{failed:,.0f} of {requests:,.0f} requests failed during {saves:,.0f} saves."
    return _section("Many saves, in every mode", table, answer)


def _cost(results: Results) -> list[Section]:
    """Bursts of saves that left an old version, and CPU time while nothing changes."""
    idle = {
        one.name: tables.scaled(found, 100)
        for one in SERVERS
        if (found := results.figure("idle", one.name, "share of a core"))
    }
    rows: list[list[Cell]] = []
    for name in tables.ranked(idle, [one.name for one in SERVERS]):
        bursts, stale = (_sum(results, what, ["quick"], [name]) for what in ("bursts", STALE))
        if bursts or name in idle:
            processes = results.figure("idle", name, "processes")
            quick = (stale, bursts) if bursts else (None, None)
            rows.append([name, *quick, idle.get(name), processes])
    columns = ("server", "stale after a burst", "bursts", Column("idle", "% of a core", 2))
    table = tables.table(f"{NAME}-cost", "", [*columns, "processes"], rows, ranking="idle")
    answer = tables.answer("CPU time while nothing changes", idle, "% of a core")
    return _section("Saves within a second, and rest", table, answer)


def _memory(results: Results) -> list[Section]:
    """PSS of ours beside `serve`, and how much more that is within the rounds."""
    found = _memory_ratios(results)
    rows: list[list[Cell]] = [
        [
            f"{kind.title}, {when}",
            *(results.figure("memory", one.name, _pss(kind, when)) for one in (SERVE, OURS)),
            found[place],
        ]
        for kind in KINDS.values()
        for when in WHEN
        if (place := f"{kind.name}, {when}") in found
    ]
    both = [Column(one.name, "MiB", 1, MIB) for one in (SERVE, OURS)]
    columns = (*both, Column("more", "×", 2))
    table = tables.table(f"{NAME}-memory", "", ["project", *columns], rows)
    low, high = (choose((one.median for one in found.values()), default=0) for choose in (min, max))
    answer = f"{OURS.name} takes {low:.2f} to {high:.2f} times the memory of {SERVE.name}."
    return _section("Memory", table, answer)


STUDY = Study(
    NAME,
    "save files of projects, and see when servers that reload answer anew",
    "",
    lambda: EVERYONE,
    experiments.plan,
    report,
    promises=PROMISES,
    experiments=tuple(experiments.EXPERIMENTS),
    scales=experiments.SCALES,
)
