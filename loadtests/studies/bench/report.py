"""The reports of `bench` and `show`: what a request costs each server, and how fast it answers."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace

from loadtests.reporting.model import MIB, Axis, Bars, Column, Section, Table
from loadtests.servers.registry import FLOOR, SERVERS
from loadtests.stats.results import Results, Spread
from loadtests.studies import comparison, tables
from loadtests.studies.bench.scenarios import SCENARIOS, Scenario, heading
from loadtests.studies.comparison import CPU, PSS, RATE, Measure, Scenarios, is_client_limit

NEGLECTED = 0.6
"""The share of connections with a request under way below which a server let the others wait."""
RATED = "hello"
"""The kind of request of which requests per second have a figure, too."""


def remarks(results: Results, scenario: str, server: str) -> str:
    """What a reader should know of a server's samples in a scenario."""
    told = comparison.remarks(results, scenario, server)
    connections = next((one.connections for one in SCENARIOS if one.name == scenario), 0)
    # Little's law: requests under way are their rate times their time.
    in_use = [
        s["rate"] * s["mean_us"] / 1e6
        for s in results.samples
        if (s["scenario"], s["server"]) == (scenario, server) and "mean_us" in s
    ]
    if not in_use or connections < 2 or is_client_limit(results, scenario, server):
        return told
    busy = statistics.median(in_use)
    neglected = f"served about {busy:.0f} of the connections at a time"
    return ", ".join(filter(None, [neglected if busy < NEGLECTED * connections else "", told]))


def _milliseconds(field: str) -> Measure:
    def read(results: Results, scenario: str, server: str) -> Spread | None:
        found = results.median(scenario, server, field)
        if found is None:
            return None
        median, low, high = (value / 1000 for value in found[:3])
        return Spread(median, low, high, found.rounds)

    return Measure(Column(field.removesuffix("_us"), "ms", 2), read)


def _against(words: str, other: Callable[[Results, str], str | None]) -> Measure:
    """CPU against that of another server, which `other` names."""

    def read(results: Results, scenario: str, server: str) -> Spread | None:
        name = other(results, scenario)
        return results.ratio(scenario, server, name, "cpu_us") if name else None

    return Measure(Column(f"against the {words}", "×", 2), read)


P99 = _milliseconds("p99_us")
MEASURES = (
    CPU.with_range(),
    _against("floor", lambda *_: FLOOR.name),
    _against("best peer", lambda results, scenario: results.best_peer(scenario, "cpu_us")),
    RATE,
    _milliseconds("p50_us"),
    P99,
    PSS,
    Measure(Column("remarks"), remarks),
)
RANKED = {"sleepers": RATE, "neighbours": P99, "gevent": RATE, "forking": RATE}
"""By experiment, what servers are ordered by; the others by CPU."""
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


def _section(
    results: Results, name: str, title: str, scenarios: Scenarios, lead: Measure
) -> Section:
    """A comparison, of which the last scenario orders the figure, without empty columns."""
    known = [
        one
        for one in MEASURES
        if one is not lead
        and any(
            one.cell(results, scenario, server)
            for scenario in scenarios
            for server in results.servers(scenario)
        )
    ]
    return comparison.section(
        results, name, title, scenarios, (lead, *known), apart=True, log=lead is not RATE
    )


def compared(results: Results) -> list[Section]:
    """The report of `bench`: a section for each kind of request."""
    kinds: dict[str, list[Scenario]] = {}
    # Servers are ordered by 64 connections: the last.
    for one in sorted(SCENARIOS, key=lambda one: (one.connections, one.depth) == (64, 1)):
        if results.servers(one.name):
            kinds.setdefault(one.kind, []).append(one)
    sections = []
    for kind, found in kinds.items():
        title = found[0].title[0].upper() + found[0].title[1:]
        scenarios = {scenario.name: scenario.load for scenario in found}
        own = _section(results, f"cpu-{kind}", title, scenarios, MEASURES[0])
        shown = [one for one in SCENARIOS if one in found and one.kind == RATED]
        rates = [_rate(results, one) for one in shown if one.connections == 64]
        sections.append(replace(own, parts=[own.parts[0], *rates, *own.parts[1:]]))
    return [*sections, Section("Method", METHOD + NOTES, detail=True)]


def _rate(results: Results, scenario: Scenario) -> Bars:
    """Requests per second in one scenario, and where the client was the limit."""
    name, title = f"rate-{scenario.name}", heading(scenario.name)
    bars, told = comparison.section(
        results, name, title, {scenario.name: ""}, [RATE], limits=True
    ).parts
    assert isinstance(bars, Bars)
    assert isinstance(told, Table)
    return replace(bars, caption=told.note)


def shown(results: Results) -> list[Section]:
    """The report of `show`: a section for each experiment."""
    sections = []
    for experiment, title in TITLES.items():
        own = results.experiment(experiment)
        if scenarios := {name: heading(name) for name in own.scenarios()}:
            lead = RANKED.get(experiment, MEASURES[0])
            sections.append(_section(own, f"show-{experiment}", title, scenarios, lead))
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
