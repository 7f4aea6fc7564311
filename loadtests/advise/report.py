"""What `advise` recommends and why: on a terminal, as an ini file, and as a page.

Which configuration, what limits it, and the cost of another or a larger one, in sentences.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from loadtests.advise.answer import ENOUGH, OTHERS, P99, ROUGH, THROUGHPUT, Advice
from loadtests.advise.commands import PLACEHOLDERS, Commands
from loadtests.advise.configuration import COMPUTING, THREADS, WAITING, WORKERS, Configuration
from loadtests.advise.target import Target
from loadtests.advise.trial import EXPERIMENT
from loadtests.clients.load import SATURATED
from loadtests.errors import LabError
from loadtests.reporting.model import Axis, Bar, Bars, Cell, Column, Figure, Section, Table
from loadtests.servers.registry import colour_of
from loadtests.stats.results import Results, Spread, spread
from loadtests.store import Record
from loadtests.studies import tables

WIDTH = 78
ROWS = 6
"""Configurations that are shown on the terminal."""
DRAWN = 10
"""Configurations in the picture: the best."""
ALIKE, UNSURE = "≈", "~"
FILE = "poorhttp.ini"
ANSWERS = "The recommendation"
BUSY = 0.8
"""Share of the cores that are there from which on they are the limit."""
SLOWER = 1.5
"""How many times longer a request takes under load before what it waits for is the limit."""
GROWS = 0.5
"""The power of their number with which requests/s grow if workers, or threads, are the limit."""
DEARER = 1.4
"""How many times the CPU time of a request with more threads tells of Python's lock."""
CALM = 1.25
"""How many times the best p99 is good enough for the recommendation."""
HEADROOM = 1.5
"""How many times a given rate the recommendation has to be able to do, if anything can."""


def recommended(advice: Advice) -> Configuration:
    """The smallest with nearly the best throughput (or enough for the rate asked for) and p99."""
    if len(advice.wish.aims) == 1 and advice.answers:
        return next(iter(advice.answers.values())).configuration
    through, late = advice.found[THROUGHPUT], advice.found.get(P99)
    leader = through.leader()
    assert leader is not None
    wanted = min(ENOUGH * advice.best, HEADROOM * (advice.wish.rate or math.inf))
    able = [
        one for one in through.seen if one not in through.failed and through.score(one) >= wanted
    ] or [leader]
    known = [one for one in able if late and late.score(one) and one not in late.failed]
    if late and known:
        calmest = max(known, key=late.score)
        able = [
            one for one in known if late.ratio(one, calmest) >= 1 / CALM or late.alike(one, calmest)
        ]
    return min(able, key=lambda one: one.size)


