"""The studies `bench`, which compares all servers, and `show`, whose figures the README states."""

from __future__ import annotations

import contextlib
import random
import statistics
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from loadtests.arguments import names
from loadtests.clients.connection import Connection, request_bytes
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.machine import allow_files
from loadtests.reporting.model import MIB, Axis, Bars, Column, Section, Table, method
from loadtests.reporting.promises import Places, Promise, mode, of_figures
from loadtests.servers import registry
from loadtests.servers.registry import FLOOR, SERVERS, Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results, Spread
from loadtests.studies import comparison, engine, tables
from loadtests.studies.bench import scenarios
from loadtests.studies.bench.scenarios import SCENARIOS, Scenario, heading
from loadtests.studies.comparison import CPU, P50, P99, PSS, RATE, Measure, is_client_limit
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.sample import ask_often
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study

IDLE_CONNECTIONS = 10_000
WARM_CONNECTIONS = 100
PER_ADDRESS = 4_000
LIGHT_REQUESTS = 1_000
LIGHT_CLIENTS = 8
SINGLE, THREADING, GEVENT = "poorhttp single", "poorhttp threading 8", "poorhttp gevent"
UNMONITORED, MONITORED = "poorhttp single, no monitoring", "poorhttp single + monitoring"

LOADED: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    # CPU per request against the floor and the best peers, and pipelining.
    "cost": (
        (
            *("floor", SINGLE, "poorhttp single + log"),
            *("fastpysgi", "fastwsgi", "bjoern", "granian 1 thread"),
        ),
        ("hello-1", "hello-64", "hello-512", "browser-64", "hello-64x16"),
    ),
    # Eight threads beside one, where the handler is tiny.
    "threads": ((SINGLE, THREADING), ("hello-1", "hello-2", "hello-64", "hello-512")),
    # 32 threads, 32 connections, a handler that sleeps 10 ms.
    "sleepers": (("poorhttp threading 32",), ("sleep10ms-32",)),
    # The latency of four connections while another request sleeps a second, again and again.
    "neighbours": ((THREADING, GEVENT), ("beside-4",)),
    # Our gevent mode beside gevent's own server and gunicorn's gevent worker.
    "gevent": ((GEVENT, "gevent pywsgi", "gunicorn gevent"), ("hello-64",)),
    # Process titles (the default), the figures of `admin`, and both with ids of requests, beside a
    # server without any of them.
    "monitoring": ((UNMONITORED, SINGLE, "poorhttp single + admin", MONITORED), ("hello-64",)),
    # Two workers beside one, all cores free for both server and client. The client needs a core,
    # too, so the handler computes: then wrk takes a percent or two of it.
    "forking": (("poorhttp forking 1", "poorhttp forking 2"), ("burn-16",)),
}
"""Experiments that load servers with scenarios."""


@contextlib.contextmanager
def _sleeping(port: int) -> Iterator[None]:
    """Keeps one request of one second running until the block ends."""
    request, stop = request_bytes("/?seconds=1"), threading.Event()
    answers: list[object] = []

    def run() -> None:
        while not stop.is_set():
            # Its absence is noticed by the number of answers.
            with contextlib.suppress(OSError, ServerFailure), Connection(port) as connection:
                while not stop.is_set():
                    answers.append(connection.ask(request))
            stop.wait(0.1)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if not answers:
        raise ServerFailure("the sleeping request was never answered")


def _neighbours(trial: Trial, scenario: Scenario) -> str:
    with trial.started(scenario) as running, _sleeping(running.port):
        sample = trial.take(scenario, running)
    return f"p99 {sample['p99_us'] / 1000:.2f} ms, worst {sample['max_us'] / 1000:.2f} ms"


