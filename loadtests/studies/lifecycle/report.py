"""Report of the experiments `operate`: all servers compared in operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loadtests.reporting import faults
from loadtests.reporting.cells import number
from loadtests.reporting.model import (
    MIB,
    Axis,
    Bars,
    Cell,
    Column,
    Listing,
    Section,
    Table,
    method,
)
from loadtests.reporting.provenance import bare
from loadtests.servers.registry.lifecycle import SERVERS
from loadtests.stats.results import Results, Spread
from loadtests.studies import tables
from loadtests.studies.lifecycle.experiments import KEEPERS
from loadtests.studies.lifecycle.promises import OURS
from loadtests.studies.lifecycle.trial import FULL

NAME = "operate"
STRONG = frozenset(OURS)
VERSION, FILE = "application: ", "configuration: "
"""Before the names of figures of the two reloads that must fail."""


def _sum(results: Results, experiment: str, server: str, name: str) -> Cell:
    found = results.values(experiment, server, name)
    return sum(found) if found else None


def _highest(results: Results, experiment: str, server: str, name: str) -> Cell:
    return max(results.values(experiment, server, name), default=None)


def _whether(results: Results, experiment: str, server: str, name: str) -> Cell:
    found = results.values(experiment, server, name)
    return ("yes" if min(found) else "no") if found else None


def _lost(results: Results, experiment: str, server: str, prefix: str) -> tuple[float, float]:
    """The requests under load that failed, and all of them."""
    failed = sum(results.values(experiment, server, f"{prefix}failed"))
    return failed, failed + sum(results.values(experiment, server, f"{prefix}requests"))


def _sent(*asked: Any) -> Cell:
    return _lost(*asked)[1] or None


def _share(results: Results, experiment: str, server: str, prefix: str) -> Spread | None:
    """Of the requests, that which failed."""
    failed, sent = _lost(results, experiment, server, prefix)
    share = failed / (sent or 1)
    rounds = len(results.values(experiment, server, f"{prefix}requests"))
    return Spread(share, share, share, rounds) if sent else None


@dataclass(frozen=True)
class Measure:
    """A column of an experiment's table, of the figures `name` or of those that begin so."""

    column: Column
    name: str
    read: Callable[[Results, str, str, str], Cell] = Results.figure


def _counted(name: str, shown: str = "") -> Measure:
    return Measure(Column(shown or name), name, _sum)


def _failures(prefix: str = "", words: str = "") -> tuple[Measure, ...]:
    return (
        Measure(Column(f"{words}failed"), f"{prefix}failed", _sum),
        Measure(Column(f"{words}requests"), prefix, _sent),
        Measure(Column(f"{words}failed share", "%", 2, 100), prefix, _share),
    )


P99 = Measure(Column("p99 of quick requests", "ms", 2, 1e3), "p99")
EXPERIMENTS: dict[str, tuple[str, Sequence[Measure]]] = {
    "reload": (
        "Reloads",
        (
            _counted("reloads"),
            *_failures(),
            P99,
            Measure(Column("slowest quick request", "ms", 0, 1e3), "longest", _highest),
        ),
    ),
    "upgrade": ("Upgrades", (_counted("upgrades"), *_failures())),
    "recycle": (
        "Recycled workers",
        (_counted("workers that answered"), *_failures(), P99),
    ),
    "kill": (
        "Killed workers",
        (
            _counted("killed"),
            _counted("failed with a killed worker", "requests lost with them"),
            *_failures(words="other "),
        ),
    ),
    "timeout": (
        "Requests that hang",
        (
            _counted("hung"),
            _counted("hung and ended", "ended"),
            *_failures(words="other "),
        ),
    ),
    "stop": (
        "Stops",
        (*_failures(), Measure(Column("slowest end", "s", 2), "seconds to the end", _highest)),
    ),
    "broken": (
        "Reloads that must fail",
        tuple(
            measure
            for prefix, words in ((VERSION, "version: "), (FILE, "file: "))
            for measure in (
                *_failures(prefix, words),
                Measure(Column(f"{words}the log says why"), f"{prefix}said why", _whether),
                Measure(
                    Column(f"{words}the next one loads"),
                    f"{prefix}can be reloaded afterwards",
                    _whether,
                ),
            )
        ),
    ),
    "preload": (
        "Memory of four workers",
        tuple(
            Measure(Column(f"PSS {when}", "MiB", 1, MIB), f"pss, {when}") for when in FULL.memory
        ),
    ),
    "balance": (
        "Connections over four workers",
        tuple(
            Measure(Column(f"busiest / mean, {what}", "×", 2), f"busiest / mean, {what}")
            for what in ("requests", "connections")
        ),
    ),
}
"""Titles and columns. Rows are ordered by the share that failed, or else by the last column."""
FAILURES = {
    **{name: (name, "") for name in ("reload", "upgrade", "recycle", "kill", "timeout", "stop")},
    "broken version": ("broken", VERSION),
    "broken file": ("broken", FILE),
}
"""By column of the overview, an experiment and what its figures begin with."""
DRAWN = {"preload": "PSS", "balance": "busiest / mean"}
"""Experiments with a figure, and the quantity of its axis."""