def limit(advice: Advice, chosen: Configuration) -> tuple[str, str]:
    """What limits a configuration (a word), and the sentence that says so."""
    wish, probe = advice.wish, advice.probe
    cores, connections = wish.cores, wish.connections[-1]
    rate, client = advice.median(chosen, "rate"), advice.median(chosen, "client_busy")
    used = rate * advice.median(chosen, "cpu_us") / 1e6
    wanted = used + rate * advice.median(chosen, "delayed_us") / 1e6
    # These are medians of their own, and of different times.
    others = min(advice.median(chosen, "others_busy") * cores, max(cores - used - client, 0))
    # The best that takes more memory than is allowed, if it is better than all that do not.
    larger = max(
        (s for s in advice.samples if s.pss > wish.max_memory > 0 and not s.asked),
        key=lambda sample: sample.rate,
        default=None,
    )
    if larger and larger.rate > advice.best:
        return "memory", (
            f"memory: {larger.configuration.name} does {larger.rate / rate:.1f} × as much, but "
            f"takes {larger.pss / 2**20:,.0f} MiB, more than the {wish.max_memory / 2**20:,.0f} "
            "allowed."
        )
    if client >= SATURATED:
        return "the client", (
            "the client that measures: it had no core left, so the application can do more than "
            "could be measured here."
        )
    computes = used >= BUSY * (cores - client)
    if not computes and (name := _grows(advice, chosen)):
        return name, f"{name}: {_number_of(advice, chosen, name)}"
    inside = min(connections, chosen.at_once)
    alone, loaded = probe.service * 1e3, inside / max(rate, 1e-9) * 1e3
    # What others use is no computing of an application that waits.
    if probe.kind == COMPUTING:
        computes |= used >= BUSY * (cores - client - others) or wanted >= BUSY * (cores - client)
    elif loaded > SLOWER * alone:
        computes |= wanted >= BUSY * (cores - client)
    if computes:
        text = f"computing: {used:.1f} of {cores} cores work for the application"
        text += f", {client:.1f} for the client that measures" if client >= 0.1 else ""
        text += f", {others:.1f} for something else" if others >= OTHERS * cores else ""
        return "computing", f"{text}. More needs more cores, or less work for each request."
    if chosen.has_workers and used >= BUSY * chosen.workers:
        return "the lock", (
            "Python's lock: each process computes on one core at a time, so that "
            f"{cores - chosen.workers} of {cores} cores are idle. More needs more workers."
        )
    one_each = " If a worker serves one request at a time, more workers do more."
    why = "A database, its lock, or another server: no configuration mends that."
    if chosen.at_once < connections:
        why = "A database, its lock, another server, or connections that workers share unequally: "
        why += "try whether more threads do more (--max-threads)."
    if loaded > SLOWER * alone and probe.kind != COMPUTING:
        return "waiting", (
            f"waiting for something that gets slower: {alone:,.1f} ms alone, {loaded:,.0f} ms with "
            f"{inside:.0f} requests at once, while {used:.1f} of {cores} cores compute. {why}"
            + one_each
            * (chosen.told is not None and math.isinf(chosen.at_once))
        )
    if loaded > SLOWER * alone:
        return "the lock", (
            f"a lock: {inside:.0f} requests at once take {loaded:,.1f} ms each instead of "
            f"{alone:,.1f}, while only {used:.1f} of {cores} cores compute. Python's own, that of "
            "a database, or one of the application."
        )
    if chosen.at_once < connections:
        return "waiting", (
            f"waiting: all {inside:.0f} threads wait most of the time. More threads do more "
            "(--max-threads)."
        )
    return "waiting", (
        f"waiting: all {connections} connections of this test wait for the application, which "
        "itself waits. More clients would get more (--connections)."
    )


def _grows(advice: Advice, chosen: Configuration) -> str:
    """What limits an application that waits: "workers" or "threads", if it is their number.

    That is seen in a configuration with more of them, or else with fewer. Without any, it is so if
    there are as many requests at once as it has of them, a request of each, and none takes longer.
    """
    probe, rate = advice.probe, advice.median(chosen, "rate")
    inside = chosen.workers * chosen.threads
    if probe.kind == COMPUTING or inside >= advice.wish.connections[-1] or not rate:
        return ""
    compared = False
    for name in PLACEHOLDERS:
        here, plain = getattr(chosen, name), replace(chosen, preload=False)
        rates = {
            number: advice.median(one, "rate")
            for one in advice.found[THROUGHPUT].seen
            if replace(plain, **{name: (number := getattr(one, name))}) == one != plain
        }
        if rates:
            compared = True
            # The farther they are apart, the less is noise.
            far = min(rates, key=lambda number: (number < here, -abs(number - here)))
            if math.log((rates[far] or rate) / rate) / math.log(far / here) >= GROWS:
                return name
    # Waiting for a core is not the application's.
    at_once = rate * (probe.service + advice.median(chosen, "delayed_us") / 1e6)
    if compared or not inside / SLOWER <= at_once <= inside * SLOWER:
        return ""
    told = chosen.told or (("threads",) if chosen.mode == "threading" else ())
    return told[-1] if told else ""