def _memory(this: Trial) -> str:
    """After 1,000 requests for a bare WSGI `light`, from clients enough for all workers."""
    with Running(this.server, scenarios.LIGHT) as running:
        with ThreadPoolExecutor(LIGHT_CLIENTS) as clients:
            share = [LIGHT_REQUESTS // LIGHT_CLIENTS] * LIGHT_CLIENTS
            list(clients.map(partial(ask_often, running), share))
        used = this.memory(running, "{}")
    return f"PSS {used.pss / 2**20:.1f} MiB in {used.processes} processes"


def _idle(this: Trial) -> str:
    """What 10,000 idle keep-alive connections add to private memory, each having had an answer."""
    allow_files(IDLE_CONNECTIONS + WARM_CONNECTIONS + 200)
    with Running(this.server, scenarios.HELLO) as running, contextlib.ExitStack() as stack:
        connections: list[Connection] = []
        try:
            _open(running, connections, stack, WARM_CONNECTIONS)
            before = resources.memory(running.processes())
            _open(running, connections, stack, IDLE_CONNECTIONS)
            time.sleep(0.5)
            after = resources.memory(running.processes())
            for connection in random.Random(1).sample(connections, 200):
                connection.ask(running.request)
        except (OSError, ServerFailure) as error:
            raise ServerFailure(f"with {len(connections):,} connections open: {error}") from None
    each = (after.uss - before.uss) / IDLE_CONNECTIONS
    this.figure("bytes per connection", round(each, 1), "bytes")
    return f"{each:,.0f} bytes per connection"


def _open(
    running: Running, connections: list[Connection], stack: contextlib.ExitStack, count: int
) -> None:
    """Opens connections and lets each have one answer; several addresses, for ports are few."""
    for _ in range(count):
        source = f"127.0.0.{1 + len(connections) // PER_ADDRESS}"
        connections.append(stack.enter_context(Connection(running.port, source=source)))
        answer = connections[-1].ask(running.request)[0]
        if answer.status != running.answer.status:
            raise ServerFailure(f"a connection was answered {answer.status}")


def _start(this: Trial) -> str:
    """From exec to the first complete answer, `hello`."""
    with this.running(scenarios.HELLO) as running:
        taken = running.first_answer_seconds
    this.figure("seconds", round(taken, 5), "s")
    return f"{taken * 1000:.0f} ms"


ALONE: dict[str, tuple[Callable[[Trial], str], Sequence[str]]] = {
    "memory": (_memory, (SINGLE, THREADING, "poorhttp forking 4", "bjoern", "gunicorn sync 4")),
    "idle": (_idle, (SINGLE, THREADING, "fastpysgi", "fastwsgi", "bjoern", "granian")),
    "start": (
        _start,
        (
            *(SINGLE, THREADING, GEVENT),
            *("bjoern", "granian", "gunicorn gthread 8", "waitress 8 threads"),
        ),
    ),
}
"""Experiments without a load, and their servers."""
EXPERIMENTS = (*LOADED, *ALONE)


def steps(lab: Lab, name: str) -> list[Step]:
    if name in LOADED:
        servers, asked = LOADED[name]
        return engine.steps(
            lab.unpinned() if name == "forking" else lab,
            scenarios.asked(registry.named(servers), asked),
            name,
            _neighbours if name == "neighbours" else engine.measure,
        )
    action, servers = ALONE[name]
    rounds = {"idle": 1, "start": 20 if lab.rounds > 1 else 5}.get(name, lab.rounds)
    return engine.rounds(replace(lab, rounds=rounds), name, registry.named(servers), action)


def _arguments(command: ArgumentParser) -> None:
    command.add_argument(
        "--scenarios",
        type=names,
        metavar="NAME,NAME",
        help="kinds (hello page browser echo) or names such as hello-64, page-512, echo-64x16",
    )


def asked_for(servers: Sequence[Server], options: Namespace) -> Sequence[Server]:
    """Of these servers: a whole name stands for itself only, a beginning for those compared."""
    known = [
        name for name in options.servers or () if any(s.name.startswith(name) for s in servers)
    ]
    given = [server for server in servers if server.given]
    return [*given, *registry.named(known)] if options.servers else servers


def _compare(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """Every server once a round, in one scenario after another."""
    compared = [one.name for one in scenarios.SCENARIOS if one.compared]
    asked = options.scenarios or (compared if scale.name == FULL.name else scenarios.QUICK)
    return engine.steps(lab, scenarios.asked(asked_for(servers, options), asked))


def _show(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """The experiments one after another; some of them have a step in common."""
    return [
        replace(step, what=f"{step.what}, {name}")
        for name in options.names
        for step in steps(lab, name)
        if step.server in servers
    ]


LOGGED = "poorhttp single + log"


def _of(
    read: Callable[..., Spread | None], first: str, server: str, *more: str, scale: float = 1
) -> Callable[[Results], Places]:
    """What was measured of a server, whose mode is the place: by a method of the results."""
    return comparison.places(read, {mode(server): (first, server, *more)}, scale)


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
    for experiment, what, limit, unit, figure, scale in (
        (
            *("idle", "memory of each of 10,000 idle keep-alive connections"),
            *(1024, "B", "bytes per connection", 1.0),
        ),
        ("start", "from start to first answer", 150, "ms", "seconds", 1e3),
    ):
        for server in (SINGLE, THREADING):
            word = mode(server)
            of, named = {server: word}, [figure]
            told = f"{what}, {word}"
            yield of_figures(experiment, told, limit, unit, of, named, scale=scale, places=0)


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


MEASURES = (
    CPU.with_range(),
    _against("floor", lambda *_: FLOOR.name),
    _against("server without monitoring", lambda *_: UNMONITORED),
    _against("best peer", lambda results, scenario: results.best_peer(scenario, "cpu_us")),
    RATE,
    P50,
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
        rates = [_rate(results, one.name) for one in shown if (kind, one.connections) == RATED]
        sections.append(replace(own, parts=[own.parts[0], *rates, *own.parts[1:]]))
    return [*sections, method(__file__, more=NOTES)]


def _rate(results: Results, name: str) -> Bars:
    """Requests per second in one scenario, and where the client was the limit."""
    title = heading(name)
    made = comparison.section(results, f"rate-{name}", title, {name: ""}, [RATE], limits=True)
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


BENCH = Study(
    "bench",
    "compare all servers in all scenarios, in turns",
    "",
    lambda: SERVERS,
    _compare,
    compared,
    _arguments,
    usual=tuple(server.name for server in SERVERS if server.compared),
    given=True,
    scales=(replace(FULL, seconds=2.0), QUICK, TINY),
    wrk=True,
)
SHOW = Study(
    "show",
    "run the experiments behind the promised figures",
    "",
    lambda: SERVERS,
    _show,
    shown,
    promises=PROMISES,
    experiments=EXPERIMENTS,
    also=("bench",),
    scales=(replace(FULL, rounds=5), QUICK, TINY),
    wrk=True,
)
