"""The study `influence`: every client with every server, and each one's share of the variation."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from loadtests.arguments import choose, names
from loadtests.clients.load import SATURATED, Job
from loadtests.clients.registry import CLIENTS, Client
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import longer
from loadtests.reporting.model import Axis, Cell, Column, Lines, Panels, Section, Table
from loadtests.servers.registry import WSGI, Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.studies import originals, sample, tables
from loadtests.studies.bench.scenarios import PAGE
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.influence import variation
from loadtests.studies.influence.variation import EFFECT, MEAN, Grid
from loadtests.studies.study import FULL, Scale, Study

NAME = "influence"
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


CONSIDERABLE = 0.1
"""The share of the variation from which on clients mattered, alone and with the servers."""
MEASURES = (
    ("rate", "requests per second", Column("", "1/s")),
    ("octet_rate", "bytes per second", Column("", "MB/s", 2, 1e-6)),
)
"""Fields of the samples that are analysed."""
_LIMIT = f"Of one core. From {SATURATED:.0%} on, the client is considered the limit."
BUSY = (
    ("busy", "clients", "client_busy", _LIMIT),
    ("busy-servers", "servers", "server_busy", "All its processes together, of one core."),
)


def report(results: Results) -> list[Section]:
    """All of it; of what failed, that it failed."""
    if not results.samples:
        return []
    found = variation.grid(results, "rate")
    part = variation.largest(found)
    parts: list[Table | Panels] = [_figure(results, found)]
    for field, title, column in MEASURES:
        parts += _tables(variation.grid(results, field), part, field, title, column)
    parts += [*_logarithms(part), *(_busy(results, found, *share) for share in BUSY)]
    times = f"{part.replications} times" if part.replications > 1 else "once"
    text = [
        "How much does the result of a benchmark depend on its client? Every client asks "
        f"every server for the same page, {times}, and a two-way analysis of variance shows what "
        "share of the variation comes from the client, the server, both together, or neither.",
        *_remarks(results, found, part),
    ]
    told = Section("Influence of the client", text, parts, _verdict(results, found, part))
    return [told, _original()]


def _verdict(results: Results, found: Grid, part: Grid) -> str:
    """Whether the client was the bottleneck, in one sentence.

    By the clients' busy shares, and by what explains the variation of requests per second.
    """
    # Whoever spins is busy whatever the server does.
    busy = variation.grid(
        Results([one for one in results.samples if not one["spins"]]), "client_busy"
    )
    limits: dict[str, int] = {}
    for client in found.clients:
        shares = [busy.spread(client, server) for server in found.servers]
        if full := sum(one is not None and one.median >= SATURATED for one in shares):
            limits[client] = full
    explains, matters = _shares(part)
    ends = f", and {explains}." if explains else "."
    if limits:
        whole = len(found.servers)
        begins = "Yes" if sum(limits.values()) == len(found.clients) * whole else "In part"
        which = ", ".join(f"{client} with {_of(few, whole)}" for client, few in limits.items())
        clients = f"{len(limits)} of {len(found.clients)} clients"
        told = f"{begins}, the client was the bottleneck: {clients} used {SATURATED:.0%} of a core "
        return f"{told}or more ({which}){ends}"
    begins = "No, the client was not the bottleneck"
    idle = f"none used {SATURATED:.0%} of a core"
    if matters:
        return f"{begins} by its speed, for {idle}, but how it asks mattered{matters}: {explains}."
    return f"{begins}: {idle}{ends}"


def _shares(part: Grid) -> tuple[str, str]:
    """What explains the variation, and how much clients mattered if they did, in words."""
    if not part.replications:
        return "", ""
    of = {source.name: source.share for source in part.analysis().sources()}
    said = (
        f"the client explains {of['A']:.1%} of the variation of requests per second, the server "
        f"{of['B']:.1%}"
    )
    if "AB" in of:
        said += f", both together {of['AB']:.1%}"
    if of["A"] > of["B"]:
        return said, " more than who answered"
    return said, ", too" if of["A"] + of.get("AB", 0.0) >= CONSIDERABLE else ""


def _of(count: int, whole: int) -> str:
    servers = "server" if whole == 1 else "servers"
    return f"all {whole} {servers}" if count == whole else f"{count} of {whole} {servers}"


def _remarks(results: Results, found: Grid, part: Grid) -> list[str]:
    """What applies of these sentences."""
    times, most = part.replications, found.replications
    holes = [f"{client} with {server}" for client, server in found.holes()]
    without = found.left_out(part) if times else []
    notes = {one["client"]: one["note"] for one in results.samples if one["note"]}
    spinning = dict.fromkeys(one["client"] for one in results.samples if one["spins"])
    failed = sum(sum(sample["errors"].values()) for sample in results.samples)
    asked = sum(sample["requests"] for sample in results.samples) + failed
    said = {
        f"Fewer than {most} observations were made of: {'; '.join(holes)}.": holes,
        "The analysis covers the largest part that is complete, without "
        f"{', '.join(without)}.": without,
        "Nothing can be analysed: that takes two clients and two servers, complete.": not times,
        "Observed once only, interaction and error cannot be told apart.": times == 1,
        f"Of each combination the first {times} observations are used.": 1 < times < most,
        f"Of the clients: {'; '.join(f'{name} {note}' for name, note in notes.items())}.": notes,
        f"Whether {' and '.join(spinning)} was the limit cannot be told from its busy share, which "
        "is ignored.": spinning,
        f"Of {asked:,} requests {failed:,} failed, and are not counted.": failed,
    }
    return [*(sentence for sentence, applies in said.items() if applies), *tables.lost(results)]


def _tables(
    found: Grid, part: Grid, field: str, title: str, column: Column
) -> list[Table | Panels]:
    """What was observed, with means and effects; then the analysis and the effects' intervals."""
    # From fast to slow: those of the analysed part, the others behind them.
    others = [server for server in found.servers if server not in part.servers]
    servers = [*reversed(part.servers), *reversed(others)]
    cells = {one: [found.spread(client, one) for client in found.clients] for one in servers}
    rows: list[list[Cell]] = [[server, *own, None, None] for server, own in cells.items()]
    analysed: list[Table] = []
    if part.replications:
        analysis = replace(part, values=found.values).analysis()
        of_clients = dict(zip(part.clients, analysis.a_effects, strict=True))
        of_servers = dict(zip(part.servers, analysis.b_effects, strict=True))
        effects = [of_clients.get(client) for client in found.clients]
        rows = variation.with_effects(cells, analysis.mean, of_servers, effects)
        name = f"{NAME}-{field}-variance"
        analysed = [
            variation.variance_table(analysis, name, title, column.unit, column.scale),
            variation.effects_table(
                analysis,
                part,
                f"{NAME}-{field}-effects",
                f"Effects on {title}",
                replace(column, name="effect"),
                "Whether an effect differs from 0 is said with 95 % confidence.",
            ),
        ]
    table = Table(
        f"{NAME}-{field}",
        f"{title.capitalize()} by server and client",
        [
            Column("server"),
            *(replace(column, name=name) for name in (*found.clients, MEAN, EFFECT)),
        ],
        rows,
        tables.ours(servers),
        "From the fastest to the slowest server. The effect is the mean of a row or column minus "
        "the mean of all.",
        MEAN,
    )
    return [*analysed[:1], table, *analysed[1:]]