def _number_of(advice: Advice, chosen: Configuration, name: str) -> str:
    """That more of them do more, and how to try that."""
    number, guesses = getattr(chosen, name), advice.found[THROUGHPUT].guesses
    of_all = number * (chosen.workers if name == "threads" else 1)
    most = max((getattr(one, name) for one in guesses if one.mode == chosen.mode), default=0)
    limit = {"workers": WORKERS, "threads": THREADS}[name][-1]
    text = f"all {of_all} wait most of the time. "
    if number == most < limit and advice.probe.kind == WAITING:
        larger = min(2 * number, limit)
        return f"{text}No more were allowed: --max-{name} {larger} tries more."
    return f"{text}More {name} do more."


def crowding(advice: Advice) -> str:
    """What more threads cost in computing, if that can be seen; a sentence or nothing."""
    seen: dict[tuple[str, int], dict[int, float]] = {}
    for one in advice.found[THROUGHPUT].seen:
        costs = seen.setdefault((one.mode, one.workers), {})
        costs[one.threads] = advice.median(one, "cpu_us")
    for _, costs in sorted(seen.items()):
        few, many = min(costs), max(costs)
        if costs[few] and costs[many] >= DEARER * costs[few]:
            return (
                f"With {many} threads a request takes {costs[many] / 1e3:,.1f} ms of computing, "
                f"with {few} only {costs[few] / 1e3:,.1f}: threads that compute wait for Python's "
                "lock."
            )
    return ""


def others(advice: Advice, chosen: Configuration) -> list[str]:
    """Sentences on the other answers: what it costs to take them instead."""
    aims: dict[Configuration, list[str]] = {}
    for aim, (one, _) in advice.answers.items():
        if one != chosen:
            aims.setdefault(one, []).append(aim)
    return [
        f"{one.name}, for {' and '.join(which)}: {_against(advice, one, chosen)}."
        for one, which in aims.items()
    ]


def _against(advice: Advice, one: Configuration, chosen: Configuration) -> str:
    """How one differs from the recommendation, as far as it can be told."""
    told = []
    for aim, at_rate, value, unit, scale in (
        (THROUGHPUT, False, "rate", "requests/s", 1.0),
        (P99, True, "p99_us", "ms p99", 1e-3),
    ):
        found = advice.found.get(aim)
        new = advice.median(one, value, at_rate=at_rate) * scale
        old = advice.median(chosen, value, at_rate=at_rate) * scale
        mark, its = (UNSURE * (at_rate and advice.is_rough_p99(each)) for each in (one, chosen))
        if found is None or not new or not old:
            continue
        places = 0 if aim == THROUGHPUT or old >= 100 else 1
        if {one, chosen} <= set(found.guesses) and found.alike(one, chosen):
            told.append(f"{unit} not told apart")
        else:
            told.append(f"{mark}{new:,.{places}f} {unit} instead of {its}{old:,.{places}f}")
    # Under full load, or else at the rate.
    new, old = (
        advice.median(each, "pss") or advice.median(each, "pss", at_rate=True)
        for each in (one, chosen)
    )
    told.append(f"{abs(new - old) / 2**20:,.0f} MiB {'more' if new > old else 'less'}")
    return ", ".join(told)


