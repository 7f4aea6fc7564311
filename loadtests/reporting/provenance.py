"""The end of every report: place, time and method of the measurement, and what is missing."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from loadtests.reporting.model import Cell, Column, Section, Table
from loadtests.stats.results import Results
from loadtests.store import Record

DISTURBED = 0.05


def machine_words(machine: dict[str, Any]) -> str:
    """The machine and the client in one line."""
    kind = "virtual machine" if machine["virtual"] else "machine"
    client = f", {machine['client']}" if machine["client"] else ""
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {kind}, {machine['memory'] / 2**30:.1f} GiB, "
        f"Linux {machine['kernel']}, {machine['python']}{client}"
    )


def bare(command: str) -> str:
    """A command without the folders of this machine."""
    return command.replace("{scripts}/", "").replace("{python}", "python")


def summary(results: Results) -> str:
    """When and on what it was measured, in a line; nothing if it was not."""
    days = sorted({str(run["run"])[:10] for run in results.runs})
    scales = dict.fromkeys(str(run["scale"]) for run in results.runs if "scale" in run)
    if not days:
        return ""
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return " · ".join((when, *(f"scale {scale}" for scale in scales), *_machines(results)))


def colophon(results: Results) -> list[Section]:
    """All of it."""
    return [*lost(results), *_method(results)]


def lost(results: Results) -> list[Section]:
    """Who was left out, what failed and what was not kept. Nothing if all went well."""
    measured = {s["server"] for s in results.samples} | {f["server"] for f in results.figures}
    missing = sorted({(m["server"], m["reason"]) for m in results.missing})
    missing = [(server, reason) for server, reason in missing if server not in measured]
    failures = _grouped(results.failures)
    text = [f"The results were not kept in their file: {why}." for why in _not_kept(results)]
    text += _interrupted(results)
    parts = []
    if missing:
        parts.append(Table("left-out", "", _columns("left out", "why"), missing))
    if failures:
        columns = _columns("failed", "times", "why", "in")
        parts.append(Table("failed", "", columns, failures))
        text.append(f"{len(results.failures):,} measurements failed; the rest went on.")
    return [Section("Left out and failed", text, parts)] if parts or text else []


def _columns(*names: str) -> list[Column]:
    return [Column(name) for name in names]


def _not_kept(results: Results) -> list[str]:
    return sorted({str(note["lost"]) for note in results.notes if "lost" in note})


def _interrupted(results: Results) -> list[str]:
    """Of each run that did not come to its end, how far it came. A run may have several studies."""
    planned = {(run["run"], run.get("study")): run.get("steps", 0) for run in results.runs}
    taken = {
        (one["run"], one.get("study"), one["what"]) for one in (*results.done, *results.failures)
    }
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


def _grouped(failures: Iterable[Record]) -> list[tuple[str, float, str, str]]:
    """By server and reason, with the steps in which it happened."""
    groups: dict[tuple[str, str], list[str]] = {}
    for failure in failures:
        groups.setdefault((failure["server"], failure["reason"]), []).append(failure["what"])
    return [
        (server, len(what), reason, ", ".join(dict.fromkeys(step.split(",")[0] for step in what)))
        for (server, reason), what in groups.items()
    ]


def _method(results: Results) -> list[Section]:
    if not results.runs:
        return []
    text = [f"{words}." for words in _machines(results)]
    if busy := [s["others_busy"] for s in results.samples if "others_busy" in s]:
        disturbed = sum(share > DISTURBED for share in busy)
        text.append(
            f"Others used {statistics.median(busy) * 100:.0f} % of the machine in the median "
            f"sample; {disturbed:,} of {len(busy):,} samples saw more than "
            f"{DISTURBED * 100:.0f} %."
        )
    versions: dict[str, str] = {}
    # Of one name there may be several, in runs of different studies.
    commands: dict[tuple[str, str], None] = {}
    for run in results.runs:
        versions |= run["machine"]["versions"]
        commands |= dict.fromkeys(run["commands"].items())
    rows = [_run(run, results) for run in results.runs]
    names = ["command", "begun", "scale", "cores", "rounds", "seeds"]
    if not any(row[-1] for row in rows):
        names, rows = names[:-1], [row[:-1] for row in rows]
    parts = [Table("runs", "Runs", _columns(*names), rows)]
    if versions:
        named = (f"{name} {versions[name]}" for name in sorted(versions, key=str.lower))
        text.append(f"Versions: {', '.join(named)}.")
    if commands:
        started = [(name, f"`{bare(line)}`") for name, line in commands]
        columns = _columns("server", "command")
        parts.append(Table("commands", "How the servers were started", columns, started))
    return [Section("How it was measured", text, parts)]


def _machines(results: Results) -> list[str]:
    """Each machine once, in the order of the runs."""
    return list(dict.fromkeys(machine_words(run["machine"]) for run in results.runs))


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
