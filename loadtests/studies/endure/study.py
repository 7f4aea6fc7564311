"""The study `endure`: live clients beside dead, slow and non-reading ones, and large requests."""

from __future__ import annotations

import statistics

from loadtests.reporting.model import MIB, Axis, Cell, Column, Line, Lines, Section, Table, method
from loadtests.reporting.promises import Places, Promise, mode, of_figures
from loadtests.servers.registry import SERVERS
from loadtests.stats.results import Results, Spread
from loadtests.studies import tables
from loadtests.studies.bench.scenarios import heading
from loadtests.studies.endure import experiments
from loadtests.studies.endure.experiments import DRIPPING, FULL, STALLED, burdened
from loadtests.studies.study import Study

MODES = ("poorhttp single", "poorhttp forking 2", "poorhttp threading 8", "poorhttp gevent")
OURS = {one.name: mode(one.name) for one in SERVERS if one.ours}
LATE = 1.0
"""Seconds after its deadline at which a connection must be closed at last."""


def _rate(experiment: str, burden: str, words: str, limit: float) -> Promise:
    def read(results: Results) -> Places:
        chosen = results.experiment(experiment)
        return {
            f"{word}, {heading(scenario)}": found
            for scenario in chosen.scenarios()
            for server, word in OURS.items()
            if (found := chosen.ratio(scenario, burdened(server, burden), server, "rate"))
        }

    what = f"requests/s beside {words}, against none"
    return Promise(experiment, what, limit, "×", read, at_least=True)


def _p99(results: Results) -> Places:
    """Median against median over all rounds, not round by round: p99 has two states on a shared
    machine, depending on whether another guest came between, and a ratio of two rounds is luck.
    The lowest and the highest are those of single documents."""
    chosen = results.experiment("dead")
    places = {}
    for server, word in OURS.items():
        beside, alone, ratios = list[float](), list[float](), list[float]()
        for scenario in chosen.scenarios():
            with_it = chosen.rounds(scenario, burdened(server, _DEAD), "p99_us").values()
            without = chosen.rounds(scenario, server, "p99_us").values()
            if with_it and without:
                beside += with_it
                alone += without
                ratios.append(statistics.median(with_it) / statistics.median(without))
        if ratios:
            found = statistics.median(beside) / statistics.median(alone)
            places[word] = Spread(found, min(ratios), max(ratios), len(beside))
    return places


def _memory(experiment: str, what: str, limit: float, figure: str, places: int) -> Promise:
    return of_figures(experiment, what, limit, "MiB", OURS, [figure], scale=MIB, places=places)


def _ends(experiment: str, what: str, words: str, limit: float) -> tuple[Promise, Promise]:
    """That clients are closed, and how soon."""
    share = f"share of {words} that were closed"
    last = "the last of them was closed after"
    return (
        of_figures(experiment, share, 1, "×", OURS, [f"{what} closed"], at_least=True),
        of_figures(experiment, last, limit, "s", OURS, [f"{what} closed last after"]),
    )


_MUCH = FULL.amounts
_DEAD = f"{_MUCH.dead:,} dead"
_HEADS = f"{_MUCH.heads:,} clients that send a byte of a head each second"
_BODIES = f"{_MUCH.bodies:,} clients that send a byte of a body each second"
_STALLED = f"{_MUCH.stalled:,} clients that do not read an answer of 10 MB"

PROMISES = (
    _rate("dead", _DEAD, f"{_DEAD} connections", 0.97),
    Promise("dead", f"p99 beside {_DEAD} connections, against none, all documents", 1.1, "×", _p99),
    _rate("drip", DRIPPING, f"{_HEADS} and {_BODIES}", 0.95),
    *_ends("drip", "heads", _HEADS, _MUCH.header_timeout + LATE),
    *_ends("drip", "bodies", _BODIES, _MUCH.body_timeout + LATE),
    _rate("stalled", STALLED, _STALLED, 0.95),
    _memory("stalled", f"most memory with {_STALLED}", 1024, "rss", 0),
    # Its silence begins when it could take no more, perhaps after waiting for others.
    *_ends("stalled", "they", _STALLED, _MUCH.write_timeout * 1.25),
    *(
        _memory(
            "transfers",
            f"growth of memory during {_MUCH.transfers} {what} of 1 GiB at once",
            16,
            f"{what}, growth of rss",
            1,
        )
        for what in experiments.TRANSFERS
    ),
)

TITLES = {
    "dead": "Dead connections",
    "growing": "The same by their number",
    "drip": "Clients that send a byte each second",
    "stalled": "Clients that do not read",
    "transfers": "Large transfers",
}
RATE = "requests/s against none"
COLUMNS = (
    Column("server"),
    Column("document"),
    Column(RATE, "×", 3),
    Column("p99 against none", "×", 3),
    Column("CPU per request against none", "×", 3),
    Column("p99 without", "ms", 2, 1e-3),
    Column("rounds"),
)
PROMISED = {"rate": ("requests per second", 0.97), "p99_us": ("p99", 1.1)}
PROMISE = "#8a8f98"
"""The colour of the line."""
UNITS = {"bytes": ("MiB", MIB, 1), "bytes/s": ("MiB/s", MIB, 1)}
"""As the values of a unit are told: in which unit, their scale and their decimals."""


