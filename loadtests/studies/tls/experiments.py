"""Handshakes, answers over TLS, and the findings of testssl.sh."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from loadtests import programs
from loadtests.clients.load import Load
from loadtests.clients.native import tls
from loadtests.errors import LabError, ServerFailure
from loadtests.servers.application import Application
from loadtests.servers.certificate import KINDS, certificate
from loadtests.servers.fixtures import Fixtures
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.studies import engine
from loadtests.studies.bench.scenarios import Scenario
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.study import Scale

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
    """The steps of an experiment."""
    if name == CHECKS:
        once = replace(lab, rounds=1)
        return [
            Trial(once, CHECKS, 0, certified(server, "ecdsa")).step(
                partial(check, fixtures.static, scale.amounts.checked)
            )
            for server in servers
        ]
    known = {kind: {one.name: certified(one, kind) for one in servers} for kind in KINDS}
    asked = [
        {
            known[kind][server.name]: scenario
            for server in servers
            if scenario.target == PAGE or server.name not in SMALL_ONLY
        }
        for kind, scenario in scenarios(fixtures.static)[name]
    ]
    return engine.steps(lab, asked, name)


def check(static: Application, sections: Sequence[str], trial: Trial) -> str:
    """What testssl.sh finds of a server that listens with a certificate of its own."""
    with (
        Running(trial.server, static, target=PAGE, core=trial.lab.server_core) as running,
        tempfile.TemporaryDirectory() as folder,
    ):
        report = Path(folder) / "findings.json"
        command = [programs.path("testssl"), "--quiet", "--color", "0", "--warnings", "batch"]
        command += [*sections, "--jsonfile", str(report), f"localhost:{running.port}"]
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=CHECK_SECONDS,
            check=False,
        )
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
