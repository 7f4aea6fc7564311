"""The experiments `endure`: dead, slow, non-reading and non-sending clients, large requests.

The server under such a load stands beside a second instance of itself without it, both on the same
core and started together; each is measured while the other one has nothing to do, in turns. So what
is compared are neighbours in time. Who is started first and who is measured first changes from
round to round; after four rounds all has had its turn.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from loadtests.apps.pattern import checksum
from loadtests.clients import transfer
from loadtests.clients.adverse.handle import AdverseClients, State
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.machine import allow_files
from loadtests.measure.waiting import wait_until
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.studies.bench.scenarios import SIZED, Scenario
from loadtests.studies.engine import Lab, Step, figure, observe

MODES = ("poorhttp single", "poorhttp forking 2", "poorhttp threading 8", "poorhttp gevent")


@dataclass(frozen=True)
class Scale:
    """How many clients of each kind, how large the transfers, and after which time they end."""

    dead: int = 18_000
    fewer: tuple[int, ...] = (1_000, 5_000, 10_000)
    heads: int = 2_000
    bodies: int = 500
    stalled: int = 500
    transfers: int = 4
    size: int = 2**30
    header_timeout: float = 10
    body_timeout: float = 30
    write_timeout: float = 60
    grace: float = 5
    """Seconds after a deadline for which the lab waits for what it should have ended."""


FULL = Scale()
SMALL = Scale(
    dead=50,
    fewer=(10,),
    heads=20,
    bodies=10,
    stalled=10,
    size=3_000_001,
    header_timeout=0.5,
    body_timeout=0.7,
    write_timeout=5,
)
"""Whether it works."""
ROOM = 500
"""Descriptors beyond those of the crowd: the live clients and the files of the process."""
PATIENT = "--header-timeout 3600 --keepalive-timeout 3600"
"""The dead shall be there while we measure, and not be closed as they otherwise would."""
SETTLE_SECONDS = 60.0
SOON = 3.0
PAUSE = 0.1
"""Seconds between two looks at a server or its clients that are waited for."""


def burdened(server: str, burden: str) -> str:
    """What the server with the burden is called in the results."""
    return f"{server}, {burden}"


def dead_burden(count: int) -> str:
    """The burden of so many dead connections in words."""
    return f"{count:,} dead"


DRIPPING = "dripping"
STALLED = "not reading"


def _with(server: Server, options: str) -> Server:
    """Ours with further options; other servers as they are."""
    return replace(server, command=f"{server.command} {options}") if server.ours else server


@contextlib.contextmanager
def _pair(lab: Lab, server: Server, number: int) -> Iterator[tuple[Running, Running]]:
    """Two instances; the one that is started first is to be burdened in every other round."""
    first, second = (
        Running(server, SIZED[0].application, target=SIZED[0].target, core=lab.server_core)
        for _ in range(2)
    )
    with first, second:
        yield (first, second) if number % 2 else (second, first)


def _compare(
    lab: Lab,
    experiment: str,
    number: int,
    server: Server,
    pair: tuple[Running, Running],
    burden: str,
    scenarios: Sequence[Scenario],
    check: Callable[[], None],
) -> str:
    """Measures a burdened instance and a free one in turns, and tells the medians of the ratios.

    What `check` does not hold good before and afterwards is not stored.
    """
    loaded = replace(server, name=burdened(server.name, burden))
    ratios = []
    for position, scenario in enumerate(scenarios):
        check()
        turns = [(loaded, pair[0]), (server, pair[1])]
        if (number // 2 + position) % 2:
            turns.reverse()
        samples = {
            measured.name: observe(lab, experiment, number, measured, scenario, running)
            for measured, running in turns
        }
        check()
        for sample in samples.values():
            lab.store.add("sample", **sample)
        with_it, without = samples[loaded.name], samples[server.name]
        ratios.append([with_it[field] / without[field] for field in ("rate", "p99_us", "cpu_us")])
    rate, p99, cpu = (statistics.median(values) for values in zip(*ratios, strict=True))
    return f"rate × {rate:.3f}, p99 × {p99:.3f}, CPU × {cpu:.3f}"


def _figures(
    lab: Lab, experiment: str, number: int, server: Server, unit: str, values: Mapping[str, float]
) -> None:
    for name, value in values.items():
        figure(lab, experiment, number, server, name, value, unit)


def _settle(running: Running, files: int, clients: int) -> None:
    """Waits until the server has accepted so many clients and is done with what they sent."""

    def accepted() -> int:
        return resources.descriptors(running.processes()) - files

    if not wait_until(lambda: accepted() >= clients, SETTLE_SECONDS, PAUSE):
        raise ServerFailure(f"it has accepted {accepted():,} of {clients:,} clients")
    if not wait_until(running.is_quiet, SETTLE_SECONDS, PAUSE):
        raise ServerFailure(f"it does not come to rest with {clients:,} clients")


def _dead_step(
    lab: Lab, experiment: str, number: int, server: Server, count: int, sizes: Sequence[Scenario]
) -> Step:
    def action() -> str:
        allow_files(count + ROOM)
        with _pair(lab, _with(server, PATIENT), number) as pair:
            files = pair[0].idle_descriptors(SETTLE_SECONDS)
            with AdverseClients("dead", pair[0].port, count, core=lab.client_core) as crowd:

                def check() -> None:
                    left = crowd.state().open
                    held = resources.descriptors(pair[0].processes()) - files
                    if left < count or held < count:
                        raise ServerFailure(
                            f"of {count:,} dead connections {left:,} are left, it holds {held:,}"
                        )

                _settle(pair[0], files, count)
                return _compare(
                    lab, experiment, number, server, pair, dead_burden(count), sizes, check
                )

    what = f"{dead_burden(count)}, round {number % lab.rounds + 1}, {server.name}"
    return Step(server, what, action)


def dead(lab: Lab, scale: Scale) -> list[Step]:
    """Dead connections, half of them in the middle of a head, beside live clients."""
    return [
        _dead_step(lab, "dead", number, server, scale.dead, SIZED)
        for number in range(lab.rounds)
        for server in lab.servers
    ]


def growing(lab: Lab, scale: Scale) -> list[Step]:
    """How what live clients get depends on the number of dead connections; half the rounds."""
    # Each number has rounds of its own, for the free instance beside it is called the same.
    return [
        _dead_step(lab, "growing", number + position * lab.rounds, server, count, SIZED[1:2])
        for number in range(_fewer(lab))
        for position, count in enumerate((*scale.fewer, scale.dead))
        for server in lab.servers
    ]


def _fewer(lab: Lab) -> int:
    return (lab.rounds + 1) // 2


def _record_ends(
    lab: Lab, experiment: str, number: int, server: Server, what: str, state: State
) -> str:
    """Stores how the connections of a crowd ended, and tells it."""
    share = 1 - state.never / state.count
    _figures(lab, experiment, number, server, "×", {f"{what} closed": share})
    if state.first is None or state.median is None or state.last is None:
        return f"{what}: none closed"
    lives = {
        f"{what} closed first after": state.first,
        f"{what} closed in the median after": state.median,
        f"{what} closed last after": state.last,
    }
    _figures(lab, experiment, number, server, "seconds", lives)
    told = "/".join(sorted(state.told)) or "nothing"
    return f"{what}: {share:.0%} closed after {state.first:.2f} – {state.last:.2f} s, told {told}"


def drip(lab: Lab, scale: Scale) -> list[Step]:
    """Clients that send a byte of a head or of a body each second; who is closed comes again.

    Only the first round waits for the deadline of bodies. Half the rounds.
    """

    def step(number: int, server: Server) -> Step:
        def action() -> str:
            allow_files(scale.heads + scale.bodies + ROOM)
            options = (
                f"--header-timeout {scale.header_timeout:g} --body-timeout {scale.body_timeout:g}"
            )
            with (
                _pair(lab, _with(server, options), number) as pair,
                _renewing(lab, "body", pair[0], scale.bodies) as bodies,
                _renewing(lab, "head", pair[0], scale.heads) as heads,
            ):
                began = time.monotonic()

                def check() -> None:
                    for crowd in (heads, bodies):
                        # At the deadline all may be gone for a moment.
                        if not wait_until(lambda crowd=crowd: _is_full(crowd), SOON, PAUSE):  # type: ignore[misc]
                            raise ServerFailure(f"of {crowd.count:,} drippers many stay away")

                said = [_compare(lab, "drip", number, server, pair, DRIPPING, SIZED, check)]
                if number == 0:
                    for what, crowd, seconds in (
                        ("heads", heads, scale.header_timeout),
                        ("bodies", bodies, scale.body_timeout),
                    ):
                        left = began + seconds + scale.grace - time.monotonic()
                        state = _ended(crowd, left)
                        said.append(_record_ends(lab, "drip", number, server, what, state))
            return "; ".join(said)

        return Step(server, f"drip, round {number + 1}, {server.name}", action)

    return [step(number, server) for number in range(_fewer(lab)) for server in lab.servers]


def _is_full(crowd: AdverseClients) -> bool:
    return crowd.state().open >= 0.9 * crowd.count


def _renewing(lab: Lab, kind: str, running: Running, count: int) -> AdverseClients:
    return AdverseClients(kind, running.port, count, renew=True, core=lab.client_core)


def _ended(crowd: AdverseClients, seconds: float) -> State:
    """The state of the crowd when its first connections have all ended, or after so long."""
    wait_until(lambda: crowd.state().never == 0, seconds, PAUSE)
    return crowd.state()


def stalled(lab: Lab, scale: Scale) -> list[Step]:
    """Clients that ask for much and never read it, half of them with a small receive buffer.

    Only the first round waits for the write deadline. Half the rounds.
    """

    def step(number: int, server: Server) -> Step:
        def action() -> str:
            allow_files(scale.stalled + ROOM)
            options = f"--write-timeout {scale.write_timeout:g}"
            with _pair(lab, _with(server, options), number) as pair:
                files = pair[0].idle_descriptors(SETTLE_SECONDS)
                kernel = resources.socket_memory()
                with (
                    resources.Watch(pair[0].processes) as watch,
                    AdverseClients(
                        "stalled", pair[0].port, scale.stalled, core=lab.client_core
                    ) as crowd,
                ):
                    began = time.monotonic()
                    wait_until(lambda: crowd.state().unread >= scale.stalled, SETTLE_SECONDS, PAUSE)
                    _settle(pair[0], files, scale.stalled)
                    kernel = resources.socket_memory() - kernel

                    def check() -> None:
                        if (left := crowd.state().open) < scale.stalled:
                            raise ServerFailure(
                                f"of {scale.stalled:,} clients that do not read {left:,} are left"
                            )

                    said = [
                        _compare(lab, "stalled", number, server, pair, STALLED, SIZED[1:2], check)
                    ]
                    if number == 0:
                        # The last of them may have begun to wait when the server came to rest.
                        left = began + 2 * scale.write_timeout + scale.grace - time.monotonic()
                        state = _ended(crowd, left)
                        said.append(_record_ends(lab, "stalled", number, server, "they", state))
                        now = pair[0].idle_descriptors(SETTLE_SECONDS)
                        held = {"still held by the server": now - files}
                        _figures(lab, "stalled", number, server, "", held)
                highest = watch.highest
            _figures(
                lab,
                "stalled",
                number,
                server,
                "bytes",
                {"rss": highest.rss, "pss": highest.pss, "in the kernel": kernel},
            )
            said.append(
                f"RSS {highest.rss / 2**20:.0f} MiB, in the kernel {kernel / 2**20:.0f} MiB"
            )
            return "; ".join(said)

        return Step(server, f"stalled, round {number + 1}, {server.name}", action)

    return [step(number, server) for number in range(_fewer(lab)) for server in lab.servers]


TRANSFERS: dict[str, Callable[[int, int], None]] = {
    "uploads": transfer.upload,
    "downloads": transfer.download,
}


def transfers(lab: Lab, scale: Scale) -> list[Step]:
    """Large uploads and large generated downloads, several at once, each checked; one round."""

    def step(what: str, server: Server) -> Step:
        def action() -> str:
            scenario = SIZED[0]
            with (
                Running(
                    server, scenario.application, target=scenario.target, core=lab.server_core
                ) as running,
                ThreadPoolExecutor(scale.transfers) as clients,
            ):
                checksum(scale.size)  # Once, and not while we measure.
                before = resources.memory(running.processes())
                began = time.monotonic()
                with resources.Watch(running.processes) as watch:
                    _at_once(clients, what, running.port, scale.transfers, scale.size)
                taken = time.monotonic() - began
            growth = {
                f"{what}, growth of {name}": getattr(watch.highest, name) - getattr(before, name)
                for name in ("rss", "pss", "uss")
            }
            _figures(lab, "transfers", 0, server, "bytes", growth)
            rate = scale.transfers * scale.size / taken
            _figures(lab, "transfers", 0, server, "bytes/s", {f"{what}, together": rate})
            rss = growth[f"{what}, growth of rss"]
            return f"RSS grew by {rss / 2**20:.1f} MiB, {rate / 2**20:,.0f} MiB/s"

        return Step(server, f"{what}, {server.name}", action)

    return [step(what, server) for server in lab.servers for what in TRANSFERS]


def _at_once(clients: ThreadPoolExecutor, what: str, port: int, count: int, size: int) -> None:
    """So many transfers at once. Raises the first failure when all have ended."""
    for done in [clients.submit(TRANSFERS[what], port, size) for _ in range(count)]:
        done.result()


EXPERIMENTS: dict[str, Callable[[Lab, Scale], list[Step]]] = {
    experiment.__name__: experiment for experiment in (dead, growing, drip, stalled, transfers)
}
