"""`advise --prove`: compares the search with a measurement of all candidates.

An application that only computes, one that waits 20 ms on a socket, and one that does both. All
candidates are measured, then the search gets a quarter of the time that this took, and in the end
what it found and the best of the grid are measured in turns: the best of many is also the luckiest.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from unittest import mock

from loadtests.advise.answer import LOAD, P99, ROOM, THROUGHPUT, Wish, advise
from loadtests.advise.configuration import Configuration
from loadtests.advise.target import Target
from loadtests.advise.trial import Bench, say
from loadtests.advise.workload import from_paths
from loadtests.errors import LabError
from loadtests.measure.cpu_affinity import CPUS
from loadtests.network.port import free_port
from loadtests.programs import ROOT
from loadtests.reporting.model import Cell, Column, Section, Table
from loadtests.stats.results import Results, Spread, spread
from loadtests.store import Store

PROVE = "prove"
APPLICATIONS = ("computes", "waits", "both")
FOLDER = ROOT / "loadtests" / "apps" / "prove"
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


def prove(keeping: Store, scale: Scale, candidates: Sequence[Configuration]) -> bool:
    """Measures all applications and stores the outcome; whether all is as it should be."""
    port, right = str(free_port()), True
    command = [sys.executable, str(FOLDER / "upstream.py"), port]
    with (
        # What the applications wait for.
        mock.patch.dict(os.environ, UPSTREAM=port),
        subprocess.Popen(command, stdout=subprocess.PIPE) as upstream,
    ):
        try:
            if not upstream.stdout or upstream.stdout.readline() != b"ready\n":
                raise LabError("what the applications wait for does not start")
            for name in APPLICATIONS:
                say(f"{name}: the grid of {len(candidates)}")
                target = Target(str(FOLDER / f"{name}.py"))
                bench = Bench(target, from_paths(["/"]), keeping, f"{PROVE} {name}")
                right &= _proved(bench, name, scale, candidates)
        finally:
            upstream.terminate()
    return right or scale is TINY


def _proved(bench: Bench, name: str, scale: Scale, candidates: Sequence[Configuration]) -> bool:
    started = time.monotonic()
    rounds = range(scale.rounds)
    scores = {THROUGHPUT: _medians(bench, candidates, "grid", scale.seconds, rounds)}
    if not scores[THROUGHPUT]:
        raise LabError(f"{name}: nothing of the grid could be measured")
    rate = 0.0
    if P99 in scale.aims:
        rate = LOAD * max(scores[THROUGHPUT].values())
        able = [one for one, score in scores[THROUGHPUT].items() if score > rate * ROOM]
        scores[P99] = _medians(bench, able, "grid p99", scale.seconds, rounds, rate)
    took = time.monotonic() - started
    say(f"{name}: a search of {PART * took:.0f} s")
    wish = Wish([CONNECTIONS], CPUS, rate, 0, scale.aims)
    advice = advise(bench, candidates, wish, PART * took)
    right = True
    for aim, grid in scores.items():
        best = max(grid, key=grid.__getitem__)
        found = advice.answers[aim].configuration if aim in advice.answers else None
        ratios = []
        at = rate if aim == P99 else 0.0
        for number in range(scale.again if found and found != best else 0):
            assert found
            pair = (found, best) if number % 2 else (best, found)
            again = _medians(bench, pair, "again", scale.seconds * 1.5, [number], at)
            if len(again) == 2:
                ratios.append(again[found] / again[best])
        same = float(found == best)
        ratio = spread(ratios) or Spread(same, same, same, 0)
        bench.store.add(
            "figure",
            experiment=PROVE,
            server=name,
            name=aim,
            round=0,
            value=ratio.median,
            unit="of the best",
            low=ratio.low,
            high=ratio.high,
            rounds=ratio.rounds,
            found=found.name if found else "nothing",
            best=best.name,
            in_grid=grid.get(found, 0.0) / grid[best] if found else 0.0,
            candidates=len(candidates),
            grid_seconds=round(took, 1),
            search_seconds=round(advice.seconds, 1),
        )
        right &= ratio.median >= CLOSE
    return right


def _medians(
    bench: Bench,
    candidates: Iterable[Configuration],
    stage: str,
    seconds: float,
    rounds: Iterable[int],
    rate: float = 0.0,
) -> dict[Configuration, float]:
    """Throughput, or calm at a rate, over the rounds; failures do not count."""
    values = defaultdict[Configuration, list[float]](list)
    for number, one in product(rounds, candidates):
        sample = bench.take(one, seconds, CONNECTIONS, stage, number, rate)
        if not sample.failure:
            values[one].append(sample.calm() if rate else sample.rate)
    return {one: statistics.median(taken) for one, taken in values.items()}


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
