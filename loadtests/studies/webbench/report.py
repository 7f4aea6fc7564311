"""Report of the study `webbench`."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.reporting.model import Axis, Bars, Cell, Column, Section, Table
from loadtests.stats.results import Results
from loadtests.studies import tables
from loadtests.studies.originals import client_2001
from loadtests.studies.webbench import workload

NAME = "webbench"
MEGA = 1e6
RATE = "requests"
VALUES: Sequence[tuple[Column, tables.Value]] = (
    (Column(RATE, "/s"), "rate"),
    (Column("bytes", "MB/s", 2, 1 / MEGA), "octet_rate"),
    (Column("median time of a request", "ms", 2, 1e-3), "p50_us"),
    (Column("p99 of that", "ms", 2, 1e-3), "p99_us"),
    (Column("server CPU per request", "µs", 1), "cpu_us"),
    (Column("requests while ramping up", "/s"), "ramp_up_rate"),
    (Column("requests while ramping down", "/s"), "ramp_down_rate"),
    (Column("client busy", "%", 0, 100), "client_busy"),
)
FIGURES = (
    ("rate", "Requests per second", "/s", 1.0),
    ("octet_rate", "Bytes per second", "MB/s", 1 / MEGA),
)


def report(results: Results) -> list[Section]:
    """All of it; of what failed, that it failed."""
    samples = results.samples
    if not samples:
        return []
    text = [
        f"{client_2001.FILES:,} files of 64 MB ({client_2001.OCTETS:,} bytes) in all are asked "
        "for at random: how many requests and bytes per second does each server answer?",
        "WebBench's own distribution is not public. Classes are those of SPECweb96 up to 100 KB, "
        "their probabilities such that an answer has the length that the study's tables give: "
        f"{_old_mean():,.0f} bytes, its bytes per second over its requests per second. Here a file "
        f"has {workload.mean_answer():,.0f} bytes in the mean of all requests; a head is added. "
        "Within a class every file is asked for equally often. Requests that failed are not "
        "counted.",
        *tables.saturated(samples),
        *tables.failed(samples),
        *tables.lost(results),
    ]
    figures = [
        tables.bars(
            f"{NAME}-{field}",
            title,
            Axis(title.partition(" ")[0].lower(), unit, low=0.0),
            {title: tables.spreads(samples, field, scale)},
            highest=True,
        )
        for field, title, unit, scale in FIGURES
    ]
    table = tables.compared(
        NAME,
        "Requests and bytes per second",
        samples,
        VALUES,
        RATE,
        highest=True,
        note="Times are from the beginning of a connection, or from the request on one that is "
        "kept, to the end of the answer. CPU is the server's, and is not known where it serves "
        "requests by processes that end.",
    )
    rates = tables.spreads(samples, "rate")
    said = tables.answer("Files of the workload per second", rates, "/s", highest=True)
    then = Section(f"What the study of {client_2001.YEAR} had", [], [_old()])
    parts: list[Table | Bars] = [*figures, table, _classes(), _settings(results)]
    return [Section("Files of a workload", text, parts, said), then]


def _old_mean() -> float:
    pairs = [
        (octets, rate)
        for octets_row, rate_row in zip(client_2001.THROUGHPUT, client_2001.RPS, strict=True)
        for octets, rate in zip(octets_row, rate_row, strict=True)
    ]
    return sum(octets for octets, _ in pairs) / sum(rate for _, rate in pairs)


def _classes() -> Table:
    files = workload.files()
    rows: list[list[Cell]] = []
    for kind in workload.CLASSES:
        sizes = [float(file.size) for file in files if file.kind == kind.name]
        cells = [len(sizes), sum(sizes), min(sizes), max(sizes), kind.probability]
        rows.append([kind.name, *map(float, cells)])
    total = float(sum(file.size for file in files))
    rows.append(["all", float(len(files)), total, None, None, 1.0])
    return Table(
        f"{NAME}-classes",
        "The workload",
        [
            Column("class"),
            Column("files"),
            *(Column(name, "bytes") for name in ("together", "smallest", "largest")),
            Column("probability", "%", 0, 100),
        ],
        rows,
        note="Sizes are drawn evenly over their logarithms; seeds are stored with the results.",
    )


def _settings(results: Results) -> Table:
    def told(field: str, unit: str = "") -> str:
        values = dict.fromkeys(sample[field] for sample in results.samples)
        return (
            ", ".join(f"{value:g}" if isinstance(value, float) else f"{value}" for value in values)
            + unit
        )

    today = {
        "Ramp up, ramp down": told("ramp", " s"),
        "Length": told("length", " s"),
        "Delay, think time": told("think", " s"),
        "Threads": told("threads"),
        "Receive buffer": told("receive", " bytes"),
        "Request type": f"HTTP {told('http')}",
    }
    rows = [[name, client_2001.SETTINGS[name], now] for name, now in today.items()]
    return Table(
        f"{NAME}-settings",
        "Settings of the client",
        [Column("setting"), Column(str(client_2001.YEAR)), Column("here")],
        rows,
        note="Threads are connections at once. With HTTP 1.0 each request has a connection of its "
        "own. What ends while it ramps up or down is not counted.",
    )


def _old() -> Table:
    rows: list[list[Cell]] = []
    for place, server in enumerate(client_2001.SERVERS):
        row: list[Cell] = [server]
        for rates, octets in zip(client_2001.RPS, client_2001.THROUGHPUT, strict=True):
            row += [rates[place], octets[place]]
        rows.append(row)
    columns = [
        column
        for client in client_2001.CLIENTS
        for column in (
            Column(f"{client}, RPS", places=2),
            Column(f"{client}, throughput", "kB/s", 1, 1e-3),
        )
    ]
    return Table(
        f"{NAME}-{client_2001.YEAR}",
        "Requests and bytes per second of Apache 1.3 on four machines",
        [Column("server"), *columns],
        rows,
        note="Server 1: 25 MHz 68040; 2: 90 MHz Pentium; 3: 233 MHz Alpha; 4: 180 MHz Pentium Pro. "
        "Client 1: 466 MHz Celeron, Windows 95; 2: 150 MHz Pentium, Windows 98.",
    )
