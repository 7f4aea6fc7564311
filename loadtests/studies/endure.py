"""The study `endure`: dead, slow, non-reading and non-sending clients, and large requests.

The server under such a load stands beside a second instance of itself without it, both on the same
core and started together; each is measured while the other one has nothing to do, in turns. So what
is compared are neighbours in time. Who is started first and who is measured first changes from
round to round; after four rounds all has had its turn.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from loadtests.apps.pattern import checksum
from loadtests.clients import transfer
from loadtests.clients.adverse import AdverseClients
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.machine import allow_files
from loadtests.measure.waiting import wait_until
from loadtests.reporting.model import MIB, Axis, Cell, Column, Line, Lines, Section, Table, method
from loadtests.reporting.promises import Places, Promise, mode, of_figures
from loadtests.servers.registry import SERVERS, Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results, Spread
from loadtests.studies import engine, study, tables
from loadtests.studies.bench.scenarios import SIZED, Scenario, heading
from loadtests.studies.bench.study import asked_for
from loadtests.studies.engine import Lab, Step
from loadtests.studies.study import Study

SCALES = FULL, QUICK, TINY = study.scales(
    replace(study.FULL, rounds=4, seconds=2.0),
    study.QUICK,
    study.TINY,
    # Clients of each kind, and numbers of dead ones in `growing`.
    dead=(18_000, 18_000, 50),
    fewer=((1_000, 5_000, 10_000), (1_000, 5_000, 10_000), (10,)),
    heads=(2_000, 2_000, 20),
    bodies=(500, 500, 10),
    stalled=(500, 500, 10),
    # Transfers at once, and the bytes of each.
    transfers=(4, 4, 4),
    size=(2**30, 2**30, 3_000_001),
    # Seconds after which the server ends what it waits for.
    header_timeout=(10, 10, 0.5),
    body_timeout=(30, 30, 0.7),
    write_timeout=(60, 60, 5),
)
GRACE = 5
"""Seconds after a deadline for which the lab waits for what it should have ended."""
ROOM = 500
"""Descriptors beyond those of the crowd: the live clients and the files of the process."""
PATIENT = "--header-timeout 3600 --keepalive-timeout 3600"
"""The dead shall be there while we measure, and not be closed as they otherwise would."""
SETTLE_SECONDS = 60.0
SOON = 3.0
PAUSE = 0.1
"""Seconds between two looks at a server or its clients that are waited for."""
DRIPPING = "dripping"
STALLED = "not reading"
TRANSFERS = {"uploads": transfer.upload, "downloads": transfer.download}


def burdened(server: str, burden: str | int) -> str:
    """What the server with a burden is called in the results; a number is of dead connections."""
    return f"{server}, {burden:,} dead" if isinstance(burden, int) else f"{server}, {burden}"


@dataclass(frozen=True)
class Trial(engine.Trial):
    """One server beside itself; with a number of dead connections, or a kind of transfers."""

    amounts: Any
    of: Any

    def start(self, options: str = "") -> Running:
        """The server, if it is ours with further options."""
        server, first = self.server, SIZED[0]
        if server.ours:
            server = replace(server, command=f"{server.command} {options}".rstrip())
        return replace(self, server=server).running(first.application, first.target)

    @contextlib.contextmanager
    def pair(self, options: str, clients: int) -> Iterator[tuple[Running, Running]]:
        """Two instances, of which the first is to be burdened with so many clients.

        That is the one that is started first in every other round.
        """
        allow_files(clients + ROOM)
        with self.start(options) as one, self.start(options) as other:
            yield (one, other) if self.number % 2 else (other, one)

    def crowd(self, kind: str, running: Running, count: int, **how: bool) -> AdverseClients:
        """So many clients, connected until the block ends."""
        return AdverseClients(kind, running.port, count, core=self.lab.client_core, **how)

    def compare(
        self,
        pair: tuple[Running, Running],
        burden: str | int,
        scenarios: Sequence[Scenario],
        check: Callable[[], None],
    ) -> str:
        """Measures a burdened instance and a free one in turns; tells the medians of the ratios.

        What `check` does not hold good before and afterwards is not stored.
        """
        loaded = replace(self.server, name=burdened(self.server.name, burden))
        ratios = []
        for position, scenario in enumerate(scenarios):
            check()
            turns = [(loaded, pair[0]), (self.server, pair[1])]
            if (self.number // 2 + position) % 2:
                turns.reverse()
            samples = {
                one.name: replace(self, server=one).observe(scenario, running)
                for one, running in turns
            }
            check()
            for sample in samples.values():
                self.lab.store.add("sample", **sample)
            with_it, without = samples[loaded.name], samples[self.server.name]
            ratios.append([with_it[key] / without[key] for key in ("rate", "p99_us", "cpu_us")])
        rate, p99, cpu = map(statistics.median, zip(*ratios, strict=True))
        return f"rate × {rate:.3f}, p99 × {p99:.3f}, CPU × {cpu:.3f}"

    def record_ends(self, what: str, crowd: AdverseClients, deadline: float) -> str:
        """Stores how the first connections of a crowd ended until a deadline, and tells it."""
        left = deadline + GRACE - time.monotonic()
        wait_until(lambda: crowd.state().never == 0, left, PAUSE)
        state = crowd.state()
        share = 1 - state.never / state.count
        self.figure(f"{what} closed", share, "×")
        if state.first is None or state.median is None or state.last is None:
            return f"{what}: none closed"
        ends = {"first": state.first, "in the median": state.median, "last": state.last}
        for which, seconds in ends.items():
            self.figure(f"{what} closed {which} after", seconds, "seconds")
        told = "/".join(sorted(state.told)) or "nothing"
        times = f"{state.first:.2f} – {state.last:.2f} s"
        return f"{what}: {share:.0%} closed after {times}, told {told}"


def _settle(running: Running, files: int, clients: int) -> None:
    """Waits until the server has accepted so many clients and is done with what they sent."""

    def accepted() -> int:
        return resources.descriptors(running.processes()) - files

    if not wait_until(lambda: accepted() >= clients, SETTLE_SECONDS, PAUSE):
        raise ServerFailure(f"it has accepted {accepted():,} of {clients:,} clients")
    if not wait_until(running.is_quiet, SETTLE_SECONDS, PAUSE):
        raise ServerFailure(f"it does not come to rest with {clients:,} clients")


def dead(trial: Trial) -> str:
    """Dead connections, half of them in the middle of a head, beside live clients.

    In `growing`, how what those get depends on the number of dead ones, for one document.
    """
    count = trial.of
    sizes = SIZED if trial.experiment == "dead" else SIZED[1:2]
    with trial.pair(PATIENT, count) as pair:
        files = pair[0].idle_descriptors(SETTLE_SECONDS)
        with trial.crowd("dead", pair[0], count) as crowd:

            def check() -> None:
                left = crowd.state().open
                held = resources.descriptors(pair[0].processes()) - files
                if left < count or held < count:
                    raise ServerFailure(
                        f"of {count:,} dead connections {left:,} are left, it holds {held:,}"
                    )

            _settle(pair[0], files, count)
            return trial.compare(pair, count, sizes, check)


def drip(trial: Trial) -> str:
    """Clients that send a byte of a head or of a body each second; who is closed comes again.

    Only the first round waits for the deadline of bodies.
    """
    much = trial.amounts
    options = f"--header-timeout {much.header_timeout:g} --body-timeout {much.body_timeout:g}"
    with (
        trial.pair(options, much.heads + much.bodies) as pair,
        trial.crowd("body", pair[0], much.bodies, renew=True) as bodies,
        trial.crowd("head", pair[0], much.heads, renew=True) as heads,
    ):
        began = time.monotonic()

        def check() -> None:
            for crowd in (heads, bodies):
                most = 0.9 * crowd.count
                # At the deadline all may be gone for a moment.
                if not wait_until(lambda: crowd.state().open >= most, SOON, PAUSE):  # noqa: B023
                    raise ServerFailure(f"of {crowd.count:,} drippers many stay away")

        said = [trial.compare(pair, DRIPPING, SIZED, check)]
        if trial.number == 0:
            said.append(trial.record_ends("heads", heads, began + much.header_timeout))
            said.append(trial.record_ends("bodies", bodies, began + much.body_timeout))
    return "; ".join(said)


def stalled(trial: Trial) -> str:
    """Clients that ask for much and never read it, half of them with a small receive buffer.

    Only the first round waits for the write deadline.
    """
    count, deadline = trial.amounts.stalled, trial.amounts.write_timeout
    with trial.pair(f"--write-timeout {deadline:g}", count) as pair:
        files = pair[0].idle_descriptors(SETTLE_SECONDS)
        kernel = resources.socket_memory()
        with (
            resources.Watch(pair[0].processes) as watch,
            trial.crowd("stalled", pair[0], count) as crowd,
        ):
            began = time.monotonic()
            wait_until(lambda: crowd.state().unread >= count, SETTLE_SECONDS, PAUSE)
            _settle(pair[0], files, count)
            kernel = resources.socket_memory() - kernel

            def check() -> None:
                if (left := crowd.state().open) < count:
                    raise ServerFailure(f"of {count:,} clients that do not read {left:,} are left")

            said = [trial.compare(pair, STALLED, SIZED[1:2], check)]
            if trial.number == 0:
                # The last of them may have begun to wait when the server came to rest.
                said.append(trial.record_ends("they", crowd, began + 2 * deadline))
                held = pair[0].idle_descriptors(SETTLE_SECONDS) - files
                trial.figure("still held by the server", held)
        rss = watch.highest.rss
        trial.figure("rss", rss, "bytes")
        trial.figure("pss", watch.highest.pss, "bytes")
        trial.figure("in the kernel", kernel, "bytes")
        said.append(f"RSS {rss / 2**20:.0f} MiB, in the kernel {kernel / 2**20:.0f} MiB")
        return "; ".join(said)


def transfers(trial: Trial) -> str:
    """Large uploads and large generated downloads, several at once, each checked."""
    what, count, size = trial.of, trial.amounts.transfers, trial.amounts.size
    with trial.start() as running, ThreadPoolExecutor(count) as clients:
        checksum(size)  # Once, and not while we measure.
        before = resources.memory(running.processes())
        began = time.monotonic()
        with resources.Watch(running.processes) as watch:
            # Raises the first failure when all have ended.
            list(clients.map(TRANSFERS[what], [running.port] * count, [size] * count))
        taken = time.monotonic() - began
    for name in ("rss", "pss", "uss"):
        growth = getattr(watch.highest, name) - getattr(before, name)
        trial.figure(f"{what}, growth of {name}", growth, "bytes")
    rate = count * size / taken
    trial.figure(f"{what}, together", rate, "bytes/s")
    rss = watch.highest.rss - before.rss
    return f"RSS grew by {rss / 2**20:.1f} MiB, {rate / 2**20:,.0f} MiB/s"


EXPERIMENTS: dict[str, Callable[[Trial], str]] = {
    "dead": dead,
    "growing": dead,
    "drip": drip,
    "stalled": stalled,
    "transfers": transfers,
}


def plan(lab: Lab, scale: study.Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """The experiments one after another; half the rounds of what takes long, transfers once."""
    if options.servers:
        servers = asked_for(servers, options)
    half, much = (lab.rounds + 1) // 2, scale.amounts
    rounds = {"dead": lab.rounds, "transfers": 1}
    parts: dict[str, Iterable[Any]] = {
        "dead": [much.dead],
        "growing": [*much.fewer, much.dead],
        "transfers": TRANSFERS,
    }
    return [
        # Each part has rounds of its own: the free instance beside it is called the same.
        Trial(own, name, number + position * 2 * own.rounds, server, much, of).step(
            EXPERIMENTS[name], f" of {of}" if of else ""
        )
        for name in options.names
        for own in [replace(lab, rounds=rounds.get(name, half))]
        for number in range(own.rounds)
        for position, of in enumerate(parts.get(name, [None]))
        for server in servers
    ]


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
        for what in TRANSFERS
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
    own = tables.table(f"{experiment}-compared", "", COLUMNS, rows, ranking=RATE)
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
    columns = ("server", "figure", "median (lowest – highest)")
    return [tables.table(f"{experiment}-figures", "", columns, rows)] if rows else []


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
    burdens = {one["server"].partition(", ")[2] for one in results.samples} - {""}
    counts = sorted(int(burden.split()[0].replace(",", "")) for burden in burdens)
    if not counts:
        return []
    scenario = results.scenarios()[0]
    servers = dict.fromkeys(name.partition(", ")[0] for name in results.servers(scenario))
    made = []
    for field, (what, limit) in PROMISED.items():
        points = {
            server: [
                (0, tables.once(1)),
                *(
                    (count, found)
                    for count in counts
                    if (found := results.ratio(scenario, burdened(server, count), server, field))
                ),
            ]
            for server in servers
        }
        figure = tables.lines(
            f"dead-{field.removesuffix('_us')}",
            f"Dead connections and the {what} of live clients",
            Axis("dead connections, half of them in the middle of a head", low=0),
            Axis("against none", "×", low=0),
            points,
            subtitle=heading(scenario),
            caption="Each point compares two instances of a server, one with the dead connections "
            "and one without, measured in turns: the median of the ratios of the rounds, "
            "and the range from lowest to highest.",
            marks=True,
        )
        promised = Line("promised", PROMISE, [(0, limit), (counts[-1], limit)])
        made.append(replace(figure, lines=[*figure.lines, promised]))
    return made


STUDY = Study(
    "endure",
    "run the experiments with dead, slow and large clients",
    "",
    lambda: SERVERS,
    plan,
    report,
    promises=PROMISES,
    usual=MODES,
    experiments=tuple(EXPERIMENTS),
    scales=SCALES,
    wrk=True,
)
