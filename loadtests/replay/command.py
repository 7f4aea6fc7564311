"""The command line of `replay`, which sends the requests of an access log to any server.

A request's time counts from the moment at which it is due, so that pauses of the server are in it.
"""

from __future__ import annotations

import argparse
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadtests import store
from loadtests.advise.workload import timed
from loadtests.arguments import number
from loadtests.clients.native import replay
from loadtests.errors import LabError
from loadtests.measure import histogram, machine
from loadtests.measure.cpu_affinity import cores
from loadtests.replay.report import NAME, sections
from loadtests.reporting import markdown
from loadtests.reporting.progress import Progress
from loadtests.stats.results import Results
from loadtests.studies.command import publish

CONNECTIONS = 256


def add(commands: Any) -> None:
    summary = "send the requests of an access log at their recorded times, or faster"
    command = commands.add_parser(NAME, help=summary, description=f"To any server: {summary}.")
    told = "access log (Common, Combined, or ours in JSON) or JSON Lines with times"
    command.add_argument("log", type=Path, metavar="LOG", help=told)
    told = "the server: http://HOST:PORT"
    command.add_argument("--url", required=True, metavar="URL", help=told)
    options: tuple[tuple[str, Any, float | None, str, str], ...] = (
        ("speed", number(0.001, 1e6), 1.0, "TIMES", "so many times as fast (default 1)"),
        ("seconds", number(0.1), 0.0, "S", "only so many of the log, from its beginning"),
        (
            *("connections", number(1, 10_000, int), CONNECTIONS, "N"),
            f"at once, at most (default {CONNECTIONS})",
        ),
        ("output", Path, None, "FILE", "append the raw results here (JSON Lines)"),
        ("page", Path, None, "FILE", "the page (default: beside the results)"),
    )
    for flag, kind, default, metavar, told in options:
        command.add_argument(f"--{flag}", type=kind, default=default, metavar=metavar, help=told)
    command.set_defaults(run=run)


def _server(url: str) -> tuple[str, int, str]:
    """Address, port and the field Host of a URL. Raises LabError if nothing listens there."""
    try:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or parts.path.strip("/") or parts.query:
            raise LabError(f"--url {url!r}: is written http://HOST:PORT")
        place = parts.hostname, parts.port or 80
        address = str(socket.getaddrinfo(*place, socket.AF_INET)[0][4][0])
        socket.create_connection((address, place[1]), timeout=10).close()
    except (OSError, ValueError) as error:
        raise LabError(f"--url {url}: {error}") from None
    return address, place[1], parts.netloc


def run(options: argparse.Namespace, command: str) -> int:
    """Replays a log, tells the outcome and makes the page; returns the exit code."""
    placed, left_out = timed(options.log)
    if options.seconds:
        placed = [one for one in placed if one[0] < options.seconds]
    address, port, host = _server(options.url)
    requests = [
        one
        if any(name.lower() == "host" for name, _ in one.headers)
        else replace(one, headers=(("Host", host), *one.headers))
        for _, one in placed
    ]
    moments = [moment / options.speed for moment, _ in placed]
    lasts = moments[-1] + 0.1
    name = store.now()
    path = (options.output or store.new_path(name)).resolve()
    keeping = store.Store(path, name)
    keeping.study = NAME
    machine.allow_files(options.connections + 200)
    _, core = cores()
    about = {"client_core": core, "server_core": None, "commands": {}, "seconds": lasts}
    keeping.add("run", command=command, machine=machine.describe({}), **about)
    words = f"{len(requests):,} requests ({left_out:,} of the log left out), {lasts:,.0f} s"
    with Progress(1) as progress:
        progress.say(f"{options.log.name}: {words}, {len(requests) / lasts:,.1f}/s on average")
        seen = replay.drive(
            port, lasts, options.connections, requests, moments=moments, host=address, core=core
        )
        progress.step(options.url, f"{seen.load.requests:,} answered")
    keeping.add(
        "sample",
        experiment=NAME,
        server=f"{options.url} × {options.speed:g}" if options.speed != 1 else options.url,
        round=0,
        log=options.log.name,
        due=len(requests),
        left_out=left_out,
        requests=seen.load.requests,
        errors={kind: count for kind, count in seen.load.errors.items() if count},
        seconds=lasts,
        rate=len(requests) / lasts,
        times=histogram.encode(seen.times),
        max_us=seen.load.max_us,
        client_busy=seen.load.busy,
    )
    keeping.close()
    results = Results(keeping.records)
    told = sections(results)
    print(markdown.tables(told))
    made = publish(options.page or path.with_suffix(".html"), "Replay", told, results)
    return int(not made or not seen.load.requests)
