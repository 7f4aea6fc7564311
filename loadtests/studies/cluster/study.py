"""The study `cluster`: three hosts behind a balancer, restarted, and one of them cut off."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from loadtests.reporting import faults
from loadtests.reporting.model import Axis, Column, Section, Table, method
from loadtests.reporting.promises import Promise, all_finished, none, of_figures
from loadtests.stats.results import Results, Spread
from loadtests.studies.cluster import balancer, experiments
from loadtests.studies.cluster.experiments import CLIENTS, GONE, INTERVALS, SETUPS
from loadtests.studies.comparison import Measure, figures
from loadtests.studies.study import QUICK, TINY, Scale, Study
from loadtests.studies.tables import bars, ranked, scaled

NAMES = {setup.name: setup.name for setup in SETUPS}
LAST = "last request that failed was sent after"


def _none(experiment: str, what: str, figure: str = "failed") -> Promise:
    return none(experiment, f"failed requests {what}", NAMES, figure)


def _until(name: str, what: str) -> Promise:
    names = {setup.name: setup.name for setup in SETUPS if setup.balancer == name}
    what = f"seconds until requests sent from then on no longer fail: {what}"
    return of_figures("cut", what, INTERVALS[name], "s", names, (LAST,), max)


PROMISES = (
    _none("rolling-reload", "while three hosts reload in turn (HUP)"),
    _none("rolling-replace", "while three hosts are replaced in turn (TERM, then a new server)"),
    _none("cut", "when a host is cut off, except those in flight at this host", "failed otherwise"),
    _until("haproxy", "HAProxy, the interval of its checks times the failures it waits for"),
    _until("nginx", "nginx, its limit for an attempt to connect"),
    all_finished(NAMES),
)


def _sum(name: str, figure: str = "") -> Measure:
    return figures(Column(name), sum, figure or name)


def _longest(name: str, figure: str = "") -> Measure:
    return figures(Column(name, "s", 2), max, figure or name)


GAP = "longest time without any answer"
COMMON = (figures(Column(GAP, "ms", 0, 1e3), max, "gap"), _sum("requests"))
P50, P99 = (figures(Column(name, "ms", 1, 1e3), statistics.median) for name in ("p50", "p99"))
SLOWEST = figures(Column("slowest quick request", "ms", 0, 1e3), max, "longest")
LOAD = (*COMMON, _sum("failed"), P50, P99, SLOWEST)
CUT = (
    *COMMON,
    _sum("in its hands"),
    _sum("of them failed", "failed that it had in hand"),
    _sum("failed on the way to it"),
    _sum("failed otherwise"),
    _longest("balancer knew after", "noticed after"),
    _longest("last that failed was sent after", LAST),
    _longest("last client was told after"),
    _longest("used again after"),
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
        _section(results, experiment, title, measures)
        for experiment, (title, measures) in KINDS.items()
        if any(results.values(experiment, name, "requests") for name in NAMES)
    ]
    clients, interval = sum(CLIENTS.values()), balancer.INTERVAL * 1000
    how = method(__file__, clients=clients, interval=interval, balancer=balancer)
    return [*sections, *faults.sections("cluster", results), how]


def _section(results: Results, experiment: str, title: str, measures: Sequence[Measure]) -> Section:
    def total(figure: str) -> str:
        return f"{sum(sum(results.values(experiment, name, figure)) for name in names):,.0f}"

    gaps = {
        name: scaled(Spread(max(found), min(found), max(found), len(found)), 1e3)
        for name in NAMES
        if (found := results.values(experiment, name, "gap"))
    }
    rounds = {name: float(len(results.values(experiment, name, "requests"))) for name in NAMES}
    names = ranked(gaps, [name for name in NAMES if rounds[name]])
    heads = [Column("balancer"), *(measure.column for measure in measures), Column("rounds")]
    rows = [
        [name, *(measure.read(results, experiment, name) for measure in measures), rounds[name]]
        for name in names
    ]
    answer = f"{total('failed')} of {total('requests')} requests failed"
    if gaps:
        longest, name = max((found.median, name) for name, found in gaps.items())
        answer += f"; the longest time without any answer was {longest:,.0f} ms ({name})"
    return Section(
        title,
        parts=[
            bars(
                f"cluster-{experiment}",
                f"{title}: {GAP}",
                Axis(GAP, "ms", low=0),
                {"": gaps},
                subtitle="The longest and the shortest of the rounds; less is better",
            ),
            Table(f"cluster-{experiment}", "", heads, rows, ranking=GAP),
        ],
        answer=f"{answer}.",
    )


STUDY = Study(
    "cluster",
    "restart three hosts behind a balancer, and cut one off, under load",
    "",
    lambda: SETUPS,
    experiments.plan,
    report,
    promises=PROMISES,
    experiments=tuple(experiments.EXPERIMENTS),
    scales=(Scale("full", 5, 0.1), QUICK, TINY),
)
