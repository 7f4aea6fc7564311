"""What became of requests: failures in words, times, and each path on its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loadtests.clients.load import KINDS
from loadtests.clients.native.replay import Outcome, Request, Seen, step
from loadtests.measure import histogram

MOST = 12
"""Paths that are told one by one."""
_WORDS = {
    "connect": "no connection",
    "read": "the connection ended before the whole answer",
    "write": "the connection ended before the whole request was sent",
    "timeout": "no answer in time",
}


def counts(one: Outcome) -> bool:
    """Whether its time is told: it was answered rightly, or waited for in vain."""
    return bool(one.right) or one.what == KINDS.index("timeout")


def names(requests: Sequence[Request]) -> list[str]:
    """What each request is called in a table: without its query if there are many of them."""
    whole = [f"{one.method} {one.target}" for one in requests]
    if len({*whole}) <= MOST:
        return whole
    short = [one.partition("?")[0] for one in whole]
    often = [name for name, _ in Counter(short).most_common(MOST + 1)]
    if len(often) > MOST:
        often = often[: MOST - 1]
    return [name if name in often else "other paths" for name in short]


def told(
    seen: Seen, requests: Sequence[Request], *, closed: bool
) -> tuple[Seen, list[dict[str, Any]]]:
    """The same, where `requests` counts right answers only, and the outcome of each path.

    Connections that failed without a request count in closed loads only: elsewhere what was due
    waits for the next one.
    """
    called = names(requests)
    times, right, failed = defaultdict[str, Counter[int]](Counter), Counter[str](), Counter[str]()
    errors, known = Counter[str](), Counter[str]()
    for one in seen.outcomes:
        name = called[one.number]
        times[name][one.took] += counts(one)
        right[name] += one.right
        if not one.right:
            failed[name] += 1
            errors[f"{name}: {_why(one.what, requests[one.number].status)}"] += 1
            known[KINDS[one.what] if one.what < len(KINDS) else "status"] += 1
    if closed:
        for kind, count in seen.load.errors.items():
            if count > known[kind]:
                errors[_WORDS.get(kind, kind)] += count - known[kind]
    found = {name: histogram.record(own, own.values()) for name, own in times.items()}
    order = sorted(found, key=lambda one: (one == "other paths", -right[one] - failed[one]))
    steps = [step(name, right[name], failed[name], found[name]) for name in order]
    whole = histogram.merge(str(one["times"]) for one in steps)
    longest = max((one.took for one in seen.outcomes if counts(one)), default=0)
    load = replace(
        seen.load, requests=right.total(), errors=dict(errors.most_common()), max_us=float(longest)
    )
    return replace(seen, load=load, times=whole), steps if len(steps) > 1 else []


def _why(what: int, status: int) -> str:
    if what < len(KINDS):
        return _WORDS.get(KINDS[what], KINDS[what])
    return f"status {what}" + f" instead of {status}" * bool(status)
