"""`advise --prove`: compares the search with a measurement of all candidates.

An application that only computes, one that waits 20 ms on a socket, and one that does both. All
candidates are measured, then the search gets a quarter of the time that this took, and in the end
what it found and the best of the grid are measured in turns: the best of many is also the luckiest.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from unittest import mock

from loadtests.advise.answer import P99, ROOM, THROUGHPUT, Budget, Wish, advise
from loadtests.advise.asking import Requests
from loadtests.advise.configuration import Configuration
from loadtests.advise.target import Target
from loadtests.advise.trial import Bench, Sample
from loadtests.clients.native.replay import Request
from loadtests.errors import LabError
from loadtests.measure.cpu_affinity import USABLE
from loadtests.programs import ROOT
from loadtests.reporting.model import Cell, Column, Section, Table
from loadtests.stats.results import Results, Spread, spread
from loadtests.store import Store
from tests.testkit.network.port import free_port

PROVE = "prove"
APPLICATIONS = {
    "computes": "loadtests/apps/prove/computes.py",
    "waits": "loadtests/apps/prove/waits.py",
    "both": "loadtests/apps/prove/both.py",
}
PART = 0.25
"""What the search gets of the time of the grid."""
CLOSE = 0.9
"""The share of the best that it has to find."""
CONNECTIONS = 64


@dataclass(frozen=True)
class Scale:
    """How long each candidate of the grid is measured, how often, and what is asked for."""

    name: str
    rounds: int
    seconds: float
    again: int
    aims: Sequence[str]
    workers: int | None = None
    threads: int | None = None


TINY = Scale("tiny", 1, 0.3, 1, (THROUGHPUT,), 2, 4)
QUICK = Scale("quick", 1, 1.0, 3, (THROUGHPUT,))
FULL = Scale("full", 2, 2.0, 5, (THROUGHPUT, P99))


@contextlib.contextmanager
def upstream() -> Iterator[None]:
    """What the applications wait for, until the block ends; they find its port in UPSTREAM."""
    port = free_port()
    program = ROOT / "loadtests" / "apps" / "prove" / "upstream.py"
    with subprocess.Popen([sys.executable, str(program), str(port)], stdout=subprocess.PIPE) as one:
        try:
            assert one.stdout is not None
            if one.stdout.readline() != b"ready\n":
                raise LabError("what the applications wait for does not start")
            with mock.patch.dict(os.environ, UPSTREAM=str(port)):
                yield
        finally:
            one.terminate()


def prove(
    keeping: Store,
    scale: Scale,
    candidates: Sequence[Configuration],
    say: Callable[[str], None],
) -> bool:
    """Measures all applications and stores the outcome; whether all is as it should be."""
    right = True
    with upstream():
        for name, file in APPLICATIONS.items():
            say(f"{name}: the grid of {len(candidates)}")
            asking = Requests([Request()], "GET /")
            bench = Bench(Target(str(ROOT / file)), asking, keeping, say, f"{PROVE} {name}")
            right &= _proved(bench, name, scale, candidates)
    return right or scale is TINY


def _proved(bench: Bench, name: str, scale: Scale, candidates: Sequence[Configuration]) -> bool:
    started = time.monotonic()
    scores = {THROUGHPUT: _grid(bench, scale, candidates, 0.0)}
    if not scores[THROUGHPUT]:
        raise LabError(f"{name}: nothing of the grid could be measured")
    rate = 0.0
    if P99 in scale.aims:
        rate = 0.7 * max(scores[THROUGHPUT].values())
        able = [one for one, v in scores[THROUGHPUT].items() if v > rate * ROOM]
        scores[P99] = _grid(bench, scale, able, rate)
    took = time.monotonic() - started
    budget = Budget(PART * took)
    bench.say(f"{name}: a search of {budget.seconds:.0f} s")
    wish = Wish([CONNECTIONS], len(USABLE), rate, 0, scale.aims)
    advice = advise(bench, candidates, wish, budget)
    right = True
    for aim in scale.aims:
        best = max(scores[aim], key=lambda one: scores[aim][one])
        answer = advice.answer(aim)
        found = answer.configuration if answer else None
        ratio = _again(bench, scale, found, best, rate if aim == P99 else 0.0) if found else None
        bench.store.add(
            "figure",
            experiment=PROVE,
            server=name,
            name=aim,
            round=0,
            value=ratio.median if ratio else 0.0,
            unit="of the best",
            low=ratio.low if ratio else 0.0,
            high=ratio.high if ratio else 0.0,
            rounds=ratio.rounds if ratio else 0,
            found=found.name if found else "nothing",
            best=best.name,
            in_grid=scores[aim].get(found, 0.0) / scores[aim][best] if found else 0.0,
            candidates=len(candidates),
            grid_seconds=round(took, 1),
            search_seconds=round(advice.seconds, 1),
        )
        right &= ratio is not None and ratio.median >= CLOSE
    return right


def _score(sample: Sample) -> float:
    return 1e6 / max(sample.p99_us, 1.0) if sample.asked else sample.rate


def _grid(
    bench: Bench, scale: Scale, candidates: Sequence[Configuration], rate: float
) -> dict[Configuration, float]:
    """The median of each candidate's rounds; those that failed are not in it."""
    values: dict[Configuration, list[float]] = {}
    for number in range(scale.rounds):
        for one in candidates:
            stage = "grid p99" if rate else "grid"
            sample = bench.take(one, scale.seconds, CONNECTIONS, stage, number, rate)
            if not sample.failure:
                values.setdefault(one, []).append(_score(sample))
    return {one: found.median for one, taken in values.items() if (found := spread(taken))}


def _again(
    bench: Bench, scale: Scale, found: Configuration, best: Configuration, rate: float
) -> Spread | None:
    if found == best:
        return Spread(1.0, 1.0, 1.0, 0)
    ratios = []
    for number in range(scale.again):
        pair = (found, best) if number % 2 else (best, found)
        scores = {}
        for one in pair:
            sample = bench.take(one, scale.seconds * 1.5, CONNECTIONS, "again", number, rate)
            if not sample.failure:
                scores[one] = _score(sample)
        if len(scores) == 2:
            ratios.append(scores[found] / scores[best])
    return spread(ratios)


def sections(results: Results) -> list[Section]:
    """What was found, beside the best."""
    figures = results.experiment(PROVE).figures
    columns = [
        *map(Column, ("application", "for", "found", "best of the grid")),
        Column("found to best", places=2),
        Column("candidates"),
        Column("grid", "s"),
        Column("search", "s"),
        Column("search to grid", places=2),
    ]
    names = ("candidates", "grid_seconds", "search_seconds")
    rows: list[list[Cell]] = [
        [
            *(f[name] for name in ("server", "name", "found", "best")),
            Spread(f["value"], f["low"], f["high"], f["rounds"]) if f["rounds"] else f["value"],
            *(f[name] for name in names),
            f["search_seconds"] / f["grid_seconds"],
        ]
        for f in figures
    ]
    if not rows:
        return []
    text = (
        "All candidates were measured; then the search had a quarter of the time that this took. "
        f"“Found to best” is from both in turns afterwards, and is to be at least {CLOSE}; for p99 "
        "it is how much lower the best one's is."
    )
    table = Table("prove", "", columns, rows, note="1.00 without a range: the same configuration.")
    return [Section("The search and the whole grid", [text], [table])]
