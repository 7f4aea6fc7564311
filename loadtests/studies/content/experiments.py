"""The experiments of `content`; each is a number of steps in interleaved rounds."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from loadtests.clients.load import Load
from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.servers.material import TABLE, Material, visits
from loadtests.servers.registry import Server, content
from loadtests.servers.running import Running
from loadtests.studies import engine
from loadtests.studies.bench.scenarios import Scenario
from loadtests.studies.engine import Lab, Step
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
LONGEST = 60.0
"""Seconds for a number of requests."""
GB = 1e9


@dataclass(frozen=True)
class Visiting(Scenario):
    """A scenario of `fetch`: what a visit asks for, one after the other, on a kept connection."""

    visits: tuple[tuple[str, ...], ...] = ()

    def drive(self, port: int, seconds: float, core: int | None) -> Load:
        """Makes the visits in their order."""
        return fetch.drive(port, seconds, self.connections, self.visits, core=core)


@dataclass(frozen=True)
class Counted(Scenario):
    """A scenario of a number of requests, each on a connection of its own."""

    requests: int = PROGRAM_REQUESTS

    def drive(self, port: int, seconds: float, core: int | None) -> Load:
        """Makes all requests, for LONGEST at most; `seconds` does not matter."""
        targets = [[self.target]]
        return fetch.drive(
            port,
            LONGEST,
            self.connections,
            targets,
            requests=self.requests,
            keep=False,
            core=core,
        )


def page(lab: Lab, material: Material, servers: Sequence[Server], connections: int) -> list[Step]:
    """A small page again and again."""
    scenario = Scenario(
        "static-page", "1.5 KB page", material.static, connections, target="/page.html"
    )
    return engine.steps(lab, servers, [scenario], f"page-{connections}")


def site(lab: Lab, material: Material, servers: Sequence[Server]) -> list[Step]:
    """Pages of five at random, each with its images, on one kept connection."""
    random, five = Random(1), visits()
    chosen = tuple(tuple(random.choice(five)) for _ in range(SITE_VISITS))
    title = "five pages with their images"
    scenario = Visiting("site", title, material.static, 64, target="/index1.html", visits=chosen)
    return engine.steps(lab, servers, [scenario], "site")


def file(lab: Lab, material: Material, servers: Sequence[Server]) -> list[Step]:
    """A large file for many clients at once, and the memory that this takes."""
    scenario = Visiting(
        "file",
        "10 MB file",
        material.static,
        DOWNLOADS,
        target="/large.bin",
        visits=(("/large.bin",),),
    )

    def step(number: int, server: Server) -> Step:
        def action() -> str:
            with Running(
                server, scenario.application, target=scenario.target, core=lab.server_core
            ) as running:
                before = resources.memory(running.processes())
                with resources.Watch(running.processes) as watch:
                    sample = engine.observe(lab, "file", number, server, scenario, running)
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
            lab.store.add("sample", **sample)
            grown = (watch.highest.pss - before.pss) / 2**20
            return f"{sample['cpu_ms_per_gb']:.1f} ms per GB, {grown:.1f} MiB more"

        return Step(server, f"file, round {number + 1}, {server.name}", action)

    return [step(number, server) for number, server in engine.in_turns(lab, servers)]


def cgi(lab: Lab, material: Material, chosen: set[str]) -> list[Step]:
    """A number of requests for programs, so many at once; all cores for everybody."""
    requests = PROGRAM_REQUESTS if lab.rounds > 1 else PROGRAM_REQUESTS // 10
    steps = []
    for language, name in PROGRAMS.items():
        for at_once in PROGRAM_LOADS:
            scenario = Counted(
                f"cgi-{language.lower()}",
                f"CGI program in {language}",
                material.cgi,
                at_once,
                target=f"/{name}?a=1",
                requests=max(requests, at_once),
            )
            servers = [one for one in content.programs(at_once) if one.name in chosen]
            steps += [
                Step(
                    server,
                    f"{scenario.name}, round {number + 1}, {server.name}",
                    partial(_run_programs, lab.unpinned(), number, server, scenario),
                )
                for number, server in engine.in_turns(lab, servers)
            ]
    return steps


def _run_programs(lab: Lab, number: int, server: Server, scenario: Counted) -> str:
    """Programs have ended when they are looked for, so CPU time is that of the server's whole life.

    Without its start, which ends with the first answer; its end is part of it.
    """
    ended = resources.ended_seconds()
    with Running(server, scenario.application, target=scenario.target) as running:
        started = resources.cpu_seconds(running.processes())
        warm = fetch.drive(
            running.port, LONGEST, 1, [[scenario.target]], requests=WARM_REQUESTS, keep=False
        )
        busy = resources.machine_busy_seconds()
        load = scenario.drive(running.port, lab.seconds, lab.client_core)
        busy = resources.machine_busy_seconds() - busy
        if load.requests < scenario.requests:
            raise ServerFailure(f"{load.requests} answers in {LONGEST:.0f} s, {load.errors}")
        used = _settled(running)
    clients = sum(one.busy * one.seconds for one in (warm, load))
    spent = resources.ended_seconds() - ended - started - clients
    cpu = spent * load.requests / (load.requests + warm.requests)
    sample = engine.described("cgi", number, server, scenario, load, cpu, load.seconds, busy, used)
    lab.store.add("sample", **sample)
    return f"{sample['cpu_us']:8.0f} µs  {sample['rate']:9,.0f}/s"


def _settled(running: Running) -> resources.Memory:
    """The memory of the server when the last program has ended."""
    before: list[int] = []
    while (now := running.processes()) != before:
        before = now
        time.sleep(SETTLING)
    return resources.memory(now)


def tables(material: Material) -> dict[Server, Scenario]:
    """Who makes the page with a table, and by which address."""
    title = "page with a table"
    kinds = [
        (content.PAGES, material.pages, "/table.html"),
        (content.FLASK, material.view, "/table"),
        (content.PHP, material.php, "/table.php"),
    ]
    return {
        server: Scenario("template", title, application, 64, target=target + TABLE)
        for servers, application, target in kinds
        for server in servers
    }


def template(lab: Lab, material: Material, chosen: set[str]) -> list[Step]:
    """The same page made by each of them."""
    scenarios = {
        server: scenario for server, scenario in tables(material).items() if server.name in chosen
    }
    return [
        engine.sample_step(lab, "template", number, server, scenarios[server])
        for number, server in engine.in_turns(lab, list(scenarios))
    ]


Experiment = Callable[[Lab, Material, set[str]], list[Step]]


def _of_files(experiment: Callable[..., list[Step]], *arguments: int) -> Experiment:
    """The floor has but one answer, and that from its memory: it is for `page` only."""
    everyone = content.FILES if arguments else content.FILES[1:]

    def planned(lab: Lab, material: Material, chosen: set[str]) -> list[Step]:
        servers = [server for server in everyone if server.name in chosen]
        return experiment(lab, material, servers, *arguments)

    return planned


EXPERIMENTS: dict[str, Experiment] = {
    **{f"page-{connections}": _of_files(page, connections) for connections in PAGE_LOADS},
    "site": _of_files(site),
    "file": _of_files(file),
    "cgi": cgi,
    "template": template,
}


def plan(
    lab: Lab, scale: Scale, servers: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """The chosen experiments, one after the other."""
    del scale
    material = lab.material.enter_context(Material())
    chosen = {server.name for server in servers}
    return [step for name in options.names for step in EXPERIMENTS[name](lab, material, chosen)]
