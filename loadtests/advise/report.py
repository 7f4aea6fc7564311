"""Reports of `advise`: on a terminal, as ini files to paste, and as a page."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from loadtests.advise.answer import ENOUGH, TIE, Advice
from loadtests.advise.configuration import Configuration
from loadtests.advise.target import Target, short
from loadtests.advise.trial import EXPERIMENT
from loadtests.reporting import markdown
from loadtests.reporting.model import (
    Axis,
    Bar,
    Bars,
    Cell,
    Column,
    Figure,
    Line,
    Lines,
    Section,
    Table,
)
from loadtests.stats.results import Results, Spread, spread
from loadtests.store import Record

COLOURS = {
    "single": "#0b4f9e",
    "threading": "#1a7fb8",
    "forking": "#2ca6c4",
    "gevent": "#7cc7df",
}
"""Those of our modes everywhere."""
OTHERS = 0.15
"""Share of the machine that others used from which on it has to be said."""
WIDTH = 78
ANSWERS = "The answers"


def terminal(advice: Advice, target: Target, asked: str) -> str:
    """The answers as files to paste, and what has to be known about them."""
    told = [_kind(advice), ""]
    for configuration, aims, reasons in together(advice):
        told += [f"Best for {' and '.join(aims)}: {configuration.name}", ""]
        told += [target.ini(configuration, [*wrapped(reasons)])]
    told += [f"- {remark}" for remark in advice.remarks]
    return "\n".join(told)


def together(advice: Advice) -> list[tuple[Configuration, list[str], list[str]]]:
    """Configurations with what they are best for, and the reasons."""
    found: dict[Configuration, tuple[list[str], list[str]]] = {}
    for one in advice.answers:
        aims, reasons = found.setdefault(one.configuration, ([], []))
        aims.append(one.aim)
        reasons.append(f"{one.aim}: {one.reason}")
    return [(configuration, *rest) for configuration, rest in found.items()]


def wrapped(reasons: Iterable[str]) -> list[str]:
    """Lines that fit into a comment of a file."""
    lines = []
    for reason in reasons:
        line = ""
        for word in reason.split():
            if line and len(line) + len(word) >= WIDTH:
                lines.append(line)
                line = ""
            line = f"{line} {word}".strip()
        lines.append(line)
    return lines


def _kind(advice: Advice) -> str:
    probe = advice.probe
    return (
        f"Alone a request takes {probe.service * 1e3:,.1f} ms, of which {probe.cpu * 1e3:,.1f} ms "
        f"are computing: {probe.kind}."
    )


def sections(results: Results, advice: Advice | None, target: Target, asked: str) -> list[Section]:
    """The page; without advice, what was measured before it came to nothing."""
    samples = results.experiment(EXPERIMENT).samples
    told = []
    if advice is not None:
        told.append(_answers(advice, asked))
    parts: list[Table | Figure] = [*_figures(samples)]
    parts += [_measured(samples)] if samples else []
    text = [
        "Each candidate was started anew for each measurement, asked, and stopped; server and "
        "client may use all cores. Short measurements find the leaders, longer ones in turns "
        "decide between them. Medians, and from the lowest to the highest."
    ]
    busy = [s["others_busy"] for s in samples if s.get("others_busy", 0) > OTHERS]
    if busy:
        text.append(
            f"In {len(busy)} of {len(samples)} measurements something else used more than "
            f"{OTHERS * 100:.0f} % of the machine, up to {max(busy) * 100:.0f} %: do it again "
            "when the machine is at rest."
        )
    told.append(Section("What was measured", text, parts))
    return told


def failed(results: Results) -> list[Section]:
    """What is known of those that failed; a page tells it anyway."""
    failures = [r for r in results.failures if "what" in r]
    if not failures:
        return []
    rows = [[str(r["what"]), short(str(r["reason"]))] for r in failures]
    columns = [Column("measurement"), Column("what happened")]
    return [Section("What failed", [], [Table("failures", "", columns, rows)])]


def _answers(advice: Advice, asked: str) -> Section:
    names = list(dict.fromkeys(n for a in advice.answers for n in a.configuration.values()))
    rows: list[list[Cell]] = [
        [name, *(a.configuration.values().get(name, "") for a in advice.answers)] for name in names
    ]
    columns = [Column("in [http]"), *(Column(a.aim) for a in advice.answers)]
    ties = ", ".join(f"{TIE[a.aim] * 100:.0f} % for {a.aim}" for a in advice.answers)
    text = [
        f"{_kind(advice)} It was asked: {asked}. The search took {advice.seconds:.0f} s.",
        *(f"**{a.aim}**: {a.configuration.name}. {a.reason}." for a in advice.answers),
        *advice.remarks,
        f"The answer for memory is the least of those that reach {ENOUGH * 100:.0f} % of the best "
        f"throughput. What differs less than by chance goes to the smaller one ({ties}).",
    ]
    return Section(ANSWERS, text, [Table("answers", "", columns, rows)])


def _figures(samples: Sequence[Record]) -> list[Figure]:
    figures: list[Figure] = []
    top = max((s["connections"] for s in samples if s["stage"] != "alone"), default=0)
    full = [s for s in samples if s["connections"] == top and not s["asked"] and not s["failure"]]
    for name, title, field, axis, scale, chosen in (
        (
            "throughput",
            f"Throughput with {top} connections",
            "rate",
            Axis("throughput", "requests/s"),
            1.0,
            full,
        ),
        (
            "p99",
            "p99 at the rate asked for",
            "p99_us",
            Axis("p99", "ms"),
            1e-3,
            [s for s in samples if s["asked"] and not s["failure"]],
        ),
        ("memory", "Memory behind the load", "pss", Axis("PSS", "MiB"), 2.0**-20, full),
    ):
        found = _by_name(chosen, field, scale)
        order = sorted(found, key=lambda key: found[key].median, reverse=field == "rate")
        bars = [Bar(key, COLOURS[key.split()[0]], [found[key]]) for key in order]
        if bars:
            figures.append(Bars(name, title, axis, bars))
    threads = _threads(full)
    if threads:
        figures.append(
            Lines(
                "threads",
                "Throughput by threads",
                Axis("threads of a worker", log=True),
                Axis("throughput", "requests/s", low=0),
                threads,
                marks=True,
            )
        )
    return figures


def _threads(samples: Sequence[Record]) -> list[Line]:
    points: dict[int, dict[int, list[float]]] = {}
    for sample in samples:
        options = sample["options"]
        if options["mode"] == "threading":
            of_workers = points.setdefault(int(options["workers"]), {})
            of_workers.setdefault(int(options["threads"]), []).append(sample["rate"])
    shades = ("#1a7fb8", "#0b4f9e", "#2ca6c4", "#7cc7df", "#14788f", "#5b8fd0")
    lines = []
    for place, (workers, found) in enumerate(sorted(points.items())):
        medians = [(float(t), s.median) for t, v in sorted(found.items()) if (s := spread(v))]
        if len(medians) > 1:
            name = f"{workers} worker" + ("s" if workers > 1 else "")
            lines.append(Line(name, shades[place % len(shades)], medians))
    return lines


def _by_name(samples: Sequence[Record], field: str, scale: float) -> dict[str, Spread]:
    values: dict[str, list[float]] = {}
    for sample in samples:
        values.setdefault(str(sample["server"]), []).append(sample[field] * scale)
    return {name: found for name, v in values.items() if (found := spread(v))}


def _measured(samples: Sequence[Record]) -> Table:
    columns = [
        Column("configuration"),
        Column("for"),
        Column("connections"),
        Column("asked", "1/s"),
        Column("samples"),
        Column("throughput", "1/s"),
        Column("p99", "ms", 1, 1e-3),
        Column("CPU", "ms a request", 2, 1e-3),
        Column("PSS", "MiB", 1, 2.0**-20),
        Column("processes"),
        Column("client busy", "%", 0, 100),
        Column("wrong", "%", 1, 100),
    ]
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for s in samples:
        key = (s["server"], s["stage"], s["connections"], s["asked"])
        groups.setdefault(key, []).append(s)
    rows: list[list[Cell]] = []
    for (server, stage, connections, asked), taken in groups.items():
        rows.append(
            [
                str(server),
                str(stage),
                float(connections),
                float(asked) or None,
                float(len(taken)),
                *(
                    spread(s[field] for s in taken)
                    for field in ("rate", "p99_us", "cpu_us", "pss", "processes", "client_busy")
                ),
                spread(s["wrong"] for s in taken),
            ]
        )
    return Table("measured", "Everything", columns, rows)


def publish(told: Sequence[Section], results: Results, where: Path) -> None:
    """Prints the table of everything and writes the page."""
    shown = [section for section in told if section.title != ANSWERS]
    print(markdown.tables([*shown, *failed(results)]))
    try:
        # Only now: what pages and figures need is slow to load, and a search does without it.
        from loadtests.reporting import page

        where.write_text(page.html("Advice", told, results), encoding="utf-8")
        print(f"\npage: {where}", file=sys.stderr)
    except ImportError as error:
        print(f"loadtests: there is no {error.name}: pip install '.[lab]'", file=sys.stderr)
    except OSError as error:
        print(f"loadtests: {where}: {error.strerror}", file=sys.stderr)
