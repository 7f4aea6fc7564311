"""The study `resources`: use of each server, sampled while five pages are asked for in a loop."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from loadtests.clients.native import fetch
from loadtests.errors import LabError, ServerFailure
from loadtests.measure.sampler import Look, Sampler
from loadtests.servers.pages import TARGETS, running
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import FIVE_PAGES
from loadtests.servers.running import Running
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step
from loadtests.studies.remote import LAN, apart
from loadtests.studies.resources import report
from loadtests.studies.study import FULL, QUICK, Scale, Study

NAME = "resources"
REQUESTS = 1_000
"""Of each page one after the other, and then again from the first: R2, over and over."""
SECONDS = {FULL.name: 4.0, QUICK.name: 2.5}
SHORTEST = 1.0
QUIET = 0.5
"""Seconds before and after, for the curves."""
EVERY = 0.25
WARMING = 20
ROUNDS = {FULL.name: 2}


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """Interleaved rounds."""
    seconds, rounds = SECONDS.get(scale.name, SHORTEST), ROUNDS.get(scale.name, 1)
    lab = replace(lab, seconds=seconds, rounds=rounds)
    return sample.rounds(lab, chosen, NAME, partial(_take, lab))


def _take(lab: Lab, number: int, server: Server) -> str:
    """On hosts of a network; where there can be none, on the machine itself."""
    with contextlib.ExitStack() as stack:
        try:
            ends = stack.enter_context(apart(LAN))
        except LabError as reason:
            ends, why = None, str(reason)
        else:
            why = ""
        one = stack.enter_context(running(server, lab.server_core, ends.server if ends else None))
        if ends:
            stack.enter_context(ends.client.inside())
        taken = _load(lab, one, "eth0" if ends else "lo")
    where = {"rate_bits": LAN.rate} if ends else {"local": why}
    sample.store(lab, NAME, server, number, scenario="R2", **where, **taken)
    return (
        f"{taken['user'] * 100:.0f} % user, {taken['system'] * 100:.0f} % system, "
        f"{taken['pss'] / 2**20:.1f} MiB, {taken['sent_packets']:,.0f} packets/s"
    )


def _load(lab: Lab, one: Running, interface: str) -> dict[str, Any]:
    visits = [[target] for target in TARGETS for _ in range(REQUESTS)]

    def ask(seconds: float, requests: int = 0) -> fetch.Traced:
        seen = fetch.traced(
            one.port,
            seconds,
            1,
            visits,
            requests=requests,
            host=one.ip,
            core=lab.client_core,
        )
        if seen.trace.failed() or not seen.load.requests:
            kinds = seen.trace.failed() or "no answer"
            raise ServerFailure(f"requests failed ({kinds}): {one.last_words()}")
        return seen

    ask(fetch.PATIENCE, WARMING)
    with Sampler(one.left, interface, EVERY) as sampler:
        time.sleep(QUIET)
        one.processes()
        before = sampler.look()
        seen = ask(lab.seconds)
        one.processes()
        after = sampler.look()
        time.sleep(QUIET)
    return {
        # The client also has to be started, and to tell.
        **used(before, after, seen.trace.seconds),
        "pss": max(look.pss for look in (*sampler.looks, after)),
        "rss": max(look.rss for look in (*sampler.looks, after)),
        "processes": max(look.processes for look in (*sampler.looks, after)),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "interface": interface,
        "requests": seen.load.requests,
        "seconds": round(seen.trace.seconds, 4),
        "client_busy": round(seen.load.busy, 3),
        "series": series(sampler.looks),
    }


def used(before: Look, after: Look, seconds: float) -> dict[str, float]:
    """Shares of a core and amounts per second, for what was done between two looks."""
    amounts = {"user": after.user - before.user, "system": after.system - before.system}
    for field, earlier, later in zip(
        before.traffic._fields, before.traffic, after.traffic, strict=True
    ):
        amounts[field] = later - earlier
    return {name: round(amount / seconds, 4) for name, amount in amounts.items()}


def series(looks: Sequence[Look]) -> dict[str, list[float]]:
    """The same between each look and the next, and the memory; `at` is in seconds."""
    found: dict[str, list[float]] = {}
    for before, after in itertools.pairwise(looks):
        seconds = after.time - before.time
        values = {
            "at": round(after.time - looks[0].time, 3),
            "pss": after.pss,
            **{name: round(value, 3) for name, value in used(before, after, seconds).items()},
        }
        for name, value in values.items():
            found.setdefault(name, []).append(value)
    return found


STUDY = Study(
    NAME,
    "processor, memory and traffic of a server over time, while one client asks",
    "Uniserve, 2005",
    lambda: FIVE_PAGES,
    plan,
    report.report,
)
