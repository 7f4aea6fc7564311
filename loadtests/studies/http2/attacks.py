"""Attacks on HTTP/2: what a byte of each costs the server, and what they do to another client."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from loadtests.clients.client_process import PREFERRED, YIELDING, ClientProcess, allowed
from loadtests.clients.http2_attacks import ATTACKS, Attack
from loadtests.clients.native import fetch
from loadtests.measure import resources
from loadtests.reporting.model import MIB, Cell, Column, Section, Table
from loadtests.reporting.promises import Promise, mode
from loadtests.servers.application import Application
from loadtests.servers.running import Running
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies import comparison, sample
from loadtests.studies.engine import Trial

NAME = "attacks"
ATTACKED = Application("loadtests/apps", "attacked", "app")
REQUESTS = "GET of HTTP/1.1, pipelined"
"""What attacks are compared with: honest requests, as fast as they can be sent. Attacks by whole
requests are compared with those of HTTP/2, which have a third of the bytes."""
HELD = 10
"""Connections that stop in time and are kept, for their memory."""
PAUSE = 0.002
"""Seconds between two requests of the other client."""
WHOLE_REQUESTS = ("requests", "requests with trailers", "table churn")
"""No attacks: every request is answered. They are there for comparison."""
COST, PEER, MEMORY = 1.0, 2.0, 4.0
"""Most of a byte's cost against that of honest requests, of the other client's p99 against that
beside honest requests, and of a connection's memory in MiB."""


@dataclass(frozen=True)
class Attacking:
    """A server under attack by one client process."""

    trial: Trial
    running: Running
    attacker: ClientProcess

    def take(self, name: str, order: dict[str, Any]) -> str:
        """Measures CPU time alone, and then the other client beside it."""
        before = sample.cpu_seconds(self.running)
        sent = self._ask(order)
        cpu = sample.cpu_seconds(self.running) - before
        with ThreadPoolExecutor(1) as beside:
            again = beside.submit(self._ask, order)
            other = self.peer()
            again.result()
        memory = self._memory(name) if "attack" in order else 0.0
        self.trial.sample(
            scenario=name,
            octets=sent["octets"],
            steps=sent["steps"],
            connections=sent["connections"],
            octet_ns=round(cpu / sent["octets"] * 1e9, 3),
            step_us=round(cpu / sent["steps"] * 1e6, 3),
            p99_us=other,
            memory=memory,
        )
        return f"{cpu / sent['octets'] * 1e9:.0f} ns a byte"

    def peer(self) -> float:
        """p99 of a client that asks once in a while, in microseconds.

        Beside the attacker it would wait for that one's system calls. So it has the server's core,
        where it runs at once; or the attacker's, if it may not be preferred.
        """
        lab = self.trial.lab
        launcher = PREFERRED if allowed(PREFERRED) else ()
        traced = fetch.traced(
            self.running.port,
            lab.seconds,
            1,
            [["/"]],
            keep=True,
            think=PAUSE,
            launcher=launcher,
            core=lab.server_core if launcher else lab.client_core,
        )
        return float(sample.described(NAME, traced, 0.0)["p99_us"])

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        return dict(self.attacker.ask(json.dumps(order)))

    def _memory(self, name: str) -> float:
        begun = resources.memory(self.running.processes()).uss
        self._ask({"hold": name, "count": HELD})
        held = resources.memory(self.running.processes()).uss
        return max(held - begun, 0) / HELD


def take(trial: Trial) -> str:
    """Attacks a server in every way, one after the other."""
    seconds, core = trial.lab.seconds, trial.lab.client_core
    with trial.running(ATTACKED) as running:
        sample.warm(running, "/", core)
        module = "loadtests.clients.http2_attacker"
        with ClientProcess("attacker", module, [str(running.port)], core, YIELDING) as attacker:
            attacking = Attacking(trial, running, attacker)
            trial.figure("alone", attacking.peer(), "µs")
            said = attacking.take(REQUESTS, {"requests": seconds})
            for attack in ATTACKS:
                attacking.take(attack.name, {"attack": attack.name, "seconds": seconds})
    return f"{len(ATTACKS)} attacks; {said} of honest requests"


def promises(servers: Sequence[str]) -> list[Promise]:
    """On CPU time, the other client and memory."""

    def promise(
        what: str, limit: float, unit: str, field: str, scale: float, against: bool
    ) -> Promise:
        def value(results: Results, attack: Attack, server: str) -> Spread | None:
            found = results.rounds(attack.name, server, field)
            honest = WHOLE_REQUESTS[0] if attack.waits else REQUESTS
            usual = results.rounds(honest, server, field) if against else dict.fromkeys(found, 1)
            return spread(found[key] / usual[key] * scale for key in found if key in usual)

        places = {
            f"{attack.name}, {mode(server)}": (attack, server)
            for server in servers
            for attack in ATTACKS
            if attack.name not in WHOLE_REQUESTS
        }
        return Promise(NAME, what, limit, unit, comparison.places(value, places))

    return [
        promise("CPU per byte of an attack, of honest requests", COST, "×", "octet_ns", 1.0, True),
        promise("p99 of another client, of that beside requests", PEER, "×", "p99_us", 1.0, True),
        promise("memory of an attacking connection", MEMORY, "MiB", "memory", MIB, False),
    ]


COLUMNS = {
    "octet_ns": Column("CPU per byte", "ns", 0),
    "step_us": Column("CPU per step", "µs", 1),
    "p99_us": Column("p99 of another client", "ms", 1, 1e-3),
    "memory": Column("memory", "KiB", 0, 1 / 1024),
}
"""By fields of samples."""


def report(results: Results, servers: Sequence[str]) -> list[Section]:
    """A table for each server."""
    sections = []
    for server in servers:
        rows: list[list[Cell]] = []
        for name in (REQUESTS, *(attack.name for attack in ATTACKS)):
            found = [results.median(name, server, field) for field in COLUMNS]
            if found[0] is not None:
                rows.append([name, *found])
        if rows:
            columns = [Column("attack"), *COLUMNS.values()]
            table = Table(f"http2-attacks-{mode(server)}", "", columns, rows)
            sections.append(Section(f"Attacks, {server}", parts=[table]))
    return sections
