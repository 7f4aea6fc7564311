"""The report of `endure`: clients beside dead, slow and large ones, against without them."""

from __future__ import annotations

from loadtests.reporting.model import MIB, Axis, Cell, Column, Line, Lines, Section, Table
from loadtests.stats.results import Results, Spread
from loadtests.studies import tables
from loadtests.studies.adverse.experiments import burdened, dead_burden
from loadtests.studies.bench.scenarios import heading

TITLES = {
    "dead": "Dead connections",
    "growing": "The same by their number",
    "drip": "Clients that drip",
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
    """A section for each experiment."""
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
    return [*told, Section("Method", METHOD, detail=True)] if told else []


def _ratios(results: Results, field: str) -> dict[tuple[str, str], Spread]:
    """Of each document and each server with a burden: with it against without."""
    return {
        (scenario, name): found
        for scenario in results.scenarios()
        for name in results.servers(scenario)
        if (found := results.ratio(scenario, name, name.partition(", ")[0], field)) and ", " in name
    }


def _comparison(results: Results, experiment: str) -> list[Table]:
    rates = _ratios(results, "rate")
    rows: list[list[Cell]] = []
    for scenario, name in sorted(rates, key=lambda key: -rates[key].median):
        free = results.median(scenario, name.partition(", ")[0], "p99_us")
        rows.append(
            [
                name,
                heading(scenario),
                rates[scenario, name],
                *(_ratios(results, field).get((scenario, name)) for field in ("p99_us", "cpu_us")),
                free.median if free else None,
                rates[scenario, name].rounds,
            ]
        )
    names = [str(row[0]) for row in rows]
    own = Table(f"{experiment}-compared", "", COLUMNS, rows, tables.ours(names), ranking=RATE)
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
        f"without the others ({name}, {heading(scenario)})."
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

    def against(server: str, count: int, field: str) -> Spread | None:
        return results.ratio(scenario, burdened(server, dead_burden(count)), server, field)

    made = []
    for field, (what, limit) in PROMISED.items():
        lines = [
            tables.line(
                server,
                [
                    (0, Spread(1, 1, 1, 1)),
                    *(
                        (count, ratio)
                        for count in counts
                        if (ratio := against(server, count, field))
                    ),
                ],
            )
            for server in servers
        ]
        made.append(
            Lines(
                f"dead-{field.removesuffix('_us')}",
                f"Dead connections and the {what} of live clients",
                Axis("dead connections, half of them in the middle of a head", low=0),
                Axis("against none", "×", low=0),
                [*lines, Line("promised", PROMISE, [(0, limit), (counts[-1], limit)])],
                heading(scenario),
                "Each point: two instances of one server, one with the dead connections and one "
                "without, measured in turns; median of the ratios of the rounds, from lowest to "
                "highest.",
                marks=True,
            )
        )
    return made


METHOD = [
    "Two instances of a server are started together on one core, and one gets the burden. Each is "
    "measured while the other has nothing to do, in turns; ratios are formed within a round, then "
    "made a median. wrk with 64 connections and the clients of the burden share the other core.",
    "Dead connections come from many addresses of 127.0.0.0/8. Half of them say nothing, half stop "
    "in the middle of a head. The server is told to be patient with them (`--header-timeout 3600`)."
    " Before and after each pair of samples all must be there, for them and for the server; else "
    "the pair does not count.",
    "A client that drips and is closed connects again at once. Times count from the first byte to "
    "the end.",
    "A client that does not read has a receive buffer of 4 KiB, or the usual one, in turns. Times "
    "count from its request, which may have waited for others; it is measured beside live clients "
    "when all answers have begun and the server has come to rest.",
    "Transfers are checked by length and checksum; memory is looked at ten times a second. Memory "
    "is RSS, which counts a page shared by several processes once for each.",
]
