"""Markdown tables and SVG plots from stored records; measures nothing."""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from loadtests.clients.load import SATURATED
from loadtests.programs import ROOT
from loadtests.reporting import ending
from loadtests.reporting.figures import plot
from loadtests.reporting.provenance import bare, machine_words
from loadtests.servers.registry import FLOOR, SERVERS
from loadtests.stats.results import Results, Spread
from loadtests.studies.bench import scenarios, targets
from loadtests.studies.bench.scenarios import LOADS, SCENARIOS, Scenario

DOCUMENT = ROOT / "docs" / "benchmarks" / "serve.md"
"""The share of the machine used by others from which on a sample is disturbed."""
NEGLECTED = 0.6
"""The share of connections with a request under way below which a server let the others wait."""

_BY_NAME = {server.name: server for server in SERVERS}
_SCENARIO = {scenario.name: scenario for scenario in SCENARIOS}


def _milliseconds(microseconds: float | None) -> str:
    if microseconds is None:
        return ""
    value = microseconds / 1000
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def remarks(results: Results, scenario: str, server: str) -> str:
    """What a reader should know of a server's samples in a scenario."""
    samples = [s for s in results.samples if (s["scenario"], s["server"]) == (scenario, server)]
    told = []
    if statistics.median(s["client_busy"] for s in samples) >= SATURATED:
        told.append("client saturated")
    connections = _SCENARIO[scenario].connections if scenario in _SCENARIO else 0
    # Little's law: requests under way are their rate times their time.
    in_use = [s["rate"] * s["mean_us"] / 1e6 for s in samples if "mean_us" in s]
    waiting = connections > 1 and not told
    if in_use and waiting and statistics.median(in_use) < NEGLECTED * connections:
        told.append(f"served about {statistics.median(in_use):.0f} of the connections at a time")
    errors: dict[str, int] = {}
    for sample in samples:
        for kind, count in sample["errors"].items():
            errors[kind] = errors.get(kind, 0) + count
    told += [f"{count:,} {kind} errors" for kind, count in errors.items()]
    failed = sum(
        1
        for f in results.failures
        if f["server"] == server and f["what"].startswith(f"{scenario},")
    )
    if failed:
        told.append(f"failed {failed} time" + ("s" if failed > 1 else ""))
    return ", ".join(told)


def _ranked(results: Results, scenario: str, field: str, *, highest: bool = False) -> list[str]:
    def value(server: str) -> float:
        found = results.median(scenario, server, field)
        return found.median if found else 0.0

    return sorted(results.servers(scenario), key=value, reverse=highest)


