"""Verdicts on results of runs that were measured before: the noise between runs is estimated."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from loadtests.errors import LabError
from loadtests.measure.disturbance import Disturbance, told
from loadtests.stats.results import Results
from loadtests.stats.verdict import LOOKS, ZONE, of_rounds, of_runs
from loadtests.store import Record
from loadtests.verdict.quantities import Quantity, Verdict, client_limited, differences, whole
from loadtests.verdict.rounds import NAME

MACHINE = ("cpu", "cores", "memory", "kernel", "python")
LOAD = ("scale", "seconds", "server_core", "client_core")
APART = (
    "nothing tells how much two runs differ by themselves: measure both side by side, or at least "
    "twice each"
)


def side_by_side(results: Results, quantities: Iterable[Quantity], zone: float) -> list[Verdict]:
    """Verdicts on the two servers of the last comparison in these results."""
    samples = [one for one in results.samples if one["experiment"] == NAME]
    if not samples:
        raise LabError("there is no comparison in these results")
    own = whole([one for one in samples if one["run"] == samples[-1]["run"]])
    if not own:
        raise LabError("the comparison in these results failed in its first round")
    disturbed = {one["round"] for one in own if one["disturbed"]}
    # The first round may have begun with the second server.
    names = next(run["sides"] for run in results.runs if run["run"] == own[0]["run"])
    return judged(
        [one for one in own if one["round"] not in disturbed], own, names, quantities, zone
    )


def judged(
    calm: Sequence[Record],
    every: Sequence[Record],
    names: Sequence[str],
    quantities: Iterable[Quantity],
    zone: float = ZONE,
) -> list[Verdict]:
    """The verdict on each quantity from the rounds that nobody disturbed."""
    found = []
    quiet, rounds = ({one["round"] for one in own} for own in (calm, every))
    busy = ""
    if len(quiet) * 2 < len(rounds):
        busy = told(Disturbance(**one["machine"]) for one in every)
    left_out = [one for one in every if one["round"] not in quiet]
    for quantity in quantities:
        known = differences(calm, names, quantity.field)
        before, after = (
            statistics.median(
                one[quantity.field] for one in (calm or every) if one["server"] == name
            )
            * quantity.scale
            for name in names
        )
        reason = busy
        if quantity.client and not reason and client_limited(calm):
            reason = "the client was the limit"
        ratio = of_rounds(known, len(LOOKS))
        seen = differences(left_out, names, quantity.field) if busy else ()
        others = [math.exp(one) for one in seen]
        found.append(Verdict(quantity, ratio, before, after, reason, zone, others))
    return found


def apart(before: Results, after: Results, quantity: Quantity, zone: float) -> dict[str, Verdict]:
    """The verdict on each server that both results have, by server and scenario."""
    first, second = _series(before, quantity), _series(after, quantity)
    pairs = {key: (key, key) for key in first if key in second}
    if not pairs and len(first) == len(second) == 1:
        # One server each, whatever their names.
        [one], [other] = first, second
        pairs = {one: (one, other)} if one[:2] == other[:2] else {}
    if not pairs:
        raise LabError(
            f"the results have no server and scenario in common of which they know {quantity.name}"
        )
    reason = _incomparable(before, after)
    found = {}
    for key, (one, other) in pairs.items():
        others = [
            statistics.fmean(second[third]) - statistics.fmean(first[third])
            for third in first.keys() & second.keys() - {key}
            if third[:2] == key[:2]
        ]
        ratio = of_runs(first[one], second[other], others, len(pairs))
        old, new = (
            math.exp(statistics.median(own)) * quantity.scale for own in (first[one], second[other])
        )
        unknown = APART if math.isinf(ratio.high) else ""
        found[" · ".join(key[1:])] = Verdict(quantity, ratio, old, new, reason or unknown, zone)
    return found


def _series(results: Results, quantity: Quantity) -> dict[tuple[str, str, str], list[float]]:
    """By experiment, scenario and server the logarithm of the median of each run."""
    values: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for one in results.samples:
        if value := one.get(quantity.field):
            key = one["experiment"], str(one.get("scenario", "")), one["server"]
            values.setdefault(key, {}).setdefault(one["run"], []).append(float(value))
    return {
        key: [math.log(statistics.median(own)) for own in runs.values()]
        for key, runs in values.items()
    }


def _incomparable(before: Results, after: Results) -> str:
    """Why no winner is named whatever the figures are; empty if nothing speaks against it."""

    def all_of(results: Results, fields: Sequence[str], of: str = "") -> set[tuple[Any, ...]]:
        return {tuple((run[of] if of else run).get(one) for one in fields) for run in results.runs}

    if all_of(before, MACHINE, "machine") != all_of(after, MACHINE, "machine"):
        return "the machines are not the same"
    if all_of(before, LOAD) != all_of(after, LOAD):
        return "the loads are not the same"
    for results in (before, after):
        if words := results.disturbed():
            return words
    return ""
