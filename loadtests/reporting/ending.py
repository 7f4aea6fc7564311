"""The end of the pages that are not made of sections yet."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from loadtests.reporting.provenance import DISTURBED, machine_words
from loadtests.stats.results import Results


def ending(
    results: Results,
    method: Sequence[str],
    commands: Sequence[str] = (),
    between: Iterable[Sequence[str]] = (),
) -> list[Sequence[str]]:
    """How every page but that of the benchmarks ends: with what was lost, and how it was measured.

    Args:
        results: of all runs; the machine is that of the last.
        method: lines of a list.
        commands: what was started, if that is told.
        between: parts behind those that were lost.
    """
    machine = machine_words(results.runs[-1]["machine"])
    return [
        lost(results)[1:],
        *between,
        ["## How it was measured"],
        [f"- Machine: {machine}.", *method],
        provenance(results),
        commands,
    ]


def page(parts: Iterable[Sequence[str]]) -> str:
    """A page of parts, which are lines; those without any are left out."""
    return "\n\n".join("\n".join(part).strip() for part in parts if part) + "\n"


def lost(results: Results) -> list[str]:
    """Who could not be measured, and why."""
    lines = []
    missing = {(m["server"], m["reason"]) for m in results.missing}
    measured = {s["server"] for s in results.samples}
    for server, reason in sorted(missing):
        if server not in measured:
            lines.append(f"- {server} was left out: {reason}.")
    grouped: dict[tuple[str, str], list[str]] = {}
    for failure in results.failures:
        grouped.setdefault((failure["server"], failure["reason"]), []).append(
            failure["what"].split(",")[0]
        )
    for (server, reason), what in grouped.items():
        lines.append(f"- {server} failed in {', '.join(sorted(set(what)))}: {reason}.")
    return ["", "## Left out and failed", "", *lines] if lines else []


def provenance(results: Results) -> list[str]:
    """Which versions took part, and with which commands and when it was measured."""
    versions: dict[str, str] = {}
    for record in results.runs:
        versions.update(record["machine"]["versions"])
    listed = ", ".join(f"{name} {versions[name]}" for name in sorted(versions, key=str.lower))
    runs = "; ".join(f"`{record['command']}` ({record['run'][:10]})" for record in results.runs)
    return [f"Versions: {listed}.", "", f"Runs: {runs}."]


def disturbance(results: Results) -> str:
    """How much others used the machine meanwhile."""
    shares = [s["others_busy"] for s in results.samples]
    if not shares:
        return ""
    disturbed = sum(share > DISTURBED for share in shares)
    return (
        f"Others used {statistics.median(shares) * 100:.0f} % of the machine in the median sample; "
        f"{disturbed} of {len(shares)} samples saw more than {DISTURBED * 100:.0f} %."
    )
