"""The study `ordered`: who answers sooner, with each content and each number of clients."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from loadtests.servers.fixtures import Fixtures
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import ORDERED
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.ordered import measuring, report, second_client
from loadtests.studies.ordered.measuring import CONTENTS, PAGE, Task
from loadtests.studies.study import Scale, Study

NAME = "ordered"
Serving = Mapping[str, Server]


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """The steps of all contents, one after the other; then those of both clients."""
    fixtures = lab.fixtures.enter_context(Fixtures())
    steps = []
    for content in CONTENTS:
        rounds = replace(lab, rounds=min(content.rounds, scale.rounds))
        servers = content.servers(fixtures)
        mine = [server for server in chosen if server.name in servers]
        for at_once in content.levels(scale):
            task = Task(content.number(scale), at_once, content.longest)
            take = partial(_take, lab, servers, content.name, task)
            steps += sample.rounds(rounds, mine, f"{NAME} {content.name} at {at_once}", take)
    servers = PAGE.servers(fixtures)
    for at_once in second_client.LEVELS:
        task = Task(PAGE.number(scale), at_once, PAGE.longest)
        steps += [
            Step(
                server,
                f"{NAME} {second_client.KIND} at {at_once}, {server.name}",
                partial(_compare, lab, servers, task, server),
            )
            for server in chosen
            if server.name in second_client.ASKED and at_once <= task.requests
        ]
    return steps


def _take(lab: Lab, servers: Serving, content: str, task: Task, number: int, server: Server) -> str:
    one = servers[server.name]
    described, died = measuring.sample(lab, one, task)
    scenario, command = f"{content}-{task.at_once}", one.command.replace("~", " ")
    Trial(lab, NAME, number, server).sample(scenario=scenario, command=command, **described)
    if died:
        raise died
    return f"{described['rate']:9,.0f}/s  {described['failed']} failed"


def _compare(lab: Lab, servers: Serving, task: Task, server: Server) -> str:
    found = second_client.compare(lab, servers[server.name], task)
    scenario = f"{second_client.KIND}-{task.at_once}"
    Trial(lab, NAME, 0, server).sample(scenario=scenario, **found)
    return f"{found['fetch_ms']['total']:.2f} ms, by ab {found['ab_ms']['total']:.0f} ms"


STUDY = Study(
    NAME,
    "connect, processing and total time over the ordered requests",
    "KLone",
    lambda: ORDERED,
    plan,
    report.sections,
)
