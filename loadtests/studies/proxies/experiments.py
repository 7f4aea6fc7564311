"""The measurements of `proxies` and `gateways`: all scenarios of a setup, one after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import longer
from loadtests.servers import proxies
from loadtests.servers.pages import PROXIED, TABLE
from loadtests.servers.proxies import Chain, Setup
from loadtests.studies.bench.scenarios import Fetched, Scenario
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.sample import rounds

AT_ONCE, EVERY = 100, 1.0
"""Requests of the study's parallel test, and the seconds from one burst of them to the next."""
CONNECTIONS = 64
WARM_SECONDS = 0.3
PAGES = ("light", "heavy")
STUDIED = [
    Fetched(f"{test}-{page}", "", TABLE, at_once, target=f"/{page}", keep=False, every=every)
    for page in PAGES
    for test, at_once, every in (
        ("crowd", AT_ONCE, 0),
        ("serial", 1, 0),
        ("parallel", AT_ONCE, EVERY),
    )
]
"""The study's serial and parallel test, and as many requests as 100 clients can make."""
PASSED = [
    Scenario(f"pass-{page}", "", PROXIED, CONNECTIONS, target=f"/{page}")
    for page in ("hello", *PAGES)
]
"""For the same nginx before ours and before uWSGI, by each protocol."""
SCENARIOS: dict[str, Sequence[Scenario]] = {"proxies": STUDIED, "gateways": PASSED}


def take(lab: Lab, experiment: str, number: int, chain: Chain, scenario: Scenario) -> str:
    """Loads a running setup and stores the sample, with the proxy's CPU time apart.

    Raises ServerFailure if a request failed or a part of the setup died.
    """
    for seconds in longer(lab.seconds):
        before, busy = chain.spent(), resources.machine_busy_seconds()
        began = time.monotonic()
        load = scenario.drive(chain.front.port, seconds, lab.client_core)
        elapsed = time.monotonic() - began
        busy = resources.machine_busy_seconds() - busy
        servers, proxy = (now - then for now, then in zip(chain.spent(), before, strict=True))
        if not load.is_silent:
            break
    failed = sum(load.errors.values())
    if load.requests == 0:
        raise ServerFailure(f"{scenario.name}: no request was answered, {failed} failed")
    used = resources.memory(chain.processes())
    trial = Trial(lab, experiment, number, chain.setup)
    sample = trial.described(scenario, load, servers + proxy, elapsed, busy, used)
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


def _run(lab: Lab, experiment: str, number: int, setup: Setup) -> str:
    scenarios = SCENARIOS[experiment]
    first, said, warm = scenarios[0], [], set[str]()
    with proxies.running(setup, first.application, first.target, lab.server_core) as chain:
        for scenario in scenarios:
            if scenario.target not in warm:
                scenario.drive(chain.front.port, min(WARM_SECONDS, lab.seconds), lab.client_core)
                warm.add(scenario.target)
            said.append(take(lab, experiment, number, chain, scenario))
    return "; ".join(said)


def steps(lab: Lab, experiment: str, chosen: Sequence[Setup]) -> list[Step]:
    """Every setup once a round with all scenarios, another one first each time."""
    return rounds(lab, chosen, experiment, partial(_run, lab, experiment))