def _logarithms(part: Grid) -> list[Table]:
    if not part.replications or any(v <= 0 for row in part.cells() for cell in row for v in cell):
        return []
    analysis = part.analysis(log=True)
    effects = variation.effects_table(
        analysis,
        part,
        f"{NAME}-log-effects",
        "Factors by which clients and servers differ",
        Column("factor", "×", 2),
        "Of requests per second, against the geometric mean of all. Time per request is that of "
        "server and client together, so that a fast server counts for more with a fast client: "
        "factors that multiply add up as logarithms, and the errors of slow and fast ones become "
        "alike.",
        lambda exponent: float(10**exponent),
    )
    name, title = f"{NAME}-log-variance", "log₁₀ of requests per second"
    return [variation.variance_table(analysis, name, title), effects]


def _figure(results: Results, found: Grid) -> Panels:
    colours = {sample["client"]: sample["colour"] for sample in results.samples}
    places = list(enumerate(found.servers, 1))
    lines = []
    for client in found.clients:
        rates = ((place, found.spread(client, server)) for place, server in places)
        line = tables.line(client, ((place, one) for place, one in rates if one))
        lines.append(replace(line, colour=colours[client]))
    order = "; ".join(f"{place} {name}" for place, name in places)
    x = Axis("servers from slow to fast", low=1, high=float(max(len(found.servers), 2)))
    y, log = Axis("requests", "/s", low=0.0), Axis("requests", "/s", log=True)
    panels = [
        Lines(f"{NAME}-lines", "as they are", x, y, lines, marks=True),
        Lines(f"{NAME}-lines-log", "logarithms", x, log, lines, marks=True),
    ]
    return Panels(
        f"{NAME}-interaction",
        "What each client gets from each server",
        panels,
        "Parallel lines would mean that client and server do not interact; a line that stays level "
        "is a client that gets no more from faster servers.",
        f"{order}.",
    )


