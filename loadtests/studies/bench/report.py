"""The reports of `bench` and `show`: what a request costs each server, and how fast it answers."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import MIB, Axis, Bar, Bars, Cell, Column, Section, Table
from loadtests.servers.registry import FLOOR, SERVERS, colour_of
from loadtests.stats.results import Results, Spread
from loadtests.studies import tables
from loadtests.studies.bench.scenarios import SCENARIOS, Scenario, heading

NEGLECTED = 0.6
"""The share of connections with a request under way below which a server let the others wait."""
CPU, RATE, P99 = "cpu_us", "rate", "p99_us"
AXES = {
    CPU: (Axis("CPU time of all its processes per request", "µs", log=True), "Least CPU", "µs"),
    RATE: (Axis("requests", "/s"), "Most requests", "/s"),
    P99: (Axis("p99", "µs", log=True), "Shortest p99", "µs"),
}
"""By field: the axis of its figure, the beginning of the sentence about the best, and the unit."""
RANKED = {"sleepers": RATE, "neighbours": P99, "gevent": RATE, "forking": RATE}
"""By experiment, what servers are ordered by; the others by CPU."""
COLUMNS = {
    CPU: Column("CPU per request", "µs", 2),
    "floor": Column("against the floor", "×", 2),
    "peer": Column("against the best peer", "×", 2),
    RATE: Column("requests", "/s"),
    "p50_us": Column("p50", "ms", 2),
    P99: Column("p99", "ms", 2),
    "pss": Column("PSS", "MiB", 1, MIB),
    "remarks": Column("remarks"),
}
FIGURES = {
    "pss": Column("PSS", "MiB", 1, MIB),
    "uss": Column("USS", "MiB", 1, MIB),
    "rss": Column("RSS", "MiB", 1, MIB),
    "processes": Column("processes"),
    "bytes per connection": Column("memory of a connection", "bytes"),
    "seconds": Column("time to the first answer", "ms", 0, 1e3),
}
TITLES = {
    "cost": "CPU of a request",
    "threads": "Eight threads beside one",
    "sleepers": "A handler that sleeps",
    "neighbours": "Beside a request that sleeps",
    "gevent": "Servers on gevent",
    "forking": "Two workers beside one",
    "memory": "Memory after 1,000 requests",
    "idle": "Memory of an idle connection",
    "start": "From start to the first answer",
}
_SCENARIO = {scenario.name: scenario for scenario in SCENARIOS}


def remarks(results: Results, scenario: str, server: str) -> str:
    """What a reader should know of a server's samples in a scenario."""
    samples = [s for s in results.samples if (s["scenario"], s["server"]) == (scenario, server)]
    told = []
    if statistics.median(s["client_busy"] for s in samples) >= SATURATED:
        told.append("client saturated")
    connections = _SCENARIO[scenario].connections if scenario in _SCENARIO else 0
    # Little's law: requests under way are their rate times their time.
    in_use = [s["rate"] * s["mean_us"] / 1e6 for s in samples if "mean_us" in s]
    waiting = connections > 1 and not told
    if in_use and waiting and statistics.median(in_use) < NEGLECTED * connections:
        told.append(f"served about {statistics.median(in_use):.0f} of the connections at a time")
    errors: dict[str, int] = {}
    for sample in samples:
        for kind, count in sample["errors"].items():
            errors[kind] = errors.get(kind, 0) + count
    told += [f"{count:,} {kind} errors" for kind, count in errors.items()]
    failed = sum(
        1
        for f in results.failures
        if f["server"] == server and f["what"].startswith(f"{scenario},")
    )
    if failed:
        told.append(f"failed {failed} time" + ("s" if failed > 1 else ""))
    return ", ".join(told)


def table(results: Results, scenario: str, field: str = CPU, name: str = "") -> Table:
    """All servers of a scenario, by a field, best first."""
    best = results.best_peer(scenario, CPU)

    def cells(server: str) -> dict[str, Cell]:
        medians = {
            field: found.median / 1000 if field.endswith("_us") else found.median
            for field in (RATE, "p50_us", P99, "pss")
            if (found := results.median(scenario, server, field))
        }
        against = {
            name: found.median
            for name, other in (("floor", FLOOR.name), ("peer", best))
            if other and (found := results.ratio(scenario, server, other, CPU))
        }
        told = remarks(results, scenario, server)
        cost = results.median(scenario, server, CPU)
        return {**medians, **against, CPU: cost, "remarks": told}

    servers = tables.ranked(
        _medians(results, scenario, field), results.servers(scenario), highest=field == RATE
    )
    measured = {server: cells(server) for server in servers}
    columns = [key for key in COLUMNS if any(one.get(key) for one in measured.values())]
    rows = [[server, *map(found.get, columns)] for server, found in measured.items()]
    return Table(
        name or scenario,
        heading(scenario),
        [Column("server"), *(COLUMNS[key] for key in columns)],
        rows,
        tables.ours(servers),
        ranking=COLUMNS[field].name,
    )


def _medians(results: Results, scenario: str, field: str) -> dict[str, Spread]:
    return {
        server: found
        for server in results.servers(scenario)
        if (found := results.median(scenario, server, field))
    }


