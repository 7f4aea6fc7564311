"""The study `operate`: servers reloaded, upgraded, recycled, killed and stopped under load."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from loadtests.reporting import faults
from loadtests.reporting.cells import number
from loadtests.reporting.model import MIB, Axis, Cell, Column, Listing, Section, Table, method
from loadtests.reporting.promises import Promise, all_finished, mode, none, of_figures
from loadtests.reporting.provenance import bare
from loadtests.servers.registry.operate import GRACE, HTTP2, REFORKED, SERVERS, UPGRADING
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies import comparison, tables
from loadtests.studies.comparison import Measure, figures
from loadtests.studies.operate.experiments import (
    CUT,
    FRAMEWORKS,
    FULL,
    KEEPERS,
    PAGE_CLIENTS,
    SCALES,
    WHEN,
    plan,
)
from loadtests.studies.study import Study

NAME = "operate"
KNOWN = (*SERVERS, *HTTP2, *REFORKED)
OURS = {one.name: mode(one.name) for one in SERVERS if one.ours}
OVER_HTTP2 = {one.name: mode(one.name) for one in HTTP2}
MEMORY_PEER = "gunicorn sync"
"""The one whose memory ours is compared with."""
SHARING = {server: word for server, word in OURS.items() if word != "gevent"}
"""Our modes in which workers share what they import."""
REFORKS = {one.name: one.name.partition(" + ")[2] for one in REFORKED if "refork" in one.name}
SHARED = ("requests", "connections")
"""What is spread over workers."""
VERSION, FILE = "application: ", "configuration: "
"""Before the names of figures of the two reloads that must fail."""


def _none_failed(experiment: str, what: str, *names: str) -> Promise:
    what = f"failed, reset or wrong requests {what}"
    return none(experiment, what, OURS, *(names or ("failed",)))


def _at_least(
    experiment: str, what: str, limit: int, choose: Callable[[Iterable[float]], float], *names: str
) -> Promise:
    return of_figures(experiment, what, limit, "", OURS, names, choose, at_least=True, places=0)


def _share(failed: float, sent: float, measured: int) -> Spread | None:
    """Of the requests, those that failed or ended so."""
    return tables.once(failed / sent, measured) if sent else None


def _ended(results: Results, server: str) -> Spread | None:
    """Of the requests that hang, the share that got 504 or was cut."""
    names = [f"hung: {path} {outcome}" for path in ("hangs", "spins") for outcome in CUT]
    hung = sum(results.values("timeout", server, "hung"))
    return _share(sum(results.values("timeout", server, *names)), hung, round(hung))


def _memory(
    experiment: str,
    when: str,
    limit: float,
    servers: Mapping[str, str] = OURS,
    peer: str = MEMORY_PEER,
) -> Promise:
    """PSS against the peer's, within each round."""
    places = {word: (experiment, name, peer, f"pss, {when}") for name, word in servers.items()}
    what = f"PSS with 4 workers, {when}, of {peer}"
    return Promise(experiment, what, limit, "×", comparison.places(Results.figure_ratio, places))


PROMISES = (
    _none_failed("reload", f"during {FULL.amounts.reloads * FULL.each['reload']} reloads (HUP)"),
    _none_failed(
        "upgrade", f"during {FULL.amounts.upgrades * FULL.each['upgrade']} upgrades (USR2)"
    ),
    none(
        "sockets",
        "WebSockets that ended other than by 1001, or requests lost, during "
        f"{FULL.amounts.reloads * FULL.each['sockets']} reloads",
        {server: word for server, word in OURS.items() if word in UPGRADING},
        *("failed", "unclean: websocket", "unclean: page client"),
    ),
    _none_failed("recycle", "while workers are replaced after 100 requests each"),
    _at_least("recycle", "workers that answered meanwhile", 20, sum, "workers that answered"),
    _none_failed("kill", "while workers are killed, but what those had in flight"),
    _none_failed("timeout", "while 1 request in 1,000 hangs, but those"),
    Promise(
        *("timeout", "share of these that got 504 or were cut", 1, "×"),
        comparison.places(_ended, {word: (server,) for server, word in OURS.items()}),
        at_least=True,
    ),
    _none_failed("stop", "after TERM"),
    of_figures(
        "stop", "longest time from TERM to the end", GRACE, "s", OURS, ("seconds to the end",), max
    ),
    _none_failed(
        "broken",
        "when a reload fails, of a version that cannot be imported and of a broken file",
        f"{VERSION}failed",
        f"{FILE}failed",
    ),
    _at_least("broken", "the log says why", 1, min, f"{VERSION}said why", f"{FILE}said why"),
    *(_memory("preload", when, 0.6) for when in WHEN),
    *(_memory("memory", framework, 0.95, SHARING) for framework in FRAMEWORKS),
    *(
        _memory("refork", framework, 0.95, REFORKS, "gunicorn sync + preload")
        for framework in FRAMEWORKS
    ),
    *(
        of_figures(
            "balance",
            f"busiest of 4 workers against the mean, {KEEPERS} keep-alive connections, {what}",
            1.5,
            "×",
            OURS,
            (f"busiest / mean, {what}",),
        )
        for what in SHARED
    ),
    *(
        none(experiment, f"lost requests over HTTP/2, {what}", OVER_HTTP2, "failed")
        for experiment, what in (
            ("reload", "reloads (HUP)"),
            ("upgrade", "upgrades (USR2)"),
            ("recycle", "workers that are replaced"),
            ("kill", "workers that are killed, but what those had in flight"),
            ("stop", "TERM"),
        )
    ),
    all_finished({**OURS, **OVER_HTTP2}),
)