def report(results: Results) -> list[Section]:
    told = []
    for experiment, title in TITLES.items():
        chosen = results.experiment(experiment)
        parts = [
            *(_figures(chosen) if experiment == "growing" else ()),
            *_comparison(chosen, experiment),
            *_single(chosen, experiment),
        ]
        if parts:
            told.append(Section(title, parts=parts, answer=_answer(chosen)))
    return [*told, method(__file__)] if told else []


def _ratios(results: Results, field: str) -> dict[tuple[str, str], Spread]:
    """Of each document and each server with a burden: with it against without."""
    return {
        (scenario, name): found
        for scenario in results.scenarios()
        for name in results.servers(scenario)
        if (found := results.ratio(scenario, name, name.partition(", ")[0], field)) and ", " in name
    }


def _comparison(results: Results, experiment: str) -> list[Table]:
    rates, p99s, cpus = (_ratios(results, field) for field in ("rate", "p99_us", "cpu_us"))
    rows: list[list[Cell]] = []
    for place in sorted(rates, key=lambda place: -rates[place].median):
        scenario, name = place
        free = results.median(scenario, name.partition(", ")[0], "p99_us")
        compared = [rates[place], p99s.get(place), cpus.get(place), free.median if free else None]
        rows.append([name, heading(scenario), *compared, rates[place].rounds])
    strong = tables.ours(row[0] for row in rows)
    own = Table(f"{experiment}-compared", "", COLUMNS, rows, strong, ranking=RATE)
    return [own] if rows else []


def _single(results: Results, experiment: str) -> list[Table]:
    """Figures that are no ratios, each in its unit."""
    rows = []
    keys = dict.fromkeys((f["server"], f["name"], f["unit"]) for f in results.figures)
    for server, name, unit in keys:
        found = results.figure(experiment, server, name)
        assert found is not None
        shown, scale, places = UNITS.get(unit, (unit, 1.0, 2))
        median, low, high = (f"{value * scale:,.{places}f}" for value in found[:3])
        words = name.replace("rss", "RSS").replace("pss", "PSS").replace("uss", "USS")
        rows.append([server, words, " ".join(filter(None, [median, shown, f"({low} – {high})"]))])
    columns = [Column("server"), Column("figure"), Column("median (lowest – highest)")]
    own = Table(f"{experiment}-figures", "", columns, rows, tables.ours(row[0] for row in rows))
    return [own] if rows else []


def _answer(results: Results) -> str:
    rates = _ratios(results, "rate")
    if not rates:
        return ""
    (scenario, name), worst = min(rates.items(), key=lambda found: found[1].median)
    return (
        f"Live clients get at least {worst.median:.2f} × the requests per second that they get "
        f"alone ({name}, {heading(scenario)})."
    )


def _figures(results: Results) -> list[Lines]:
    """By the number of dead connections: the ratio of each server, and the promise."""
    counts = sorted(
        {
            int(burden.split()[0].replace(",", ""))
            for sample in results.samples
            if (burden := sample["server"].partition(", ")[2])
        }
    )
    if not counts:
        return []
    scenario = results.scenarios()[0]
    servers = list(dict.fromkeys(name.partition(", ")[0] for name in results.servers(scenario)))
    made = []
    for field, (what, limit) in PROMISED.items():
        lines = []
        for server in servers:
            points = [
                (count, found)
                for count in counts
                if (found := results.ratio(scenario, burdened(server, count), server, field))
            ]
            lines.append(tables.line(server, [(0, Spread(1, 1, 1, 1)), *points]))
        made.append(
            Lines(
                f"dead-{field.removesuffix('_us')}",
                f"Dead connections and the {what} of live clients",
                Axis("dead connections, half of them in the middle of a head", low=0),
                Axis("against none", "×", low=0),
                [*lines, Line("promised", PROMISE, [(0, limit), (counts[-1], limit)])],
                heading(scenario),
                "Each point compares two instances of a server, one with the dead connections "
                "and one without, measured in turns: the median of the ratios of the rounds, "
                "and the range from lowest to highest.",
                marks=True,
            )
        )
    return made


STUDY = Study(
    "endure",
    "run the experiments with dead, slow and large clients",
    "",
    lambda: SERVERS,
    experiments.plan,
    report,
    promises=PROMISES,
    usual=MODES,
    experiments=tuple(experiments.EXPERIMENTS),
    scales=experiments.SCALES,
    wrk=True,
)
