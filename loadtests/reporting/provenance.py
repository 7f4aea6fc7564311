"""The end of every report: place, time and method of the measurement, and what is missing."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from loadtests.clients.load import SATURATED
from loadtests.measure import disturbance
from loadtests.measure.disturbance import Disturbance
from loadtests.reporting.model import Cell, Column, Section, Table
from loadtests.stats.results import Results
from loadtests.store import Record

DISTURBED = 0.05


def bare(command: str) -> str:
    """A command without the folders of this machine."""
    return command.replace("{scripts}/", "").replace("{python}", "python")


def summary(results: Results) -> str:
    """When and on what it was measured, in a line; nothing if it was not."""
    days = sorted({str(run["run"])[:10] for run in results.runs})
    scales = dict.fromkeys(f"scale {run['scale']}" for run in results.runs if "scale" in run)
    when = " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
    return " · ".join([when, *scales, *_machines(results)])


def colophon(results: Results) -> list[Section]:
    return [*lost(results), *_method(results)]


def lost(results: Results) -> list[Section]:
    """Who was left out, what failed and what was not kept. Nothing if all went well."""
    measured = {one["server"] for one in (*results.samples, *results.figures)}
    missing = {(m["server"], m["reason"]) for m in results.missing if m["server"] not in measured}
    # By server and reason, with the steps in which it happened.
    groups: dict[tuple[str, str], list[str]] = {}
    for one in results.failures:
        groups.setdefault((one["server"], one["reason"]), []).append(one["what"])
    failures = [
        (server, len(what), reason, ", ".join(dict.fromkeys(step.split(",")[0] for step in what)))
        for (server, reason), what in groups.items()
    ]
    unkept = sorted({str(note["lost"]) for note in results.notes if "lost" in note})
    text = [f"The results were not kept in their file: {why}." for why in unkept]
    text += _interrupted(results)
    parts = []
    if missing:
        parts.append(_table("left-out", "", "left out, why", sorted(missing)))
    if failures:
        parts.append(_table("failed", "", "failed, times, why, in", failures))
        text.append(
            f"Failed measurements: {len(results.failures):,}; the run continued with the others."
        )
    return [Section("Left out and failed", text, parts)] if parts or text else []


def _table(name: str, title: str, heads: str, rows: Sequence[Sequence[Cell]]) -> Table:
    return Table(name, title, [Column(head) for head in heads.split(", ")], rows)


def _interrupted(results: Results) -> list[str]:
    """Of each run that did not come to its end, how far it came. A run may have several studies."""
    planned = {(run["run"], run.get("study")): run.get("steps", 0) for run in results.runs}
    known = (*results.done, *results.failures)
    taken = {(one["run"], one.get("study"), one["what"]) for one in known}
    told = []
    for (run, study), steps in planned.items():
        left = steps - sum(one[:2] == (run, study) for one in taken)
        if left > 0:
            name = f"{study}, " if study else ""
            told.append(
                f"The run was interrupted ({name}{run[:16].replace('T', ' ')}): {left:,} of "
                f"{steps:,} measurements were not taken."
            )
    return told


def _method(results: Results) -> list[Section]:
    if not results.runs:
        return []
    text = [f"{words}." for words in _machines(results)]
    if busy := [s["others_busy"] for s in results.samples if "others_busy" in s]:
        disturbed = sum(share > DISTURBED for share in busy)
        text.append(
            f"Other programs used {statistics.median(busy) * 100:.0f} % of the machine in the "
            f"median sample, and more than {DISTURBED * 100:.0f} % in {disturbed:,} of "
            f"{len(busy):,} samples."
        )
    if steps := [Disturbance(**one["machine"]) for one in results.done if "machine" in one]:
        rates = [rate for one in steps for rate in one.mhz if rate]
        words = disturbance.told(steps)
        clock = f"; the clock rate was {min(rates):,.0f} to {max(rates):,.0f} MHz" if rates else ""
        busy_steps = sum(one.disturbs for one in steps)
        text.append(
            f"In the median step {words}{clock}; {busy_steps:,} of {len(steps):,} steps were "
            "disturbed."
        )
        limited = {
            one["server"] for one in results.samples if one.get("client_busy", 0) >= SATURATED
        }
        if limited:
            names = ", ".join(sorted(limited))
            text.append(f"The client had no time left in samples with {names}.")
    versions: dict[str, str] = {}
    # Of one name there may be several, in runs of different studies.
    commands: dict[tuple[str, str], None] = {}
    for run in results.runs:
        versions |= run["machine"]["versions"]
        commands |= dict.fromkeys(run["commands"].items())
    rows = [_run(run, results) for run in results.runs]
    heads = "command, begun, scale, cores, rounds"
    if any(row[-1] for row in rows):
        parts = [_table("runs", "Runs", f"{heads}, seeds", rows)]
    else:
        parts = [_table("runs", "Runs", heads, [row[:-1] for row in rows])]
    if versions:
        named = (f"{name} {versions[name]}" for name in sorted(versions, key=str.lower))
        text.append(f"Versions: {', '.join(named)}.")
    if commands:
        started = [(name, f"`{bare(line)}`") for name, line in commands]
        title = "How the servers were started"
        parts.append(_table("commands", title, "server, command", started))
    return [Section("How it was measured", text, parts)]


def _machines(results: Results) -> list[str]:
    """Each machine and its client once, in the order of the runs."""
    told: dict[str, None] = {}
    for one in (run["machine"] for run in results.runs):
        kind = "virtual machine" if one["virtual"] else "machine"
        client = f", {one['client']}" if one["client"] else ""
        size = f"{one['cores']} cores, {kind}, {one['memory'] / 2**30:.1f} GiB"
        told[f"{one['cpu']}, {size}, Linux {one['kernel']}, {one['python']}{client}"] = None
    return list(told)


def _run(run: Record, results: Results) -> tuple[Cell, ...]:
    """A run of one study, which may have other studies in it with the same name of run."""
    study = run.get("study")
    own = [
        sample
        for sample in (*results.samples, *results.figures)
        if sample["run"] == run["run"] and study in (None, sample["experiment"])
    ]
    seeds = dict.fromkeys(str(sample["seed"]) for sample in own if "seed" in sample)
    rounds = len({sample["round"] for sample in own if "round" in sample})
    server, client = run.get("server_core"), run.get("client_core")
    return (
        f"`{run['command']}`",
        str(run["run"])[:16].replace("T", " "),
        " ".join(filter(None, (study, run.get("scale")))) or f"{run['seconds']:g} s a sample",
        "all" if server is None else f"server on {server}, clients on {client}",
        rounds or None,
        ", ".join(seeds),
    )