def report(results: Results) -> list[Section]:
    """Failed requests of all experiments, then each of them."""
    order = [*DRAWN, *(name for name in EXPERIMENTS if name not in DRAWN)]
    return [
        *_overview(results),
        *(section for name in order for section in _experiment(results, name)),
        *faults.sections(NAME, results),
        *_logs(results),
        *_commands(results),
        method(METHOD),
    ]


def _overview(results: Results) -> list[Section]:
    """Failed requests of all servers in all experiments."""
    shares: dict[str, Spread] = {}
    cells: dict[str, list[Cell]] = {}
    for one in SERVERS:
        counts = [_lost(results, name, one.name, prefix) for name, prefix in FAILURES.values()]
        failed, sent = (sum(column) for column in zip(*counts, strict=True))
        if sent:
            share, measured = failed / sent, sum(of > 0 for _, of in counts)
            shares[one.name] = Spread(share, share, share, measured)
            cells[one.name] = [
                f"{number(failed)} of {number(sent)}" if sent else None for failed, sent in counts
            ]
    if not shares:
        return []
    by = Column("failed share", "%", 2, 100)
    table = Table(
        f"{NAME}-failed",
        "",
        [Column("server"), by, *map(Column, FAILURES)],
        [[name, shares[name], *cells[name]] for name in tables.ranked(shares, shares)],
        STRONG,
        _reasons(results, *dict.fromkeys(name for name, _ in FAILURES.values())),
        by.name,
    )
    percent = {name: tables.scaled(share, 100) for name, share in shares.items()}
    title = "Failed requests"
    axis = Axis("failed requests of all experiments", "%")
    figure = tables.bars(f"{NAME}-failed-figure", title, axis, {"": percent})
    return [Section(title, parts=[figure, table], answer=tables.answer(title, percent, "%"))]


def _experiment(results: Results, name: str) -> list[Section]:
    """All servers in an experiment, the best first."""
    title, measures = EXPERIMENTS[name]
    seen = {figure["server"] for figure in results.figures if figure["experiment"] == name}
    names = [one.name for one in SERVERS if one.name in seen]
    if not names:
        return []
    found: dict[str, dict[str, Spread]] = {}
    rows: dict[str, list[Cell]] = {server: [server] for server in names}
    for measure in measures:
        spreads = found[measure.column.name] = {}
        for server in names:
            cell = measure.read(results, name, server, measure.name)
            rows[server].append(cell)
            if isinstance(cell, Spread):
                spreads[server] = tables.scaled(cell, measure.column.scale)
    columns = [measure.column for measure in measures]
    shares = (column for column in columns if column.name.endswith("failed share"))
    best = next(shares, columns[-1])
    by, unit = best.name, best.unit
    table = Table(
        f"{NAME}-{name}",
        "",
        [Column("server"), *columns],
        [rows[server] for server in tables.ranked(found[by], names)],
        STRONG,
        _reasons(results, name),
        by,
    )
    parts: list[Table | Bars] = [table]
    if name in DRAWN:
        axis = Axis(DRAWN[name], unit)
        shown = {part.removeprefix(DRAWN[name]).strip(", "): one for part, one in found.items()}
        parts.insert(0, tables.bars(f"{NAME}-{name}-figure", title, axis, shown))
    answer = tables.answer(by.capitalize() if by.islower() else by, found[by], unit)
    return [Section(title, parts=parts, answer=answer, detail=name not in DRAWN)]


