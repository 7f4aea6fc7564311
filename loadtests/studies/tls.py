"""The study `tls`: handshakes, answers over TLS, and what testssl.sh finds."""

from __future__ import annotations

import json
import subprocess
import tempfile
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from loadtests import programs
from loadtests.clients.load import Load
from loadtests.clients.native import tls
from loadtests.errors import LabError, ServerFailure
from loadtests.reporting.model import Column, Section, method
from loadtests.reporting.promises import Places, Promise, mode
from loadtests.servers.application import Application
from loadtests.servers.certificate import KINDS, certificate
from loadtests.servers.fixtures import Fixtures
from loadtests.servers.registry import Server
from loadtests.servers.registry.wire import TLS
from loadtests.stats.results import Results, spread
from loadtests.studies import comparison, engine, tables
from loadtests.studies.bench.scenarios import Scenario
from loadtests.studies.comparison import RATE, Measure, median
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study, scales

SHAKERS, READERS, DOWNLOADS = 16, 64, 8
"""Connections at once: of handshakes, of small answers and of large ones."""
PAGE, LARGE = "/page.html", "/large.bin"
HANDSHAKES, ANSWERS, CHECKS = "handshakes", "answers", "checks"
EXPERIMENTS = (HANDSHAKES, ANSWERS, CHECKS)
SMALL_ONLY = ("HAProxy",)
RESUMED = 0.9
"""The least share of handshakes that are resumed where they should be."""
CHECK_SECONDS = 600.0
OF_CERTIFICATE = ("cert", "DNS_CAA", "OCSP", "ev_cert")
"""How the names of checks begin that are about the certificate, which is the lab's."""
HARMLESS = ("OK", "INFO")
"""Severities of testssl.sh that are no findings."""


@dataclass(frozen=True)
class Secured(Scenario):
    """A scenario over TLS of a `version`: `how` connections are made, as `tls.c` says."""

    version: str = "1.3"
    how: str = "keep"

    def drive(self, port: int, seconds: float, core: int | None) -> Load:
        """Asks for the target. Raises ServerFailure if sessions are not resumed."""
        words = self.connections, self.version, self.how, self.target
        load, found = tls.drive(port, seconds, *words, core)
        if load.is_silent:
            return load
        if not load.requests:
            raise ServerFailure(f"no request was answered: {load.errors}")
        # The first of each connection is a full one.
        more = found.handshakes - self.connections
        if self.how == "resumed" and more > 0 and found.resumed < RESUMED * more:
            told = f"{found.resumed} of {found.handshakes} handshakes"
            raise ServerFailure(f"{told} were resumed, {found.protocol}")
        return load


def certified(server: Server, kind: str) -> Server:
    """The server with a certificate of a kind, of its own."""
    return replace(server, files=(*server.files, *certificate(kind).items()))


def scenarios(static: Application) -> dict[str, list[tuple[str, Secured]]]:
    """By experiment, the kinds of certificates and what is asked for."""

    def secured(kind: str, title: str, connections: int, target: str, *how: str) -> Secured:
        return Secured(kind, title, static, connections, target=target, version=how[0], how=how[1])

    return {
        HANDSHAKES: [
            (kind, secured(f"{kind}-{version}-{how}", "", SHAKERS, PAGE, version, how))
            for how in ("full", "resumed")
            for kind in KINDS
            for version in ("1.3", "1.2")
            # What a session is resumed by has nothing to do with the certificate.
            if how == "full" or kind == "ecdsa"
        ],
        ANSWERS: [
            ("ecdsa", secured("page", "1.5 KB", READERS, PAGE, "1.3", "keep")),
            ("ecdsa", secured("large", "10 MB", DOWNLOADS, LARGE, "1.3", "keep")),
        ],
    }


def steps(
    lab: Lab, scale: Scale, fixtures: Fixtures, name: str, servers: Sequence[Server]
) -> list[Step]:
    if name == CHECKS:
        known = [certified(server, "ecdsa") for server in servers]
        checks = partial(check, static=fixtures.static, sections=scale.amounts.checked)
        return engine.rounds(replace(lab, rounds=1), CHECKS, known, checks)
    of_kind = {kind: [certified(one, kind) for one in servers] for kind in KINDS}
    asked = [
        {
            server: scenario
            for server in of_kind[kind]
            if scenario.target == PAGE or server.name not in SMALL_ONLY
        }
        for kind, scenario in scenarios(fixtures.static)[name]
    ]
    return engine.steps(lab, asked, name)