def _busy(results: Results, found: Grid, name: str, title: str, field: str, note: str) -> Table:
    shares = variation.grid(results, field)
    return Table(
        f"{NAME}-{name}",
        f"Busy shares of the {title}",
        [Column("server"), *(Column(client, "%", 0, 100) for client in found.clients)],
        [
            [server, *(shares.spread(client, server) for client in found.clients)]
            for server in found.servers
        ],
        tables.ours(found.servers),
        note,
    )


def _original() -> Section:
    """The study of 2001, and what its table gives when it is analysed once more."""
    parts: list[Table] = []
    rows: list[list[Cell]] = []
    for name, unit, places, table in (
        ("RPS", "1/s", 2, originals.RPS),
        ("throughput", "bytes/s", 0, originals.THROUGHPUT),
    ):
        analysis = originals.analysed(table)
        cells = dict(zip(originals.CLIENTS, table, strict=True))
        effects = dict(zip(originals.CLIENTS, analysis.a_effects, strict=True))
        columns = [Column(one, unit, places) for one in (*originals.SERVERS, MEAN, EFFECT)]
        parts.append(
            Table(
                f"{NAME}-2001-{name.lower()}",
                f"{name} of 2001",
                [Column("client"), *columns],
                variation.with_effects(cells, analysis.mean, effects, analysis.b_effects),
            )
        )
        printed = [squares / analysis.sst for squares in originals.printed(analysis)]
        right = [source.share for source in analysis.sources()]
        rows += [[f"{name}, as printed", *printed], [f"{name}, recomputed", *right]]
    shares = [Column(name, "%", 2, 100) for name in ("client", "server", "unexplained")]
    parts.append(
        Table(
            f"{NAME}-2001-shares",
            "Shares of the variation",
            [Column("analysis"), *shares],
            rows,
            note="The study multiplies the squares of the effects of 3 clients by 3, and those of "
            "4 servers by 4. An effect of a client counts once for each server, and the other way "
            "round: the study gives clients three quarters of their share, and servers four thirds "
            "of theirs.",
        )
    )
    text = [
        "Three clients (a fast machine, a slow one, and both at once) and four servers, with "
        "WebBench 2.0. Of three runs only a table of the means is printed, so interaction and "
        "error cannot be separated. Recomputed, more than half of the variation was the client's."
    ]
    return Section("What the study of 2001 had", text, parts)


STUDY = Study(
    NAME,
    "every client with every server: whose share of the variation is what",
    "the study of the client's influence, 2001",
    servers,
    plan,
    report,
    arguments,
    given=True,
)