def _lost(prefix: str, results: Results, experiment: str, server: str) -> tuple[float, float]:
    """The requests under load that failed, and all of them."""
    failed = sum(results.values(experiment, server, f"{prefix}failed"))
    return failed, failed + sum(results.values(experiment, server, f"{prefix}requests"))


def _total(name: str, shown: str = "") -> Measure:
    return figures(Column(shown or name), sum, name)


def _whether(shown: str, name: str) -> Measure:
    return figures(Column(shown), lambda found: "yes" if min(found) else "no", name)


def _failures(prefix: str = "", words: str = "") -> tuple[Measure, ...]:
    def share(results: Results, *place: str) -> Spread | None:
        rounds = len(results.values(*place, f"{prefix}requests"))
        return _share(*_lost(prefix, results, *place), rounds)

    return (
        _total(f"{prefix}failed", f"{words}failed"),
        Measure(Column(f"{words}requests"), lambda *place: _lost(prefix, *place)[1] or None),
        Measure(Column(f"{words}failed share", "%", 2, 100), share),
    )


P99 = figures(Column("p99 of quick requests", "ms", 2, 1e3), spread, "p99")
LONGEST = figures(Column("slowest quick request", "ms", 0, 1e3), max, "longest")
LOST = _total("failed with a killed worker", "requests lost with them")
END = figures(Column("slowest end", "s", 2), max, "seconds to the end")
BY_FRAMEWORK = [
    figures(Column(f"PSS, {name}", "MiB", 1, MIB), spread, f"pss, {name}") for name in FRAMEWORKS
]
TABLES: dict[str, tuple[str, Sequence[Measure]]] = {
    "reload": ("Reloads", (_total("reloads"), *_failures(), P99, LONGEST)),
    "upgrade": ("Upgrades", (_total("upgrades"), *_failures())),
    "sockets": (
        "Reloads with WebSockets and TLS connections",
        (
            *(_total("reloads"), _total("closed with 1001"), _total("echoes")),
            *(_total("unclean: websocket", "not closed so"), _total("answers", "answers over TLS")),
            *(_total("unclean: page client", "lost over TLS"), *_failures()),
        ),
    ),
    "recycle": ("Recycled workers", (_total("workers that answered"), *_failures(), P99)),
    "kill": ("Killed workers", (_total("killed"), LOST, *_failures(words="other "))),
    "timeout": (
        "Requests that hang",
        (_total("hung"), _total("hung and ended", "ended"), *_failures(words="other ")),
    ),
    "stop": ("Stops", (*_failures(), END)),
    "broken": (
        "Reloads that must fail",
        [
            measure
            for prefix, words in ((VERSION, "version: "), (FILE, "file: "))
            for measure in (
                *_failures(prefix, words),
                _whether(f"{words}the log says why", f"{prefix}said why"),
                _whether(f"{words}the next one loads", f"{prefix}can be reloaded afterwards"),
            )
        ],
    ),
    "preload": (
        "Memory of four workers",
        [figures(Column(f"PSS {when}", "MiB", 1, MIB), spread, f"pss, {when}") for when in WHEN],
    ),
    "memory": ("Memory of four workers that load the application", BY_FRAMEWORK),
    "refork": ("Memory of four workers that are forks of one that has served", BY_FRAMEWORK),
    "balance": (
        "Connections over four workers",
        [figures(Column(f"busiest / mean, {what}", "×", 2), spread) for what in SHARED],
    ),
}
"""Titles and columns. Rows are ordered by the share that failed, or else by the last column."""
FAILURES = {
    **{name: (name, "") for name in ("reload", "upgrade", "recycle", "kill", "timeout", "stop")},
    "broken version": ("broken", VERSION),
    "broken file": ("broken", FILE),
}
"""By column of the overview, an experiment and what its figures begin with."""
DRAWN = {"preload": "PSS", "memory": "PSS", "refork": "PSS", "balance": "busiest / mean"}
"""Experiments with a figure, and the quantity of its axis."""