def check(trial: Trial, static: Application, sections: Sequence[str]) -> str:
    """What testssl.sh finds of a server that listens with a certificate of its own."""
    with trial.running(static, PAGE) as running, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "findings.json"
        command = [programs.path("testssl"), "--quiet", "--color", "0", "--warnings", "batch"]
        command += [*sections, "--jsonfile", str(report), f"localhost:{running.port}"]
        nothing, seconds = subprocess.DEVNULL, CHECK_SECONDS
        subprocess.run(command, stdin=nothing, capture_output=True, timeout=seconds, check=False)
        running.processes()
        if not report.is_file():
            raise LabError("testssl.sh wrote no findings")
        told = json.loads(report.read_text(encoding="utf-8"))
    found = [one for one in told if not one["id"].startswith(OF_CERTIFICATE)]
    counts = Counter(one["severity"] for one in found)
    if not counts.keys() & {"OK"}:
        raise ServerFailure(f"testssl.sh could not look at it: {dict(counts)}")
    kept = {one["id"]: f"{one['severity']}: {one['finding']}" for one in found}
    trial.note("findings", json.dumps(kept))
    bad = {name: count for name, count in counts.items() if name not in HARMLESS}
    trial.figure("checks", len(kept))
    trial.figure("findings", sum(bad.values()))
    return f"{len(kept)} checks, " + (", ".join(f"{n} {word}" for word, n in bad.items()) or "fine")


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
    return [step for name in options.names for step in steps(lab, scale, fixtures, name, chosen)]


def _words() -> dict[str, dict[str, str]]:
    """The words for each scenario, by experiment."""
    known = scenarios(Application(""))
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
        best = comparison.best(results, scenario, field, others)
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
    return comparison.noted(results, CHECKS, "findings")


def _severity(finding: str) -> str:
    return finding.partition(":")[0]


def _harmful(results: Results) -> Places:
    """How many findings of testssl.sh on ours are neither OK nor for information."""
    return {
        mode(server): tables.once(sum(_severity(one) not in HARMLESS for one in found.values()))
        for server, found in _found(results).items()
        if any(one.name == server and one.ours for one in TLS)
    }


CPU = median("cpu_us", "CPU per connection", "µs", 1)
ANSWER = median("cpu_us", "CPU per answer", "µs", 1)


CORE = Measure(
    Column("a core's", "/s"),
    lambda results, *place: spread(
        1e6 / one for one in results.rounds(*place, "cpu_us").values() if one
    ),
    highest=True,
)
"""Connections that a core can take, by the CPU time of each."""


def report(results: Results) -> list[Section]:
    """Handshakes, answers, and what testssl.sh says."""
    [page], [large] = PAGES, FILES
    shaken, files = WORDS[HANDSHAKES], f"Answers of 10 MB on {DOWNLOADS} kept connections"
    small = f"Answers of 1.5 KB on {READERS} kept connections"
    told = comparison.sections(
        results,
        (f"{NAME}-handshakes", "Connections with one small answer", shaken, (CPU, CORE)),
        (f"{NAME}-{page}", small, {page: ""}, (ANSWER, RATE)),
        (f"{NAME}-{large}", files, {large: ""}, (ANSWER, RATE)),
        limits=True,
    )
    told += _checks(_found(results))
    titles = WORDS[HANDSHAKES] | WORDS[ANSWERS]
    details = (CPU.with_range(), *comparison.DETAILS[1:])
    notes = "".join(f"- {one.name} {one.note}.\n" for one in TLS if one.note)
    how = method(__file__, more=notes, SHAKERS=SHAKERS, RESUMED=RESUMED)
    return told + comparison.ending(results, NAME, titles, details, how)


def _checks(found: dict[str, dict[str, str]]) -> list[Section]:
    """How many checks have which severity, and each finding that is not harmless."""
    if not found:
        return []
    severities = {server: [*map(_severity, own.values())] for server, own in found.items()}
    kinds = dict.fromkeys(one for own in severities.values() for one in own)
    counted = tables.table(
        f"{NAME}-checks",
        "Checks of testssl.sh by severity",
        ["server", *kinds],
        [[name, *(float(own.count(kind)) for kind in kinds)] for name, own in severities.items()],
    )
    said = [
        [server, name, finding]
        for server, own in found.items()
        for name, finding in own.items()
        if _severity(finding) not in HARMLESS
    ]
    columns = ("server", "check", "finding")
    findings = [tables.table(f"{NAME}-findings", "Findings", columns, said)] if said else []
    fine = [server for server, own in severities.items() if set(own) <= set(HARMLESS)]
    answer = f"Nothing is found on {tables.listed(fine)}." if fine else ""
    return [Section("testssl.sh", parts=[counted, *findings], answer=answer)]


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
