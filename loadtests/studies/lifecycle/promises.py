"""The promised figures of servers in operation, read from stored samples."""

from __future__ import annotations

import statistics
from functools import partial

from loadtests.reporting.promises import Places, Promise, all_finished, of_figures
from loadtests.servers.registry.lifecycle import GRACE, SERVERS
from loadtests.stats.results import Results, Spread
from loadtests.studies.lifecycle.experiments import CUT, KEEPERS
from loadtests.studies.lifecycle.trial import FULL

MEMORY_PEER = "gunicorn sync"
"""The one whose `preload` ours is compared with."""
OURS = {one.name: one.name.removeprefix("poorhttp ") for one in SERVERS if one.ours}


def _none_failed(experiment: str, what: str, *names: str) -> Promise:
    read = of_figures(experiment, OURS, names or ("failed",), sum)
    return Promise(experiment, f"failed, reset or wrong requests {what}", 0, "", read, places=0)


def _ended(results: Results) -> Places:
    """Of the requests that hang, the share that got 504 or was cut."""
    names = [f"hung: {path} {outcome}" for path in ("hangs", "spins") for outcome in CUT]
    places = {}
    for server, mode in OURS.items():
        if hung := sum(results.values("timeout", server, "hung")):
            share = sum(results.values("timeout", server, *names)) / hung
            places[mode] = Spread(share, share, share, round(hung))
    return places


def _memory(results: Results, name: str) -> Places:
    """PSS against the peer's, within each round."""
    return {
        mode: found
        for server, mode in OURS.items()
        if (found := results.figure_ratio("preload", server, MEMORY_PEER, name))
    }


PROMISES = (
    _none_failed("reload", f"during {FULL.reloads * FULL.each['reload']} reloads (HUP)"),
    _none_failed("upgrade", f"during {FULL.upgrades * FULL.each['upgrade']} upgrades (USR2)"),
    _none_failed("recycle", "while workers are replaced after 100 requests each"),
    Promise(
        "recycle",
        "workers that answered meanwhile",
        20,
        "",
        of_figures("recycle", OURS, ("workers that answered",), sum),
        at_least=True,
        places=0,
    ),
    _none_failed("kill", "while workers are killed, but what those had in flight"),
    _none_failed("timeout", "while 1 request in 1,000 hangs, but those"),
    Promise("timeout", "share of these that got 504 or were cut", 1, "×", _ended, at_least=True),
    _none_failed("stop", "after TERM"),
    Promise(
        "stop",
        "longest time from TERM to the end",
        GRACE,
        "s",
        of_figures("stop", OURS, ("seconds to the end",), max),
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
        of_figures("broken", OURS, ("application: said why", "configuration: said why"), min),
        at_least=True,
        places=0,
    ),
    *(
        Promise(
            "preload",
            f"PSS with 4 workers, {when}, of {MEMORY_PEER}",
            0.6,
            "×",
            partial(_memory, name=f"pss, {when}"),
        )
        for when in FULL.memory
    ),
    *(
        Promise(
            "balance",
            f"busiest of 4 workers against the mean, {KEEPERS} keep-alive connections, {what}",
            1.5,
            "×",
            of_figures("balance", OURS, (f"busiest / mean, {what}",), statistics.median),
        )
        for what in ("requests", "connections")
    ),
    all_finished(OURS),
)
