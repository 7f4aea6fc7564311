"""The study `serial`: one request after another, each on a connection of its own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from loadtests.clients.load import SATURATED
from loadtests.clients.native import fetch
from loadtests.reporting.model import Axis, Bar, Bars, Cell, Column, Section, Table
from loadtests.servers.lists import PROXIED, WSGI, application_of, colour_of, with_pages
from loadtests.servers.lists.pages import PAGES
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step, in_turns
from loadtests.studies.originals import poorhttp_2010
from loadtests.studies.study import Scale, Study

NAME = "serial"
REQUESTS = 4_800
"""As many as the faster ones of the study answered in its minute: 80 a second."""
FEWEST = 50
LONGEST = 20.0
"""Seconds for all requests for a page: a server that hangs is given up then."""
PATIENCE = 1.0
"""Seconds more for the last of them."""


def servers() -> Sequence[Server]:
    """All that serve pages, alone and behind a proxy."""
    ours = [server for server in WSGI if server.ours]
    others = [server for server in WSGI if not server.ours]
    return with_pages([*ours, *PROXIED, *others])


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """Every server once a round, with both pages."""
    requests = max(FEWEST, round(REQUESTS * scale.share / scale.rounds))
    return [
        Step(
            server,
            f"serial, round {number + 1}, {server.name}",
            partial(_take, lab, number, server, requests),
        )
        for number, server in in_turns(lab, chosen)
    ]


def _take(lab: Lab, number: int, server: Server, requests: int) -> str:
    told = []
    application = application_of(server)
    with Running(server, application, target=f"/{PAGES[0]}", core=lab.server_core) as running:
        for page in PAGES:
            target = f"/{page}"
            sample.warm(running, target, lab.client_core)
            before = sample.cpu_seconds(running)
            traced = fetch.traced(
                running.port,
                LONGEST,
                1,
                [[target]],
                requests=requests,
                patience=PATIENCE,
                core=lab.client_core,
            )
            cpu = sample.cpu_seconds(running) - before
            taken = sample.described(NAME, page, number, server, traced, cpu)
            lab.store.add("sample", **taken)
            told.append(f"{page} {taken['rate']:,.0f}/s, {taken['mean_us']:,.0f} µs")
    return "; ".join(told)


COLUMNS = (
    Column("server"),
    Column("ans/s"),
    Column("res/s"),
    Column("real/s"),
    Column("ans t", "µs", 1),
    Column("res t", "µs", 1),
    Column("res t p99", "µs"),
    Column("server CPU per request", "µs", 1),
    Column("client busy", "%", 0, 100),
    Column("failed"),
)


def _row(results: Results, page: str, server: str) -> list[Cell]:
    median = partial(results.median, page, server)
    return [
        server,
        sample.per_second(results, page, server, "answer_us"),
        sample.per_second(results, page, server, "mean_us"),
        median("rate"),
        median("answer_us"),
        median("mean_us"),
        median("p99_us"),
        median("cpu_us"),
        median("client_busy"),
        sum(results.rounds(page, server, "failed").values()),
    ]


def _order(results: Results, page: str) -> list[str]:
    measured = set(results.servers(page))
    return [server.name for server in servers() if server.name in measured]


def _table(results: Results, page: str) -> Table:
    ours = frozenset(server.name for server in servers() if server.ours)
    rows = [_row(results, page, server) for server in _order(results, page)]
    return Table(f"serial-{page}", f"The {page} page", COLUMNS, rows, ours)


def _bars(results: Results, page: str) -> Bars:
    ours = {server.name for server in servers() if server.ours}
    bars = [
        Bar(
            server,
            colour_of(server),
            [sample.per_second(results, page, server, field) for field in ("answer_us", "mean_us")],
            server in ours,
        )
        for server in _order(results, page)
    ]
    return Bars(
        f"serial-{page}",
        f"One after another: the {page} page",
        Axis("requests", "/s", low=0),
        bars,
        ("ans/s", "res/s"),
        "each on a connection of its own; longer is better",
        "From the connection to the first 15 octets of the answer (ans/s), and to its end (res/s), "
        "as many as fit into a second.",
    )


def _remarks(results: Results) -> list[str]:
    said = []
    for page in results.scenarios():
        order = _order(results, page)
        found = {server: results.median(page, server, "mean_us") for server in order}
        times = {server: one.median for server, one in found.items() if one}
        if len(times) > 1:
            best, worst = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
            said.append(
                f"{page}: the shortest time to a whole page has {best} ({times[best]:,.0f} µs), "
                f"the longest {worst} ({times[worst]:,.0f} µs)."
            )
        busy = [
            server
            for server in order
            if (share := results.median(page, server, "client_busy")) and share.median >= SATURATED
        ]
        if busy:
            said.append(f"{page}: the client had no time left with {', '.join(busy)}.")
        said += sample.failed(results, page, order)
    return said


def _then() -> Table:
    columns = (
        Column("configuration"),
        Column("ans/s", places=2),
        Column("res/s", places=2),
        Column("real/s", places=2),
        Column("ans t", "s", 4),
        Column("res t", "s", 4),
    )
    return Table(
        "serial-2010",
        f"What the study of {poorhttp_2010.YEAR} had",
        columns,
        poorhttp_2010.SERIAL,
        note="The light page over an ad-hoc WLAN, from a netbook: the network was the bottleneck. "
        "Apache had mod_python.",
    )


def report(results: Results) -> list[Section]:
    """The tables of the study, and how long each answer took."""
    text = [
        "How long does one request take when nothing else is asked? One after another, each on a "
        "connection of its own. *ans t* is from the connection to the first 15 octets of the "
        "answer, *res t* to its end; *ans/s* and *res/s* are how many of these fit into a second, "
        "*real/s* how many were answered, with all that the client does between them.",
        *_remarks(results),
    ]
    pages = [page for page in PAGES if page in results.scenarios()]
    tables = [_table(results, page) for page in pages]
    figures = [_bars(results, page) for page in pages]
    return [Section("One request after another", text, [*tables, *figures, _then()])]


STUDY = Study(
    NAME,
    "one request after another, each on a connection of its own",
    poorhttp_2010.SOURCE,
    servers,
    plan,
    report,
)
