"""The study `influence`: every client with every server, and each one's share of the variation.

The report has the study of 2001, and a second analysis of its tables.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

from loadtests.arguments import choose, names
from loadtests.clients.load import SATURATED, Job
from loadtests.clients.registry import CLIENTS, Client
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import longer
from loadtests.reporting.cells import number
from loadtests.reporting.model import Axis, Cell, Column, Lines, Panels, Section, Table
from loadtests.servers.registry import WSGI, Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results, Spread, spread
from loadtests.stats.variance import CONFIDENCES, Analysis, Interval, analyse
from loadtests.studies import originals, tables
from loadtests.studies.bench.scenarios import PAGE
from loadtests.studies.engine import Lab, Step, Trial, rounds
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
    most = max(REPLICATIONS, scale.rounds)
    seconds = min(LONGEST_SECONDS, scale.seconds * SHARE_OF_SECONDS)
    lab = replace(lab, rounds=most, seconds=seconds)
    return rounds(lab, NAME, servers, partial(_turns, clients=clients, told=set()))


def _turns(trial: Trial, clients: Sequence[Client], told: set[str]) -> str:
    """A sample by each client, another one first in each round."""
    store, name, core = trial.lab.store, trial.server.name, trial.lab.client_core
    absent = {client.name: reason for client in clients if (reason := client.missing())}
    # Once.
    for lacking in absent.keys() - told:
        store.add("missing", server=f"client {lacking}", reason=absent[lacking], study=NAME)
    told |= absent.keys()
    if len(absent) == len(clients):
        raise LabError(f"there is no client: {', '.join(absent.values())}")
    there = [client for client in clients if client.name not in absent]
    first = trial.number % len(there)
    rates = {}
    with trial.running(PAGE) as running:
        there[0].drive(Job(running.port, WARM_SECONDS, CONNECTIONS, running.at("/")), core)
        for client in [*there[first:], *there[:first]]:
            running.processes()
            try:
                rates[client.name] = _take(trial, client, running)
            except (ServerFailure, LabError) as failure:
                what, reason = f"{NAME}, round {trial.number + 1}, {name}", f"with {client.name}"
                reason = f"{reason}: {failure}"
                store.add("failure", server=name, what=what, reason=reason, study=NAME)
    if not rates:
        raise ServerFailure("no client got an answer")
    return ", ".join(f"{name} {rate:,.0f}/s" for name, rate in rates.items())


def _take(trial: Trial, client: Client, running: Running) -> float:
    """Stores a sample and returns its requests per second."""
    for seconds in longer(trial.lab.seconds):
        before = resources.cpu_seconds(running.processes())
        job = Job(running.port, seconds, CONNECTIONS, running.at("/"))
        load = client.drive(job, trial.lab.client_core)
        cpu = resources.cpu_seconds(running.processes()) - before
        if not load.is_silent:
            break
    if load.requests == 0:
        raise ServerFailure(f"it answered no request: {running.last_words()}")
    trial.sample(
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


SOURCES = {"A": "client", "B": "server", "AB": "both (interaction)", "error": "error"}
MEAN, EFFECT = "Mean", "Effect"


@dataclass(frozen=True)
class Grid:
    """`values` by client and server, in the order in which they were observed.

    `replications` are as many as there are of any combination, or of each that is analysed.
    """

    clients: Sequence[str]
    servers: Sequence[str]
    values: dict[tuple[str, str], list[float]]
    replications: int

    @property
    def observations(self) -> int:
        """How many there are without holes."""
        return len(self.clients) * len(self.servers) * self.replications

    def spread(self, client: str, server: str) -> Spread | None:
        """Over all observations of a combination."""
        return spread(self.values.get((client, server), []))

    def holes(self) -> list[tuple[str, str]]:
        """The combinations with fewer observations."""
        whole = [(client, server) for client in self.clients for server in self.servers]
        return [one for one in whole if len(self.values.get(one, [])) < self.replications]

    def left_out(self, part: Grid) -> list[str]:
        """The clients and servers that a part does without."""
        clients = [client for client in self.clients if client not in part.clients]
        return [*clients, *(server for server in self.servers if server not in part.servers)]

    def cells(self) -> list[list[list[float]]]:
        """The first `replications`: a row for each client, the servers in their order."""
        return [
            [self.values[client, server][: self.replications] for server in self.servers]
            for client in self.clients
        ]

    def analysis(self, *, log: bool = False) -> Analysis:
        """Clients are A, servers B; without holes."""
        return analyse(self.cells(), log=log)


def grid(results: Results, field: str) -> Grid:
    """A field of all samples; servers in order of their best, so from slow to fast."""
    values: dict[tuple[str, str], list[float]] = {}
    for sample in results.samples:
        key = (str(sample["client"]), str(sample["server"]))
        values.setdefault(key, []).append(float(sample[field]))
    clients = list(dict.fromkeys(client for client, _ in values))
    servers = list(dict.fromkeys(server for _, server in values))
    whole = Grid(clients, servers, values, max(map(len, values.values()), default=0))

    def best(server: str) -> float:
        found = (whole.spread(client, server) for client in clients)
        return max(one.median for one in found if one)

    return replace(whole, servers=sorted(servers, key=best))


def largest(whole: Grid) -> Grid:
    """The part without holes that has the most observations, of two clients and servers at least.

    Replicated, wherever that is possible at all: without, nothing tells interaction from error.
    It is empty if nothing can be analysed.
    """
    for allowed in (range(2, whole.replications + 1), [1]):
        parts = []
        for replications in allowed:
            holes = set(replace(whole, replications=replications).holes())
            for count in range(2, len(whole.clients) + 1):
                for clients in combinations(whole.clients, count):
                    lacking = {server for client, server in holes if client in clients}
                    servers = [server for server in whole.servers if server not in lacking]
                    if len(servers) > 1:
                        parts.append(Grid(clients, servers, whole.values, replications))
        if parts:
            return max(parts, key=lambda one: (one.observations, one.replications))
    return Grid([], [], {}, 0)


def with_effects(
    rows: Mapping[str, Sequence[Cell]],
    mean: float,
    of_rows: Mapping[str, float],
    of_columns: Sequence[float | None],
) -> list[list[Cell]]:
    """The rows with mean and effect of each row and column, where it was analysed."""

    def means(effects: Iterable[float | None]) -> list[Cell]:
        return [None if effect is None else mean + effect for effect in effects]

    told: list[list[Cell]] = []
    for name, cells in rows.items():
        effect = of_rows.get(name)
        told.append([name, *cells, *means([effect]), effect])
    return [*told, [MEAN, *means(of_columns), mean, None], [EFFECT, *of_columns, None, None]]


def variance_table(
    analysis: Analysis, name: str, title: str, unit: str = "", scale: float = 1.0
) -> Table:
    """The share of the variation that is due to each."""
    # Only now: it is slow to load.
    from scipy.special import fdtri

    squared = scale * scale
    places = 4 if analysis.sst * squared < 1000 else 0
    unit = f"({unit})²" if unit else ""
    columns = [
        Column("due to"),
        Column("sum of squares", unit, places, squared),
        Column("share of variation", "%", 2, 100),
        *(Column(f"{confidence:.0%} interval", "%") for confidence in CONFIDENCES),
        Column("degrees of freedom"),
        Column("mean square", unit, places, squared),
        Column("F", places=2),
        Column("F at 95 %", places=2),
        Column("P"),
    ]
    bounds = [analysis.share_intervals(confidence) for confidence in CONFIDENCES]
    rows: list[list[Cell]] = []
    for source in analysis.sources():
        row: list[Cell] = [SOURCES[source.name], source.squares, source.share]
        row += [_bounds(one[source.name], lambda share: share * 100, 2) for one in bounds]
        row += [float(source.freedom), source.mean_square, source.f, None, None]
        if source.probability is not None:
            row[-2] = float(fdtri(source.freedom, analysis.error_freedom, 0.95))
            low = source.probability < 0.0001
            row[-1] = "< 0.0001" if low else f"{source.probability:.4f}"
        rows.append(row)
    freedom = sum(source.freedom for source in analysis.sources())
    rows.append(["total", analysis.sst, 1.0, None, None, float(freedom), None, None, None, None])
    count = len(analysis.a_effects) * len(analysis.b_effects)
    note = (
        f"{count} combinations, {analysis.replications} observations of each. P is the probability "
        "of an F this large without any influence."
    )
    return Table(name, f"Analysis of variance of {title}", columns, rows, note=note)


def _bounds(interval: Interval, shown: Callable[[float], float], places: int) -> Cell:
    if interval.low is None or interval.high is None:
        return None
    return " – ".join(number(shown(bound), places) for bound in (interval.low, interval.high))


def effects_table(
    analysis: Analysis,
    part: Grid,
    name: str,
    title: str,
    column: Column,
    note: str,
    convert: Callable[[float], float] = float,
) -> Table:
    """The effect of each client and server with its intervals, each converted for the table."""
    rows: list[list[Cell]] = []
    for kind, those, of in (
        ("client", part.clients, analysis.a_effects),
        ("server", part.servers, analysis.b_effects),
    ):
        for one, effect in zip(those, of, strict=True):
            found = [analysis.interval(effect, len(of) - 1, each) for each in CONFIDENCES]
            shown = [
                _bounds(each, lambda bound: convert(bound) * column.scale, column.places)
                for each in found
            ]
            significant = "yes" if found[-1].significant else "no"
            rows.append([one, kind, convert(effect), *shown, significant])
    columns = [
        Column("of"),
        Column("kind"),
        column,
        *(Column(f"{confidence:.0%} interval", column.unit) for confidence in CONFIDENCES),
        Column(f"differs from {convert(0.0):g}"),
    ]
    return tables.table(name, title, columns, rows, note)


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
    found = grid(results, "rate")
    part = largest(found)
    parts: list[Table | Panels] = [_figure(results, found)]
    for field, title, column in MEASURES:
        parts += _tables(grid(results, field), part, field, title, column)
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
    busy = grid(Results([one for one in results.samples if not one["spins"]]), "client_busy")
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
        rows = with_effects(cells, analysis.mean, of_servers, effects)
        name = f"{NAME}-{field}-variance"
        analysed = [
            variance_table(analysis, name, title, column.unit, column.scale),
            effects_table(
                analysis,
                part,
                f"{NAME}-{field}-effects",
                f"Effects on {title}",
                replace(column, name="effect"),
                "Whether an effect differs from 0 is said with 95 % confidence.",
            ),
        ]
    table = tables.table(
        f"{NAME}-{field}",
        f"{title.capitalize()} by server and client",
        ["server", *(replace(column, name=name) for name in (*found.clients, MEAN, EFFECT))],
        rows,
        "From the fastest to the slowest server. The effect is the mean of a row or column minus "
        "the mean of all.",
        MEAN,
    )
    return [*analysed[:1], table, *analysed[1:]]


def _logarithms(part: Grid) -> list[Table]:
    if not part.replications or any(v <= 0 for row in part.cells() for cell in row for v in cell):
        return []
    analysis = part.analysis(log=True)
    effects = effects_table(
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
    return [variance_table(analysis, name, title), effects]


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
    shares = grid(results, field)
    return tables.table(
        f"{NAME}-{name}",
        f"Busy shares of the {title}",
        ["server", *(Column(client, "%", 0, 100) for client in found.clients)],
        [
            [server, *(shares.spread(client, server) for client in found.clients)]
            for server in found.servers
        ],
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
                with_effects(cells, analysis.mean, effects, analysis.b_effects),
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
