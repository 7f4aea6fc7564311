"""The promised figures of servers in operation, read from stored samples."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from loadtests.reporting import promises
from loadtests.reporting.promises import Places, Promise
from loadtests.servers.registry.lifecycle import GRACE, SERVERS
from loadtests.stats.results import Results, Spread
from loadtests.studies.lifecycle.experiments import CUT, KEEPERS, TRIALS
from loadtests.studies.lifecycle.trial import FULL

MEMORY_PEER = "gunicorn sync"
"""The one whose `preload` ours is compared with."""
OURS = {one.name for one in SERVERS if one.ours}


def values(results: Results, experiment: str, server: str, *names: str) -> list[float]:
    """Figures of these names over all rounds."""
    return [
        float(figure["value"])
        for figure in results.figures
        if (figure["experiment"], figure["server"]) == (experiment, server)
        and figure["name"] in names
    ]


def measured(results: Results, experiment: str) -> list[str]:
    """Who took part in an experiment, in the order of servers."""
    seen = {f["server"] for f in results.figures if f["experiment"] == experiment}
    return [one.name for one in SERVERS if one.name in seen]


def _ours(
    experiment: str, names: Sequence[str], choose: Callable[[Iterable[float]], float]
) -> Callable[[Results], Places]:
    """Figures of our modes; `choose` makes one of the values of all rounds."""

    def read(results: Results) -> Places:
        return {
            server.removeprefix("poorhttp "): Spread(
                choose(found), min(found), max(found), len(found)
            )
            for server in measured(results, experiment)
            if server in OURS and (found := values(results, experiment, server, *names))
        }

    return read


def _none_failed(experiment: str, what: str, *names: str) -> Promise:
    read = _ours(experiment, names or ("failed",), sum)
    return Promise(experiment, f"failed, reset or wrong requests {what}", 0, "", read, places=0)


def _ended(results: Results) -> Places:
    """Of the requests that hang, the share that got 504 or was cut."""
    names = [f"hung: {path} {outcome}" for path in ("hangs", "spins") for outcome in CUT]
    places = {}
    for server in measured(results, "timeout"):
        hung = sum(values(results, "timeout", server, "hung"))
        if server in OURS and hung:
            share = sum(values(results, "timeout", server, *names)) / hung
            places[server.removeprefix("poorhttp ")] = Spread(share, share, share, round(hung))
    return places


def _memory(name: str) -> Callable[[Results], Places]:
    """PSS against the peer's, within each round."""

    def read(results: Results) -> Places:
        places = {}
        theirs = _by_round(results, MEMORY_PEER, name)
        for server in measured(results, "preload"):
            ours = _by_round(results, server, name)
            ratios = [ours[key] / theirs[key] for key in ours.keys() & theirs.keys()]
            if server in OURS and ratios:
                places[server.removeprefix("poorhttp ")] = Spread(
                    statistics.median(ratios), min(ratios), max(ratios), len(ratios)
                )
        return places

    return read


def _by_round(results: Results, server: str, name: str) -> dict[tuple[str, int], float]:
    return {
        (figure["run"], figure["round"]): figure["value"]
        for figure in results.figures
        if (figure["experiment"], figure["server"], figure["name"]) == ("preload", server, name)
    }


def _unfinished(results: Results) -> Places:
    """Rounds of ours that came to nothing."""
    if not any(measured(results, experiment) for experiment in TRIALS):
        return {}
    failed = [f for f in results.failures if f["server"] in OURS]
    places = {f["what"]: Spread(1, 1, 1, 1) for f in failed}
    return places or {"all": Spread(0, 0, 0, 1)}


PROMISES = (
    _none_failed("reload", f"during {FULL.reloads * FULL.rounds['reload']} reloads (HUP)"),
    _none_failed("upgrade", f"during {FULL.upgrades * FULL.rounds['upgrade']} upgrades (USR2)"),
    _none_failed("recycle", "while workers are replaced after 100 requests each"),
    Promise(
        "recycle",
        "workers that answered meanwhile",
        20,
        "",
        _ours("recycle", ("workers that answered",), sum),
        at_least=True,
        places=0,
    ),
    _none_failed("kill", "while workers are killed, but what those had in hand"),
    _none_failed("timeout", "while 1 request in 1,000 hangs, but those"),
    Promise("timeout", "share of these that got 504 or were cut", 1, "×", _ended, at_least=True),
    _none_failed("stop", "after TERM"),
    Promise(
        "stop",
        "longest time from TERM to the end",
        GRACE,
        "s",
        _ours("stop", ("seconds to the end",), max),
    ),
    _none_failed(
        "broken",
        "when a reload fails, of a version that cannot be imported and of a broken file",
        "application: failed",
        "configuration: failed",
    ),
    Promise(
        "broken",
        "the log says why",
        1,
        "",
        _ours("broken", ("application: said why", "configuration: said why"), min),
        at_least=True,
        places=0,
    ),
    *(
        Promise(
            "preload",
            f"PSS with 4 workers, {when}, of {MEMORY_PEER}",
            0.6,
            "×",
            _memory(f"pss, {when}"),
        )
        for when in FULL.memory
    ),
    *(
        Promise(
            "balance",
            f"busiest of 4 workers against the mean, {KEEPERS} keep-alive connections, {what}",
            1.5,
            "×",
            _ours("balance", (f"busiest / mean, {what}",), statistics.median),
        )
        for what in ("requests", "connections")
    ),
    Promise("", "rounds that came to nothing", 0, "", _unfinished, places=0),
)


def table(results: Results) -> list[str]:
    """Promised beside the worst that was measured."""
    return promises.lines(results, PROMISES, "operate")
