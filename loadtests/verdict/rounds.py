"""Measures two servers in interleaved rounds until the verdict is sure, or the time is over."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loadtests.clients.native import replay
from loadtests.clients.native.replay import Request
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import disturbance, histogram, resources
from loadtests.measure.waiting import longer
from loadtests.reporting.progress import Progress
from loadtests.servers.running import Running
from loadtests.stats.verdict import LOOKS, UNDECIDED, ZONE, Ratio, of_rounds
from loadtests.store import Record, Store
from loadtests.studies.bench.scenarios import HELLO
from loadtests.verdict.quantities import Quantity, differences, whole
from loadtests.verdict.sides import Side

NAME = "compare"
ORDERS = (0, 1, 1, 0), (1, 0, 0, 1)
WARM_SECONDS = 0.2
HOPELESS = 4
"""Rounds after which a run ends if others have disturbed all of them."""


@dataclass(frozen=True)
class Load:
    """`connections` that ask as soon as they are answered, or `rate` requests a second."""

    seconds: float = 0.5
    connections: int = 8
    rate: float = 0.0
    headers: Sequence[tuple[str, str]] = ()

    def words(self) -> str:
        pace = f", {self.rate:,.0f} requests/s" if self.rate else ", each as fast as it is answered"
        return f"{self.connections} connections{pace}, {self.seconds:g} s a sample"


@dataclass
class Rounds:
    """The measurement of one pair. `samples` are all that were taken, of servers of `processes`.

    It ends with a look that decides, after `most` rounds or after `limit` seconds.
    """

    sides: tuple[Side, Side]
    load: Load
    store: Store
    cores: tuple[int | None, int | None]
    quantity: Quantity
    zone: float = ZONE
    most: int = LOOKS[-1]
    limit: float = 180.0
    seed: int = 1
    samples: list[Record] = field(default_factory=list)
    seconds: float = 0.0
    processes: set[int] = field(default_factory=set)

    @property
    def names(self) -> tuple[str, str]:
        return self.sides[0].name, self.sides[1].name

    def run(self) -> str:
        """Takes the rounds, and tells why it has ended. Raises LabError if a server fails."""
        begun, coin = time.monotonic(), random.Random(self.seed)
        looks = [look for look in LOOKS if look < self.most]
        taken = 0
        with Progress(self.most, self.limit) as progress:
            while True:
                taken += 1
                self._round(taken, ORDERS[coin.random() < 0.5])
                self.seconds = time.monotonic() - begun
                known = differences(self.calm(), self.names, self.quantity.field)
                look = bool(looks) and len(known) >= looks[0]
                ratio = of_rounds(known, len(LOOKS))
                progress.step(f"round {taken}", self._told(taken, ratio))
                if look:
                    looks.pop(0)
                    if ratio.verdict(self.zone) != UNDECIDED:
                        return f"sure after {taken} rounds"
                    if ratio.is_alike(self.zone):
                        return f"alike after {taken} rounds"
                if taken >= HOPELESS and not known:
                    return f"ended early: others disturbed all of {taken} rounds"
                if taken >= self.most:
                    return f"{taken} rounds are over"
                if self.seconds * (taken + 1) / taken > self.limit:
                    return f"{self.limit:g} s are over after {taken} rounds"

    def calm(self) -> list[Record]:
        """The samples of rounds that others did not disturb."""
        disturbed = {one["round"] for one in self.samples if one["disturbed"]}
        return [one for one in self.samples if one["round"] not in disturbed]

    def _told(self, number: int, ratio: Ratio) -> str:
        """How a round went: the ratio of those that count so far, if it counts itself."""
        if not any(one["round"] == number for one in self.calm()):
            return "disturbed, does not count"
        ends = f" ({ratio.low:.3f} to {ratio.high:.3f})" if ratio.has_ends else ", no interval yet"
        return f"ratio {ratio.estimate:.3f}{ends}"

    def _round(self, number: int, order: Sequence[int]) -> None:
        for place, which in enumerate(order):
            side = self.sides[which]
            try:
                values = self._sample(side)
            except ServerFailure as failure:
                self.store.add(
                    "failure", server=side.name, what=f"round {number}", reason=str(failure)
                )
                self.samples = whole(self.samples)
                raise LabError(f"{side.name}: {failure}") from None
            about = {"experiment": NAME, "scenario": NAME, "server": side.name}
            self.store.add("sample", **about, round=number, place=place, **values)
            self.samples.append(self.store.records[-1])

    def _sample(self, side: Side) -> dict[str, Any]:
        """A server started anew, warmed up, loaded and stopped."""
        load, (server_core, client_core) = self.load, self.cores
        running = Running(side.server, HELLO, core=server_core, environ=side.environ)
        requests = [Request(running.at("/")).headed(load.headers)]
        running.request = requests[0].octets()
        with running:
            start_seconds = running.first_answer_seconds
            replay.drive(running.port, WARM_SECONDS, load.connections, requests, core=client_core)
            for seconds in longer(load.seconds):
                before, reading = resources.cpu_seconds(running.processes()), disturbance.read()
                seen = replay.drive(
                    running.port,
                    seconds,
                    load.connections,
                    requests,
                    rate=load.rate,
                    core=client_core,
                )
                after = running.processes()
                cpu = resources.cpu_seconds(after) - before
                if seen.load.requests:
                    break
            around = disturbance.since(reading, besides=cpu)
            self.processes.update(after)
            used = resources.memory(after)
        done = seen.load
        # Whoever asks as fast as they can still waits for an answer at the end.
        ignored = () if load.rate else ("timeout",)
        errors = {kind: count for kind, count in done.errors.items() if kind not in ignored}
        if not seen.answered or not done.requests or errors:
            kinds = ", ".join(f"{count} × {kind}" for kind, count in errors.items())
            raise ServerFailure(f"requests failed ({kinds or 'no answer'}): {running.last_words()}")
        return {
            "requests": done.requests,
            "seconds": done.seconds,
            "rate": round(done.rate, 1),
            "cpu_us": round(cpu / seen.answered * 1e6, 4),
            **{name: getattr(done, name) for name in ("mean_us", "p50_us", "p99_us", "max_us")},
            "times": histogram.encode(seen.times),
            "pss": used.pss,
            "processes": used.processes,
            "start_seconds": round(start_seconds, 4),
            "client_busy": round(done.busy, 3),
            "disturbed": around.disturbs,
            "machine": around.record(),
        }