def _reasons(results: Results, *experiments: str) -> str:
    """Why servers that were measured elsewhere were not in these experiments."""
    told = []
    everyone = {figure["server"] for figure in results.figures}
    for name in experiments:
        seen = {figure["server"] for figure in results.figures if figure["experiment"] == name}
        for one in SERVERS:
            if not seen or one.name in seen or one.name not in everyone:
                continue
            failures = [
                f"{one.name}: {failure['reason']}"
                for failure in results.failures
                if failure["server"] == one.name and failure["what"].startswith(f"{name},")
            ]
            if name in one.cannot:
                told.append(f"{one.name} {one.cannot[name]}")
            else:
                told += failures[:1] or [f"{one.name} was not measured"]
    return " ".join(f"{reason}." for reason in dict.fromkeys(told))


def _logs(results: Results) -> list[Section]:
    """What the logs said of reloads that failed and of requests that hung, the first time."""
    said: dict[tuple[str, str, str], Listing] = {}
    for note in results.notes:
        experiment, server, name, text = (
            note[key] for key in ("experiment", "server", "name", "text")
        )
        if name != "command" and text:
            what = f"broken {name}" if experiment == "broken" else experiment
            listing = Listing(f"{NAME}-log", f"{server}, {what}", text)
            said.setdefault((experiment, server, name), listing)
    return [Section("What the logs said", parts=[*said.values()], detail=True)] if said else []


def _commands(results: Results) -> list[Section]:
    """How each server was started, and what was different in other experiments."""
    told: dict[str, dict[str, str]] = {}
    for note in results.notes:
        if note["name"] == "command":
            told.setdefault(note["server"], {})[note["experiment"]] = note["text"]
    rows = []
    for server, by_experiment in told.items():
        usual = max(by_experiment.values(), key=list(by_experiment.values()).count)
        rows.append((server, "", f"`{bare(usual)}`"))
        known = _options(usual)
        for experiment, command in by_experiment.items():
            if others := [option for option in _options(command) if option not in known]:
                rows.append((server, experiment, f"`… {bare(' '.join(others))}`"))
    columns = [Column("server"), Column("experiment"), Column("command")]
    table = Table(f"{NAME}-commands", "", columns, rows)
    return [Section("Commands", parts=[table], detail=True)] if rows else []


def _options(command: str) -> list[str]:
    """The words of a command, options together with their values."""
    options: list[str] = []
    for word in command.split():
        if options and options[-1].startswith("-") and not word.startswith("-"):
            options[-1] += f" {word}"
        else:
            options.append(word)
    return options


METHOD = f"""\
- Steady load: one process with a thread for each client. Eight keep a connection and think up to
  0.3 s between requests, two hardly think, three use a connection for each request (half of them
  HTTP/1.0), four send bodies of 10 bytes to 300 KiB, some in two parts, two ask for answers that
  take 50 to 400 ms, two send three requests at once. Every answer is checked to the last byte, and
  carries the token of its request. uWSGI drops pipelined requests; there nobody sends them.
- A client honours `Connection: close`, and connects anew when it sees an idle connection closed. A
  reset, an end of the connection or an error after it began to send, a refused connection, a wrong
  answer, a 5xx, or none in 30 seconds is a failed request. Those who think or send bodies are far
  away: a request is up to 20 ms on its way, in which they do not see the connection close. So they
  lose requests to servers that close idle connections at once.
- `reload`: a new version of the application each time. The next reload comes when the new version
  answers and all old workers are gone, or {FULL.grace:.0f} s later. gunicorn and granian: HUP.
  uWSGI: chain reload with `lazy-apps`.
- `upgrade`: USR2; gunicorn then TERM for the old main process, since WINCH is for daemons only.
- `kill`: a worker is stopped, the connections that it holds are noted, and it is killed, one each
  second. What fails on those connections was lost with it.
- `timeout`: half of the requests that hang sleep in C, the others wait in Python.
- In these two uWSGI is without its router, which lets a client wait on whose worker was killed.
- `stop`: TERM for the main process. From then on a refused connection is no failure.
- `broken`: a reload that cannot work, watched for {FULL.watched:.0f} s; then a good one.
  granian has no configuration file, and a chain reload of uWSGI does not read it.
- `preload`: requests for `apps/flaskapp`; servers take turns. PSS divides a page that several
  processes share. Python's collector looks at everything for the first time after some thousand
  requests, and what it looks at is shared no more, unless it is frozen.
- `balance`: {KEEPERS} connections opened together, requests without a pause for 5 s.
"""