def step(advice: Advice, chosen: Configuration) -> str:
    """What the next larger configuration costs and brings, measured if it was, else expected.

    Empty if the command of a server is told no numbers.
    """
    wish, found = advice.wish, advice.found[THROUGHPUT]
    limited, cores = limit(advice, chosen)[0], wish.cores
    if not chosen.values():
        return ""
    threads = chosen.mode == "threading" or "threads" in (chosen.told or ())
    if limited in PLACEHOLDERS:
        larger = replace(chosen, **{limited: 2 * getattr(chosen, limited)})
    elif (
        threads
        and chosen.threads < THREADS[-1]
        and (limited == "waiting" or chosen.told == ("threads",))
    ):
        larger = replace(chosen, threads=2 * chosen.threads)
    elif not chosen.has_workers:
        return ""
    elif chosen.mode == "single":
        larger = Configuration("forking", 2)
    else:
        larger = replace(chosen, workers=chosen.workers + 1)
    waits = limited in ("waiting", *PLACEHOLDERS)
    more_cores = larger.workers > cores and not waits
    if more_cores:
        cores = larger.workers
    rate, pss = advice.median(larger, "rate"), advice.median(larger, "pss")
    how = "measured"
    if not rate or more_cores:
        connections, probe = wish.connections[-1], advice.probe
        grown = probe.throughput(larger, connections, cores)
        grown /= probe.throughput(chosen, connections, wish.cores)
        if limited in PLACEHOLDERS:
            grown = min(2, connections / (chosen.workers * chosen.threads))
        rate, how = found.score(chosen) * grown, "expected"
        pss = advice.median(chosen, "pss") + probe.memory(larger) - probe.memory(chosen)
    now = advice.median(chosen, "rate")
    on = f" on {cores} cores" if more_cores else ""
    gain = rate / now if now else math.nan
    return (
        f"{larger.name}{on}: {(pss - advice.median(chosen, 'pss')) / 2**20:+,.0f} MiB for "
        f"{gain:.2f} × the requests/s ({how})."
        + ("" if not more_cores else " On this machine its cores are the limit, not workers.")
    )


def terminal(advice: Advice, target: Target | Commands, written: str = "") -> str:
    """The recommendation as a file, why, and what it costs to do otherwise; on one screen."""
    chosen = recommended(advice)
    told = [_headline(advice, chosen), "", target.ini(chosen, []).rstrip(), ""]
    if written:
        told += [f"It is in {written}: {target.start(written)}", ""]
    told += [*_ranking(advice, chosen), ""]
    item = textwrap.TextWrapper(WIDTH, initial_indent="- ", subsequent_indent="  ")
    told += map(item.fill, sentences(advice, chosen))
    return "\n".join(told)


def _headline(advice: Advice, chosen: Configuration) -> str:
    busy = "The machine was busy, so this is rough. " * advice.is_rough
    if len(advice.found[THROUGHPUT].guesses) > 1:
        return f"{busy}If unsure, take this: {chosen.name}"
    return f"{busy}{chosen.name}: nothing to choose from, so this is what it does"


def sentences(advice: Advice, chosen: Configuration) -> list[str]:
    """What limits the application, what other choices cost, and what has to be known."""
    probe = advice.probe
    told = [
        f"Alone a request takes {probe.service * 1e3:,.1f} ms, {probe.cpu * 1e3:,.1f} ms of CPU "
        f"time: {probe.kind}. What limits it under load is {limit(advice, chosen)[1]}",
        *others(advice, chosen),
        *([f"A step up, {larger}"] if (larger := step(advice, chosen)) else []),
        crowding(advice),
        *advice.remarks,
    ]
    return [sentence for sentence in told if sentence]


def reasons(advice: Advice) -> list[str]:
    """Why, as comments of the file."""
    chosen = recommended(advice)
    seen = (
        f"Measured: {advice.median(chosen, 'rate'):,.0f} requests/s with "
        f"{advice.wish.connections[-1]} connections, "
        f"{advice.median(chosen, 'pss') / 2**20:,.0f} MiB."
    )
    why = f"What limits it: {limit(advice, chosen)[1]}"
    return [*textwrap.wrap(seen, WIDTH), *textwrap.wrap(why, WIDTH)]


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
            found = advice.found.get(aim)
            leader = found.leader() if found else None
            mark = ""
            if found and leader and one != leader and one in found.guesses:
                mark = ALIKE * found.alike(one, leader)
            mark += UNSURE * (at_rate and advice.is_rough_p99(one))
            cells.append((f"{mark}{number:{form}}" if number else "–").rjust(width))
        cells.append(f"{advice.median(one, 'wrong') * 100:7.1f} %")
        lines.append("".join(cells) + f"{advice.median(one, 'pss') / 2**20:7,.0f} MiB")
    if any(ALIKE in line for line in lines):
        lines.append(f"{ALIKE} the noise of these measurements does not tell it from the best")
    if any(UNSURE in line for line in lines):
        lines.append(f"{UNSURE} rough: {ROUGH}")
    return lines


