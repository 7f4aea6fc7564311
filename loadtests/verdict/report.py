"""A comparison in words, as a section of a page, as JSON, CSV and JUnit."""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from loadtests.errors import LabError
from loadtests.programs import COMMAND
from loadtests.reporting.cells import MINUS, NOTHING, brief
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Section, Table
from loadtests.stats.results import Results
from loadtests.stats.verdict import UNDECIDED, ZONE
from loadtests.studies import tables
from loadtests.verdict import stored
from loadtests.verdict.quantities import QUANTITIES, Verdict, differences, whole
from loadtests.verdict.rounds import NAME
from loadtests.verdict.thresholds import FAILS, HOLDS, UNKNOWN, Condition

COLOURS = ("#0b4f9e", "#c8452c")
_NOT_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CALMER = "For a verdict, end other programs, or measure on another machine."


@dataclass(frozen=True)
class Comparison:
    """B against A: the verdicts by the words for what each is on; the first one counts.

    `remarks` are sentences on the run, and `failure` is what ended it before there was a verdict.
    """

    names: Sequence[str]
    verdicts: Mapping[str, Verdict]
    remarks: Sequence[str] = ()
    conditions: Sequence[Condition] = field(default_factory=tuple)
    failure: str = ""

    @property
    def first(self) -> Verdict:
        return next(iter(self.verdicts.values()))

    def judged(self) -> list[tuple[Condition, str]]:
        """Each condition, and whether it holds."""
        by_name = {one.quantity.name: one for one in self.verdicts.values()}
        return [(one, one.judged(by_name)) for one in self.conditions]

    def cases(self) -> list[tuple[Condition, str]]:
        """What a run is judged by: its conditions, or else whether the machine allows a verdict."""
        whether = UNKNOWN if self.first.reason else FAILS
        return self.judged() or [(Condition("verdict", self.first.quantity.name), whether)]


def comparison(
    names: Sequence[str],
    verdicts: Iterable[Verdict],
    remarks: Sequence[str] = (),
    failure: str = "",
) -> Comparison:
    """Of two that were measured side by side; after a failure no winner is named."""
    if failure:
        verdicts = [replace(one, reason=_first_line(failure)) for one in verdicts]
    return Comparison(names, {one.quantity.title: one for one in verdicts}, remarks, (), failure)


def _first_line(text: str) -> str:
    """What went wrong, without the lines that a server said."""
    return text.partition("\n")[0].removesuffix(" it said:").rstrip(":")


def change(ratio: float) -> str:
    """A ratio as a change: `+5.1 %`."""
    percent = (ratio - 1) * 100
    return f"{'+' if percent >= 0 else MINUS}{abs(percent):.1f} %"


def interval(one: Verdict) -> str:
    ratio = one.ratio
    if not ratio.has_ends:
        return "no interval"
    return f"{change(ratio.low)} to {change(ratio.high)}"


def estimate(one: Verdict) -> str:
    """The change, if any round counts."""
    return change(one.ratio.estimate) if one.ratio.rounds else NOTHING


def _times(one: Verdict) -> str:
    """From where to where the ratios of the disturbed rounds went."""
    low, high = (f"{end(one.disturbed):.3g}" for end in (min, max))
    return f"{low} to {high} times" if low != high else f"{low} times"


def seen(found: Comparison) -> str:
    """A sentence on the disturbed rounds, which is no verdict; empty if there are none."""
    one, (a, b) = found.first, found.names
    if not (count := len(one.disturbed)):
        return ""
    rounds = f"all {count} disturbed rounds" if count > 1 else "the only disturbed round"
    told = f"{one.quantity.title} of {b} {_times(one)} that of {a}"
    less, more = (b, a) if one.quantity.less_is_better else (a, b)
    for ahead, ratios in ((less, [1 / ratio for ratio in one.disturbed]), (more, one.disturbed)):
        if min(ratios) > 1 + one.zone:
            # The coin decides which is measured first, so chance alone has one side ahead.
            runs = 2 ** min(count - 1, 6)
            why = f": the same server twice can look so in 1 of {runs} runs" if count > 1 else ""
            return f" In {rounds} {ahead} was ahead: {told} (not a verdict{why})."
    return f" Neither was ahead in {rounds}: {told}."


