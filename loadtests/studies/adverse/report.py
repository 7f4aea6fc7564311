"""Promises about dead, slow and large clients, beside measured figures."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from pathlib import Path

from loadtests.programs import ROOT
from loadtests.reporting import ending, promises, provenance
from loadtests.reporting.figures import plot
from loadtests.reporting.model import MIB
from loadtests.reporting.promises import Places, Promise
from loadtests.servers.registry import SERVERS
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies.adverse.experiments import DRIPPING, FULL, STALLED, burdened, dead_burden
from loadtests.studies.bench import scenarios

LATE = 1.0
"""Seconds after its deadline at which a connection must be closed at last."""


def _mode(server: str) -> str:
    return server.removeprefix("poorhttp ")


def _ours(results: Results) -> list[str]:
    """Our modes, as they are called without a burden."""
    measured = {record["server"] for record in [*results.samples, *results.figures]}
    return [server.name for server in SERVERS if server.ours and server.name in measured]


def _ratios(experiment: str, burden: str, field: str) -> Callable[[Results], Places]:
    def read(results: Results) -> Places:
        chosen = results.experiment(experiment)
        return {
            f"{_mode(server)}, {scenarios.heading(scenario)}": found
            for scenario in chosen.scenarios()
            for server in _ours(results)
            if (found := chosen.ratio(scenario, burdened(server, burden), server, field))
        }

    return read


def _medians(experiment: str, burden: str, field: str) -> Callable[[Results], Places]:
    """Median against median over all rounds, not round by round: p99 has two states on a shared
    machine, depending on whether another guest came between, and a ratio of two rounds is luck.
    The lowest and the highest are those of single documents."""

    def read(results: Results) -> Places:
        chosen = results.experiment(experiment)
        places = {}
        for server in _ours(results):
            both: tuple[list[float], list[float]] = ([], [])
            ratios = []
            for scenario in chosen.scenarios():
                with_it = chosen.rounds(scenario, burdened(server, burden), field).values()
                without = chosen.rounds(scenario, server, field).values()
                if with_it and without:
                    both[0].extend(with_it)
                    both[1].extend(without)
                    ratios.append(statistics.median(with_it) / statistics.median(without))
            if ratios:
                found = statistics.median(both[0]) / statistics.median(both[1])
                places[_mode(server)] = Spread(found, min(ratios), max(ratios), len(both[0]))
        return places

    return read


def _figures(experiment: str, name: str, scale: float = 1) -> Callable[[Results], Places]:
    def read(results: Results) -> Places:
        found = {
            server: [
                figure["value"] * scale
                for figure in results.figures
                if (figure["experiment"], figure["server"], figure["name"])
                == (experiment, server, name)
            ]
            for server in _ours(results)
        }
        return {_mode(server): one for server, all_ in found.items() if (one := spread(all_))}

    return read


def _closed(experiment: str, what: str, words: str) -> Promise:
    return Promise(
        experiment,
        f"share of {words} that were closed",
        1,
        "×",
        _figures(experiment, f"{what} closed"),
        at_least=True,
    )


def _last(experiment: str, what: str, limit: float) -> Promise:
    return Promise(
        experiment,
        "the last of them was closed after",
        limit,
        "s",
        _figures(experiment, f"{what} closed last after"),
    )


_DEAD = dead_burden(FULL.dead)
_HEADS = f"{FULL.heads:,} clients that send an octet of a head each second"
_BODIES = f"{FULL.bodies:,} clients that send an octet of a body each second"
_STALLED = f"{FULL.stalled:,} clients that do not read an answer of 10 MB"

PROMISES = (
    Promise(
        "dead",
        f"requests/s beside {FULL.dead:,} dead connections, against none",
        0.97,
        "×",
        _ratios("dead", _DEAD, "rate"),
        at_least=True,
    ),
    Promise(
        "dead",
        f"p99 beside {FULL.dead:,} dead connections, against none, all documents",
        1.1,
        "×",
        _medians("dead", _DEAD, "p99_us"),
    ),
    Promise(
        "drip",
        f"requests/s beside {_HEADS} and {_BODIES}, against none",
        0.95,
        "×",
        _ratios("drip", DRIPPING, "rate"),
        at_least=True,
    ),
    _closed("drip", "heads", _HEADS),
    _last("drip", "heads", FULL.header_timeout + LATE),
    _closed("drip", "bodies", _BODIES),
    _last("drip", "bodies", FULL.body_timeout + LATE),
    Promise(
        "stalled",
        f"requests/s beside {_STALLED}, against none",
        0.95,
        "×",
        _ratios("stalled", STALLED, "rate"),
        at_least=True,
    ),
    Promise(
        "stalled",
        f"most memory with {_STALLED}",
        1024,
        "MiB",
        _figures("stalled", "rss", MIB),
        places=0,
    ),
    _closed("stalled", "they", _STALLED),
    # Its silence begins when it could take no more, perhaps after waiting for others.
    _last("stalled", "they", FULL.write_timeout * 1.25),
    *(
        Promise(
            "transfers",
            f"growth of memory during {FULL.transfers} {what} of 1 GiB at once",
            16,
            "MiB",
            _figures("transfers", f"{what}, growth of rss", MIB),
            places=1,
        )
        for what in ("uploads", "downloads")
    ),
)


def _times(found: Spread | None) -> str:
    return f"{found.median:.3f} ({found.low:.3f} – {found.high:.3f})" if found else ""


def comparison(results: Results, experiment: str) -> list[str]:
    """All ratios of an experiment: every server and document, with the burden against without."""
    chosen = results.experiment(experiment)
    lines = [
        "| server | document | requests/s × | p99 × | CPU per request × | p99 ms, free | of |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for scenario in chosen.scenarios():
        for name in chosen.servers(scenario):
            server, _, burden = name.partition(", ")
            if not burden:
                continue
            rate, p99, cpu = (
                chosen.ratio(scenario, name, server, field)
                for field in ("rate", "p99_us", "cpu_us")
            )
            free = chosen.median(scenario, server, "p99_us")
            lines.append(
                f"| {name} | {scenarios.heading(scenario)} | {_times(rate)} | {_times(p99)} "
                f"| {_times(cpu)} | {free.median / 1000 if free else 0:.2f} "
                f"| {rate.rounds if rate else 0} |"
            )
    return lines if len(lines) > 2 else []


def figures(results: Results, experiment: str) -> list[str]:
    """The single figures of an experiment as a table."""
    chosen = results.experiment(experiment)
    lines = ["| server | figure | median (lowest – highest) |", "|---|---|--:|"]
    keys = dict.fromkeys((f["server"], f["name"], f["unit"]) for f in chosen.figures)
    for server, name, unit in keys:
        found = chosen.figure(experiment, server, name)
        assert found is not None
        scale, shown = (MIB, unit.replace("bytes", "MiB")) if "bytes" in unit else (1.0, unit)
        places = 1 if "bytes" in unit else 2
        median, low, high = (f"{value * scale:,.{places}f}" for value in found[:3])
        words = name.replace("rss", "RSS").replace("pss", "PSS").replace("uss", "USS")
        lines.append(
            f"| {server} | {words} | {median} {shown} ({low} – {high}) |".replace("  ", " ")
        )
    return lines if len(lines) > 2 else []


TITLES = {
    "dead": "Dead connections",
    "growing": "The same by their number",
    "drip": "Clients that drip",
    "stalled": "Clients that do not read",
    "transfers": "Large transfers",
}


def summary(results: Results) -> list[str]:
    """All that was measured, a section for each experiment."""
    lines = []
    for experiment, title in TITLES.items():
        tables = (comparison(results, experiment), figures(results, experiment))
        if any(tables):
            lines += ["", f"### {title}"]
        for found in tables:
            lines += ["", *found] if found else []
    return lines


def plots(results: Results) -> dict[str, tuple[str, str]]:
    """File name to alternative text and SVG."""
    chosen = results.experiment("growing")
    counts = sorted(
        {
            int(burden.split()[0].replace(",", ""))
            for sample in chosen.samples
            if (burden := sample["server"].partition(", ")[2])
        }
    )
    if not counts:
        return {}
    scenario = chosen.scenarios()[0]
    measured = {name.partition(", ")[0] for name in chosen.servers(scenario)}
    run = results.runs[-1]
    caption = (
        f"{provenance.machine_words(run['machine'])}; {run['run'][:10]}. Each point: two instances "
        "of one server, one with the dead connections and one without, measured in turns; median "
        "of the ratios of the rounds, whiskers from lowest to highest."
    )
    made = {}
    for field, limit, what in (("rate", 0.97, "requests per second"), ("p99_us", 1.1, "p99")):
        rows = [
            plot.Series(
                server.name,
                server.colour,
                [
                    Spread(1, 1, 1, 1),
                    *(
                        chosen.ratio(
                            scenario, burdened(server.name, dead_burden(count)), server.name, field
                        )
                        for count in counts
                    ),
                ],
                server.ours,
            )
            for server in SERVERS
            if server.name in measured
        ]
        title = f"Dead connections and the {what} of live clients"
        drawn = plot.lines(
            title,
            f"{scenarios.heading(scenario)} · against none · dashed: promised",
            "dead connections, half of them in the middle of a head",
            [0, *counts],
            rows,
            caption,
            limit,
        )
        made[f"dead-{field.removesuffix('_us')}.svg"] = (title, drawn)
    return made


def markdown(results: Results, folder: Path) -> str:
    """The sections for the page. Writes the plots into `folder`, and links them as from docs/."""
    lines = ["## Promised and measured", "", *promises.lines(results, PROMISES, "endure")]
    drawn = plots(results)
    if drawn:
        folder.mkdir(parents=True, exist_ok=True)
        lines.append("")
        for name, (text, svg) in drawn.items():
            (folder / name).write_text(svg, encoding="utf-8")
            link = os.path.relpath(folder.resolve() / name, ROOT / "docs")
            lines += [f"![{text}]({link})", ""]
        lines.pop()
    lines += [*summary(results), *ending.lost(results)]
    run = results.runs[-1]
    runs = [f"`{record['command']}` ({record['run'][:10]})" for record in results.runs]
    lines += [
        "",
        "## How it was measured",
        "",
        f"- Machine: {provenance.machine_words(run['machine'])}.",
        *([f"- {ending.disturbance(results)}"] if results.samples else []),
        *METHOD.splitlines(),
        "",
        f"Runs: {'; '.join(runs)}.",
    ]
    return "\n".join(lines) + "\n"


METHOD = """\
- Two instances of a server are started together on one core, and one gets the burden. Each is
  measured while the other has nothing to do, in turns; ratios are formed within a round, then made
  a median. wrk with 64 connections and the clients of the burden share the other core.
- Dead connections come from many addresses of 127.0.0.0/8. Half of them say nothing, half stop in
  the middle of a head. The server is told to be patient with them (`--header-timeout 3600`). Before
  and after each pair of samples all must be there, for them and for the server; else the pair does
  not count.
- Who drips and is closed connects again at once. Times count from the first octet to the end.
- Who does not read has a receive buffer of 4 KiB, or the usual one, in turns. Times
  count from its request, which may have waited for others; it is measured beside live clients when
  all answers have begun and the server has come to rest.
- Transfers are checked by length and checksum; memory is looked at ten times a second. Memory is
  RSS, which counts a page shared by several processes once for each.
"""
