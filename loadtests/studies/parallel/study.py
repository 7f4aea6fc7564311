"""The study `parallel`: steps of a hundred new requests per second, however slow the responses are.

The load is open: all of a second's requests are made at its beginning, whether or not those before
are answered, and times count from that moment. With 600 unanswered a server counts as flooded.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from loadtests.clients.native.trace import Trace
from loadtests.servers.application import Application
from loadtests.servers.pages import application_of, with_pages
from loadtests.servers.registry import PROXIED, WSGI, Server
from loadtests.servers.running import Running
from loadtests.studies import sample
from loadtests.studies.bench.scenarios import SLOW
from loadtests.studies.engine import Lab, Step
from loadtests.studies.originals import poorhttp_2010
from loadtests.studies.originals.poorhttp_2010 import AT_ONCE, EVERY, MOST_UNANSWERED
from loadtests.studies.parallel import ramp, report
from loadtests.studies.study import FULL, QUICK, Scale, Study

NAME = report.NAME
WAITS = 0.05
"""Seconds that the slow handler waits. Pages that took the netbook 12 ms take less than one here:
a hundred of them are no load; but who does one thing at a time can wait 20 times a second."""
PATIENCE = 1.0
"""Seconds for what is unanswered at the end."""
ELSEWHERE = (
    "Apache + single",
    "Apache + 2 × single",
    "nginx + 2 × single",
    "waitress 8 threads, poll",
    "fastpysgi",
    "fastwsgi",
)
"""Those that schedule requests as others do; they are asked when they are named."""
FIRST = (
    "poorhttp single",
    "poorhttp forking 2",
    "poorhttp threading 8",
    "poorhttp gevent",
    "lighttpd + single",
    "lighttpd + 2 × single",
    "Apache mod_wsgi prefork",
    "gunicorn sync 2",
)
"""Those of 2010, and some more: all that a quick run has time for."""


@dataclass(frozen=True)
class Handler:
    """What is asked for, and for how many seconds in a full, a quick and a tiny run (0: not).

    `warm` is what is asked for before, if that is something else.
    """

    name: str
    target: str
    full: float
    quick: float
    tiny: float = 0
    warm: str = ""

    def seconds(self, scale: Scale) -> float:
        """How long it is asked for."""
        if scale.name == FULL.name:
            return self.full
        return self.quick if scale.name == QUICK.name else self.tiny

    def application(self, server: Server) -> tuple[Server, Application]:
        """The server as it is started for it, and what it serves."""
        if self.name == report.SLOW:
            return server, SLOW
        [paged] = with_pages([server])
        return paged, application_of(paged)


HANDLERS = (
    Handler("light", "/light", 1.5, 1.5, 0.5),
    Handler("heavy", "/heavy", 1.5, 0),
    # One at a time has 600 before it when the eighth second begins, two at a time at the tenth.
    Handler(report.SLOW, f"/?seconds={WAITS:g}", 9.5, 7.5, 1.5, "/?seconds=0"),
)


def servers() -> Sequence[Server]:
    """All, alone and behind a proxy."""
    ours = [server for server in WSGI if server.ours]
    others = [server for server in WSGI if not server.ours]
    return [*ours, *PROXIED, *others]


def arguments(parser: argparse.ArgumentParser) -> None:
    """For how long requests are made."""
    parser.add_argument(
        "--for",
        dest="parallel_seconds",
        type=float,
        metavar="SECONDS",
        help=f"seconds for each handler of `parallel`, as the study had {poorhttp_2010.SECONDS}",
    )
    parser.add_argument(
        "--raise",
        dest="raised",
        action="store_true",
        help="`parallel` also looks for how many requests each second flood a server",
    )


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """Every handler of every server, each on a server of its own; one round, as in 2010."""
    if not getattr(options, "servers", None):
        chosen = [server for server in chosen if server.name not in ELSEWHERE]
        if scale.name != FULL.name:
            chosen = [server for server in chosen if server.name in FIRST]
    asked = getattr(options, "parallel_seconds", None)
    steps = []
    for handler in HANDLERS:
        if seconds := handler.seconds(scale):
            take = partial(_take, lab, handler, asked or seconds)
            steps += sample.rounds(replace(lab, rounds=1), chosen, f"{NAME} {handler.name}", take)
    return steps + (ramp.steps(lab, NAME, chosen) if getattr(options, "raised", False) else [])


def _take(lab: Lab, handler: Handler, seconds: float, number: int, server: Server) -> str:
    started, application = handler.application(server)
    with Running(started, application, target=handler.target, core=lab.server_core) as running:
        sample.warm(running, handler.warm or handler.target, lab.client_core)
        traced, cpu = sample.load(
            lab,
            running,
            seconds,
            AT_ONCE,
            handler.target,
            every=EVERY,
            most_unanswered=MOST_UNANSWERED,
            patience=PATIENCE,
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
        **({"waits": WAITS} if handler.name == report.SLOW else {}),
    }
    sample.store(lab, NAME, server, number, **taken)
    flooded = f", flooded after {trace.seconds:.1f} s" if trace.stopped else ""
    return f"{taken['rate']:,.0f}/s, at most {max(waiting):,} unanswered{flooded}"


def unanswered(trace: Trace) -> list[int]:
    """The most requests that were unanswered at the same time, in each second of a run."""
    changes = sorted(
        [(begun, 1) for begun in trace.intended] + [(ended, -1) for ended in trace.ended]
    )
    most: list[int] = []
    now = 0
    for time, change in changes:
        second = time // 1_000_000
        while len(most) <= second:
            most.append(now)
        now += change
        most[second] = max(most[second], now)
    return most


STUDY = Study(
    NAME,
    f"{AT_ONCE} new requests each second whatever happens, until {MOST_UNANSWERED} are unanswered",
    poorhttp_2010.SOURCE,
    servers,
    plan,
    report.report,
    arguments,
)