def _best(advice: Advice) -> list[Configuration]:
    """Those that were measured, most requests per second first."""
    seen = dict.fromkeys(sample.configuration for sample in advice.samples)
    able = [one for one in seen if advice.taken(one)]
    return sorted(able, key=lambda one: advice.median(one, "rate"), reverse=True)


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
    raise LabError(f"{where} already exists; it is not overwritten")


def sections(results: Results, advice: Advice | None, asked: str) -> list[Section]:
    """The page; without advice, what was measured before it came to nothing."""
    samples = results.experiment(EXPERIMENT).samples
    text = (
        "Each candidate was started anew for each measurement, asked, and stopped; server and "
        "client may use all cores. Short measurements find the leaders, longer ones in turns "
        "decide between them. Medians, and from the lowest to the highest."
    )
    measured = Section("What was measured", [text], [_measured(samples)] if samples else [])
    return [*(_answers(advice, asked) if advice else []), measured]


def stored(results: Results) -> list[Section]:
    """What stored results have of a search: the answers with their reasons, what was measured."""
    own = results.experiment(EXPERIMENT)
    if not own.samples:
        return []
    rows = [
        [str(one["aim"]), str(one["server"]), str(one["reason"])]
        for one in results.notes
        if one.get("experiment") == EXPERIMENT and "aim" in one
    ]
    table = Table("advice", "", [Column("best for"), Column("configuration"), Column("why")], rows)
    return [Section(ANSWERS, parts=[table] if rows else []), *sections(results, None, "")]


def _answers(advice: Advice, asked: str) -> list[Section]:
    chosen = recommended(advice)
    answers = {"if unsure": chosen} | {aim: one for aim, (one, _) in advice.answers.items()}
    names = dict.fromkeys(name for one in answers.values() for name in one.values())
    rows: list[list[Cell]] = [
        [name, *(one.values().get(name, "") for one in answers.values())] for name in names
    ]
    columns = [Column("option"), *(Column(name) for name in answers)]
    text = [
        f"It was asked: {asked}. The search took {advice.seconds:.0f} s.",
        *sentences(advice, chosen),
        *(f"**{aim}**: {one.name}. {reason}." for aim, (one, reason) in advice.answers.items()),
        f"The answer for memory is the least of those that reach {ENOUGH * 100:.0f} % of the best "
        "throughput. What noise does not tell apart goes to the smaller one.",
    ]
    parts: list[Table | Figure] = [_picture(advice, chosen)]
    parts += [Table("answers", "", columns, rows)] if rows else []
    best = Section(ANSWERS, [], parts, answer=f"{_headline(advice, chosen)}.")
    return [best, Section("Why", text)]


def _picture(advice: Advice, chosen: Configuration) -> Bars:
    """Throughput, p99 and memory of the best, each as a share of the best value."""
    drawn = _best(advice)[:DRAWN]
    drawn += [chosen] if chosen not in drawn else []
    shares: list[dict[Configuration, Spread]] = []
    for value, at_rate, sign in (("rate", False, 1), ("p99_us", True, -1), ("pss", False, -1)):
        values = {
            one: [max(getattr(s, value), 1) ** sign for s in advice.taken(one, at_rate=at_rate)]
            for one in drawn
        }
        known = {one: found for one in drawn if (found := spread(values[one]))}
        best = max((found.median for found in known.values()), default=1.0)
        shares.append({one: tables.scaled(found, 100 / best) for one, found in known.items()})
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
        key = (s["server"], s["stage"], float(s["connections"]), float(s["asked"]) or None)
        groups.setdefault(key, []).append(s)
    rows = [
        [*key, float(len(taken)), *(tables.cell(taken, field) for field in fields)]
        for key, taken in groups.items()
    ]
    return Table("measured", "Everything", columns, rows)
