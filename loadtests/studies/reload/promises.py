"""The promised figures of the development server, read from stored samples."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable

from loadtests.reporting import promises
from loadtests.reporting.promises import Places, Promise
from loadtests.servers.projects import KINDS, MAIN, SUB, Kind
from loadtests.servers.registry.reload import MODES, OURS, SERVE, SERVERS
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies.lifecycle.promises import values
from loadtests.studies.reload.experiments import NEVER, STALE, WHEN, everyone


def seconds(results: Results, kind: Kind, server: str) -> list[float]:
    """From each save to its first answer."""
    return values(results, kind.name, server, *(f"seconds, {what}" for what in (MAIN, SUB)))


def _milliseconds(
    kind: Kind, choose: Callable[[Iterable[float]], float]
) -> Callable[[Results], Places]:
    def read(results: Results) -> Places:
        found = [value * 1e3 for value in seconds(results, kind, OURS.name)]
        if not found:
            return {}
        return {kind.name: Spread(choose(found), min(found), max(found), len(found))}

    return read


def fastest_other(results: Results, kind: Kind) -> str | None:
    """Who of the others has the best median."""
    medians = {
        one.name: statistics.median(found)
        for one in SERVERS
        if not one.ours and (found := seconds(results, kind, one.name))
    }
    return min(medians, key=lambda name: medians[name]) if medians else None


def _ahead(kind: Kind) -> Callable[[Results], Places]:
    """Median against median; the lowest and the highest are those of single rounds."""

    def read(results: Results) -> Places:
        other = fastest_other(results, kind)
        if other is None or not seconds(results, kind, OURS.name):
            return {}
        by_round = [_by_round(results, kind, name) for name in (other, OURS.name)]
        ratios = [
            statistics.median(by_round[0][key]) / statistics.median(by_round[1][key])
            for key in by_round[0].keys() & by_round[1].keys()
        ]
        theirs, ours = (
            statistics.median(seconds(results, kind, name)) for name in (other, OURS.name)
        )
        ratio = theirs / ours
        low, high = min([ratio, *ratios]), max([ratio, *ratios])
        return {f"{kind.name}, to {other}": Spread(ratio, low, high, len(ratios))}

    return read


def _by_round(results: Results, kind: Kind, server: str) -> dict[tuple[str, int], list[float]]:
    found: dict[tuple[str, int], list[float]] = {}
    for figure in results.figures:
        if (figure["experiment"], figure["server"]) == (kind.name, server) and figure[
            "name"
        ].startswith("seconds, "):
            key = (figure["run"], figure["round"])
            found.setdefault(key, []).append(float(figure["value"]))
    return found


def _sums(experiment: str, name: str, servers: Iterable[str]) -> Callable[[Results], Places]:
    names = list(servers)

    def read(results: Results) -> Places:
        return {
            server.removeprefix("poorhttp dev (").removesuffix(")"): Spread(
                sum(found), min(found), max(found), len(found)
            )
            for server in names
            if (found := values(results, experiment, server, name))
        }

    return read


def _idle(results: Results) -> Places:
    found = spread(v * 100 for v in values(results, "idle", OURS.name, "share of a core"))
    return {"on": found} if found else {}


def memory_ratio(results: Results, kind: Kind, when: str) -> Spread | None:
    """The development server's PSS to that of `serve`, within each round."""
    name = f"{kind.name}: pss {when}"
    by_server: dict[str, dict[tuple[str, int], float]] = {OURS.name: {}, SERVE.name: {}}
    for figure in results.figures:
        if (figure["experiment"], figure["name"]) == ("memory", name):
            found = by_server.setdefault(figure["server"], {})
            found[figure["run"], figure["round"]] = float(figure["value"])
    ours, serve = by_server[OURS.name], by_server[SERVE.name]
    return spread(ours[key] / serve[key] for key in ours.keys() & serve.keys())


def _memory(results: Results) -> Places:
    return {
        f"{kind.name}, {when}": found
        for kind in KINDS.values()
        for when in WHEN
        if (found := memory_ratio(results, kind, when))
    }


def _unfinished(results: Results) -> Places:
    """Rounds of ours that came to nothing."""
    ours = {one.name for one in everyone() if one.ours}
    if not any(figure["server"] in ours for figure in results.figures):
        return {}
    failed = {f["what"]: Spread(1, 1, 1, 1) for f in results.failures if f["server"] in ours}
    return failed or {"all": Spread(0, 0, 0, 1)}


_MODES = [one.name for one in MODES]
PROMISES = (
    *(
        promise
        for kind in KINDS.values()
        for promise in (
            Promise(
                kind.name,
                f"from a save to its first answer, {kind.title}: median",
                60,
                "ms",
                _milliseconds(kind, statistics.median),
                places=0,
            ),
            Promise(
                kind.name,
                f"{kind.title}: worst",
                150,
                "ms",
                _milliseconds(kind, max),
                places=0,
            ),
            Promise(
                kind.name,
                f"{kind.title}: as fast as the fastest of the others",
                8,
                "×",
                _ahead(kind),
                at_least=True,
                places=1,
            ),
        )
    ),
    Promise(
        "saves",
        "requests refused, reset, failed or answered by a half-loaded or an older version",
        0,
        "",
        _sums("saves", "failed", _MODES),
        places=0,
    ),
    Promise(
        "saves", "pages that lost a part", 0, "", _sums("saves", "pages lost", _MODES), places=0
    ),
    Promise(
        "saves",
        "saves whose version was never answered",
        0,
        "",
        _sums("saves", NEVER, _MODES),
        places=0,
    ),
    Promise(
        "quick",
        "bursts of saves within a second whose last one was never answered",
        0,
        "",
        _sums("quick", STALE, [one.name for one in SERVERS if one.ours]),
        places=0,
    ),
    Promise("idle", "of a core while nothing changes, 5,000 files", 0.5, "%", _idle),
    Promise("memory", "PSS of that of `poorhttp serve`", 1.25, "×", _memory),
    Promise("", "rounds that came to nothing", 0, "", _unfinished, places=0),
)


def table(results: Results) -> list[str]:
    """Promised beside the worst that was measured."""
    return promises.lines(results, PROMISES, "develop")