def headline(found: Comparison) -> str:
    """The verdict in one or two sentences."""
    one, (a, b) = found.first, found.names
    ratio, quantity = one.ratio, one.quantity
    medians = f"{brief(one.after)} {quantity.unit} instead of {brief(one.before)}"
    sure = f"{(1 - ratio.error) * 100:.3g} % interval {interval(one)}, {ratio.rounds} rounds"
    if one.reason:
        why = f"Not to be told: {one.reason}, so no winner is named between {a} and {b}."
        return why + seen(found)
    if one.side == UNDECIDED:
        below = (
            f" Any difference is below {one.zone * 100:g} %." if ratio.is_alike(one.zone) else ""
        )
        words = f"less or more {quantity.uses}" if quantity.uses else "faster or slower"
        return (
            f"Not to be told whether {b} {quantity.than(words)} {a}: {quantity.title} "
            f"{estimate(one)} ({sure}).{below}"
        )
    percent = f"{abs(ratio.estimate - 1) * 100:.1f} %"
    words = quantity.than(one.told, percent)
    return f"{b} {words} {a}: {quantity.title} {medians} ({sure})."


def word(one: Verdict) -> str:
    """What a row of a table says: the verdict, and why there is none or what was seen instead."""
    why = f"in disturbed rounds {_times(one)}" if one.disturbed else one.reason
    return one.told + (f" ({why})" if why else "")


def text(found: Comparison) -> str:
    lines = [headline(found), ""]
    a, b = (f"{name:>10}" for name in found.names)
    wide, first, second = max(map(len, found.verdicts)), len(a), len(b)
    lines.append(f"{'':{wide}} {a} {b} {'':4} {'interval':>24}  {b.strip()} to {a.strip()}")
    for words, one in found.verdicts.items():
        before, after = f"{brief(one.before):>{first}}", f"{brief(one.after):>{second}}"
        told = f"{before} {after} {one.quantity.unit:4} {interval(one):>24}"
        lines.append(f"{words:{wide}} {told}  {word(one)}")
    lines += ["", *found.remarks]
    for condition, outcome in found.judged():
        lines.append(f"fail if {condition.text}: {outcome}")
    return "\n".join(lines).strip()


def table(found: Comparison) -> Table:
    heads = "quantity", *found.names, "unit", "change", "interval", "rounds", "verdict"
    rows: list[list[Cell]] = [
        [
            words,
            brief(one.before),
            brief(one.after),
            one.quantity.unit,
            estimate(one),
            interval(one),
            float(one.ratio.rounds),
            word(one),
        ]
        for words, one in found.verdicts.items()
    ]
    return Table("verdict", "", [Column(head) for head in heads], rows)


def section(found: Comparison) -> Section:
    """What is told of runs that were measured before."""
    title = f"{found.names[1]} against {found.names[0]}"
    return Section(title, found.remarks, [table(found)], headline(found))


def sections(records: Sequence[Mapping[str, Any]]) -> list[Section]:
    """What is told of the comparisons in these records, the last one first."""
    results = Results([dict(one) for one in records])
    told = []
    for run in reversed([one for one in results.runs if one.get("study") == NAME]):
        own = Results([one for one in results.records if one["run"] == run["run"]])
        if not whole(own.samples):
            continue
        quantities = [QUANTITIES[name] for name in run.get("metrics", QUANTITIES)]
        verdicts = stored.side_by_side(own, quantities, run.get("zone", ZONE))
        failed = [f"{one['server']}: {one['reason']}" for one in own.failures]
        found = comparison(run["sides"], verdicts, failure="".join(failed[:1]))
        a, b = found.names
        calm = [one for one in own.samples if not one["disturbed"]]
        fields = ("CPU time per request", "cpu_us"), ("p50", "p50_us")
        lines = [
            Line(title, colour, [(float(n), math.exp(one)) for n, one in enumerate(known, 1)])
            for (title, field_), colour in zip(fields, COLOURS, strict=True)
            if (known := differences(calm, found.names, field_))
        ]
        figure = Lines(
            "verdict-rounds",
            f"{b} to {a}, round by round",
            Axis("round"),
            Axis("ratio"),
            lines,
            caption="Above 1 the second takes more. Rounds that others disturbed are left out.",
            marks=True,
        )
        curves = []
        for one in tables.percentiles("verdict", calm, "times"):
            hues = zip(one.lines, COLOURS, strict=False)
            curves.append(replace(one, lines=[replace(line, colour=hue) for line, hue in hues]))
        text_ = [f"Load: {run['load']}. Each round measures both servers twice, as ABBA or BAAB."]
        if not calm:
            text_.append(f"All rounds were disturbed, so no figure shows them. {CALMER}")
        figures = [figure, *curves] if lines else []
        told.append(Section(f"{b} against {a}", text_, [*figures, table(found)], headline(found)))
    return told