def scenario_table(results: Results, scenario: str) -> list[str]:
    """All servers of a scenario, the cheapest first, as the lines of a Markdown table."""
    best = results.best_peer(scenario, "cpu_us")
    lines = [
        "| server | CPU µs per request (lowest – highest) | × floor | × best peer | requests/s "
        "| p50 ms | p99 ms | PSS MiB | remarks |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for server in _ranked(results, scenario, "cpu_us"):
        medians = {
            field: results.median(scenario, server, field)
            for field in ("cpu_us", "rate", "p50_us", "p99_us", "pss")
        }
        cpu = medians["cpu_us"]
        assert cpu is not None
        values = {field: found.median for field, found in medians.items() if found}
        floor = results.ratio(scenario, server, FLOOR.name, "cpu_us")
        peer = results.ratio(scenario, server, best, "cpu_us") if best else None
        known = _BY_NAME.get(server)
        name = f"**{server}**" if known and known.ours else server
        cells = [
            name,
            f"{cpu.median:.2f} ({cpu.low:.2f} – {cpu.high:.2f})",
            f"{floor.median:.2f}" if floor else "",
            f"{peer.median:.2f}" if peer else "",
            f"{values['rate']:,.0f}",
            _milliseconds(values.get("p50_us")),
            _milliseconds(values.get("p99_us")),
            f"{values['pss'] / 2**20:.1f}",
            remarks(results, scenario, server),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def summary(results: Results) -> list[str]:
    """What a person wants to see at the end of a run: a table per scenario, and single figures."""
    lines = []
    for scenario in results.scenarios():
        lines += [
            "",
            f"### {scenarios.heading(scenario)} (`{scenario}`)",
            "",
            *scenario_table(results, scenario),
        ]
    lines += figure_table(results)
    return lines


def figure_table(results: Results) -> list[str]:
    """The figures of the experiments that are not samples under load."""
    keys = dict.fromkeys((f["experiment"], f["server"], f["name"]) for f in results.figures)
    if not keys:
        return []
    lines = [
        "",
        "### Memory, idle connections, start",
        "",
        "| experiment | server | figure | median (lowest – highest) | of |",
        "|---|---|---|--:|--:|",
    ]
    for experiment, server, name in keys:
        found = results.figure(experiment, server, name)
        assert found is not None
        unit = next(
            f["unit"]
            for f in results.figures
            if (f["experiment"], f["server"], f["name"]) == (experiment, server, name)
        )
        quantity = _quantity(found, name, unit)
        lines.append(
            f"| {experiment} | {server} | {_figure_name(name)} | {quantity} | {found.rounds} |"
        )
    return lines


def _figure_name(name: str) -> str:
    return {"pss": "PSS", "uss": "USS", "rss": "RSS", "seconds": "time to the first answer"}.get(
        name, name
    )


def _quantity(found: Spread, name: str, unit: str) -> str:
    scale, shown, places = 1.0, unit, 0
    if name in ("pss", "uss", "rss"):
        scale, shown, places = 2**-20, "MiB", 1
    elif unit == "s":
        scale, shown = 1e3, "ms"
    median, low, high = (value * scale for value in found[:3])
    return f"{median:,.{places}f} {shown} ({low:,.{places}f} – {high:,.{places}f})".replace(
        "  ", " "
    )


def _caption(results: Results) -> str:
    run = results.runs[-1]
    counts = [
        found.rounds
        for scenario in results.scenarios()
        for server in results.servers(scenario)
        if (found := results.median(scenario, server, "cpu_us"))
    ]
    fewest, most = min(counts, default=0), max(counts, default=0)
    rounds = f"{most}" if fewest == most else f"{fewest} to {most}"
    return (
        f"{machine_words(run['machine'])}; {run['run'][:10]}. Server on one core, wrk on another; "
        f"median of {rounds} interleaved rounds of {run['seconds']:g} s, whiskers from lowest to "
        "highest. "
        "Absolute figures drift between machines and runs: compare within a figure."
    )


def _plot_rate(results: Results, scenario: str) -> str:
    rows = [
        plot.Series(
            server,
            _BY_NAME[server].colour,
            [results.median(scenario, server, "rate")],
            _BY_NAME[server].ours,
        )
        for server in _ranked(results, scenario, "rate", highest=True)
        if server in _BY_NAME
    ]
    saturated = [
        server
        for server in results.servers(scenario)
        if "client" in remarks(results, scenario, server)
    ]
    caption = _caption(results)
    if saturated:
        caption += " The client, not the server, was the limit for: " + ", ".join(saturated) + "."
    return plot.bars(
        "Requests per second",
        f"{scenarios.heading(scenario)} · more is better",
        "requests per second",
        rows,
        caption,
    )


def _plot_cpu(results: Results, kind: str) -> str | None:
    # One kind of mark for each load, the same in every figure.
    loads: list[Scenario] = [
        found
        for connections, depth in LOADS
        for found in SCENARIOS
        if (found.kind, found.connections, found.depth) == (kind, connections, depth)
    ]
    shown = [scenario for scenario in loads if results.servers(scenario.name)]
    if not shown:
        return None
    ranking = next((s for s in shown if (s.connections, s.depth) == (64, 1)), shown[0])
    servers = _ranked(results, ranking.name, "cpu_us")
    rows = [
        plot.Series(
            server,
            _BY_NAME[server].colour,
            [results.median(scenario.name, server, "cpu_us") for scenario in loads],
            _BY_NAME[server].ours,
        )
        for server in servers
        if server in _BY_NAME
    ]
    return plot.dots(
        "What a request costs the server",
        f"{shown[0].title} · CPU time of all its processes · less is better, logarithmic",
        "CPU µs per request",
        [scenario.load if scenario in shown else None for scenario in loads],
        rows,
        _caption(results),
    )


def plots(results: Results) -> dict[str, tuple[str, str]]:
    """File name to alternative text and SVG."""
    made = {}
    for kind in dict.fromkeys(scenario.kind for scenario in SCENARIOS if scenario.compared):
        drawn = _plot_cpu(results, kind)
        if drawn:
            made[f"cpu-{kind}.svg"] = (f"CPU time per request, {kind}", drawn)
        for scenario in (f"{kind}-64", f"{kind}-64x16"):
            if results.servers(scenario) and kind == "hello":
                made[f"rate-{scenario}.svg"] = (
                    f"Requests per second, {scenarios.heading(scenario)}",
                    _plot_rate(results, scenario),
                )
    return made


METHOD = """\
- Every server is started anew for every sample, asked whether it gives the right answer, warmed up,
  measured and stopped. Servers take turns within a round, and another one begins each round.
- The server is pinned to one core, wrk with its one thread to another. From 97 % of its core on the
  client is the limit, which the remarks say: then requests per second compare clients, and CPU per
  request still compares servers.
- CPU per request: the CPU clocks of all the server's processes over the run, divided by the answers
  that wrk counted. Accepting the connections is part of it.
- Ratios are formed within a round, then made a median.
- Latencies are wrk's, corrected by it for coordinated omission: under saturation they say how long
  the queue was. Its correction fails for pipelined requests, so these have none.
- PSS divides a page shared with other processes, also with other Python programs of the machine.
- The floor is `loadtests/servers/baseline/floor.c`: the same answer bytes from a bare epoll loop
  that parses nothing; for a POST it is told the size of the body.
- In `forking` the client shares both cores with the server, so the handler computes for about 1 ms.
"""


def _sources(results: Results) -> list[str]:
    run = results.runs[-1]
    notes = [f"- {server.name} {server.note}." for server in SERVERS if server.note]
    commands: dict[str, str] = {}
    for record in results.runs:
        commands.update(record["commands"])
    return [
        "",
        "## How it was measured",
        "",
        f"- Machine: {machine_words(run['machine'])}.",
        *([f"- {ending.disturbance(results)}"] if results.samples else []),
        *METHOD.splitlines(),
        *notes,
        "",
        *ending.provenance(results),
        "",
        "| server | command |",
        "|---|---|",
        *(f"| {name} | `{bare(line)}` |" for name, line in commands.items()),
    ]


def markdown(results: Results, folder: Path) -> str:
    """The whole page. Writes its plots into `folder`, and links them as seen from there."""
    compared = results.experiment("bench")
    lines = [
        "# Serving, measured",
        "",
        "Made by `python -m loadtests report loadtests/results/serve.jsonl`; not edited by hand.",
    ]
    promised = targets.table(results)
    if len(promised) > 2:
        lines += ["", "## Promised and measured", "", *promised]
    drawn = plots(compared)
    if drawn:
        folder.mkdir(parents=True, exist_ok=True)
        lines += ["", "## Compared", ""]
        for name, (text, svg) in drawn.items():
            (folder / name).write_text(svg, encoding="utf-8")
            link = os.path.relpath(folder.resolve() / name, DOCUMENT.parent)
            lines += [f"![{text}]({link})", ""]
        lines.pop()
    for scenario in compared.scenarios():
        lines += ["", f"### {scenarios.heading(scenario)}", "", *scenario_table(compared, scenario)]
    experiments = dict.fromkeys(
        sample["experiment"] for sample in results.samples if sample["experiment"] != "bench"
    )
    if experiments or results.figures:
        lines += ["", "## Experiments"]
    for experiment in experiments:
        chosen = results.experiment(experiment)
        for scenario in chosen.scenarios():
            lines += [
                "",
                f"### {experiment.capitalize()}: {scenarios.heading(scenario)}",
                "",
                *scenario_table(chosen, scenario),
            ]
    lines += figure_table(results)
    lines += ending.lost(results)
    lines += _sources(results)
    return "\n".join(lines) + "\n"