def report(results: Results) -> list[Section]:
    """Failed requests of all experiments, then each of them."""
    order = [*DRAWN, *(name for name in TABLES if name not in DRAWN)]
    asked = sum(FULL.amounts.memory)
    return [
        *_overview(results),
        *(section for name in order for section in _experiment(results, name)),
        *faults.sections(NAME, results),
        *_logs(results),
        *_commands(results),
        method(__file__, full=FULL.amounts, asked=asked, pages=PAGE_CLIENTS, keepers=KEEPERS),
    ]


def _overview(results: Results) -> list[Section]:
    """Failed requests of all servers in all experiments."""
    shares: dict[str, Spread] = {}
    cells: dict[str, list[Cell]] = {}
    for server in [one.name for one in (*SERVERS, *HTTP2)]:
        counts = [_lost(prefix, results, name, server) for name, prefix in FAILURES.values()]
        failed, sent = map(sum, zip(*counts, strict=True))
        if share := _share(failed, sent, sum(of > 0 for _, of in counts)):
            shares[server] = share
            cells[server] = [f"{number(n)} of {number(of)}" if of else None for n, of in counts]
    if not shares:
        return []
    by = Column("failed share", "%", 2, 100)
    table = tables.table(
        f"{NAME}-failed",
        "",
        ["server", by, *FAILURES],
        [[name, shares[name], *cells[name]] for name in tables.ranked(shares, shares)],
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
    title, measures = TABLES[name]
    seen = {figure["server"] for figure in results.figures if figure["experiment"] == name}
    names = [one.name for one in KNOWN if one.name in seen]
    if not names:
        return []
    columns = [measure.column for measure in measures]
    shares = (column for column in columns if column.name.endswith("failed share"))
    by = next(shares, columns[-1])
    found: dict[str, dict[str, Spread]] = {column.name: {} for column in columns}
    for measure, server in itertools.product(measures, names):
        cell = measure.read(results, name, server)
        if isinstance(cell, Spread):
            found[measure.column.name][server] = tables.scaled(cell, measure.column.scale)
    order, note = tables.ranked(found[by.name], names), _reasons(results, name)
    table = comparison.of_figures(
        results, name, f"{NAME}-{name}", order, measures, by.name, note=note
    )
    drawn = []
    if name in DRAWN:
        axis = Axis(DRAWN[name], by.unit)
        shown = {part.removeprefix(DRAWN[name]).strip(", "): one for part, one in found.items()}
        drawn = [tables.bars(f"{NAME}-{name}-figure", title, axis, shown)]
    what = by.name.capitalize() if by.name.islower() else by.name
    answer = tables.answer(what, found[by.name], by.unit)
    return [Section(title, parts=[*drawn, table], answer=answer, detail=not drawn)]


def _reasons(results: Results, *experiments: str) -> str:
    """Why servers that were measured elsewhere were not in these experiments."""
    seen = {(figure["experiment"], figure["server"]) for figure in results.figures}
    measured, everyone = ({place[number] for place in seen} for number in (0, 1))
    told: dict[str, None] = {}
    for name, one in itertools.product(experiments, KNOWN):
        if (
            one.preloads == (name == "refork")
            and name in measured
            and one.name in everyone
            and (name, one.name) not in seen
        ):
            failures = (
                f"{one.name}: {failure['reason']}."
                for failure in results.failures
                if failure["server"] == one.name and failure["what"].startswith(f"{name},")
            )
            cannot = [f"{one.name} {one.cannot[name]}."] if name in one.cannot else []
            told[next(iter((*cannot, *failures)), f"{one.name} was not measured.")] = None
    return " ".join(told)


def _logs(results: Results) -> list[Section]:
    """What the logs said of reloads that failed and of requests that hung, the first time."""
    said: dict[tuple[str, ...], Listing] = {}
    for note in results.notes:
        experiment, server, name = place = (note["experiment"], note["server"], note["name"])
        if name != "command" and note["text"]:
            what = f"broken {name}" if experiment == "broken" else experiment
            said.setdefault(place, Listing(f"{NAME}-log", f"{server}, {what}", note["text"]))
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
    return re.findall(r"-\S*(?: [^-\s]\S*)*|\S+", " ".join(command.split()))


STUDY = Study(
    NAME,
    "reload, upgrade, recycle, kill, time out and stop servers under load",
    "",
    lambda: KNOWN,
    plan,
    report,
    promises=PROMISES,
    experiments=tuple(TABLES),
    scales=SCALES,
)
