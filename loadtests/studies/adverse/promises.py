"""Promises about dead, slow and large clients."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from loadtests.reporting.model import MIB
from loadtests.reporting.promises import Places, Promise
from loadtests.servers.registry import SERVERS
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies.adverse.experiments import DRIPPING, FULL, STALLED, burdened, dead_burden
from loadtests.studies.bench.scenarios import heading

LATE = 1.0
"""Seconds after its deadline at which a connection must be closed at last."""


def _mode(server: str) -> str:
    return server.removeprefix("poorhttp ")


def _ours(results: Results) -> list[str]:
    """Our modes, as they are called without a burden."""
    measured = {record["server"] for record in [*results.samples, *results.figures]}
    return [server.name for server in SERVERS if server.ours and server.name in measured]


def _ratios(experiment: str, burden: str, field: str) -> Callable[[Results], Places]:
    def read(results: Results) -> Places:
        chosen = results.experiment(experiment)
        return {
            f"{_mode(server)}, {heading(scenario)}": found
            for scenario in chosen.scenarios()
            for server in _ours(results)
            if (found := chosen.ratio(scenario, burdened(server, burden), server, field))
        }

    return read


def _medians(experiment: str, burden: str, field: str) -> Callable[[Results], Places]:
    """Median against median over all rounds, not round by round: p99 has two states on a shared
    machine, depending on whether another guest came between, and a ratio of two rounds is luck.
    The lowest and the highest are those of single documents."""

    def read(results: Results) -> Places:
        chosen = results.experiment(experiment)
        places = {}
        for server in _ours(results):
            both: tuple[list[float], list[float]] = ([], [])
            ratios = []
            for scenario in chosen.scenarios():
                with_it = chosen.rounds(scenario, burdened(server, burden), field).values()
                without = chosen.rounds(scenario, server, field).values()
                if with_it and without:
                    both[0].extend(with_it)
                    both[1].extend(without)
                    ratios.append(statistics.median(with_it) / statistics.median(without))
            if ratios:
                found = statistics.median(both[0]) / statistics.median(both[1])
                places[_mode(server)] = Spread(found, min(ratios), max(ratios), len(both[0]))
        return places

    return read


def _figures(experiment: str, name: str, scale: float = 1) -> Callable[[Results], Places]:
    def read(results: Results) -> Places:
        found = {
            server: [
                figure["value"] * scale
                for figure in results.figures
                if (figure["experiment"], figure["server"], figure["name"])
                == (experiment, server, name)
            ]
            for server in _ours(results)
        }
        return {_mode(server): one for server, all_ in found.items() if (one := spread(all_))}

    return read


def _closed(experiment: str, what: str, words: str) -> Promise:
    return Promise(
        experiment,
        f"share of {words} that were closed",
        1,
        "×",
        _figures(experiment, f"{what} closed"),
        at_least=True,
    )


def _last(experiment: str, what: str, limit: float) -> Promise:
    return Promise(
        experiment,
        "the last of them was closed after",
        limit,
        "s",
        _figures(experiment, f"{what} closed last after"),
    )


_DEAD = dead_burden(FULL.dead)
_HEADS = f"{FULL.heads:,} clients that send a byte of a head each second"
_BODIES = f"{FULL.bodies:,} clients that send a byte of a body each second"
_STALLED = f"{FULL.stalled:,} clients that do not read an answer of 10 MB"

PROMISES = (
    Promise(
        "dead",
        f"requests/s beside {FULL.dead:,} dead connections, against none",
        0.97,
        "×",
        _ratios("dead", _DEAD, "rate"),
        at_least=True,
    ),
    Promise(
        "dead",
        f"p99 beside {FULL.dead:,} dead connections, against none, all documents",
        1.1,
        "×",
        _medians("dead", _DEAD, "p99_us"),
    ),
    Promise(
        "drip",
        f"requests/s beside {_HEADS} and {_BODIES}, against none",
        0.95,
        "×",
        _ratios("drip", DRIPPING, "rate"),
        at_least=True,
    ),
    _closed("drip", "heads", _HEADS),
    _last("drip", "heads", FULL.header_timeout + LATE),
    _closed("drip", "bodies", _BODIES),
    _last("drip", "bodies", FULL.body_timeout + LATE),
    Promise(
        "stalled",
        f"requests/s beside {_STALLED}, against none",
        0.95,
        "×",
        _ratios("stalled", STALLED, "rate"),
        at_least=True,
    ),
    Promise(
        "stalled",
        f"most memory with {_STALLED}",
        1024,
        "MiB",
        _figures("stalled", "rss", MIB),
        places=0,
    ),
    _closed("stalled", "they", _STALLED),
    # Its silence begins when it could take no more, perhaps after waiting for others.
    _last("stalled", "they", FULL.write_timeout * 1.25),
    *(
        Promise(
            "transfers",
            f"growth of memory during {FULL.transfers} {what} of 1 GiB at once",
            16,
            "MiB",
            _figures("transfers", f"{what}, growth of rss", MIB),
            places=1,
        )
        for what in ("uploads", "downloads")
    ),
)
