"""The study `cluster`: three hosts behind a balancer, restarted, and one of them cut off."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from loadtests.reporting import faults
from loadtests.reporting.model import Axis, Column, Section, Table, method
from loadtests.reporting.promises import Promise, all_finished, none, of_figures
from loadtests.stats.results import Results, Spread
from loadtests.studies.cluster import experiments
from loadtests.studies.cluster.balancer import FALL, INTERVAL, READ
from loadtests.studies.cluster.experiments import CLIENTS, GONE, INTERVALS, SETUPS
from loadtests.studies.comparison import Measure, figures
from loadtests.studies.study import QUICK, TINY, Scale, Study
from loadtests.studies.tables import bars, ranked, scaled

NAMES = {setup.name: setup.name for setup in SETUPS}
LAST = "last request that failed was sent after"


def _none(experiment: str, what: str, figure: str = "failed") -> Promise:
    return none(experiment, f"failed requests {what}", NAMES, figure)


def _until(balancer: str, what: str) -> Promise:
    names = {setup.name: setup.name for setup in SETUPS if setup.balancer == balancer}
    what = f"seconds until requests sent from then on no longer fail: {what}"
    return of_figures("cut", what, INTERVALS[balancer], "s", names, (LAST,), max)


PROMISES = (
    _none("rolling-reload", "while three hosts reload in turn (HUP)"),
    _none("rolling-replace", "while three hosts are replaced in turn (TERM, then a new server)"),
    _none(
        "cut",
        "when a host is cut off, except those in flight at this host",
        "failed otherwise",
    ),
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
    return [*sections, *faults.sections("cluster", results), method(METHOD)]


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


METHOD = f"""\
- Five hosts on this machine, each a network namespace with an address of its own at a switch:
  clients, a balancer, three servers in mode `threading` (`loadtests/network/`; the balancers'
  configurations are in `loadtests/servers/configurations/`). All of them share its cores, so times
  show what happens, not how fast it could be.
- "20 ms away": each packet between the switch and a server takes 20 ms longer, each way. The delay
  is added by `tc netem`, or where the kernel has none, as here, by a process that carries the
  frames (`loadtests/network/wire.py`).
- The load is that of `python -m loadtests operate`, except that no client pipelines, and more
  clients send bodies (up to 300 KiB) and wait for answers that take up to 0.4 s:
  {sum(CLIENTS.values())} clients. Every answer is checked to the last byte. Any other status, a
  wrong answer, a reset or an end instead of an answer is a failed request. A quick request is one
  that the application answers at once; p50, p99 and slowest are those of quick requests.
- A host is restarted when the one before has answered with its new version. HAProxy requests
  `/-/ready` every {INTERVAL * 1000:.0f} ms and takes a host out after {FALL} failures;
  `drain_delay` is longer than that takes. nginx makes no health checks: a refused request goes to
  another host.
- A host is cut off by taking down its port at the switch: no peer is sent an end or a reset. "In
  its hands" are the requests that its application has at that moment; the others that had reached
  it are found in its access log, since the host continues to run. HAProxy and nginx ask another
  host where the method is safe, so fewer fail. "On the way" are the requests that reached no host
  and were sent before the balancer knew, on connections that the balancer had kept.
- A client that waits for a host that is gone gets an error when TCP keepalive has had no answer
  (HAProxy: `srvtcpka`, `tcp-ut`), or after `proxy_read_timeout` ({READ} s; nginx has nothing else).
- `docs/guides/scaling.md` explains what this means.
"""

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