def _figure(
    results: Results, name: str, title: str, chosen: Mapping[str, str], main: str, field: str
) -> Bars:
    """A field of all servers in some scenarios, whose words are the parts; `main` orders them."""
    found = {scenario: _medians(results, scenario, field) for scenario in chosen}
    servers = dict.fromkeys(server for measured in found.values() for server in measured)
    saturated = [
        server
        for scenario in chosen
        for server in results.servers(scenario)
        if field == RATE and "client" in remarks(results, scenario, server)
    ]
    return Bars(
        name,
        title,
        AXES[field][0],
        [
            Bar(
                server,
                colour_of(server),
                [measured.get(server) for measured in found.values()],
                tables.is_ours(server),
            )
            for server in tables.ranked(found[main], servers, highest=field == RATE)
        ],
        list(chosen.values()) if len(chosen) > 1 else (),
        subtitle=f"{'more' if field == RATE else 'less'} is better",
        caption="Medians of rounds taken in turns, whiskers from the lowest to the highest."
        + (
            f" The client, not the server, was the limit for: {', '.join(saturated)}."
            if saturated
            else ""
        ),
    )


def _answer(results: Results, scenario: str, field: str) -> str:
    _, best, unit = AXES[field]
    found = _medians(results, scenario, field)
    return tables.answer(f"{best}, {heading(scenario)}", found, unit, highest=field == RATE)


def compared(results: Results) -> list[Section]:
    """The report of `bench`: a section for each kind of request."""
    measured = results.scenarios()
    kinds: dict[str, list[Scenario]] = {}
    for one in SCENARIOS:
        if one.name in measured:
            kinds.setdefault(one.kind, []).append(one)
    sections = []
    for kind, found in kinds.items():
        main = next((one for one in found if (one.connections, one.depth) == (64, 1)), found[0])
        figures = [
            _figure(
                results,
                f"cpu-{kind}",
                f"What a request costs the server: {main.title}",
                {scenario.name: scenario.load for scenario in found},
                main.name,
                CPU,
            )
        ]
        figures += [
            _figure(
                results,
                f"rate-{scenario.name}",
                f"Requests per second: {heading(scenario.name)}",
                {scenario.name: scenario.load},
                scenario.name,
                RATE,
            )
            for scenario in found
            if kind == "hello" and scenario.connections == 64
        ]
        own = [table(results, name) for name in measured if _SCENARIO[name] in found]
        sections.append(
            Section(
                main.title[0].upper() + main.title[1:],
                parts=[*figures, *own],
                answer=_answer(results, main.name, CPU),
            )
        )
    return [*sections, Section("Method", METHOD + NOTES, detail=True)]


def shown(results: Results) -> list[Section]:
    """The report of `show`: a section for each experiment."""
    sections = []
    for experiment, title in TITLES.items():
        own = results.experiment(experiment)
        names = own.scenarios()
        field = RANKED.get(experiment, CPU)
        if names:
            chosen = {name: heading(name) for name in names}
            parts: list[Bars | Table] = [
                _figure(own, f"show-{experiment}", title, chosen, names[-1], field),
                *(table(own, name, field, f"show-{experiment}-{name}") for name in names),
            ]
            sections.append(Section(title, parts=parts, answer=_answer(own, names[-1], field)))
        elif own.figures:
            sections.append(_figures(own, experiment, title))
    return [*sections, Section("Method of the experiments", SHOWN, detail=True)]


def _figures(results: Results, experiment: str, title: str) -> Section:
    """What was measured of servers without load: by the first of the figures, lowest first."""
    names = list(dict.fromkeys(figure["name"] for figure in results.figures))
    first = FIGURES[names[0]]
    found = {
        name: {
            server: one
            for server in dict.fromkeys(figure["server"] for figure in results.figures)
            if (one := results.figure(experiment, server, name))
        }
        for name in names
    }
    scaled = {server: tables.scaled(one, first.scale) for server, one in found[names[0]].items()}
    servers = tables.ranked(scaled, scaled)
    rows = [
        [server, *(found[name].get(server) for name in names), float(scaled[server].rounds)]
        for server in servers
    ]
    columns = [Column("server"), *(FIGURES[name] for name in names), Column("rounds")]
    own = Table(
        f"show-{experiment}-figures", title, columns, rows, tables.ours(servers), ranking=first.name
    )
    axis = Axis(first.name, first.unit)
    return Section(
        title,
        parts=[tables.bars(f"show-{experiment}", title, axis, {title: scaled}), own],
        answer=tables.answer(f"Least {first.name}", scaled, first.unit),
    )


METHOD = [
    "Every server is started anew for every sample, asked whether it gives the right answer, "
    "warmed up, measured and stopped. Servers take turns within a round, and another one begins "
    "each round.",
    "The server is pinned to one core, wrk with its one thread to another. From 97 % of its core "
    "on the client is the limit, which the remarks say: then requests per second compare clients, "
    "and CPU per request still compares servers.",
    "CPU per request: the CPU clocks of all the server's processes over the run, divided by the "
    "answers that wrk counted. Accepting the connections is part of it.",
    "Ratios are formed within a round, then made a median.",
    "Latencies are wrk's, corrected by it for coordinated omission: under saturation they say how "
    "long the queue was. Its correction fails for pipelined requests, so these have none.",
    "PSS divides a page shared with other processes, also with other Python programs of the "
    "machine.",
    "The floor is `loadtests/servers/baseline/floor.c`: the same answer bytes from a bare epoll "
    "loop that parses nothing; for a POST it is told the size of the body.",
    "Absolute figures drift between machines and runs: compare within a figure.",
]
NOTES = [f"{server.name} {server.note}." for server in SERVERS if server.note]
SHOWN = [
    "Samples are taken as those of `bench`, which count for these promises, too.",
    "In `forking` the client shares both cores with the server, so the handler computes for about "
    "1 ms.",
]
