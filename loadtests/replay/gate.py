"""Whether a load has failed: its conditions, the highest rate without failure, files for CI."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from loadtests.measure import disturbance, histogram
from loadtests.replay.report import answered_rate, used
from loadtests.reporting.cells import brief
from loadtests.reporting.model import MIB
from loadtests.store import Record
from loadtests.verdict import thresholds
from loadtests.verdict.report import write_files
from loadtests.verdict.thresholds import (
    CONDITION_HOLDS,
    FAILS,
    HOLDS,
    UNKNOWN,
    Condition,
    condition,
)

LATENCIES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
MOST_FAILED = 1.0
"""Percent that may fail where a latency is to be told: what fails may be fast, or not counted."""
UNITS = {
    **dict.fromkeys(LATENCIES, "ms"),
    "rate": "/s",
    "failed": "%",
    "cpu": "us",
    "memory": "MiB",
}
_WORDS = {HOLDS: "FAILED", FAILS: "passed", UNKNOWN: "not to be told"}


def add_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument_group("for CI").add_argument
    told = (
        f"'p99 > 50 ms' or 'failed > 0', of {' '.join(UNITS)} (repeatable): exit code "
        f"{CONDITION_HOLDS}; where a rate changes, the rate up to which it does not hold is told"
    )
    how: dict[str, Any] = {"dest": "conditions", "metavar": "CONDITION", "default": []}
    add("--fail-if", action="append", type=_read, help=told, **how)
    thresholds.add_arguments(add, "outcome")


def _read(text: str) -> Condition:
    try:
        found = condition(text, UNITS)
    except argparse.ArgumentTypeError:
        found = None
    if found is None or found.relative:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no condition such as 'p99 > 50 ms' or 'failed > 0'; "
            f"quantities: {' '.join(UNITS)}"
        )
    bad = "<" if found.name == "rate" else ">"
    if found.sign != bad:
        right = text.strip().replace(found.sign, bad)
        raise argparse.ArgumentTypeError(f"{text!r}: --fail-if states what fails: write {right!r}")
    return found


def values(sample: Record) -> dict[str, float]:
    """What conditions are about, as far as it is known, in their units."""
    times = histogram.merge([sample["times"]])
    found = {
        name: histogram.quantile(times, share, sample["max_us"]) / 1000
        for name, share in LATENCIES.items()
        if sample["requests"]
    }
    failed = sum(sample["errors"].values())
    found["rate"] = answered_rate(sample)
    found["failed"] = failed / max(sample["due"], 1) * 100
    _, cpu, pss = used(sample)
    used_ = {"cpu": cpu, "memory": pss and pss * MIB}
    return found | {name: value for name, value in used_.items() if value is not None}


def _doubt(sample: Record, one: Condition, known: dict[str, float]) -> str:
    """Why a condition whose quantity is known is not to be told; empty if it is."""
    holds = one.is_beyond(known[one.name])
    if one.name in LATENCIES:
        # The share beyond it is at least one request.
        least = round(1 / (1 - LATENCIES[one.name]))
        if sample["requests"] < least:
            return f"of {sample['requests']:,} requests; {one.name} takes {least:,}"
        if not holds and known["failed"] > MOST_FAILED:
            return f"but {brief(known['failed'])} % failed"
    if holds and one.name != "failed" and disturbance.warning([sample]):
        return "but the machine was busy"
    return ""


def judged(sample: Record, conditions: Sequence[Condition]) -> list[tuple[Condition, str]]:
    """Each condition, and whether it holds.

    On a busy machine only that it does not is told, and of a latency only where enough requests
    were answered, and that it does not hold where few failed.
    """
    known, told = values(sample), []
    for one in conditions:
        unsure = one.name not in known or bool(_doubt(sample, one, known))
        holds = not unsure and one.is_beyond(known[one.name])
        told.append((one, UNKNOWN if unsure else HOLDS if holds else FAILS))
    return told


def _measured(sample: Record, one: Condition, known: dict[str, float]) -> str:
    """What was measured of the quantity of a condition, in words."""
    value = known.get(one.name)
    if value is None:
        return f"{one.name} is not known"
    unit = {"/s": " requests a second", "us": " µs a request"}.get(UNITS[one.name])
    told = f"{one.name} is {brief(value)}{unit or f' {UNITS[one.name]}'}"
    if one.name == "failed":
        told += f": {sum(sample['errors'].values()):,} of {sample['due']:,}"
    return told


def exit_code(sample: Record, judged: Sequence[tuple[Condition, str]], *, strict: bool) -> int:
    """Returns that of the conditions; else 1 if no answer was right, or the server has ended."""
    code = thresholds.exit_code({outcome for _, outcome in judged}, strict=strict)
    return code or int(not sample["requests"] or bool(sample.get("server_ended")))


def words(sample: Record, judged: Sequence[tuple[Condition, str]], *, strict: bool) -> list[str]:
    """What became of each condition, with what was measured, and the exit code."""
    lines, known = [], values(sample)
    for one, outcome in judged:
        told = _measured(sample, one, known)
        if outcome == UNKNOWN and one.name in known:
            told += f", {_doubt(sample, one, known)}"
        lines.append(f"{_WORDS[outcome]}: {one.text} ({told})")
    code, stricter = (exit_code(sample, judged, strict=way) for way in (strict, True))
    if lines:
        more = f"; with --strict it is {stricter}" if stricter != code else ""
        lines.append(f"exit code {code}{more}")
    return lines


def highest(sample: Record, one: Condition) -> str:
    """A sentence on the rate up to which a condition on a latency does not hold, if one changed."""
    if one.name not in ("p50", "p99") or one.sign != ">" or not sample.get("ramp"):
        return ""
    if disturbance.warning([sample]):
        return "The machine was busy, so the highest rate is not to be told."
    if not (parts := [part for part in sample["windows"] if part["p99_us"]]):
        return ""
    limit, ascending = f"{one.name} of {brief(one.number)} ms", sorted(parts, key=_rate)
    beyond = [part for part in ascending if one.is_beyond(part[f"{one.name}_us"] / 1000)]
    if not beyond:
        most = _rate(ascending[-1])
        return f"The {limit} is kept up to {most:,.0f} requests per second, the highest rate."
    kept = [part for part in ascending if _rate(part) < _rate(beyond[0])]
    if not kept:
        return f"The {limit} is not kept at {_rate(beyond[0]):,.0f} requests per second."
    return (
        f"The {limit} is kept up to {_rate(kept[-1]):,.0f} requests per second, and not at "
        f"{_rate(beyond[0]):,.0f}."
    )


def _rate(part: Record) -> float:
    return float(part["rate"])


def run(
    sample: Record, headline: str, options: argparse.Namespace, command: str
) -> tuple[int, list[str]]:
    """Writes the files; returns the exit code and the lines that tell what holds."""
    outcomes = judged(sample, options.conditions)
    lines = words(sample, outcomes, strict=options.strict)
    lines += filter(None, (highest(sample, one) for one in options.conditions))
    code = exit_code(sample, outcomes, strict=options.strict)
    known = values(sample)
    summary = {
        "headline": headline,
        "server": sample["server"],
        "due": sample["due"],
        "answered": sample["requests"],
        "errors": sample["errors"],
        "values": {name: {"value": v, "unit": UNITS[name]} for name, v in known.items()},
        "conditions": [{"text": one.text, "outcome": o} for one, o in outcomes],
    }
    rows: list[Sequence[object]] = [("quantity", "value", "unit")]
    rows += [(name, value, UNITS[name]) for name, value in known.items()]
    what = {"suite": str(sample["server"]), "headline": headline, "text": "\n".join(lines)}
    what |= {"classname": f"loadtests.{command}", "error": headline if code == 1 else ""}
    write_files(options, summary, rows, outcomes, **what)
    return code, lines
