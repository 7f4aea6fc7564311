"""The studies `bench`, which compares all servers, and `show`, whose figures the README states."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace

from loadtests.arguments import names
from loadtests.servers import registry
from loadtests.servers.registry import SERVERS, Server
from loadtests.studies import engine
from loadtests.studies.bench import experiments, report, scenarios
from loadtests.studies.engine import Lab, Step
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study


def _arguments(command: ArgumentParser) -> None:
    command.add_argument(
        "--scenarios",
        type=names,
        metavar="NAME,NAME",
        help="kinds (hello page browser echo) or names such as hello-64, page-512, echo-64x16",
    )


def asked_for(servers: Sequence[Server], options: Namespace) -> Sequence[Server]:
    """Of these servers: a whole name stands for itself only, a beginning for those compared."""
    known = [
        name for name in options.servers or () if any(s.name.startswith(name) for s in servers)
    ]
    given = [server for server in servers if server.given]
    return [*given, *registry.named(known)] if options.servers else servers


def _compare(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """Every server once a round, in one scenario after another."""
    compared = [one.name for one in scenarios.SCENARIOS if one.compared]
    asked = options.scenarios or (compared if scale.name == FULL.name else scenarios.QUICK)
    return engine.steps(lab, scenarios.asked(asked_for(servers, options), asked))


def _show(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """The experiments one after another; some of them have a step in common."""
    return [
        replace(step, what=f"{step.what}, {name}")
        for name in options.names
        for step in experiments.steps(lab, name)
        if step.server in servers
    ]


BENCH = Study(
    "bench",
    "compare all servers in all scenarios, in turns",
    "",
    lambda: SERVERS,
    _compare,
    report.compared,
    _arguments,
    usual=tuple(server.name for server in SERVERS if server.compared),
    given=True,
    scales=(replace(FULL, seconds=2.0), QUICK, TINY),
    wrk=True,
)
SHOW = Study(
    "show",
    "run the experiments behind the promised figures",
    "",
    lambda: SERVERS,
    _show,
    report.shown,
    promises=report.PROMISES,
    experiments=experiments.EXPERIMENTS,
    also=("bench",),
    scales=(replace(FULL, rounds=5), QUICK, TINY),
    wrk=True,
)
