"""The promised figures of the development server, read from stored samples."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from loadtests.reporting.promises import Places, Promise, all_finished, of_figures
from loadtests.servers.projects import KINDS, MAIN, SUB, Kind
from loadtests.servers.registry.reload import MODES, OURS, SERVE, SERVERS, ReloadingServer
from loadtests.stats.results import Results, Spread
from loadtests.studies.reload.experiments import NEVER, STALE, WHEN, everyone

SECONDS = tuple(f"seconds, {what}" for what in (MAIN, SUB))
"""The figures of the time from a save to its first answer."""


def fastest_other(results: Results, kind: Kind) -> str | None:
    """The server of others with the best median."""
    medians = {
        one.name: statistics.median(found)
        for one in SERVERS
        if not one.ours and (found := results.values(kind.name, one.name, *SECONDS))
    }
    return min(medians, key=lambda name: medians[name]) if medians else None


def _ahead(kind: Kind) -> Callable[[Results], Places]:
    """Median against median; the lowest and the highest are those of single rounds."""

    def read(results: Results) -> Places:
        other = fastest_other(results, kind)
        ours = results.values(kind.name, OURS.name, *SECONDS)
        if other is None or not ours:
            return {}
        theirs = results.values(kind.name, other, *SECONDS)
        ratio = statistics.median(theirs) / statistics.median(ours)
        rounds = results.figure_ratio(kind.name, other, OURS.name, *SECONDS)
        low, high, count = rounds[1:] if rounds else (ratio, ratio, 0)
        found = Spread(ratio, min(ratio, low), max(ratio, high), count)
        return {f"{kind.name}, to {other}": found}

    return read


def _words(servers: Iterable[ReloadingServer]) -> dict[str, str]:
    """The mode of each, or else its name."""
    return {one.name: one.name.removeprefix("poorhttp dev (").removesuffix(")") for one in servers}


def _none(
    experiment: str, what: str, name: str, servers: Sequence[ReloadingServer] = MODES
) -> Promise:
    read = of_figures(experiment, _words(servers), [name], sum)
    return Promise(experiment, what, 0, "", read, places=0)


def memory_ratio(results: Results, kind: Kind, when: str) -> Spread | None:
    """The development server's PSS to that of `serve`, within each round."""
    return results.figure_ratio("memory", OURS.name, SERVE.name, f"{kind.name}: pss {when}")


def _memory(results: Results) -> Places:
    return {
        f"{kind.name}, {when}": found
        for kind in KINDS.values()
        for when in WHEN
        if (found := memory_ratio(results, kind, when))
    }


def _time(
    kind: Kind, what: str, limit: float, choose: Callable[[Iterable[float]], float]
) -> Promise:
    read = of_figures(kind.name, {OURS.name: kind.name}, SECONDS, choose, 1e3)
    return Promise(kind.name, what, limit, "ms", read, places=0)


PROMISES = (
    *(
        promise
        for kind in KINDS.values()
        for promise in (
            _time(
                kind,
                f"from a save to its first answer, {kind.title}: median",
                60,
                statistics.median,
            ),
            _time(kind, f"{kind.title}: worst", 150, max),
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
    _none(
        "saves",
        "requests refused, reset, failed or answered by a half-loaded or an older version",
        "failed",
    ),
    _none("saves", "pages that lost a part", "pages lost"),
    _none("saves", "saves whose version was never answered", NEVER),
    _none(
        "quick",
        "bursts of saves within a second whose last one was never answered",
        STALE,
        [one for one in SERVERS if one.ours],
    ),
    Promise(
        "idle",
        "of a core while nothing changes, 5,000 files",
        0.5,
        "%",
        of_figures("idle", {OURS.name: "on"}, ["share of a core"], statistics.median, 100),
    ),
    Promise("memory", "PSS of that of `poorhttp serve`", 1.25, "×", _memory),
    all_finished({one.name for one in everyone() if one.ours}),
)
