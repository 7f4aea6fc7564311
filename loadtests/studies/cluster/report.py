"""Promises and report of the study `cluster`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from loadtests.reporting import faults
from loadtests.reporting.model import Axis, Column, Section, Table, method
from loadtests.reporting.promises import Promise, all_finished, of_figures
from loadtests.stats.results import Results, Spread
from loadtests.studies.cluster.experiments import CLIENTS, GONE, INTERVALS, SETUPS
from loadtests.studies.tables import bars, ranked, scaled
from tests.testkit.balancer import FALL, INTERVAL, READ

Choose = Callable[[Iterable[float]], float]


LAST = "last request that failed was sent after"
NAMES = {setup.name: setup.name for setup in SETUPS}


def _none(experiment: str, what: str, figure: str = "failed") -> Promise:
    read = of_figures(experiment, NAMES, (figure,), sum)
    return Promise(experiment, f"failed requests {what}", 0, "", read, places=0)


PROMISES = (
    _none("rolling-reload", "while three hosts reload in turn (HUP)"),
    _none("rolling-replace", "while three hosts are replaced in turn (TERM, then a new server)"),
    _none(
        "cut",
        "when a host is cut off, but those on the way to it and in its hands",
        "failed otherwise",
    ),
    *(
        Promise(
            "cut",
            f"seconds after which nothing fails any more that is sent then: {what}",
            INTERVALS[balancer],
            "s",
            of_figures(
                "cut",
                {setup.name: setup.name for setup in SETUPS if setup.balancer == balancer},
                (LAST,),
                max,
            ),
        )
        for balancer, what in (
            ("haproxy", "HAProxy, the interval of its checks times the failures it waits for"),
            ("nginx", "nginx, its limit for an attempt to connect"),
        )
    ),
    all_finished(NAMES),
)


@dataclass(frozen=True)
class Told:
    """A column: a figure, and how those of all rounds become one value."""

    column: Column
    figure: str
    choose: Choose


def _told(
    name: str, figure: str = "", choose: Choose = sum, unit: str = "", places: int = 0
) -> Told:
    column = Column(name, unit, places, 1e3 if unit == "ms" else 1.0)
    return Told(column, figure or name, choose)


REQUESTS, FAILED = _told("requests"), _told("failed")
GAP = _told("longest time without any answer", "gap", max, "ms")
P50, P99 = (_told(name, name, statistics.median, "ms", 1) for name in ("p50", "p99"))
LOAD = (GAP, REQUESTS, FAILED, P50, P99, _told("slowest quick request", "longest", max, "ms"))
CUT = (
    GAP,
    REQUESTS,
    _told("in its hands"),
    _told("of them failed", "failed that it had in hand"),
    _told("failed on the way to it"),
    _told("failed otherwise"),
    _told("balancer knew after", "noticed after", max, "s", 2),
    _told("last that failed was sent after", LAST, max, "s", 2),
    _told("last client was told after", "", max, "s", 2),
    _told("used again after", "", max, "s", 2),
    P99,
)
KINDS = {
    "rolling-reload": ("Three hosts reload in turn (HUP)", LOAD),
    "rolling-replace": ("Three hosts are replaced in turn (TERM, then a new server)", LOAD),
    "cut": (f"One host is cut off for {GONE:.0f} s", CUT),
}


def report(results: Results) -> list[Section]:
    """A section for each experiment of which something was measured, and how it was measured."""
    sections = [
        _section(results, experiment, title, columns)
        for experiment, (title, columns) in KINDS.items()
        if any(results.values(experiment, setup.name, "requests") for setup in SETUPS)
    ]
    return [*sections, *faults.sections("cluster", results), method(METHOD)]


def _section(results: Results, experiment: str, title: str, columns: Sequence[Told]) -> Section:
    def value(setup: str, told: Told) -> float | None:
        found = results.values(experiment, setup, told.figure)
        return told.choose(found) if found else None

    def total(told: Told) -> str:
        return f"{sum(value(name, told) or 0 for name in names):,.0f}"

    gaps = {
        setup.name: scaled(Spread(max(found), min(found), max(found), len(found)), 1e3)
        for setup in SETUPS
        if (found := results.values(experiment, setup.name, GAP.figure))
    }
    known = [s.name for s in SETUPS if results.values(experiment, s.name, REQUESTS.figure)]
    names = ranked(gaps, known)
    longest = (
        "; the longest time without any answer was {:,.0f} ms ({})".format(
            *max((found.median, name) for name, found in gaps.items())
        )
        if gaps
        else ""
    )
    return Section(
        title,
        parts=[
            bars(
                f"cluster-{experiment}",
                f"{title}: {GAP.column.name}",
                Axis(GAP.column.name, "ms", low=0),
                {"": gaps},
                subtitle="The longest and the shortest of the rounds; less is better",
            ),
            Table(
                f"cluster-{experiment}",
                "",
                [Column("balancer"), *(told.column for told in columns), Column("rounds")],
                [
                    [
                        name,
                        *(value(name, told) for told in columns),
                        float(len(results.values(experiment, name, REQUESTS.figure))),
                    ]
                    for name in names
                ],
                ranking=GAP.column.name,
            ),
        ],
        answer=f"{total(FAILED)} of {total(REQUESTS)} requests failed{longest}.",
    )


METHOD = f"""\
- Five hosts on this machine, each a network namespace with an address of its own at a switch:
  clients, a balancer, three servers in mode `threading` (`tests/testkit/network/`,
  `tests/testkit/cluster.py`; the balancers' configurations are in `tests/testkit/balancer.py`).
  All of them share its cores, so times tell what happens, not how fast it could be.
- "20 ms away": each packet between the switch and a server is on its way 20 ms longer, each way. By
  `tc netem`, or where the kernel has none, as here, by a process that carries the frames
  (`tests/testkit/network/wire.py`).
- The load is that of `python -m loadtests operate`, but that nobody pipelines, and more send bodies
  (up to 300 KiB) and wait for answers that take up to 0.4 s: {sum(CLIENTS.values())} clients. Every
  answer is checked to the last octet. Any other status, a wrong answer, a reset or an end instead
  of an answer is a failed request. A quick request is one that the application answers at once;
  p50, p99 and slowest are of those.
- A host is restarted when the one before has answered with its new version. HAProxy asks
  `/-/ready` every {INTERVAL * 1000:.0f} ms and takes a host out after {FALL} failures;
  `drain_delay` is longer than that takes. nginx does not ask: what is refused goes to another host.
- Cut off is a host whose port at the switch is down: nobody is sent an end or a reset. "In its
  hands" is what its application has at that moment; the others that had reached it are found in its
  access log, since it goes on. HAProxy and nginx ask another host where the method is safe, so
  fewer fail. "On the way" are those that reached no host and were sent before the balancer knew, on
  connections that it had kept.
- Who waits for a host that is gone is told when TCP has asked it for signs of life in vain
  (HAProxy: `srvtcpka`, `tcp-ut`), or by `proxy_read_timeout` ({READ} s; nginx has nothing else).
- `docs/scaling.md` says what it means.
"""
