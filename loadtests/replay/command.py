"""The command lines of `load`, requests at a rate, and `replay`, those of an access log again.

Both send to any server. A request's time counts from the moment at which it is due, so that pauses
of the server are in it.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from loadtests import store
from loadtests.advise.workload import from_paths, timed
from loadtests.arguments import number
from loadtests.clients.native import replay
from loadtests.clients.native.replay import Request, Seen
from loadtests.errors import LabError
from loadtests.measure import histogram, machine
from loadtests.measure.cpu_affinity import cores
from loadtests.replay import chain
from loadtests.replay.report import NAME, sections, windows
from loadtests.reporting import markdown
from loadtests.reporting.progress import Progress
from loadtests.stats.results import Results
from loadtests.studies.command import publish

CONNECTIONS = 256
SECONDS = 30.0
SEED = 1
MOST = 5_000_000


class Place(NamedTuple):
    """A server: IPv4 address, port, what it is called in Host; and the core of the client."""

    address: str
    port: int
    host: str
    core: int | None


def add(commands: Any) -> None:
    summary = "send requests at a rate, or at a rate that changes, to any server"
    command = commands.add_parser("load", help=summary, description=summary)
    told = "requests per second, or from the first to the last: 100-2000"
    command.add_argument("--rate", required=True, type=_rates, metavar="R[-R]", help=told)
    asked = command.add_mutually_exclusive_group()
    told = "what is asked for, in turns (repeatable; default /)"
    asked.add_argument("--path", dest="paths", action="append", metavar="/PATH", help=told)
    told = "JSON Lines: requests that each visitor makes one after the other; R visitors a second"
    asked.add_argument("--chain", type=Path, metavar="FILE", help=told)
    told = f"default {SECONDS:g}"
    command.add_argument("--seconds", type=number(0.1), default=SECONDS, metavar="S", help=told)
    _common(command)
    command.set_defaults(run=_load)
    summary = "send the requests of an access log at their recorded times, or faster, to any server"
    command = commands.add_parser(NAME, help=summary, description=summary)
    told = "access log (Common, Combined, or ours in JSON) or JSON Lines with times"
    command.add_argument("log", type=Path, metavar="LOG", help=told)
    told = "so many times as fast (default 1)"
    command.add_argument(
        "--speed", type=number(0.001, 1e6), default=1.0, metavar="TIMES", help=told
    )
    told = "only so many of the log, from its beginning"
    command.add_argument("--seconds", type=number(0.1), default=math.inf, metavar="S", help=told)
    _common(command)
    command.set_defaults(run=_replay)


def _common(command: argparse.ArgumentParser) -> None:
    told = "the server: http://HOST:PORT"
    command.add_argument("--url", required=True, metavar="URL", help=told)
    told, kind = f"at once, at most (default {CONNECTIONS})", number(1, 10_000, int)
    command.add_argument("--connections", type=kind, default=CONNECTIONS, metavar="N", help=told)
    for flag, told in (
        ("--output", "append the raw results here (JSON Lines)"),
        ("--page", "the page (default: beside the results)"),
    ):
        command.add_argument(flag, type=Path, metavar="FILE", help=told)


def _rates(text: str) -> tuple[float, float]:
    """One rate, or the first and the last."""
    if not re.fullmatch(r"[\d.]+(-[\d.]+)?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no rate: 100, or 100-2000")
    first, _, last = text.partition("-")
    read = number(0.1, 1e6)
    return read(first), read(last or first)


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


def arrivals(first: float, last: float, seconds: float) -> list[float]:
    """Random moments, the same each time, at a rate that goes from the first to the last.

    Raises LabError if they are more than memory is to be taken for.
    """
    if (first + last) / 2 * seconds > MOST:
        raise LabError(f"more than {MOST:,} requests: take a lower rate, or fewer seconds")
    chance, area, moments = random.Random(SEED), 0.0, list[float]()
    slope = (last - first) / seconds
    while True:
        area += chance.expovariate(1)
        # The moment by which so many are due on average.
        square = first**2 + 2 * slope * area
        moment = 2 * area / (first + math.sqrt(square)) if square >= 0 else seconds
        if moment >= seconds:
            return moments
        moments.append(moment)


def _load(options: argparse.Namespace, command: str) -> int:
    first, last = options.rate
    moments = arrivals(first, last, options.seconds)
    rates = f"{first:g}" if first == last else f"{first:g}–{last:g}"
    label = f"{options.url}, {rates}/s"
    if options.chain:
        links = chain.read(options.chain)

        def visit(place: Place) -> tuple[Seen, dict[str, Any]]:
            where = place.address, place.port
            many = options.connections
            seen, steps = chain.drive(where, place.host, links, moments, many, place.core)
            return seen, {"steps": steps}

        return _measure(options, command, f"{label}, {options.chain.name}", moments, visit)
    asked = from_paths(options.paths or ["/"]).requests
    requests = [asked[number % len(asked)] for number in range(len(moments))]
    return _send(options, command, label, moments, requests)


def _replay(options: argparse.Namespace, command: str) -> int:
    placed, left_out = timed(options.log)
    placed = [one for one in placed if one[0] < options.seconds]
    moments = [moment / options.speed for moment, _ in placed]
    label = options.url + (f" × {options.speed:g}" if options.speed != 1 else "")
    requests = [request for _, request in placed]
    return _send(options, command, label, moments, requests, left_out=left_out)


def _send(
    options: argparse.Namespace,
    command: str,
    label: str,
    moments: Sequence[float],
    requests: Sequence[Request],
    **more: Any,
) -> int:
    """Measures requests, each at its moment."""

    def drive(place: Place) -> tuple[Seen, dict[str, Any]]:
        hosted = [
            one
            if any(name.lower() == "host" for name, _ in one.headers)
            else replace(one, headers=(("Host", place.host), *one.headers))
            for one in requests
        ]
        how: dict[str, Any] = {"moments": moments, "host": place.address, "core": place.core}
        lasts = moments[-1] + 0.1
        return replay.drive(place.port, lasts, options.connections, hosted, **how), more

    return _measure(options, command, label, moments, drive)


def _measure(
    options: argparse.Namespace,
    command: str,
    label: str,
    moments: Sequence[float],
    drive: Callable[[Place], tuple[Seen, dict[str, Any]]],
) -> int:
    """Has something sent at each moment, tells the outcome and makes the page; the exit code."""
    if not moments:
        raise LabError("no request is due in this time")
    _, core = cores()
    place = Place(*_server(options.url), core)
    lasts = moments[-1]
    name = store.now()
    path = (options.output or store.new_path(name)).resolve()
    keeping = store.Store(path, name)
    keeping.study = NAME
    machine.allow_files(options.connections + 200)
    about: dict[str, Any] = {"client_core": core, "server_core": None, "commands": {}}
    keeping.add("run", command=command, machine=machine.describe({}), seconds=lasts, **about)
    rate = len(moments) / max(lasts, 1.0)
    with Progress(1) as progress:
        progress.say(f"{label}: {len(moments):,} in {lasts:,.0f} s, {rate:,.1f}/s on average")
        progress.begin(label)
        seen, more = drive(place)
        progress.step(label, f"{seen.load.requests:,} answered")
    keeping.add(
        "sample",
        experiment=NAME,
        server=label,
        round=0,
        due=len(moments),
        requests=seen.load.requests,
        errors={kind: count for kind, count in seen.load.errors.items() if count},
        seconds=lasts,
        rate=rate,
        times=histogram.encode(seen.times),
        max_us=seen.load.max_us,
        client_busy=seen.load.busy,
        windows=windows(lasts, seen.outcomes),
        **more,
    )
    keeping.close()
    results = Results(keeping.records)
    told = sections(results)
    print(markdown.tables(told))
    made = publish(options.page or path.with_suffix(".html"), "Load", told, results)
    return int(not made or not seen.load.requests)
