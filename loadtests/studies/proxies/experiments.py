"""The measurements of `proxies` and `gateways`: all scenarios of a setup, one after the other."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from loadtests.clients.load import Load
from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.servers.pages import PROXIED, TABLE
from loadtests.servers.proxies.chain import Chain
from loadtests.servers.proxies.setups import Setup
from loadtests.studies import engine
from loadtests.studies.bench.scenarios import Scenario
from loadtests.studies.engine import Lab, Step
from loadtests.studies.study import Scale

AT_ONCE, EVERY = 100, 1.0
"""Requests of the study's parallel test, and the seconds from one burst of them to the next."""
CONNECTIONS = 64
WARM_SECONDS = 0.3
PAGES = ("light", "heavy")


@dataclass(frozen=True)
class Anew(Scenario):
    """Requests that are each made on a connection of their own.

    One when another is over, or with `every` so many at once whenever that time has passed.
    """

    every: float = 0

    def drive(self, port: int, seconds: float, core: int | None) -> Load:
        """Makes requests for `seconds`; of bursts no less than one with the time until the next."""
        if self.every:
            seconds = math.ceil(seconds / self.every) * self.every
        visits = [[self.target]]
        return fetch.drive(
            port, seconds, self.connections, visits, keep=False, every=self.every, core=core
        )


def _studied(page: str) -> list[Scenario]:
    target = f"/{page}"
    return [
        Anew(f"crowd-{page}", "", TABLE, AT_ONCE, target=target),
        Anew(f"serial-{page}", "", TABLE, 1, target=target),
        Anew(f"parallel-{page}", "", TABLE, AT_ONCE, target=target, every=EVERY),
    ]


STUDIED: Sequence[Scenario] = [scenario for page in PAGES for scenario in _studied(page)]
PASSED: Sequence[Scenario] = [
    Scenario(f"pass-{page}", "", PROXIED, CONNECTIONS, target=f"/{page}")
    for page in ("hello", *PAGES)
]


def take(lab: Lab, experiment: str, number: int, chain: Chain, scenario: Scenario) -> str:
    """Loads a running setup and stores the sample, with the proxy's CPU time apart.

    Raises ServerFailure if a request failed or a part of the setup died.
    """
    before, busy = chain.spent(), resources.machine_busy_seconds()
    started = time.monotonic()
    load = scenario.drive(chain.front.port, lab.seconds, lab.client_core)
    elapsed = time.monotonic() - started
    busy = resources.machine_busy_seconds() - busy
    after = chain.spent()
    servers, proxy = after.servers - before.servers, after.proxy - before.proxy
    failed = sum(load.errors.values())
    if load.requests == 0:
        raise ServerFailure(f"{scenario.name}: no request was answered, {failed} failed")
    sample: dict[str, Any] = engine.described(
        experiment,
        number,
        chain.setup.whole(),
        scenario,
        load,
        servers + proxy,
        elapsed,
        busy,
        resources.memory(chain.processes()),
    )
    sample |= {
        "cpu_us": round(servers / load.requests * 1e6, 4),
        "proxy_us": round(proxy / load.requests * 1e6, 4),
        "both_us": sample["cpu_us"],
        "server_busy": round(servers / elapsed, 3),
        "proxy_busy": round(proxy / elapsed, 3),
        "answer_us": load.answer_us,
        "failed": failed,
    }
    lab.store.add("sample", **sample)
    if failed:
        raise ServerFailure(
            f"{scenario.name}: {failed} requests failed beside {load.requests} answers: "
            f"{load.errors}; {chain.front.last_words()}"
        )
    said = f"{sample['cpu_us']:.2f} + {sample['proxy_us']:.2f} µs"
    return f"{scenario.name} {said} {sample['rate']:,.0f}/s"


def _run(
    lab: Lab, experiment: str, number: int, setup: Setup, scenarios: Sequence[Scenario]
) -> str:
    first = scenarios[0]
    said = []
    with Chain(setup, first.application, first.target, lab.server_core) as chain:
        warm: set[str] = set()
        for scenario in scenarios:
            if scenario.target not in warm:
                scenario.drive(chain.front.port, min(WARM_SECONDS, lab.seconds), lab.client_core)
                warm.add(scenario.target)
            said.append(take(lab, experiment, number, chain, scenario))
    return "; ".join(said)


def steps(
    lab: Lab, experiment: str, chosen: Sequence[Setup], scenarios: Sequence[Scenario]
) -> list[Step]:
    """Every setup once a round with all scenarios, another one first each time."""
    known = {setup.whole(): setup for setup in chosen}
    return [
        Step(
            server,
            f"{experiment}, round {number + 1}, {server.name}",
            partial(_run, lab, experiment, number, known[server], scenarios),
        )
        for number, server in engine.in_turns(lab, list(known))
    ]


def proxies(
    lab: Lab, scale: Scale, chosen: Sequence[Setup], options: argparse.Namespace
) -> list[Step]:
    """The study's serial and parallel test, and as many requests as 100 clients can make."""
    del scale, options
    return steps(lab, "proxies", chosen, STUDIED)


def gateways(
    lab: Lab, scale: Scale, chosen: Sequence[Setup], options: argparse.Namespace
) -> list[Step]:
    """The same nginx before ours and before uWSGI, by each protocol."""
    del scale, options
    return steps(lab, "gateways", chosen, PASSED)
