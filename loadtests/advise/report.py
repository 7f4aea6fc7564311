"""Reports of `advise`: on a terminal, as an ini file, and as a page."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

from loadtests.advise import choice
from loadtests.advise.answer import ENOUGH, P99, THROUGHPUT, Advice
from loadtests.advise.configuration import Configuration
from loadtests.advise.target import Target
from loadtests.advise.trial import EXPERIMENT
from loadtests.errors import LabError
from loadtests.reporting.model import Axis, Bar, Bars, Cell, Column, Figure, Section, Table
from loadtests.servers.registry import colour_of
from loadtests.stats.results import Results, Spread, spread
from loadtests.store import Record

WIDTH = 78
ROWS = 6
"""Configurations that are shown on the terminal."""
DRAWN = 10
"""Configurations in the picture: the best."""
ALIKE = "≈"
FILE = "poorhttp.ini"
ANSWERS = "The recommendation"


def terminal(advice: Advice, target: Target, written: str = "") -> str:
    """The recommendation as a file, why, and what it costs to do otherwise; on one screen."""
    chosen = choice.recommended(advice)
    told = [f"If unsure, take this: {chosen.name}", "", target.ini(chosen, []).rstrip(), ""]
    if written:
        told += [f"It is in {written}: poorhttp serve --config {written}", ""]
    told += [*_ranking(advice, chosen), ""]
    for sentence in sentences(advice, chosen):
        first, *rest = wrapped([sentence], WIDTH - 2)
        told += [f"- {first}", *(f"  {line}" for line in rest)]
    return "\n".join(told)


def sentences(advice: Advice, chosen: Configuration) -> list[str]:
    """What limits the application, what other choices cost, and what has to be known."""
    told = [
        f"{_kind(advice)} What limits it under load is {choice.limit(advice, chosen)[1]}",
        *(f"{one.name}, {why}." for one, why in choice.others(advice, chosen)),
        f"A step up, {choice.step(advice, chosen)}",
        choice.crowding(advice),
        *advice.remarks,
    ]
    return [sentence for sentence in told if sentence]


def reasons(advice: Advice) -> list[str]:
    """Why, as comments of the file."""
    chosen = choice.recommended(advice)
    seen = (
        f"Measured: {advice.median(chosen, 'rate'):,.0f} requests/s with "
        f"{advice.wish.connections[-1]} connections, "
        f"{advice.median(chosen, 'pss') / 2**20:,.0f} MiB."
    )
    return wrapped([seen, f"What limits it: {choice.limit(advice, chosen)[1]}"])


def _ranking(advice: Advice, chosen: Configuration) -> list[str]:
    """The recommendation above the best of the rest, as columns."""
    p99 = "p99, ms" + (f", at {advice.rate:,.0f}/s" if advice.rate else "")
    lines = [f"{'':26}{'requests/s':>13}{p99:>21}{'errors':>9}{'memory':>11}"]
    shown = [chosen, *(one for one in _best(advice) if one != chosen)][:ROWS]
    for one in shown:
        cells = [one.name.ljust(26)]
        for aim, at_rate, value, scale, width, form in (
            (THROUGHPUT, False, "rate", 1.0, 13, ",.0f"),
            (P99, True, "p99_us", 1e-3, 21, ",.1f"),
        ):
            number = advice.median(one, value, at_rate=at_rate) * scale
            text = f"{_mark(advice, aim, one)}{number:{form}}" if number else "–"
            cells.append(f"{text:>{width}}")
        cells.append(f"{advice.median(one, 'wrong') * 100:7.1f} %")
        lines.append("".join(cells) + f"{advice.median(one, 'pss') / 2**20:7,.0f} MiB")
    if any(ALIKE in line for line in lines):
        lines.append(f"{ALIKE} the noise of these measurements does not tell it from the best")
    return lines


def _mark(advice: Advice, aim: str, one: Configuration) -> str:
    found = advice.found.get(aim)
    leader = found.leader() if found else None
    if not found or not leader or one == leader or one not in found.guesses:
        return ""
    return ALIKE if found.alike(one, leader) else ""


def _best(advice: Advice) -> list[Configuration]:
    """Those that were measured, most requests per second first."""
    seen = dict.fromkeys(sample.configuration for sample in advice.samples)
    able = [one for one in seen if advice.taken(one)]
    return sorted(able, key=lambda one: advice.median(one, "rate"), reverse=True)


def wrapped(reasons: Iterable[str], width: int = WIDTH) -> list[str]:
    """Lines that fit into a comment of a file."""
    return [line for reason in reasons for line in textwrap.wrap(reason, width)]


def write(text: str, where: Path | None) -> str:
    """Writes the file, never over another; returns its name.

    Without `where` it is `poorhttp.ini` in the current folder, or the first of `poorhttp.2.ini`, …
    that is not there.
    """
    numbered = (Path(FILE).with_suffix(f".{number}.ini") for number in count(2))
    for name in [where] if where else chain([Path(FILE)], numbered):
        try:
            with name.open("x", encoding="utf-8") as file:
                file.write(text)
            return str(name)
        except FileExistsError:
            continue
        except OSError as error:
            raise LabError(f"{name}: {error.strerror}") from None
    raise LabError(f"{where} is there already; it is not overwritten")


def _kind(advice: Advice) -> str:
    probe = advice.probe
    return (
        f"Alone a request takes {probe.service * 1e3:,.1f} ms, {probe.cpu * 1e3:,.1f} ms of CPU "
        f"time: {probe.kind}."
    )


def sections(results: Results, advice: Advice | None, asked: str) -> list[Section]:
    """The page; without advice, what was measured before it came to nothing."""
    samples = results.experiment(EXPERIMENT).samples
    text = [
        "Each candidate was started anew for each measurement, asked, and stopped; server and "
        "client may use all cores. Short measurements find the leaders, longer ones in turns "
        "decide between them. Medians, and from the lowest to the highest."
    ]
    parts = [_measured(samples)] if samples else []
    told = [] if advice is None else _answers(advice, asked)
    return [*told, Section("What was measured", text, parts)]


def _answers(advice: Advice, asked: str) -> list[Section]:
    chosen = choice.recommended(advice)
    answers = {"if unsure": chosen} | {a.aim: a.configuration for a in advice.answers}
    names = list(dict.fromkeys(n for one in answers.values() for n in one.values()))
    rows: list[list[Cell]] = [
        [name, *(one.values().get(name, "") for one in answers.values())] for name in names
    ]
    columns = [Column("in [http]"), *(Column(name) for name in answers)]
    text = [
        f"It was asked: {asked}. The search took {advice.seconds:.0f} s.",
        *sentences(advice, chosen),
        *(f"**{a.aim}**: {a.configuration.name}. {a.reason}." for a in advice.answers),
        f"The answer for memory is the least of those that reach {ENOUGH * 100:.0f} % of the best "
        "throughput. What noise does not tell apart goes to the smaller one.",
    ]
    parts: list[Table | Figure] = [_picture(advice, chosen), Table("answers", "", columns, rows)]
    best = Section(ANSWERS, [], parts, answer=f"If unsure, take {chosen.name}.")
    return [best, Section("Why", text)]


def _picture(advice: Advice, chosen: Configuration) -> Bars:
    """Throughput, p99 and memory of the best, each as a share of the best value."""
    drawn = _best(advice)[:DRAWN]
    drawn += [chosen] if chosen not in drawn else []
    shares: list[dict[Configuration, Spread]] = []
    for value, at_rate, sign in (("rate", False, 1), ("p99_us", True, -1), ("pss", False, -1)):
        known = {
            one: found
            for one in drawn
            if (
                found := spread(
                    max(getattr(s, value), 1) ** sign for s in advice.taken(one, at_rate=at_rate)
                )
            )
        }
        best = max((found.median for found in known.values()), default=1.0) / 100
        shares.append(
            {
                one: Spread(found.median / best, found.low / best, found.high / best, found.rounds)
                for one, found in known.items()
            }
        )
    bars = [
        Bar(one.name, colour_of(one.name), [of.get(one) for of in shares], strong=one == chosen)
        for one in drawn
    ]
    return Bars(
        "choice",
        "What was measured, in percent of the best",
        Axis("of the best (longer is better)", "%"),
        bars,
        parts=("requests/s", "p99", "memory"),
        caption="p99 and memory: the lowest divided by this one's.",
    )


def _measured(samples: Sequence[Record]) -> Table:
    fields = {
        "rate": Column("throughput", "1/s"),
        "p99_us": Column("p99", "ms", 1, 1e-3),
        "cpu_us": Column("CPU", "ms a request", 2, 1e-3),
        "pss": Column("PSS", "MiB", 1, 2.0**-20),
        "processes": Column("processes"),
        "client_busy": Column("client busy", "%", 0, 100),
        "wrong": Column("wrong", "%", 1, 100),
    }
    columns = [Column(name) for name in ("configuration", "for", "connections")]
    columns += [Column("asked", "1/s"), Column("samples"), *fields.values()]
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for s in samples:
        key = (
            str(s["server"]),
            str(s["stage"]),
            float(s["connections"]),
            float(s["asked"]) or None,
        )
        groups.setdefault(key, []).append(s)
    rows = [
        [*key, float(len(taken)), *(spread(s[field] for s in taken) for field in fields)]
        for key, taken in groups.items()
    ]
    return Table("measured", "Everything", columns, rows)


def publish(told: Sequence[Section], results: Results, where: Path) -> None:
    """Writes the page."""
    try:
        # Only now: what pages and figures need is slow to load, and a search does without it.
        from loadtests.reporting import page

        where.write_text(page.html("Advice", told, results), encoding="utf-8")
        print(f"page: {where}", file=sys.stderr)
    except ImportError as error:
        print(f"loadtests: there is no {error.name}: pip install '.[lab]'", file=sys.stderr)
    except OSError as error:
        print(f"loadtests: {where}: {error.strerror}", file=sys.stderr)
