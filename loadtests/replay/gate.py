"""Whether a load has failed: its conditions, the highest rate without failure, files for CI."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
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
    found["rate"] = answered_rate(sample)
    found["failed"] = sum(sample["errors"].values()) / max(sample["due"], 1) * 100
    _, cpu, pss = used(sample)
    used_ = {"cpu": cpu, "memory": pss and pss * MIB}
    return found | {name: value for name, value in used_.items() if value is not None}


@dataclass
class Gate:
    """A load and its conditions. `known` are its values, `judged` whether each condition holds.

    On a busy machine only that it does not is told, and of a latency only where enough requests
    were answered, and that it does not hold where few failed.
    """

    sample: Record
    conditions: Sequence[Condition]
    strict: bool = False

    def __post_init__(self) -> None:
        self.known = values(self.sample)
        self.judged = [
            (one, UNKNOWN if self._doubt(one) else HOLDS if self._holds(one) else FAILS)
            for one in self.conditions
        ]

    def _holds(self, one: Condition) -> bool:
        return one.is_beyond(self.known[one.name])

    def _doubt(self, one: Condition) -> str:
        """Why a condition is not to be told; empty if it is."""
        if one.name not in self.known:
            return "not known"
        holds = self._holds(one)
        if one.name in LATENCIES:
            # The share beyond it is at least one request.
            least = round(1 / (1 - LATENCIES[one.name]))
            if self.sample["requests"] < least:
                return f"of {self.sample['requests']:,} requests; {one.name} takes {least:,}"
            if not holds and self.known["failed"] > MOST_FAILED:
                return f"but {brief(self.known['failed'])} % failed"
        if holds and one.name != "failed" and disturbance.warning([self.sample]):
            return "but the machine was busy"
        return ""

    def _measured(self, one: Condition) -> str:
        """What was measured of the quantity of a condition, in words."""
        if one.name not in self.known:
            return f"{one.name} is not known"
        unit = {"/s": " requests a second", "us": " µs a request"}.get(UNITS[one.name])
        told = f"{one.name} is {brief(self.known[one.name])}{unit or f' {UNITS[one.name]}'}"
        if one.name == "failed":
            told += f": {sum(self.sample['errors'].values()):,} of {self.sample['due']:,}"
        doubt = self._doubt(one)
        return f"{told}, {doubt}" if doubt else told

    def code(self, *, strict: bool) -> int:
        """That of the conditions; else 1 if no answer was right, or the server has ended."""
        code = thresholds.exit_code({outcome for _, outcome in self.judged}, strict=strict)
        return code or int(not self.sample["requests"] or bool(self.sample.get("server_ended")))

    def words(self) -> list[str]:
        """What became of each condition, with what was measured, and the exit code."""
        lines = [
            f"{_WORDS[outcome]}: {one.text} ({self._measured(one)})" for one, outcome in self.judged
        ]
        code, stricter = (self.code(strict=way) for way in (self.strict, True))
        more = f"; with --strict it is {stricter}" if stricter != code else ""
        return [*lines, f"exit code {code}{more}"] if lines else []

    def highest(self, one: Condition) -> str:
        """A sentence on the rate up to which a latency is kept, if the rate changed."""
        sample = self.sample
        if one.name not in ("p50", "p99") or one.sign != ">" or not sample.get("ramp"):
            return ""
        if disturbance.warning([sample]):
            return "The machine was busy, so the highest rate is not to be told."
        rates = sorted(
            (float(part["rate"]), one.is_beyond(part[f"{one.name}_us"] / 1000))
            for part in sample["windows"]
            if part["p99_us"]
        )
        if not rates:
            return ""
        limit = f"{one.name} of {brief(one.number)} ms"
        lowest = next((rate for rate, is_beyond in rates if is_beyond), None)
        if lowest is None:
            most = rates[-1][0]
            return f"The {limit} is kept up to {most:,.0f} requests per second, the highest rate."
        kept = [rate for rate, _ in rates if rate < lowest]
        if not kept:
            return f"The {limit} is not kept at {lowest:,.0f} requests per second."
        return (
            f"The {limit} is kept up to {kept[-1]:,.0f} requests per second, and not at "
            f"{lowest:,.0f}."
        )


def run(
    sample: Record, headline: str, options: argparse.Namespace, command: str
) -> tuple[int, list[str]]:
    """Writes the files; returns the exit code and the lines that tell what holds."""
    gate = Gate(sample, options.conditions, options.strict)
    lines = [*gate.words(), *filter(None, map(gate.highest, gate.conditions))]
    code = gate.code(strict=gate.strict)
    rows = [(name, value, UNITS[name]) for name, value in gate.known.items()]
    summary = {
        "headline": headline,
        "server": sample["server"],
        "due": sample["due"],
        "answered": sample["requests"],
        "errors": sample["errors"],
        "values": {name: {"value": value, "unit": unit} for name, value, unit in rows},
        "conditions": [{"text": one.text, "outcome": outcome} for one, outcome in gate.judged],
    }
    what = {"suite": str(sample["server"]), "headline": headline, "text": "\n".join(lines)}
    what |= {"classname": f"loadtests.{command}", "error": headline if code == 1 else ""}
    write_files(options, summary, [("quantity", "value", "unit"), *rows], gate.judged, **what)
    return code, lines
