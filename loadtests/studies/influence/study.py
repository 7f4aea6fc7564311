"""The study `influence`: every client with every server, and each one's share of the variation."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from loadtests.arguments import choose, names
from loadtests.clients.load import Job
from loadtests.clients.registry import CLIENTS, Client
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import longer
from loadtests.servers.registry import WSGI, Server
from loadtests.servers.running import Running
from loadtests.studies import sample
from loadtests.studies.bench.scenarios import PAGE
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.influence import report
from loadtests.studies.study import FULL, Scale, Study

NAME = report.NAME
CONNECTIONS = 4
"""As many as the study of 2001 had threads."""
REPLICATIONS = 2
"""At least: a single observation tells no interaction from an error."""
LONGEST_SECONDS = 0.5
"""Of a sample: there are some two hundred."""
SHARE_OF_SECONDS = 0.3
WARM_SECONDS = 0.1
LONG_WINDED = ("Locust", "Locust 2 workers")
"""Clients that take seconds to begin: only a full run has them if nobody asks for them."""
OF_LOAD = ("requests", "seconds", "octets", "mean_us", "p50_us", "p99_us", "max_us", "errors")
"""Stored as the client has them."""
_TAKING_PART = (
    *("poorhttp single", "poorhttp forking 2", "poorhttp threading 8", "poorhttp gevent"),
    *("waitress 8 threads", "gevent pywsgi", "bjoern", "Werkzeug"),
)


def servers() -> Sequence[Server]:
    """From those that are slower than any client in C to those that are faster than most."""
    return [server for server in WSGI if server.name in _TAKING_PART]


def arguments(parser: ArgumentParser) -> None:
    """Which clients."""
    parser.add_argument(
        "--clients",
        type=names,
        metavar="NAME,NAME",
        help=f"names or beginnings of: {', '.join(client.name for client in CLIENTS)}; default all",
    )


def plan(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """A step a server and round, in which all clients take their turns."""
    full = scale.name == FULL.name
    clients = [client for client in CLIENTS if full or client.name not in LONG_WINDED]
    if options.clients:
        clients = choose("client", CLIENTS, options.clients)
    rounds = max(REPLICATIONS, scale.rounds)
    seconds = min(LONGEST_SECONDS, scale.seconds * SHARE_OF_SECONDS)
    lab = replace(lab, rounds=rounds, seconds=seconds)
    return sample.rounds(lab, servers, NAME, partial(_turns, lab, clients, set()))


def _turns(lab: Lab, clients: Sequence[Client], told: set[str], number: int, server: Server) -> str:
    """A sample by each client, another one first in each round."""
    there = _there(lab, clients, told)
    first = number % len(there)
    rates = {}
    with Running(server, PAGE, core=lab.server_core) as running:
        there[0].drive(
            Job(running.port, WARM_SECONDS, CONNECTIONS, running.at("/")), lab.client_core
        )
        for client in [*there[first:], *there[:first]]:
            running.processes()
            try:
                rates[client.name] = _take(lab, number, server, client, running)
            except (ServerFailure, LabError) as failure:
                lab.store.add(
                    "failure",
                    server=server.name,
                    what=f"{NAME}, round {number + 1}, {server.name}",
                    reason=f"with {client.name}: {failure}",
                    study=NAME,
                )
    if not rates:
        raise ServerFailure("no client got an answer")
    return ", ".join(f"{name} {rate:,.0f}/s" for name, rate in rates.items())


def _there(lab: Lab, clients: Sequence[Client], told: set[str]) -> list[Client]:
    """Those clients that can run here; the others are told of, once."""
    absent = {client.name: reason for client in clients if (reason := client.missing())}
    for name in [name for name in absent if name not in told]:
        lab.store.add("missing", server=f"client {name}", reason=absent[name], study=NAME)
    told |= absent.keys()
    if len(absent) == len(clients):
        raise LabError(f"there is no client: {', '.join(absent.values())}")
    return [client for client in clients if client.name not in absent]


def _take(lab: Lab, number: int, server: Server, client: Client, running: Running) -> float:
    """Stores a sample and returns its requests per second."""
    for seconds in longer(lab.seconds):
        before = resources.cpu_seconds(running.processes())
        load = client.drive(
            Job(running.port, seconds, CONNECTIONS, running.at("/")), lab.client_core
        )
        cpu = resources.cpu_seconds(running.processes()) - before
        if not load.is_silent:
            break
    if load.requests == 0:
        raise ServerFailure(f"it answered no request: {running.last_words()}")
    Trial(lab, NAME, number, server).sample(
        scenario=f"page-{CONNECTIONS}, {client.name}",
        client=client.name,
        version=client.version(),
        **{field: getattr(client, field) for field in ("colour", "note", "spins")},
        **{field: getattr(load, field) for field in OF_LOAD},
        rate=round(load.rate, 2),
        octet_rate=round(load.octets / load.seconds, 1),
        client_busy=round(load.busy, 3),
        server_busy=round(cpu / load.seconds, 3),
    )
    return load.rate


STUDY = Study(
    NAME,
    "every client with every server: whose share of the variation is what",
    "the study of the client's influence, 2001",
    servers,
    plan,
    report.report,
    arguments,
    given=True,
)
