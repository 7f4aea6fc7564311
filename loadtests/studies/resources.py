"""The study `resources`: use of each server, sampled while five pages are asked for in a loop."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from loadtests.clients.native import fetch
from loadtests.errors import LabError, ServerFailure
from loadtests.measure.sampler import Look, Sampler
from loadtests.reporting.model import MIB, Axis, Column, Panels, Section
from loadtests.servers.pages import TARGETS, running
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import FIVE_PAGES
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import originals, tables
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.remote import LAN, apart
from loadtests.studies.study import Scale, Study

NAME = "resources"
REQUESTS = 1_000
"""Of each page one after the other, and then again from the first: R2, over and over."""
QUIET = 0.5
"""Seconds before and after, for the curves."""
EVERY = 0.25
WARMING = 20
DRAWN = 6
FULL_LINE = 0.9
"""The share of what a line can carry from which on it is full."""


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    return rounds(lab, NAME, chosen, _take)


def _take(trial: Trial) -> str:
    """On hosts of a network; where there can be none, on the machine itself."""
    server, lab, ends = trial.server, trial.lab, None
    where: dict[str, Any] = {"rate_bits": LAN.rate}
    with contextlib.ExitStack() as stack:
        try:
            if not server.movable:
                raise LabError(f"{server.name} is not told its {{host}}")
            ends = stack.enter_context(apart(LAN))
        except LabError as reason:
            where = {"local": str(reason)}
        host = ends["server"] if ends else None
        one = stack.enter_context(running(server, lab.server_core, host))
        if ends:
            stack.enter_context(ends["client"].inside())
        taken = _load(lab, one, "eth0" if ends else "lo")
    trial.sample(scenario="R2", **where, **taken)
    return (
        f"{taken['user'] * 100:.0f} % user, {taken['system'] * 100:.0f} % system, "
        f"{taken['pss'] * MIB:.1f} MiB, {taken['sent_packets']:,.0f} packets/s"
    )


def _load(lab: Lab, one: Running, interface: str) -> dict[str, Any]:
    visits = [[one.at(target)] for target in TARGETS for _ in range(REQUESTS)]

    def ask(seconds: float, requests: int = 0) -> fetch.Traced:
        seen = fetch.traced(
            one.port, seconds, 1, visits, requests=requests, host=one.ip, core=lab.client_core
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
    looks = (*sampler.looks, after)
    return {
        # The client also has to be started, and to tell.
        **used(before, after, seen.trace.seconds),
        **{name: max(getattr(one, name) for one in looks) for name in ("pss", "rss", "processes")},
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "interface": interface,
        "requests": seen.load.requests,
        "seconds": round(seen.trace.seconds, 4),
        "client_busy": round(seen.load.busy, 3),
        "series": series(sampler.looks),
    }


def used(before: Look, after: Look, seconds: float) -> dict[str, float]:
    """Shares of a core and amounts per second, for what was done between two looks."""
    earlier, later = (
        {"user": look.user, "system": look.system, **look.traffic._asdict()}
        for look in (before, after)
    )
    return {name: round((later[name] - earlier[name]) / seconds, 4) for name in later}


def series(looks: Sequence[Look]) -> dict[str, list[float]]:
    """The same between each look and the next, and the memory; `at` is in seconds."""
    found: dict[str, list[float]] = {}
    for before, after in itertools.pairwise(looks):
        amounts = used(before, after, after.time - before.time)
        row = {"at": after.time - looks[0].time, "pss": after.pss, **amounts}
        for name, value in row.items():
            found.setdefault(name, []).append(round(value, 3))
    return found


COST = "CPU time per request"
CPU = tables.each(lambda s: (s["user"] + s["system"]) * s["seconds"] / s["requests"])
VALUES: Sequence[tuple[Column, tables.Value]] = (
    (Column(COST, "µs", 0, 1e6), CPU),
    (Column("requests", "/s"), tables.each(lambda s: s["requests"] / s["seconds"])),
    (Column("CPU time in the server", "%", 1, 100), "user"),
    (Column("CPU time in the kernel", "%", 1, 100), "system"),
    (Column("memory (PSS)", "MiB", 1, MIB), "pss"),
    (Column("of the machine", "%", 2, 100), tables.each(lambda s: s["pss"] / s["memory"])),
    (Column("memory (RSS)", "MiB", 1, MIB), "rss"),
    (Column("processes"), "processes"),
    (
        Column("packets sent per request", "", 1),
        tables.each(lambda s: s["sent_packets"] * s["seconds"] / s["requests"]),
    ),
    (Column("packets sent", "/s"), "sent_packets"),
    (Column("sent", "Mbit/s", 2, 8e-6), "sent_octets"),
    (Column("packets received", "/s"), "received_packets"),
    (Column("received", "Mbit/s", 2, 8e-6), "received_octets"),
)
SHOWN = (
    ("user and system", "CPU", "%", ("user", "system"), 100),
    ("memory", "PSS", "MiB", ("pss",), MIB),
    ("packets sent", "Packets", "/s", ("sent_packets",), 1),
    ("bytes sent", "Sent", "Mbit/s", ("sent_octets",), 8e-6),
)
"""Panels of the curves: title, axis, unit, and the fields of the series that are added up."""


def report(results: Results) -> list[Section]:
    """What each server used, and what was in 2005."""
    samples = tables.latest(results.samples)
    then = originals.section("Resources in 2005", "resources-2005", text=tables.lost(results))
    return [*([_used(samples)] if samples else []), then]


def _used(samples: Sequence[Record]) -> Section:
    local = sorted({sample["local"] for sample in samples if "local" in sample})
    text = [
        "What does a server use while one client asks for five pages of 8.6 KB, one request after "
        "another, each on a connection of its own (R2), "
        + ("on the machine itself? " if local else f"{LAN.title}? ")
        + "The lab reads the figures of its processes and its network interface several times a "
        "second.",
        *(f"Not in a network of its own: {reason}." for reason in local),
    ]
    full = dict.fromkeys(
        sample["server"]
        for sample in samples
        if "rate_bits" in sample and sample["sent_octets"] * 8 > FULL_LINE * sample["rate_bits"]
    )
    if full:
        text.append(f"The line was full with {', '.join(full)}.")
    processor = tables.bars(
        "resources-processor",
        "CPU time of the server during R2",
        Axis("share of a core", "%", low=0),
        {
            "in the server": tables.spreads(samples, tables.each(lambda s: s["user"] * 100)),
            "in the kernel": tables.spreads(samples, tables.each(lambda s: s["system"] * 100)),
        },
        caption="A server that answers faster is asked more, and works more: see the table.",
        stacked=True,
    )
    table = tables.compared(
        "resources",
        "R2: what the server used",
        samples,
        VALUES,
        COST,
        note="Shares of one core, of all processes of the server together; memory is the highest "
        "seen. PSS divides what processes share, RSS counts it for each. Traffic is "
        + (
            "that of the loopback interface, so it is what the client sends, too, and what others "
            "do on this machine."
            if local
            else "what the server's own interface counts, heads of all layers included."
        ),
    )
    return Section(
        "What a server uses",
        [*text, *tables.saturated(samples)],
        [processor, *_curves(samples), table],
        tables.answer(COST, tables.spreads(samples, CPU, 1e6), "µs"),
    )


def _curves(samples: Sequence[Record]) -> list[Panels]:
    first = {s["server"]: s["series"] for s in reversed(samples) if s["series"]}
    drawn = [server for server in tables.by_server(samples) if server in first][:DRAWN]
    panels = [
        tables.lines(
            f"resources-{label.lower()}",
            title,
            Axis("Time", "s", low=0),
            Axis(label, unit, low=0),
            {
                server: [
                    (at, sum(of))
                    for at, *of in zip(*map(first[server].get, ("at", *fields)), strict=True)
                ]
                for server in drawn
            },
            scale,
        )
        for title, label, unit, fields, scale in SHOWN
    ]
    caption = (
        "The first round, between one reading and the next, with a pause before and after the load."
    )
    return [Panels("resources-time", "A server during R2", panels, caption=caption)] * bool(drawn)


STUDY = Study(
    NAME,
    "processor, memory and traffic of a server over time, while one client asks",
    "Uniserve, 2005",
    lambda: FIVE_PAGES,
    plan,
    report,
    given=True,
    scales=(Scale("quick", 1, 2.5), Scale("full", 2, 4.0), Scale("tiny", 1, 1.0)),
)
