"""The steps: each content at each number of clients, in interleaved rounds."""

from __future__ import annotations

import argparse
import atexit
import functools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from loadtests.servers.material import Material
from loadtests.servers.registry import Server
from loadtests.servers.registry.latency_distribution import everyone, serving
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step
from loadtests.studies.latency_distribution import measuring, report, second_client
from loadtests.studies.latency_distribution.contents import CONTENTS, Content
from loadtests.studies.latency_distribution.measuring import Task
from loadtests.studies.study import Scale, Study

NAME = "ordered"


@functools.cache
def material() -> Material:
    """The folders, for all steps; they vanish with the lab."""
    made = Material()
    atexit.register(made.__exit__, None, None, None)
    return made


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """The steps of all contents, one after the other; then those of both clients."""
    steps = []
    for content in CONTENTS:
        rounds = replace(lab, rounds=min(content.rounds, scale.rounds))
        takes_part = set(serving(content, material()))
        mine = [server for server in chosen if server.name in takes_part]
        for at_once in content.levels(scale):
            task = Task(content.number(scale), at_once, content.longest)
            what = f"{NAME} {content.name} at {at_once}"
            steps += sample.rounds(rounds, mine, what, partial(_take, lab, content, task))
    asked = [server for server in chosen if server.name in second_client.ASKED]
    content = second_client.CONTENT
    requests = content.number(scale)
    for at_once in second_client.levels(requests):
        task = Task(requests, at_once, content.longest)
        what = f"{NAME} {second_client.KIND} at {at_once}"
        steps += [
            Step(server, f"{what}, {server.name}", partial(_compare, lab, task, server))
            for server in asked
        ]
    return steps


def _compare(lab: Lab, task: Task, server: Server) -> str:
    one = serving(second_client.CONTENT, material())[server.name]
    found = second_client.compare(lab, one, task)
    scenario = f"{second_client.KIND}-{task.at_once}"
    sample.store(lab, NAME, server, 0, scenario=scenario, **found)
    return f"{found['fetch_ms']['total']:.2f} ms, by ab {found['ab_ms']['total']:.0f} ms"


def _take(lab: Lab, content: Content, task: Task, number: int, server: Server) -> str:
    one = serving(content, material())[server.name]
    described, died = measuring.sample(lab, one, task)
    scenario, command = f"{content.name}-{task.at_once}", one.server.command.replace("~", " ")
    sample.store(lab, NAME, server, number, scenario=scenario, command=command, **described)
    if died:
        raise died
    return f"{described['rate']:9,.0f}/s  {described['failed']} failed"


STUDY = Study(
    NAME,
    "connect, processing and total time over the ordered requests",
    "KLone",
    everyone,
    plan,
    report.sections,
)
