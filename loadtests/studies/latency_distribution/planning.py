"""The steps: each content at each number of clients, in interleaved rounds."""

from __future__ import annotations

import argparse
import atexit
import functools
from collections.abc import Sequence
from dataclasses import replace

from loadtests.servers.material import Material
from loadtests.servers.registry import Server
from loadtests.servers.registry.latency_distribution import serving
from loadtests.studies import engine
from loadtests.studies.engine import Lab, Step
from loadtests.studies.latency_distribution import witness
from loadtests.studies.latency_distribution.contents import CONTENTS, Content
from loadtests.studies.latency_distribution.measuring import Task, sample
from loadtests.studies.study import Scale

NAME = "ordered"


@functools.cache
def material() -> Material:
    """The folders, for all steps; they vanish with the lab."""
    made = Material()
    atexit.register(made.__exit__, None, None, None)
    return made


def plan(
    lab: Lab, scale: Scale, servers: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """The steps of all contents, one after the other."""
    steps = []
    for content in CONTENTS:
        rounds = min(content.rounds, scale.rounds)
        takes_part = set(serving(content, material()))
        mine = [server for server in servers if server.name in takes_part]
        for at_once in content.levels(scale):
            task = Task(content.number(scale), at_once, content.longest)
            steps += [
                _step(lab, content, task, number, server)
                for number, server in engine.in_turns(replace(lab, rounds=rounds), mine)
            ]
    asked = [server for server in servers if server.name in witness.ASKED]
    requests = witness.CONTENT.number(scale)
    for at_once in witness.levels(requests):
        task = Task(requests, at_once, witness.CONTENT.longest)
        steps += [_compared(lab, task, server) for server in asked]
    return steps


def _compared(lab: Lab, task: Task, server: Server) -> Step:
    def action() -> str:
        one = serving(witness.CONTENT, material())[server.name]
        found = witness.compare(lab, one, task)
        scenario = f"{witness.KIND}-{task.at_once}"
        lab.store.add(
            "sample", experiment=NAME, scenario=scenario, server=server.name, round=0, **found
        )
        return f"{found['fetch_ms']['total']:.2f} ms, by ab {found['ab_ms']['total']:.0f} ms"

    return Step(server, f"{NAME} {witness.KIND} at {task.at_once}, {server.name}", action)


def _step(lab: Lab, content: Content, task: Task, number: int, server: Server) -> Step:
    def action() -> str:
        one = serving(content, material())[server.name]
        described, died = sample(lab, one, task)
        lab.store.add(
            "sample",
            experiment=NAME,
            scenario=f"{content.name}-{task.at_once}",
            server=server.name,
            round=number,
            command=one.server.command.replace("~", " "),
            **described,
        )
        if died:
            raise died
        return f"{described['rate']:9,.0f}/s  {described['failed']} failed"

    what = f"{NAME} {content.name} at {task.at_once}, round {number + 1}, {server.name}"
    return Step(server, what, action)
