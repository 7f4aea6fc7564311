"""The study `tls`: servers that speak TLS."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence

from loadtests.reporting.model import Cell, Column, Section, Table, method
from loadtests.reporting.promises import Places, Promise, mode
from loadtests.servers.application import Application
from loadtests.servers.fixtures import Fixtures
from loadtests.servers.registry import Server
from loadtests.servers.registry.wire import TLS
from loadtests.stats.results import Results, Spread
from loadtests.studies import comparison, tables
from loadtests.studies.comparison import P50, P99, PSS, RATE, REMARKS, Measure, median
from loadtests.studies.engine import Lab, Step
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study, scales
from loadtests.studies.tls import experiments
from loadtests.studies.tls.experiments import (
    ANSWERS,
    CHECKS,
    DOWNLOADS,
    EXPERIMENTS,
    HANDSHAKES,
    HARMLESS,
    READERS,
)

NAME = "tls"
LIMIT = 1.1
"""CPU time of ours against that of the best other server."""
SCALES = scales(
    *(FULL, QUICK, TINY),
    # The sections of testssl.sh: protocols, ciphers, forward secrecy, defaults, vulnerabilities.
    checked=(("-p", "-s", "-f", "-S", "-U"), ("-p", "-s"), ("-p",)),
)


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """The chosen experiments, one after the other."""
    fixtures = lab.fixtures.enter_context(Fixtures())
    return [
        step
        for name in options.names
        for step in experiments.steps(lab, scale, fixtures, name, chosen)
    ]


def _words() -> dict[str, dict[str, str]]:
    """The words for each scenario, by experiment."""
    known = experiments.scenarios(Application(""))
    return {
        HANDSHAKES: {
            one.name: f"TLS {one.version}, "
            + ("resumed" if one.how == "resumed" else f"full, {kind.upper()}")
            for kind, one in known[HANDSHAKES]
        },
        ANSWERS: {one.name: one.title for _, one in known[ANSWERS]},
    }


WORDS = _words()
PAGES, FILES = ({one: words} for one, words in WORDS[ANSWERS].items())


def _against_best(scenario: str, field: str) -> Promise:
    """CPU time of ours against the best of the others, within each round."""
    others = [one.name for one in TLS if not one.ours]

    def read(results: Results) -> Places:
        known = {name: found for name in others if (found := results.median(scenario, name, field))}
        best = next(iter(tables.ranked(known, known)), "")
        return {
            f"{mode(server.name)} to {best}": found
            for server in TLS
            if server.ours
            if (found := results.ratio(scenario, server.name, best, field))
        }

    experiment = HANDSHAKES if scenario in WORDS[HANDSHAKES] else ANSWERS
    words = WORDS[experiment][scenario]
    what = f"CPU per {'connection' if experiment == HANDSHAKES else 'answer'}, {words}, of the best"
    return Promise(experiment, what, LIMIT, "×", read)


def _found(results: Results) -> dict[str, dict[str, str]]:
    """Of each server what testssl.sh says, by check, of its last run."""
    return {
        note["server"]: json.loads(note["text"])
        for note in results.notes
        if note.get("experiment") == CHECKS and note["name"] == "findings"
    }


def _severity(finding: str) -> str:
    return finding.partition(":")[0]


def _harmful(results: Results) -> Places:
    """How many findings of testssl.sh on ours are neither OK nor for information."""
    counts = {
        mode(server): sum(_severity(one) not in HARMLESS for one in found.values())
        for server, found in _found(results).items()
        if any(one.name == server and one.ours for one in TLS)
    }
    return {word: Spread(count, count, count, 1) for word, count in counts.items()}


CPU = median("cpu_us", "CPU per connection", "µs", 1)
ANSWER = median("cpu_us", "CPU per answer", "µs", 1)


def _per_second(results: Results, scenario: str, server: str) -> Spread | None:
    """Connections that a core can take, by the CPU time of each."""
    found = results.rounds(scenario, server, "cpu_us").values()
    each = sorted(1e6 / one for one in found if one)
    return Spread(each[len(each) // 2], each[0], each[-1], len(each)) if each else None


CORE = Measure(Column("a core's", "/s"), _per_second, highest=True)


def report(results: Results) -> list[Section]:
    """Handshakes, answers, and what testssl.sh says."""
    told = []
    if shown := comparison.measured(results, WORDS[HANDSHAKES]):
        title = "Connections with one small answer"
        measures = (CPU, CORE)
        told.append(
            comparison.section(results, f"{NAME}-handshakes", title, shown, measures, limits=True)
        )
    for words, title, measures in (
        (PAGES, f"Answers of 1.5 KB on {READERS} kept connections", (ANSWER, RATE)),
        (FILES, f"Answers of 10 MB on {DOWNLOADS} kept connections", (ANSWER, RATE)),
    ):
        if some := comparison.measured(results, words):
            [name] = some
            told.append(
                comparison.section(
                    results, f"{NAME}-{name}", title, {name: ""}, measures, limits=True
                )
            )
    told += _checks(_found(results))
    titles = WORDS[HANDSHAKES] | WORDS[ANSWERS]
    details = (CPU.with_range(), RATE.with_range(), P50, P99, PSS, REMARKS)
    if comparison.measured(results, titles):
        told.append(comparison.details(results, NAME, titles, details))
    notes = "".join(f"- {one.name} {one.note}.\n" for one in TLS if one.note)
    if said := tables.lost(results):
        told.append(Section("Not measured", said))
    return [*told, method(__file__, more=notes, experiments=experiments)]


def _checks(found: dict[str, dict[str, str]]) -> list[Section]:
    """How many checks have which severity, and each finding that is not harmless."""
    if not found:
        return []
    severities = dict.fromkeys(_severity(one) for own in found.values() for one in own.values())
    rows: list[list[Cell]] = []
    for server, own in found.items():
        of = [_severity(one) for one in own.values()]
        rows.append([server, *(float(of.count(one)) for one in severities)])
    counted = Table(
        f"{NAME}-checks",
        "Checks of testssl.sh by severity",
        [Column("server"), *map(Column, severities)],
        rows,
        tables.ours(found),
    )
    said: list[list[Cell]] = [
        [server, name, finding]
        for server, own in found.items()
        for name, finding in own.items()
        if _severity(finding) not in HARMLESS
    ]
    columns = [Column("server"), Column("check"), Column("finding")]
    findings = Table(f"{NAME}-findings", "Findings", columns, said, tables.ours(found))
    fine = [
        server
        for server, own in found.items()
        if not {_severity(o) for o in own.values()} - set(HARMLESS)
    ]
    answer = f"Nothing is found on {tables.listed(fine)}." if fine else ""
    return [Section("testssl.sh", parts=[counted, *([findings] if said else [])], answer=answer)]


STUDY = Study(
    NAME,
    "handshakes, answers over TLS, and what testssl.sh finds",
    "",
    lambda: TLS,
    plan,
    report,
    promises=(
        *(_against_best(scenario, "cpu_us") for words in WORDS.values() for scenario in words),
        Promise(CHECKS, "findings of testssl.sh", 0, "", _harmful, places=0),
    ),
    experiments=EXPERIMENTS,
    scales=SCALES,
)
