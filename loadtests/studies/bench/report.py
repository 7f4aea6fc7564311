"""Tables of the studies `bench` and `show`: promised figures, cost of a request, latency."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace

from loadtests.reporting.model import MIB, Axis, Bars, Column, Section, Table, method
from loadtests.reporting.promises import Places, Promise, mode, of_figures
from loadtests.servers.registry import FLOOR, SERVERS
from loadtests.stats.results import Results, Spread
from loadtests.studies import comparison, tables
from loadtests.studies.bench.experiments import GEVENT, MONITORED, SINGLE, THREADING, UNMONITORED
from loadtests.studies.bench.scenarios import SCENARIOS, Scenario, heading
from loadtests.studies.comparison import CPU, PSS, RATE, Measure, is_client_limit

LOGGED = "poorhttp single + log"


def _of(
    read: Callable[..., Spread | None], first: str, server: str, *more: str, scale: float = 1
) -> Callable[[Results], Places]:
    """What was measured of a server, whose mode is the place: by a method of the results."""

    def places(results: Results) -> Places:
        found = read(results, first, server, *more)
        return {mode(server): tables.scaled(found, scale)} if found else {}

    return places


def _best_peer(scenario: str, field: str, *, highest: bool = False) -> Callable[[Results], Places]:
    """The ratio to the best peer, whose name is the place."""

    def places(results: Results) -> Places:
        best = results.best_peer(scenario, field, highest=highest)
        found = results.ratio(scenario, SINGLE, best, field) if best else None
        return {f"single to {best}": found} if found else {}

    return places


def _cost() -> Iterator[Promise]:
    for scenario, server, limit, words in (
        ("hello-64", SINGLE, 1.20, "64 connections"),
        ("hello-512", SINGLE, 1.20, "512 connections"),
        ("hello-64", LOGGED, 1.25, "64 connections, access log on"),
        ("hello-512", LOGGED, 1.25, "512 connections, access log on"),
    ):
        what = f"CPU per request, {words}, against the floor"
        yield Promise(
            "cost", what, limit, "×", _of(Results.ratio, scenario, server, "floor", "cpu_us")
        )
    for scenario, words in (
        ("hello-1", "1 connection"),
        ("hello-64", "64 connections"),
        ("hello-512", "512 connections"),
        ("browser-64", "64 connections, 12 request headers"),
    ):
        what = f"CPU per request, {words}, against the best peer"
        yield Promise("cost", what, 0.90, "×", _best_peer(scenario, "cpu_us"))
    what, pipelined = "requests/s, 64 connections × 16 pipelined", "hello-64x16"
    rate = _of(Results.median, pipelined, SINGLE, "rate")
    yield Promise("cost", what, 400_000, "/s", rate, at_least=True, places=0)
    rate = _best_peer(pipelined, "rate", highest=True)
    yield Promise("cost", "the same against the best peer", 2, "×", rate, at_least=True)


def _loaded() -> Iterator[Promise]:
    for connections in (1, 2, 64, 512):
        words = "connections" if connections > 1 else "connection"
        what = f"CPU per request, 8 threads against single, {connections} {words}"
        cost = _of(Results.ratio, f"hello-{connections}", THREADING, SINGLE, "cpu_us")
        yield Promise("threads", what, 1.08, "×", cost)
    what = "requests/s, 32 threads, 32 connections, handler sleeps 10 ms"
    rate = _of(Results.median, "sleep10ms-32", "poorhttp threading 32", "rate")
    yield Promise("sleepers", what, 3_000, "/s", rate, at_least=True, places=0)
    for server in (THREADING, GEVENT):
        for field, words, limit in (("p99_us", "p99", 1), ("max_us", "worst", 5)):
            what = f"beside a request that sleeps 1 s, {mode(server)}: {words} of the others"
            time = _of(Results.median, "beside-4", server, field, scale=1e-3)
            yield Promise("neighbours", what, limit, "ms", time)
    for peer in ("gevent pywsgi", "gunicorn gevent"):
        what = f"requests/s of gevent mode, 64 connections, against {peer}"
        rate = _of(Results.ratio, "hello-64", GEVENT, peer, "rate")
        yield Promise("gevent", what, 3, "×", rate, at_least=True)
    for server, words, most in (
        (SINGLE, "process titles", 1.01),
        (MONITORED, "process titles, figures of admin and ids of requests", 1.02),
    ):
        what = f"CPU per request, {words}, against none of them"
        cost = _of(Results.ratio, "hello-64", server, UNMONITORED, "cpu_us")
        yield Promise("monitoring", what, most, "×", cost)
    what = "requests/s, forking with 2 workers against 1, unpinned, handler computes about 1 ms"
    rate = _of(Results.ratio, "burn-16", "poorhttp forking 2", "poorhttp forking 1", "rate")
    yield Promise("forking", what, 1.8, "×", rate, at_least=True)


def _alone() -> Iterator[Promise]:
    for server, words, limit in (
        (SINGLE, "single", 10),
        ("poorhttp forking 4", "forking, 4 workers, all processes", 16),
    ):
        what, of = f"PSS after 1,000 requests for `light`, {words}", {server: mode(server)}
        yield of_figures("memory", what, limit, "MiB", of, ["pss"], scale=MIB, places=1)
    ours = {server: mode(server) for server in (SINGLE, THREADING)}
    for server, word in ours.items():
        what = f"memory of each of 10,000 idle keep-alive connections, {word}"
        yield of_figures(
            "idle", what, 1024, "B", {server: word}, ["bytes per connection"], places=0
        )
    for server, word in ours.items():
        what, of = f"from start to first answer, {word}", {server: word}
        yield of_figures("start", what, 150, "ms", of, ["seconds"], scale=1e3, places=0)


PROMISES = (*_cost(), *_loaded(), *_alone())
NEGLECTED = 0.6
"""The share of connections with a request under way below which a server let the others wait."""
RATED = ("hello", 64)
"""The kind and the connections of which requests per second have a figure, too."""


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


def _against(words: str, other: Callable[[Results, str], str | None]) -> Measure:
    """CPU against that of another server, which `other` names."""

    def read(results: Results, scenario: str, server: str) -> Spread | None:
        name = other(results, scenario)
        return results.ratio(scenario, server, name, "cpu_us") if name else None

    return Measure(Column(f"against the {words}", "×", 2), read)


def _milliseconds(field: str) -> Measure:
    def read(results: Results, scenario: str, server: str) -> Spread | None:
        if not (found := results.median(scenario, server, field)):
            return None
        median, low, high = (value / 1000 for value in found[:3])
        return Spread(median, low, high, found.rounds)

    return Measure(Column(field.removesuffix("_us"), "ms", 2), read)


P99 = _milliseconds("p99_us")
MEASURES = (
    CPU.with_range(),
    _against("floor", lambda *_: FLOOR.name),
    _against("server without monitoring", lambda *_: UNMONITORED),
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
    "monitoring": "CPU of monitoring",
    "forking": "Two workers beside one",
    "memory": "Memory after 1,000 requests",
    "idle": "Memory of an idle connection",
    "start": "From start to the first answer",
}


def _section(
    results: Results, name: str, title: str, scenarios: dict[str, str], lead: Measure
) -> Section:
    """A comparison, of which the last scenario orders the figure, without empty columns."""
    places = [(one, server) for one in scenarios for server in results.servers(one)]
    known = [one for one in MEASURES if any(one.read(results, *place) for place in places)]
    measures = (lead, *(one for one in known if one is not lead))
    return comparison.section(
        results, name, title, scenarios, measures, apart=True, log=lead is not RATE
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
        shown = [one for one in SCENARIOS if one in found]
        rates = [_rate(results, one) for one in shown if (kind, one.connections) == RATED]
        sections.append(replace(own, parts=[own.parts[0], *rates, *own.parts[1:]]))
    return [*sections, method(__file__, more=NOTES)]


def _rate(results: Results, scenario: Scenario) -> Bars:
    """Requests per second in one scenario, and where the client was the limit."""
    name, title = f"rate-{scenario.name}", heading(scenario.name)
    made = comparison.section(results, name, title, {scenario.name: ""}, [RATE], limits=True)
    bars, told = made.parts
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
    return [*sections, replace(method(__file__, "shown"), title="Method of the experiments")]


def _figures(results: Results, experiment: str, title: str) -> Section:
    """What was measured of servers without load: by the first of the figures, lowest first."""
    samples = [{**one, one["name"]: one["value"]} for one in results.figures]
    first, *names = dict.fromkeys(one["name"] for one in samples)
    column = FIGURES[first]
    found = tables.spreads(samples, first, column.scale)
    values: list[tuple[Column, tables.Value]] = [(FIGURES[name], name) for name in (first, *names)]
    values.append((Column("rounds"), lambda own: float(sum(first in one for one in own))))
    told = tables.compared(f"show-{experiment}-figures", title, samples, values, column.name)
    axis = Axis(column.name, column.unit)
    return Section(
        title,
        parts=[tables.bars(f"show-{experiment}", title, axis, {title: found}), told],
        answer=tables.answer(f"Least {column.name}", found, column.unit),
    )


NOTES = "".join(f"- {server.name} {server.note}.\n" for server in SERVERS if server.note)
