"""The command lines of `load`, requests at a rate, and `replay`, those of an access log again.

Both send to any server. A request's time counts from the moment at which it is due, so that pauses
of the server are in it.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from loadtests import programs, store
from loadtests.advise.workload import timed
from loadtests.arguments import add_headers, number
from loadtests.clients import curl
from loadtests.clients.native import replay
from loadtests.clients.native.replay import Request, Seen
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import disturbance, histogram, machine, system_calls
from loadtests.replay import chain, gate, outcomes, server
from loadtests.replay.report import NAME, sections, windows
from loadtests.replay.server import Place, Processes
from loadtests.reporting import markdown
from loadtests.reporting.progress import Progress
from loadtests.stats.results import Results
from loadtests.studies.command import publish

CONNECTIONS = {"h2": 8, "events": 10_000, "websocket": 64, "": 256}
CLOSED = 64
"""At once, at most: by what the load is of, or else of HTTP/1.1."""
SECONDS = 30.0
SEED = 1
MOST = 5_000_000
COUNTED = 2.0
"""Seconds of the load in which system calls are counted."""
Told: TypeAlias = tuple[Seen, dict[str, Any]]
"""What became of what was sent, and what else is stored."""


def add(commands: Any) -> None:
    summary = "send requests at a rate, or at a rate that changes, to any server"
    command = commands.add_parser("load", help=summary, description=summary)
    told = "requests per second, or from the first to the last: 100-2000 (default: each connection "
    told += "asks again as soon as it is answered, so that pauses of the server count once only)"
    command.add_argument("--rate", type=_rates, metavar="R[-R]", help=told)
    told = "what is asked for, in turns (repeatable; default /)"
    command.add_argument("--path", dest="paths", action="append", metavar="/PATH", help=told)
    asked = command.add_mutually_exclusive_group()
    told = "JSON Lines: requests that each visitor makes one after the other; R visitors a second"
    asked.add_argument("--chain", type=Path, metavar="FILE", help=told)
    told = "each request begins a stream of server-sent events: times to its first event"
    asked.add_argument("--events", action="store_true", help=told)
    told = "messages on WebSockets at the rate, each of which comes back"
    asked.add_argument("--websocket", action="store_true", help=told)
    told = "what is sent on them (default: hello)"
    command.add_argument("--message", default="hello", metavar="TEXT", help=told)
    told = f"default {SECONDS:g}"
    command.add_argument("--seconds", type=number(0.1), default=SECONDS, metavar="S", help=told)
    _common(command, f", without --rate {CLOSED}")
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
    command.set_defaults(run=_replay, chain=None, events=False, websocket=False)


def _common(command: argparse.ArgumentParser, closed: str = "") -> None:
    server.add_arguments(command)
    gate.add_arguments(command)
    add_headers(command.add_argument)
    told = "by HTTP/2: with prior knowledge, or by ALPN where the URL is https"
    command.add_argument("--h2", action="store_true", help=told)
    told = f"at once, at most (default {CONNECTIONS['']}{closed}; {_words(CONNECTIONS)})"
    kind = number(1, 10_000, int)
    command.add_argument("--connections", type=kind, default=0, metavar="N", help=told)
    told = "afterwards also count the system calls of the server, by strace, in the load's first "
    told += f"{COUNTED:g} s once more"
    command.add_argument("--system-calls", action="store_true", help=told)
    for flag, told in (
        ("--output", "append the raw results here (JSON Lines)"),
        ("--page", "the page (default: beside the results)"),
    ):
        command.add_argument(flag, type=Path, metavar="FILE", help=told)


def _words(connections: dict[str, int]) -> str:
    return ", ".join(f"--{name} {count:,}" for name, count in connections.items() if name)


def _connections(options: argparse.Namespace) -> int:
    """Those that were asked for, or the usual number of such a load."""
    if not getattr(options, "rate", True):
        return options.connections or CLOSED
    kinds = (name for name in CONNECTIONS if getattr(options, name, name == ""))
    return options.connections or CONNECTIONS[next(kinds)]


def _rates(text: str) -> tuple[float, float]:
    """One rate, or the first and the last."""
    if not re.fullmatch(r"[\d.]+(-[\d.]+)?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no rate: 100, or 100-2000")
    first, _, last = text.partition("-")
    read = number(0.1, 1e6)
    return read(first), read(last or first)


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
    closed = not options.rate
    if closed and (options.chain or options.events or options.websocket or options.h2):
        raise LabError("this load needs a --rate")
    first, last = options.rate or (0.0, 0.0)
    moments = [] if closed else arrivals(first, last, options.seconds)
    pace = f"{first:g}/s" if first == last else f"{first:g}–{last:g}/s"
    if options.chain:
        server.check_no_path(options, options.chain)
        links = [link.headed(options.headers) for link in chain.read(options.chain)]
        label = f"{server.name(options)}, {options.chain.name}, {pace}"
        return _measure(options, command, label, moments, links=links)
    asked = server.asked(options)
    if closed:
        pace = f"{_connections(options)} connections"
    label = f"{server.name(options)}, {asked.words}, {pace}"
    turns = asked.requests
    if moments and not options.websocket:
        turns = [turns[number % len(turns)] for number in range(len(moments))]
    return _measure(options, command, label, moments, turns)


def _replay(options: argparse.Namespace, command: str) -> int:
    server.check_no_path(options, options.log)
    recorded, left_out = timed(options.log)
    placed = [one for one in recorded if one[0] < options.seconds]
    moments = [moment / options.speed for moment, _ in placed]
    label = f"{server.name(options)}, {options.log.name}"
    label += f" × {options.speed:g}" if options.speed != 1 else ""
    requests, lines = [request for _, request in placed], len(recorded)
    return _measure(options, command, label, moments, requests, left_out=left_out, lines=lines)


def _drive(
    options: argparse.Namespace,
    moments: Sequence[float],
    requests: Sequence[Request],
    links: Sequence[chain.Link],
    place: Place,
    lasts: float,
) -> Told:
    """Sends what is due in so many seconds, or as fast as it is answered."""
    due = moments[: bisect_right(moments, lasts)]
    many, core, secure = _connections(options), place.core, "s" * place.tls
    if links:
        where = place.address, place.port
        seen, steps = chain.drive(where, place.host, links, due, many, core, tls=place.tls)
        return seen, {"steps": steps, "what": "visits"}
    if options.websocket:
        url, text = f"ws{secure}://{place.host}{requests[0].target}", options.message
        seen, steps = curl.Messages(url, text, due, many, core, headers=options.headers).run()
        return seen, {"steps": steps, "what": "messages"}
    closed = not moments
    asked = requests if closed else requests[: len(due)]
    if closed and place.tls:
        raise LabError("https needs a --rate")
    if place.tls or options.h2 or options.events:
        how = {"h2": options.h2, "events": options.events}
        base = f"http{secure}://{place.host}"
        seen, steps = curl.Transfers(base, asked, due, many, core, **how).run()
    else:
        hosted, steps = [one.hosted(place.host) for one in asked], []
        at: dict[str, Any] = {"host": place.address, "core": core}
        at |= {"outcomes": True} if closed else {"moments": due}
        seconds = lasts if closed else due[-1] + 0.1
        seen = replay.drive(place.port, seconds, many, hosted, **at)
    # Of requests what became of each path; `answers` may be wrong ones.
    found, paths = outcomes.told(seen, requests, closed=closed)
    if options.events:
        return found, {"steps": steps, "what": "streams"}
    return found, {"answers": seen.load.requests} | ({"steps": paths} if paths else {})


def _system_calls(server: Processes | None, drive: Callable[[], Told]) -> dict[str, Any]:
    """Counts the system calls of the server while it is loaded again; why not, if that fails."""
    try:
        if server is None:
            raise ServerFailure("its processes are not of this machine, or of another user")
        (seen, _), calls = system_calls.counted(server.processes(), drive)
    except ServerFailure as failure:
        return {"calls_failed": str(failure)}
    return {"calls": calls, "calls_requests": seen.load.requests}


def _measure(
    options: argparse.Namespace,
    command: str,
    label: str,
    moments: Sequence[float],
    requests: Sequence[Request] = (),
    links: Sequence[chain.Link] = (),
    **more: Any,
) -> int:
    """Has something sent at each moment, tells the outcome and makes the page; the exit code."""
    requests = [one.headed(options.headers) for one in requests]
    label += (
        ", WebSocket" * options.websocket + ", HTTP/2" * options.h2 + ", events" * options.events
    )
    # What a server that is started has to answer before.
    targets = [link.target for link in links] + [request.target for request in requests[:1]]
    target = "/" if options.events or options.websocket or not targets else targets[0]
    drive = partial(_drive, options, moments, requests, links)
    if closed := not getattr(options, "rate", True):
        lasts = options.seconds
    elif moments:
        lasts = moments[-1]
    else:
        raise LabError("no request is due in this time")
    if options.system_calls:
        programs.path("strace")
    if options.h2 and (options.chain or options.websocket):
        raise LabError("--h2 is for requests and event streams")
    keeping = store.begin(options.output, NAME)
    machine.allow_files(_connections(options) + 200)
    disturbance.adopt()
    with (
        contextlib.closing(keeping),
        Progress(1) as progress,
        server.running(options, target) as (place, processes),
    ):
        started = {options.command.name: options.command.command} if options.command else {}
        about = {"client_core": place.core, "server_core": None, "commands": started}
        keeping.add("run", command=command, machine=machine.describe({}), seconds=lasts, **about)
        many = "as fast as they are answered" if closed else f"{len(moments):,} requests"
        progress.say(f"{label}: {many}, {lasts:,.0f} s from {time.strftime('%X')}")
        progress.begin(f"{label}, {lasts:,.0f} s")
        with server.Usage(processes, elsewhere=not place.is_here) as usage:
            seen, told = drive(place, lasts)
        progress.step(label, f"{seen.load.requests:,} answered")
        if options.system_calls:
            first = moments[0] if moments else 0.0
            told |= _system_calls(processes, partial(drive, place, min(lasts, first + COUNTED)))
        due = len(moments)
        if closed:
            due = seen.load.requests + sum(seen.load.errors.values())
        first, last = getattr(options, "rate", None) or (0.0, 0.0)
        keeping.add(
            "sample",
            experiment=NAME,
            server=label,
            round=0,
            due=due,
            closed=closed,
            ramp=first != last,
            requests=seen.load.requests,
            errors={kind: count for kind, count in seen.load.errors.items() if count},
            seconds=lasts,
            rate=due / max(lasts, 1.0),
            times=histogram.encode(seen.times),
            max_us=seen.load.max_us,
            client_busy=seen.load.busy,
            opened=seen.load.opened,
            unsaid=seen.load.unsaid,
            windows=windows(lasts, seen.outcomes),
            **usage.record,
            **more,
            **told,
        )
    results = Results(keeping.records)
    report = sections(results)
    kind = "Load" if hasattr(options, "rate") else "Replay"
    title = f"{'Chain' if options.chain else kind}: {label}"
    made = publish(options.page or keeping.path.with_suffix(".html"), title, report, results)
    code, lines = gate.run(results.samples[-1], report[0].answer, options, kind.lower())
    # Whoever reads it may have read enough after a line.
    print(f"{report[0].answer}\n\n{markdown.tables([replace(report[0], answer='', text=())])}")
    if lines:
        print("\n".join(["", *lines]))
    return code or int(not made)
