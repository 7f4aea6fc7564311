"""One experiment of `endure` for each kind of client: dead, slow, non-reading, non-sending, large.

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
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.studies import engine, study
from loadtests.studies.bench.scenarios import SIZED, Scenario
from loadtests.studies.bench.study import asked_for
from loadtests.studies.engine import Lab, Step

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
        return Running(server, first.application, target=first.target, core=self.lab.server_core)

    @contextlib.contextmanager
    def pair(self, options: str, clients: int) -> Iterator[tuple[Running, Running]]:
        """Two instances, of which the first is to be burdened with so many clients.

        That is the one that is started first in every other round.
        """
        allow_files(clients + ROOM)
        with self.start(options) as one, self.start(options) as other:
            yield (one, other) if self.number % 2 else (other, one)

    def crowd(
        self, kind: str, running: Running, count: int, *, renew: bool = False
    ) -> AdverseClients:
        """So many clients, connected until the block ends."""
        return AdverseClients(kind, running.port, count, renew=renew, core=self.lab.client_core)

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
        self.figure(f"{what} closed first after", state.first, "seconds")
        self.figure(f"{what} closed in the median after", state.median, "seconds")
        self.figure(f"{what} closed last after", state.last, "seconds")
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
