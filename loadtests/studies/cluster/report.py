"""Report of the experiments `cluster`, from stored records to Markdown.

Measures nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

from loadtests.reporting import ending, markdown_insert, promises
from loadtests.reporting.promises import Places, Promise
from loadtests.stats.results import Results, Spread
from loadtests.studies.cluster.experiments import CLIENTS, GONE, INTERVALS, SETUPS
from tests.testkit.balancer import FALL, INTERVAL, READ

Choose = Callable[[Iterable[float]], float]


def _values(results: Results, experiment: str, setup: str, name: str) -> list[float]:
    return [
        float(figure["value"])
        for figure in results.figures
        if (figure["experiment"], figure["server"], figure["name"]) == (experiment, setup, name)
    ]


def _over(
    experiment: str, name: str, choose: Choose, balancer: str = ""
) -> Callable[[Results], Places]:
    def read(results: Results) -> Places:
        return {
            setup.name: Spread(choose(found), min(found), max(found), len(found))
            for setup in SETUPS
            if setup.balancer.startswith(balancer)
            if (found := _values(results, experiment, setup.name, name))
        }

    return read


def _unfinished(results: Results) -> Places:
    """Rounds that came to nothing."""
    names = {setup.name for setup in SETUPS}
    if not any(figure["server"] in names for figure in results.figures):
        return {}
    failed = {f["what"]: Spread(1, 1, 1, 1) for f in results.failures if f["server"] in names}
    return failed or {"all": Spread(0, 0, 0, 1)}


PROMISES = (
    Promise(
        "rolling-reload",
        "failed requests while three hosts reload in turn (HUP)",
        0,
        "",
        _over("rolling-reload", "failed", sum),
        places=0,
    ),
    Promise(
        "rolling-replace",
        "failed requests while three hosts are replaced in turn (TERM, then a new server)",
        0,
        "",
        _over("rolling-replace", "failed", sum),
        places=0,
    ),
    Promise(
        "cut",
        "failed requests when a host is cut off, but those on the way to it and in its hands",
        0,
        "",
        _over("cut", "failed otherwise", sum),
        places=0,
    ),
    *(
        Promise(
            "cut",
            f"seconds after which nothing fails any more that is sent then: {what}",
            INTERVALS[balancer],
            "s",
            _over("cut", "last request that failed was sent after", max, balancer),
        )
        for balancer, what in (
            ("haproxy", "HAProxy, the interval of its checks times the failures it waits for"),
            ("nginx", "nginx, its limit for an attempt to connect"),
        )
    ),
    Promise("", "rounds that came to nothing", 0, "", _unfinished, places=0),
)


def table(results: Results) -> list[str]:
    """Promised beside the worst that was measured."""
    return promises.lines(results, PROMISES, "cluster")


Column = tuple[str, str, Choose, float, int]
"""Heading, figure, how rounds become one value, scale, places."""

_LOAD: tuple[Column, ...] = (
    ("requests", "requests", sum, 1, 0),
    ("failed", "failed", sum, 1, 0),
    ("longest time without any answer, ms", "gap", max, 1e3, 0),
    ("p50, ms", "p50", statistics.median, 1e3, 1),
    ("p99, ms", "p99", statistics.median, 1e3, 1),
    ("slowest quick request, ms", "longest", max, 1e3, 0),
)
_CUT: tuple[Column, ...] = (
    ("requests", "requests", sum, 1, 0),
    ("in its hands", "in its hands", sum, 1, 0),
    ("of them failed", "failed that it had in hand", sum, 1, 0),
    ("failed on the way to it", "failed on the way to it", sum, 1, 0),
    ("failed otherwise", "failed otherwise", sum, 1, 0),
    ("balancer knew after, s", "noticed after", max, 1, 2),
    ("last that failed was sent after, s", "last request that failed was sent after", max, 1, 2),
    ("last client was told after, s", "last client was told after", max, 1, 2),
    ("used again after, s", "used again after", max, 1, 2),
    ("longest time without any answer, ms", "gap", max, 1e3, 0),
    ("p99, ms", "p99", statistics.median, 1e3, 1),
)
_TABLES = {
    "rolling-reload": ("Three hosts reload in turn (HUP)", _LOAD),
    "rolling-replace": ("Three hosts are replaced in turn (TERM, then a new server)", _LOAD),
    "cut": (f"One host is cut off for {GONE:.0f} s", _CUT),
}


def comparisons(results: Results) -> list[list[str]]:
    """A section for each experiment of which something was measured."""
    sections = []
    for experiment, (title, columns) in _TABLES.items():
        lines = [f"### {title}", ""]
        lines.append(f"| | rounds | {' | '.join(column[0] for column in columns)} |")
        lines.append(f"|---|--:|{'--:|' * len(columns)}")
        measured = [s.name for s in SETUPS if _values(results, experiment, s.name, "requests")]
        for name in measured:
            cells = [str(len(_values(results, experiment, name, "requests")))]
            for _, figure, choose, scale, places in columns:
                found = _values(results, experiment, name, figure)
                cells.append(f"{choose(found) * scale:,.{places}f}" if found else "")
            lines.append(f"| {name} | {' | '.join(cells)} |")
        if measured:
            sections.append(lines)
    return sections


def summary(results: Results) -> list[str]:
    """What a person wants to see at the end of a run."""
    return ["\n".join(part) + "\n" for part in comparisons(results)]


BEGIN, END = "<!-- measured -->", "<!-- end of what was measured -->"


def insert(results: Results, page: Path) -> None:
    """Puts the tables into a page that somebody has written, between BEGIN and END.

    Raises LabError if there is no such place.
    """
    markdown_insert.insert_parts(page, BEGIN, END, (table(results),))


def markdown(results: Results) -> str:
    """The page: promises, what was measured, and how."""
    parts = [
        ["# More than one machine, measured"],
        [
            "Made by `python -m loadtests report --cluster loadtests/results/cluster.jsonl`; not",
            "edited by hand. What it means stands in [scaling.md](../scaling.md).",
        ],
        ["## Promised and measured"],
        table(results),
        ["## Measured"],
        *comparisons(results),
    ]
    return ending.page(parts + ending.ending(results, METHOD.splitlines()))


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
"""
