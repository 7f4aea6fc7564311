"""The study `parallel`: a hundred new requests per second, however slow the responses are."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from loadtests.clients.native.fetch import Trace
from loadtests.reporting.model import Axis, Column, Section
from loadtests.servers.pages import with_pages
from loadtests.servers.registry import ALONE_AND_PROXIED, Server
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import originals, sample, tables
from loadtests.studies.bench import scenarios
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.originals import AT_ONCE, EVERY, MOST_UNANSWERED
from loadtests.studies.study import FULL, Scale, Study

NAME = "parallel"
SLOW = "slow"
WAITS = 0.05
"""Seconds that the slow handler waits. Pages that took the netbook 12 ms take less than one here:
a hundred of them are no load; but who does one thing at a time can wait 20 times a second."""
PATIENCE = 1.0
"""Seconds for what is unanswered at the end."""
LIMITS = {"most_unanswered": MOST_UNANSWERED, "patience": PATIENCE}
ELSEWHERE = (
    *("Apache + single", "Apache + 2 × single", "nginx + 2 × single"),
    *("waitress 8 threads, poll", "fastpysgi", "fastwsgi"),
)
"""Those that schedule requests as others do; they are asked when they are named."""
FIRST = (
    *("poorhttp single", "poorhttp forking 2", "poorhttp threading 8", "poorhttp gevent"),
    *("lighttpd + single", "lighttpd + 2 × single", "Apache mod_wsgi prefork", "gunicorn sync 2"),
)
"""Those of 2010, and some more: all that a quick run has time for."""


@dataclass(frozen=True)
class Handler:
    """What is asked for, and for how many seconds by scale (none: not).

    `warm` is what is asked for before.
    """

    name: str
    title: str
    target: str
    warm: str
    seconds: Mapping[str, float]


LIGHT, HEAVY, WAITING = "/light", "/heavy", f"/?seconds={WAITS:g}"
HANDLERS = (
    Handler("light", "the light page", LIGHT, LIGHT, {"full": 1.5, "quick": 1.5, "tiny": 0.5}),
    Handler("heavy", "the heavy page", HEAVY, HEAVY, {"full": 1.5}),
    # One at a time has 600 before it when the eighth second begins, two at a time at the tenth.
    Handler(
        *(SLOW, "a handler that waits", WAITING, "/?seconds=0"),
        {"full": 9.5, "quick": 7.5, "tiny": 1.5},
    ),
)


def arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    told = f"seconds for each handler of `parallel`, as the study had {originals.SECONDS}"
    add("--for", dest="parallel_seconds", type=float, metavar="SECONDS", help=told)


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """Every handler of every server, each on a server of its own; one round, as in 2010."""
    lab = replace(lab, rounds=1)
    if not options.servers:
        full = scale.name == FULL.name
        chosen = [
            one for one in chosen if (one.name not in ELSEWHERE if full else one.name in FIRST)
        ]
    steps = []
    for handler in HANDLERS:
        if seconds := handler.seconds.get(scale.name):
            servers = with_pages(chosen)
            if handler.name == SLOW:
                servers = [o if o.own else replace(o, application=scenarios.SLOW) for o in chosen]
            seconds = options.parallel_seconds or seconds
            take = partial(_take, handler=handler, seconds=seconds)
            steps += rounds(lab, NAME, servers, take, f" {handler.name}")
    return steps


def _take(trial: Trial, handler: Handler, seconds: float) -> str:
    with trial.running(target=handler.target) as running:
        sample.warm(running, handler.warm, trial.lab.client_core)
        traced, cpu = sample.load(
            trial.lab, running, seconds, AT_ONCE, handler.target, every=EVERY, **LIMITS
        )
    trace = traced.trace
    taken = sample.described(handler.name, traced, cpu)
    waiting = unanswered(trace)
    # Whole seconds, even if the requests of the last were answered before its end.
    whole = math.ceil(seconds / EVERY) * EVERY
    lasted = trace.seconds if trace.stopped else max(whole, max(trace.ended) / 1e6)
    taken |= {
        "rate": taken["requests"] / lasted,
        "seconds": lasted,
        "server_busy": cpu / lasted,
        "asked": len(trace),
        "unanswered": waiting,
        "most_unanswered": max(waiting),
        "flooded_after": trace.seconds if trace.stopped else None,
        "limit": seconds,
        **({"waits": WAITS} if handler.name == SLOW else {}),
    }
    trial.sample(**taken)
    flooded = f", flooded after {trace.seconds:.1f} s" if trace.stopped else ""
    return f"{taken['rate']:,.0f}/s, at most {max(waiting):,} unanswered{flooded}"


def unanswered(trace: Trace) -> list[int]:
    """The most requests that were unanswered at the same time, in each second of a run.

    From when they were sent: a client that is late limits what is under way then.
    """
    changes = [(sent, 1) for sent in trace.sent] + [(ended, -1) for ended in trace.ended]
    most: list[int] = []
    now = 0
    for time, change in sorted(changes):
        second = time // 1_000_000
        most += [now] * (second + 1 - len(most))
        now += change
        most[second] = max(most[second], now)
    return most


def _moments(samples: Sequence[Record]) -> list[float]:
    """When a server was flooded, in the rounds in which it was."""
    return [one["flooded_after"] for one in samples if one["flooded_after"] is not None]


def _flooded(samples: Sequence[Record]) -> str:
    """When, or not within how long."""
    moments = _moments(samples)
    if not moments:
        return f"not in {max(one['limit'] for one in samples):g} s"
    words = f"after {min(moments):.1f} s"
    return words if len(samples) == 1 else f"{words}, {len(moments)} of {len(samples)} times"


def _late(samples: Sequence[Record]) -> int:
    """Requests that were unanswered when it was over."""
    return sum(int(one["errors"].get("timeout", 0)) for one in samples)


def _failed(samples: Sequence[Record]) -> int:
    """But for those that were unanswered when it was over."""
    return sum(sum(one["errors"].values()) for one in samples) - _late(samples)


MOST, TIME = "most unanswered requests", "time to the whole page"
WHOLE = tables.each(lambda one: 1e6 / one["mean_us"])
BEGUN = tables.each(lambda one: 1e6 / one["answer_us"])
VALUES: Sequence[tuple[Column, tables.Value]] = (
    (Column(MOST), "most_unanswered"),
    (Column(f"{MOST_UNANSWERED} unanswered"), _flooded),
    (Column("answered in the time of the test", "/s", 1), "rate"),
    (Column(TIME, "ms", 2, 1e-3), "mean_us"),
    (Column("p99 of that", "ms", 1, 1e-3), "p99_us"),
    (Column("time to its first bytes", "ms", 2, 1e-3), "answer_us"),
    (Column("whole pages that fit into a second", "", 1), WHOLE),
    (Column("first bytes that fit into a second", "", 1), BEGUN),
    (Column("server CPU per request", "µs"), "cpu_us"),
    (Column("client busy", "%", 0, 100), "client_busy"),
    (Column("unanswered at the end"), _late),
    (Column("failed requests"), _failed),
)


def report(results: Results) -> list[Section]:
    """A section for each handler, and what the study of 2010 had."""
    samples = tables.latest(results.samples)
    about = [
        f"What happens if requests arrive whether or not earlier ones are answered? {AT_ONCE} "
        f"arrive together at the beginning of each second, until {MOST_UNANSWERED} are "
        "unanswered. Times begin with the second, even if a request had to wait for its "
        "connection."
    ]
    if waits := sorted({one["waits"] for one in samples if "waits" in one}):
        about.append(
            f"The handler that waits does so for {waits[0] * 1e3:g} ms, as for a database: the "
            "pages themselves are too quick today for a hundred of them to matter, but a server "
            f"that runs one request at a time can wait no more than {1 / waits[0]:.0f} times a "
            "second."
        )
    sections: list[Section] = []
    measured = tables.by(samples, "scenario")
    for handler in HANDLERS:
        if own := measured.get(handler.name):
            sections.append(_section(handler, own, [] if sections else about))
    title = f"{AT_ONCE} new requests each second in 2010"
    return [*sections, originals.section(title, "parallel-2010")]


def _section(handler: Handler, samples: Sequence[Record], about: Sequence[str]) -> Section:
    heading = f"{AT_ONCE} new requests each second: {handler.title}"
    own = tables.by_server(samples)
    best = tables.ranked(most := tables.spreads(samples, "most_unanswered"), own)
    # The worst of the rounds.
    waiting = {one: max((taken["unanswered"] for taken in own[one]), key=max) for one in best}
    figure = tables.lines(
        f"{NAME}-{handler.name}-lines",
        heading,
        Axis("time", "s", low=0),
        Axis("most unanswered in the second", low=0),
        {one: enumerate(counts) for one, counts in waiting.items()},
        subtitle=f"a server that has {MOST_UNANSWERED} counts as flooded, and is asked no more",
        caption=f"A server that answers all of them within the second stays at {AT_ONCE} or below; "
        "after the last burst comes the time in which the rest may be answered.",
        marks=True,
    )
    flooded = [f"{one} (after {min(when):.1f} s)" for one in best if (when := _moments(own[one]))]
    kept = [one for one in best if not _moments(own[one])]
    behind = [f"{one} ({most[one].high:,.0f} at most)" for one in kept if most[one].high > AT_ONCE]
    silent = [f"{one} ({late:,})" for one in kept if (late := _late(own[one]))]
    # If all keep up, their times tell them apart.
    table = tables.compared(
        f"{NAME}-{handler.name}",
        handler.title.capitalize(),
        samples,
        VALUES,
        MOST if flooded or behind else TIME,
        note="Times are those of answered requests: requests unanswered at the end took longer.",
    )
    said = (
        f"With {handler.title}, {len(kept) - len(behind)} of {len(own)} servers answered all "
        f"requests of a second within that second; {MOST_UNANSWERED} requests were unanswered at "
        f"{', '.join(flooded) or 'no server'}."
    )
    times = tables.spreads([taken for one in kept for taken in own[one]], "mean_us", 1e-3)
    text = [*about, tables.answer("Time to a whole page", times, "ms")]
    if behind:
        text.append(
            f"Not finished with the requests of a second when the next came, but below "
            f"{MOST_UNANSWERED}: {', '.join(behind)}."
        )
    if silent:
        text.append(f"Unanswered at the end, by a server that hangs or lags: {', '.join(silent)}.")
    text += [*tables.saturated(samples), *tables.failed(samples, handler.name, "timeout")]
    curves = tables.percentiles(f"{NAME}-{handler.name}", samples, "page_times")
    return Section(heading, [one for one in text if one], [figure, *curves, table], said)


STUDY = Study(
    NAME,
    f"{AT_ONCE} new requests each second whatever happens, until {MOST_UNANSWERED} are unanswered",
    originals.POORHTTP,
    lambda: ALONE_AND_PROXIED,
    plan,
    report,
    arguments,
    given=True,
)
