"""Report of the study `loops`."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from loadtests.reporting.model import (
    Axis,
    Bar,
    Bars,
    Cell,
    Column,
    Line,
    Lines,
    Panels,
    Section,
    Table,
)
from loadtests.servers.registry import colour_of
from loadtests.stats.results import Results, spread
from loadtests.store import Record
from loadtests.studies.originals import uniserve_2005 as past
from loadtests.studies.page_latency.run import LOOPS, OUTLIER_TIMES, OUTLIER_US, OUTLIERS_KEPT
from loadtests.studies.remote import LAN, OUTSIDE, Way

WAYS: Sequence[Way | None] = (None, LAN, OUTSIDE)
LISTED = 40
DRAWN = 6
ASKED = {"1": "one page", "2": "five pages, one after the other", "3": "five pages at random"}
MILLI = 1e-3


class Loops:
    """The samples, by loop and server, in the order in which they were taken."""

    def __init__(self, samples: Iterable[Record]) -> None:
        # Of a step that was repeated after an interruption the last counts.
        kept = {(one["scenario"], one["server"], one["round"]): one for one in samples}
        self.samples = list(kept.values())

    def of(self, scenario: str, server: str) -> list[Record]:
        """The runs of a loop."""
        found = [s for s in self.samples if (s["scenario"], s["server"]) == (scenario, server)]
        return sorted(found, key=lambda sample: int(sample["round"]))

    def servers(self, scenario: str) -> list[str]:
        """Who ran it."""
        taken = sorted(
            (s for s in self.samples if s["scenario"] == scenario), key=lambda s: int(s["round"])
        )
        return list(dict.fromkeys(str(sample["server"]) for sample in taken))


def scenario(way: Way | None, loop: str) -> str:
    """The name of a loop."""
    return f"R{loop} {way.name}" if way else f"L{loop}"


def report(results: Results) -> list[Section]:
    """A section for each way, and one for what stands out and what was in 2005."""
    loops = Loops(results.samples)
    sections = [
        _section(loops, way) for way in WAYS if any(loops.servers(scenario(way, n)) for n in LOOPS)
    ]
    return [*sections, _apart(loops), _past(results)]


def _section(loops: Loops, way: Way | None) -> Section:
    names = [name for name in (scenario(way, n) for n in LOOPS) if loops.servers(name)]
    where = way.title if way else "on the machine itself"
    text = [
        "How long does a page of 8.6 KB take, if one request follows another and each has a "
        f"connection of its own? Here {where}: "
        + "; ".join(f"{name} {ASKED[name[1]]} ({_asked(loops, name)})" for name in names)
        + "."
    ]
    if way:
        text.append(
            f"Client and server are network namespaces with a cable of {way.rate / 1e6:g} Mbit/s "
            f"and {way.delay * 1e3:g} ms each way between them."
        )
    text += _remarks(loops, way, names)
    parts: list[Table | Bars | Panels] = [_summary(loops, name) for name in names]
    parts.append(_means(loops, way, names))
    drawn = _panels(loops, way, names)
    if drawn:
        parts.append(drawn)
    parts += [_runs(loops, name) for name in names]
    return Section(f"Loops {where}", text, parts)


def _asked(loops: Loops, name: str) -> str:
    samples = [s for s in loops.samples if s["scenario"] == name]
    requests = sorted({int(s["requests"]) for s in samples})
    runs = 1 + max(int(s["round"]) for s in samples)
    return f"{' or '.join(f'{n:,}' for n in requests)} requests, {runs} run{'s'[: runs - 1]}"


def _summary(loops: Loops, name: str) -> Table:
    columns = [
        Column("Server"),
        Column("Total", "s", 3),
        Column("Mean", "ms", 3, MILLI),
        Column("Least", "ms", 3, MILLI),
        Column("Most", "ms", 2, MILLI),
        Column("Requests", "/s"),
        Column("Server CPU", "µs/request"),
        Column("Client busy", "%", 0, 100),
        Column("Outliers"),
    ]
    rows: list[list[Cell]] = []
    for server in loops.servers(name):
        runs = loops.of(name, server)
        fields = ("seconds", "mean_us", "min_us", "max_us")
        cells: list[Cell] = [spread(float(run[field]) for run in runs) for field in fields]
        rates = spread(run["requests"] / run["seconds"] for run in runs)
        more = [spread(float(run[field]) for run in runs) for field in ("cpu_us", "client_busy")]
        rows.append([server, *cells, rates, *more, float(sum(run["outliers"] for run in runs))])
    return Table(
        f"loops-{_file(name)}",
        f"{name}: {ASKED[name[1]]}",
        columns,
        rows,
        _strong(loops.servers(name)),
        "Medians of the runs, lowest and highest; outliers of all runs together. Client and server "
        "take turns: the client's share of its core is what is not the server, the kernel between "
        "them, or waiting.",
    )


def _runs(loops: Loops, name: str) -> Table:
    columns = [
        Column("Server"),
        Column("Run"),
        Column("Total", "s", 4),
        Column("Mean", "ms", 4, MILLI),
        Column("Least", "ms", 4, MILLI),
        Column("Most", "ms", 4, MILLI),
    ]
    rows: list[list[Cell]] = []
    for server in loops.servers(name):
        runs = loops.of(name, server)
        values = [
            [float(run[field]) for field in ("seconds", "mean_us", "min_us", "max_us")]
            for run in runs
        ]
        for run, value in zip(runs, values, strict=True):
            rows.append([server, f"{name} – {run['round'] + 1}", *value])
        rows.append([server, "mean", *map(statistics.fmean, zip(*values, strict=True))])
    strong = _strong(loops.servers(name))
    return Table(f"loops-{_file(name)}-runs", f"{name}: every run", columns, rows, strong)


def _means(loops: Loops, way: Way | None, names: Sequence[str]) -> Bars:
    servers = list(dict.fromkeys(server for name in names for server in loops.servers(name)))
    bars = [
        Bar(
            server,
            colour_of(server),
            [spread(run["mean_us"] * MILLI for run in loops.of(name, server)) for name in names],
            server.startswith("poorhttp"),
        )
        for server in servers
    ]
    return Bars(
        f"loops-means-{_end(way)}",
        "Mean time of a request",
        Axis("Mean time of a request", "ms", low=0),
        bars,
        names,
        caption="Median of the runs; the whisker goes from the lowest to the highest.",
    )


def _panels(loops: Loops, way: Way | None, names: Sequence[str]) -> Panels | None:
    panels = []
    for name in names:
        lines = []
        for server in _drawn(loops.servers(name)):
            curves = [run["curve"] for run in loops.of(name, server) if "curve" in run]
            if curves:
                points = [(float(number), time * MILLI) for number, time in curves[0]]
                strong = server.startswith("poorhttp")
                lines.append(Line(server, colour_of(server), points, strong=strong))
        if lines:
            x, y = Axis("Request", low=0), Axis("Time", "ms", log=True)
            panels.append(Lines(f"loops-times-{_file(name)}", name, x, y, lines))
    if not panels:
        return None
    return Panels(
        f"loops-times-{_end(way)}",
        "Time of each request in its order",
        panels,
        caption="The first run. A point is the median of neighbours, so that there are no more "
        f"than 250, and every outlier (up to the {OUTLIERS_KEPT} longest) is one of its own.",
    )


def _drawn(servers: Sequence[str]) -> list[str]:
    """Not more than can be told apart: the first of each kind, then who comes next."""
    kinds: dict[str, str] = {}
    for server in servers:
        kinds.setdefault(server.split()[0], server)
    chosen = [*kinds.values(), *(server for server in servers if server not in kinds.values())]
    return [server for server in servers if server in chosen[:DRAWN]]


def _remarks(loops: Loops, way: Way | None, names: Sequence[str]) -> list[str]:
    means = {
        server: statistics.median(run["mean_us"] for run in loops.of(names[0], server))
        for server in loops.servers(names[0])
    }
    fastest = min(means, key=lambda server: means[server])
    slowest = max(means, key=lambda server: means[server])
    said = []
    if len(means) > 1:
        said.append(
            f"In {names[0]} the shortest mean is that of {fastest} ({_ms(means[fastest])}), the "
            f"longest that of {slowest} ({_ms(means[slowest])}, "
            f"{means[slowest] / means[fastest]:.2f} times as long)."
        )
    if way:
        near = {
            server: statistics.median(run["mean_us"] for run in loops.of("L1", server))
            for server in means
            if loops.of("L1", server)
        }
        if near:
            more = [means[server] - near[server] for server in near]
            said.append(
                f"Against L1 on the machine itself the way adds {_ms(min(more))}"
                + (f" to {_ms(max(more))}" if len(more) > 1 else "")
                + " to the mean of R1."
            )
    return said


def _ms(microseconds: float) -> str:
    return f"{microseconds * MILLI:.3f} ms"


def _apart(loops: Loops) -> Section:
    found = [
        (sample, number, time, target)
        for sample in loops.samples
        for number, time, target in sample["apart"]
    ]
    count = sum(int(sample["outliers"]) for sample in loops.samples)
    requests = sum(int(sample["requests"]) for sample in loops.samples)
    longest = sorted(found, key=lambda one: -float(one[2]))[:LISTED]
    text = [
        f"An outlier is a request that took more than {OUTLIER_TIMES} times the median of its run, "
        f"and more than {OUTLIER_US * MILLI:g} ms. There are {count:,} among {requests:,} requests."
        + (f" The {len(longest)} longest are listed." if count > len(longest) else "")
    ]
    rows: list[list[Cell]] = [
        [
            str(sample["server"]),
            f"{sample['scenario']} – {sample['round'] + 1}",
            float(number),
            str(target),
            float(time),
            time / sample["p50_us"],
        ]
        for sample, number, time, target in longest
    ]
    columns = [
        Column("Server"),
        Column("Run"),
        Column("Request"),
        Column("Asked for"),
        Column("Time", "ms", 2, MILLI),
        Column("Medians of its run", "", 1),
    ]
    strong = _strong(str(row[0]) for row in rows)
    parts = [Table("loops-outliers", "Outliers", columns, rows, strong)] if rows else []
    return Section("Requests that stand out", text, parts)


def _past(results: Results) -> Section:
    columns = [
        Column("Server"),
        Column("Loop"),
        Column("Machine of the server"),
        Column("Total", "s", 3),
        Column("Mean", "ms", 2, 1e3),
        Column("Least", "ms", 2, 1e3),
        Column("Most", "ms", 1, 1e3),
    ]
    rows: list[list[Cell]] = [
        [one.server, one.loop, one.machine, one.total, one.mean, one.low, one.high]
        for one in past.LOOPS
    ]
    note = (
        "1,000 requests, in the second loop 5,000; means of five runs (on the Xeon L1 to L3 of "
        "one). Clients in REBOL; `outside` was a PC in a network of 10 Mbit/s. The old kernel told "
        "Apache's times in whole seconds."
    )
    text = []
    for failure in results.failures:
        text.append(f"Failed: {failure['what']}: {failure['reason']}")
    for missing in results.missing:
        text.append(f"Left out: {missing['server']}: {missing['reason']}")
    table = Table("loops-2005", "What the study of 2005 had", columns, rows, frozenset(), note)
    return Section("The loops of 2005", text, [table])


def _strong(servers: Iterable[str]) -> frozenset[str]:
    return frozenset(server for server in servers if server.startswith("poorhttp"))


def _file(name: str) -> str:
    return name.lower().replace(" ", "-")


def _end(way: Way | None) -> str:
    return way.name.lower() if way else "local"