def _facts(words: str, one: Verdict) -> dict[str, Any]:
    """What files say of a verdict; None is what too few rounds do not tell."""
    ratio, quantity = one.ratio, one.quantity
    return {
        "on": words,
        "quantity": quantity.name,
        "unit": quantity.unit,
        "a": one.before,
        "b": one.after,
        "verdict": one.word,
        "reason": one.reason,
        "zone": one.zone,
        "estimate": ratio.estimate if ratio.rounds else None,
        "low": ratio.low if ratio.has_ends else None,
        "high": ratio.high if ratio.has_ends else None,
        "rounds": ratio.rounds,
        "error": ratio.error,
        "disturbed_rounds": one.disturbed,
    }


def write(found: Comparison, options: argparse.Namespace) -> None:
    """Writes the files that were asked for. Raises LabError."""
    facts = [_facts(words, one) for words, one in found.verdicts.items()]
    summary = {
        "a": found.names[0],
        "b": found.names[1],
        "verdict": found.first.word,
        "headline": headline(found),
        "quantities": facts,
        "conditions": [{"text": one.text, "outcome": outcome} for one, outcome in found.judged()],
        "remarks": list(found.remarks),
    }
    heads = "on", "unit", "a", "b", "ratio", "low", "high", "error", "rounds", "verdict"
    rows = [heads, *([{**one, "ratio": one["estimate"]}[name] for name in heads] for one in facts)]
    about = {"headline": headline(found), "text": text(found), "classname": "loadtests.compare"}
    suite = f"{found.names[1]} against {found.names[0]}"
    write_files(options, summary, rows, found.cases(), suite=suite, error=found.failure, **about)


def write_files(
    options: argparse.Namespace,
    summary: Mapping[str, Any],
    rows: Sequence[Sequence[object]],
    judged: Sequence[tuple[Condition, str]],
    error: str = "",
    **words: str,
) -> None:
    """Writes a summary as JSON, rows as CSV, and conditions as JUnit, as far as they are asked for.

    `error` says why there is no outcome. Raises LabError if a file cannot be written.
    """
    try:
        if options.json:
            told = json.dumps(summary, indent=2, ensure_ascii=False)
            options.json.write_text(f"{told}\n", encoding="utf-8")
        if options.csv:
            with options.csv.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)
        if options.junit:
            _write_cases(judged, options.junit, options.strict, error, **words)
    except OSError as problem:
        raise LabError(f"{problem.filename}: {problem.strerror}") from None


def write_error(path: Path, command: str, error: str) -> None:
    """Writes, as JUnit, why a command could not do its work; nothing if that is not possible."""
    words = {"suite": f"{COMMAND} {command}", "classname": f"loadtests.{command}"}
    with contextlib.suppress(OSError):
        _write_cases((), path, True, error, **words, headline=_first_line(error), text=error)


def _write_cases(
    judged: Sequence[tuple[Condition, str]],
    path: Path,
    strict: bool,
    error: str,
    *,
    suite: str,
    classname: str,
    headline: str,
    text: str,
) -> None:
    """A test case for each condition that was judged; without any, one that passes.

    If the run is `strict`, what is not to be told is a failure; after an error each case is one.
    """
    kinds = {HOLDS: "failure", UNKNOWN: "failure" if strict else "skipped"}
    # A server may have said what XML cannot have.
    headline, text, error = (_NOT_XML.sub("?", words) for words in (headline, text, error))
    made = ElementTree.Element("testsuite", name=suite)
    for name, outcome in [(one.text, outcome) for one, outcome in judged] or [("verdict", "")]:
        case = ElementTree.SubElement(made, "testcase", classname=classname, name=name)
        if kind := "error" if error else kinds.get(outcome):
            told = ElementTree.SubElement(case, kind, message=headline)
            told.text = None if kind == "skipped" else error or text
        ElementTree.SubElement(case, "system-out").text = text
    made.set("tests", str(len(made)))
    for attribute, kind in (("errors", "error"), ("failures", "failure"), ("skipped", "skipped")):
        made.set(attribute, str(len(made.findall(f"testcase/{kind}"))))
    ElementTree.ElementTree(made).write(path, encoding="utf-8", xml_declaration=True)
