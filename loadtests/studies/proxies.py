"""The studies `proxies` and `gateways`: ours behind proxies; nginx before ours and before uWSGI."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from loadtests.clients.load import SATURATED
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import longer
from loadtests.reporting.model import MIB, Column, Listing, Section, method
from loadtests.reporting.promises import Places, Promise, mode
from loadtests.servers import proxies
from loadtests.servers.pages import PROXIED, TABLE
from loadtests.servers.proxies import KEPT, UNIX, Chain, Setup
from loadtests.stats.results import Results, spread
from loadtests.studies import comparison, tables
from loadtests.studies.bench.scenarios import Fetched, Scenario
from loadtests.studies.comparison import CPU, P50, P99, RATE, Measure, median
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.study import QUICK, TINY, Scale, Study

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


def take(trial: Trial, chain: Chain, scenario: Scenario) -> str:
    """Loads a running setup and stores the sample, with the proxy's CPU time apart.

    Raises ServerFailure if a request failed or a part of the setup died.
    """
    for seconds in longer(trial.lab.seconds):
        before, busy = chain.spent(), resources.machine_busy_seconds()
        began = time.monotonic()
        load = scenario.drive(chain.front.port, seconds, trial.lab.client_core)
        elapsed = time.monotonic() - began
        busy = resources.machine_busy_seconds() - busy
        servers, proxy = (now - then for now, then in zip(chain.spent(), before, strict=True))
        if not load.is_silent:
            break
    failed = sum(load.errors.values())
    if load.requests == 0:
        raise ServerFailure(f"{scenario.name}: no request was answered, {failed} failed")
    used = resources.memory(chain.processes())
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
    trial.lab.store.add("sample", **sample)
    if failed:
        raise ServerFailure(
            f"{scenario.name}: {failed} requests failed beside {load.requests} answers: "
            f"{load.errors}; {chain.front.last_words()}"
        )
    said = f"{sample['cpu_us']:.2f} + {sample['proxy_us']:.2f} µs"
    return f"{scenario.name} {said} {sample['rate']:,.0f}/s"


def _run(trial: Trial) -> str:
    """All scenarios, each target warmed up once."""
    lab, setup, scenarios = trial.lab, trial.server, SCENARIOS[trial.experiment]
    assert isinstance(setup, Setup)
    first, said, warm = scenarios[0], [], set[str]()
    with proxies.running(setup, first.application, first.target, lab.server_core) as chain:
        for scenario in scenarios:
            if scenario.target not in warm:
                scenario.drive(chain.front.port, min(WARM_SECONDS, lab.seconds), lab.client_core)
                warm.add(scenario.target)
            said.append(take(trial, chain, scenario))
    return "; ".join(said)


def steps(lab: Lab, experiment: str, chosen: Sequence[Setup]) -> list[Step]:
    """Every setup once a round with all scenarios, another one first each time."""
    return rounds(lab, experiment, chosen, _run)


WHICH = {"hello": "`hello`", "light": "the light page", "heavy": "the heavy page"}
FULL = 0.95
"""The share of their core from which on proxy and servers together are the limit."""


NONE = "failed requests of all tests, alone and behind lighttpd, nginx and HAProxy"
COSTS = tuple(
    Promise(
        "",
        f"CPU per request of the servers for {words}, `{how}` to us, against `uwsgi_pass` to uWSGI",
        1,
        "×",
        # Without nginx.
        comparison.places(
            Results.ratio,
            {
                mode(one.name): (f"pass-{page}-64", one.name, one.against, "cpu_us")
                for one in proxies.GATEWAYS
                if one.against and one.name.endswith((f" by {protocol}", f" by {protocol}{UNIX}"))
            },
        ),
    )
    for page, words in WHICH.items()
    for how, protocol in (("uwsgi_pass", "uwsgi"), ("proxy_pass", "HTTP (kept)"))
)


def _per_second(field: str, name: str) -> Measure:
    """What the study calls theoretical: as many as fit into a second, one after the other."""

    def read(results: Results, scenario: str, server: str) -> float | None:
        found = results.median(scenario, server, field)
        return 1e6 / found.median if found and found.median else None

    return Measure(Column(name, "/s"), read)


def _failed(results: Results, scenario: str, server: str) -> str:
    failed, answered = (
        sum(results.rounds(scenario, server, field).values()) for field in ("failed", "requests")
    )
    return f"{failed:,.0f} of {answered + failed:,.0f}"


def _limit(results: Results, scenario: str, server: str) -> str:
    client, servers, proxy = (
        found.median if (found := results.median(scenario, server, f"{who}_busy")) else 0.0
        for who in ("client", "server", "proxy")
    )
    said = []
    if client >= SATURATED:
        said.append("client")
    if servers + proxy >= FULL:
        said.append("proxy and servers" if proxy else "server")
    shares = " + ".join(f"{share * 100:.0f}" for share in (servers, proxy, client))
    return f"{' and '.join(said) or 'nobody'} ({shares} %)"


SERVERS = median("cpu_us", "CPU of the servers", "µs", 1)
PROXY = Measure(
    Column("CPU of the proxy", "µs", 1),
    # Nothing where there is no proxy.
    lambda results, *place: spread(filter(None, results.rounds(*place, "proxy_us").values())),
)
FAILED = Measure(Column("failed"), _failed)
LIMIT = Measure(Column("limit (servers + proxy + client)"), _limit)
TIMES = (
    median("mean_us", "whole page after (res t)", "ms", 3, 1e-3),
    median("answer_us", "first bytes after (ans t)", "ms", 3, 1e-3),
    _per_second("answer_us", "ans"),
    _per_second("mean_us", "res"),
    median("rate", "real", "/s", highest=True),
    median("p99_us", "p99", "ms", 3, 1e-3),
    SERVERS,
    PROXY,
    FAILED,
)
CROWD = (
    *(RATE, P50, P99, SERVERS, PROXY),
    *(median("pss", "PSS of all", "MiB", 1, MIB), LIMIT, FAILED),
)
DETAILS = (
    CPU.with_range(),
    replace(PROXY, column=replace(PROXY.column, places=2), ranged=True),
    RATE.with_range(),
    LIMIT,
)
TESTS = {
    "serial": ("Serial test", 1, TIMES),
    "parallel": (f"Parallel test, {AT_ONCE} at once every second", AT_ONCE, TIMES),
    "crowd": (f"{AT_ONCE} clients, each asking again as soon as it is answered", AT_ONCE, CROWD),
}


def behind(results: Results) -> list[Section]:
    """The tests of the study, for each page."""
    sections, titles = [Section("Tests", [" ".join(EXPLAINED.split())])], {}
    for (test, (title, connections, measures)), page in product(TESTS.items(), PAGES):
        scenario, words = f"{test}-{page}-{connections}", f"{title}: {page}"
        titles[scenario] = words
        if shown := comparison.measured(results, {scenario: ""}):
            name, detail = f"proxies-{test}-{page}", page != PAGES[0]
            sections.append(
                comparison.section(results, name, words, shown, measures, "setup", detail=detail)
            )
    return [
        *sections,
        comparison.details(results, "proxies", titles, DETAILS, "setup"),
        method(__file__, "proxies", "proxies_alone"),
    ]


def passed(results: Results) -> list[Section]:
    """Ours and uWSGI behind the same nginx."""
    shown = comparison.measured(
        results, {one.name: WHICH[one.target.removeprefix("/")] for one in PASSED}
    )
    against = {setup.name: setup.against or setup.name for setup in proxies.GATEWAYS}
    measures = (
        CPU,
        comparison.ratio("cpu_us", lambda name: against.get(name, name), "× uWSGI"),
        median("proxy_us", "CPU of nginx", "µs", 1),
        RATE,
    )
    title = f"nginx before ours and before uWSGI, {CONNECTIONS} connections"
    listings = [
        Listing(f"nginx-{how}-{file}", f"nginx, {how}, `{file}`", text.replace("$$", "$").strip())
        for how in ("uwsgi", KEPT)
        for file, text in proxies.nginx(how).files
    ]
    compared = [
        comparison.section(results, "gateways", title, shown, measures, "setup", apart=True)
    ]
    return [
        *(compared if shown else []),
        comparison.details(results, "gateways", shown, DETAILS, "setup"),
        method(__file__, "proxies", "gateways", CONNECTIONS=CONNECTIONS, proxies=proxies),
        Section("Configurations", parts=listings, detail=True),
    ]


EXPLAINED = f"""\
The tests are those of the first Poor HTTP's study: one request after the other, each on a
connection of its own; and {AT_ONCE} at once every {EVERY:g} s, whether or not earlier ones are
answered. `ans t` is the time from the connection to the first 15 bytes, `res t` to the end of the
page, `ans/s` and `res/s` how often these fit into a second, `real/s` the requests really answered
per second of the test.
"""

SCALES = (Scale("full", 5, 0.7), QUICK, TINY)


def _failures(results: Results) -> Places:
    """Of each setup and test; a run without an answer is a failure besides, and told as such."""
    chosen = results.experiment("proxies")
    return {
        f"{server}, {scenario}": tables.once(sum(found.values()))
        for scenario in chosen.scenarios()
        for server in chosen.servers(scenario)
        if (found := chosen.rounds(scenario, server, "failed"))
    }


PROXIES = Study(
    "proxies",
    "put lighttpd, nginx and HAProxy before one and two of our servers",
    "",
    proxies.studied,
    lambda lab, _scale, chosen, _options: steps(lab, "proxies", chosen),
    behind,
    promises=(Promise("", NONE, 0, "", _failures, places=0),),
    scales=SCALES,
    strict=True,
)
GATEWAYS = Study(
    "gateways",
    "put nginx before ours and before uWSGI, by each protocol",
    "",
    lambda: proxies.GATEWAYS,
    lambda lab, _scale, chosen, _options: steps(lab, "gateways", chosen),
    passed,
    promises=COSTS,
    scales=SCALES,
    wrk=True,
    strict=True,
)
