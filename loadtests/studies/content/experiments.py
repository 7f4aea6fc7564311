"""The experiments of `content`; each is a number of steps in interleaved rounds."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Collection, Sequence
from dataclasses import replace
from random import Random

from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.servers.fixtures import TABLE, Fixtures, visits
from loadtests.servers.registry import Server, content
from loadtests.servers.running import Running
from loadtests.studies import engine
from loadtests.studies.bench.scenarios import LONGEST, Fetched, Scenario
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.study import Scale

PAGE_LOADS = (64, 512)
SITE_VISITS = 1_000
DOWNLOADS = 100
"""Clients at once, as in the KLone study."""
PROGRAM_LOADS = (1, 10, 100)
PROGRAM_REQUESTS = 1_000
PROGRAMS = {"shell": "report.sh", "Perl": "report.pl"}
WARM_REQUESTS = 10
SETTLING = 0.1
"""Seconds within which a program ends that has said all."""
GB = 1e9
EXPERIMENTS = (*(f"page-{load}" for load in PAGE_LOADS), "site", "file", "cgi", "template")


def asked(fixtures: Fixtures, requests: int) -> dict[str, list[dict[Server, Scenario]]]:
    """What each server is asked in each experiment; `requests` is a number of those for programs.

    What is in one dictionary is measured in turns.
    """
    random, five, static = Random(1), visits(), fixtures.static
    chosen = tuple(tuple(random.choice(five)) for _ in range(SITE_VISITS))
    page = Scenario("static-page", "1.5 KB page", static, 0, target="/page.html")
    site = Fetched(
        "site", "five pages with their images", static, 64, target="/index1.html", visits=chosen
    )
    file = Fetched("file", "10 MB file", static, DOWNLOADS, target="/large.bin")
    table = Scenario("template", "page with a table", fixtures.pages, 64)
    # It has but one answer, and that from its memory: it is for pages only.
    floor, *others = content.FILES
    return {
        **{
            f"page-{load}": [dict.fromkeys((floor, *others), replace(page, connections=load))]
            for load in PAGE_LOADS
        },
        "site": [dict.fromkeys(others, site)],
        "file": [dict.fromkeys(others, file)],
        "cgi": [
            dict.fromkeys(
                content.programs(at_once),
                Fetched(
                    f"cgi-{language.lower()}",
                    f"CGI program in {language}",
                    fixtures.cgi,
                    at_once,
                    target=f"/{program}?a=1",
                    keep=False,
                    requests=max(requests, at_once),
                ),
            )
            for language, program in PROGRAMS.items()
            for at_once in PROGRAM_LOADS
        ],
        "template": [
            {
                server: replace(table, application=application, target=target + TABLE)
                for servers, application, target in (
                    (content.PAGES, fixtures.pages, "/table.html"),
                    (content.FLASK, fixtures.view, "/table"),
                    (content.PHP, fixtures.php, "/table.php"),
                )
                for server in servers
            }
        ],
    }


def _file(trial: Trial, scenario: Scenario) -> str:
    """A large file for many clients at once, and the memory that this takes."""
    with trial.started(scenario) as running:
        before = resources.memory(running.processes())
        with resources.Watch(running.processes) as watch:
            sample = trial.observe(scenario, running)
    cpu = sample["cpu_us"] * sample["requests"] / 1e6
    gigabytes = sample["octets"] / GB
    sample |= {
        "cpu_ms_per_gb": round(cpu * 1e3 / gigabytes, 3),
        "gb_per_second": round(gigabytes / sample["seconds"], 3),
        "pss_before": before.pss,
        "pss_highest": watch.highest.pss,
        "rss_before": before.rss,
        "rss_highest": watch.highest.rss,
    }
    trial.lab.store.add("sample", **sample)
    grown = (watch.highest.pss - before.pss) / 2**20
    return f"{sample['cpu_ms_per_gb']:.1f} ms per GB, {grown:.1f} MiB more"


def _cgi(trial: Trial, scenario: Fetched) -> str:
    """A number of requests for programs, so many at once; all cores for everybody.

    Programs have ended when they are looked for, so CPU time is that of the server's whole life:
    without its start, which ends with the first answer; its end is part of it.
    """
    ended = resources.ended_seconds()
    with trial.started(scenario) as running:
        started = resources.cpu_seconds(running.processes())
        warm = fetch.drive(
            running.port, LONGEST, 1, [[scenario.target]], requests=WARM_REQUESTS, keep=False
        )
        busy = resources.machine_busy_seconds()
        load = scenario.drive(running.port, trial.lab.seconds, trial.lab.client_core)
        busy = resources.machine_busy_seconds() - busy
        if load.requests < scenario.requests:
            raise ServerFailure(f"{load.requests} answers in {LONGEST:.0f} s, {load.errors}")
        used = _settled(running)
    clients = sum(one.busy * one.seconds for one in (warm, load))
    spent = resources.ended_seconds() - ended - started - clients
    cpu = spent * load.requests / (load.requests + warm.requests)
    sample = trial.described(scenario, load, cpu, load.seconds, busy, used)
    trial.lab.store.add("sample", **sample)
    return f"{sample['cpu_us']:8.0f} µs  {sample['rate']:9,.0f}/s"


def _settled(running: Running) -> resources.Memory:
    """The memory of the server when the last program has ended."""
    before: list[int] = []
    while (now := running.processes()) != before:
        before = now
        time.sleep(SETTLING)
    return resources.memory(now)


def steps(lab: Lab, fixtures: Fixtures, name: str, chosen: Collection[str]) -> list[Step]:
    """An experiment with those servers that are called so."""
    requests = PROGRAM_REQUESTS if lab.rounds > 1 else PROGRAM_REQUESTS // 10
    groups = [
        {server: scenario for server, scenario in group.items() if server.name in chosen}
        for group in asked(fixtures, requests)[name]
    ]
    action = {"file": _file, "cgi": _cgi}.get(name, engine.measure)
    return engine.steps(lab.unpinned() if name == "cgi" else lab, groups, name, action)


def plan(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """The chosen experiments, one after the other."""
    del scale
    fixtures = lab.fixtures.enter_context(Fixtures())
    chosen = {server.name for server in servers}
    return [step for name in options.names for step in steps(lab, fixtures, name, chosen)]
