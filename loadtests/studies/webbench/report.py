"""Report of the study `webbench`."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import Axis, Bar, Bars, Cell, Column, Section, Table
from loadtests.servers.lists import colour_of
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies.originals import client_2001
from loadtests.studies.webbench import workload

NAME = "webbench"
MEGA = 1e6
MOST_FAILED = 0.01
"""The share of requests from which on failures are worth a remark of their own."""


def report(results: Results) -> list[Section]:
    """All of it; of what failed, that it failed."""
    if not results.samples:
        return []
    servers = list(dict.fromkeys(str(sample["server"]) for sample in results.samples))
    text = [
        f"{client_2001.FILES:,} files of 64 MB ({client_2001.OCTETS:,} octets) in all are asked "
        "for at random: how many requests and bytes per second does each server answer?",
        "WebBench's own distribution is not public. Classes are those of SPECweb96 up to 100 KB, "
        "their probabilities such that an answer has the length that the study's tables give: "
        f"{_old_mean():,.0f} bytes, its bytes per second over its requests per second. Here a file "
        f"has {workload.mean_answer():,.0f} bytes in the mean of all requests; a head is added. "
        "Within a class every file is asked for equally often.",
        *_remarks(results, servers),
    ]
    parts: list[Table | Bars] = [
        _measured(results, servers),
        _bars(results, servers, "rate", "Requests per second", "/s", 1.0),
        _bars(results, servers, "octet_rate", "Bytes per second", "MB/s", 1 / MEGA),
        _classes(),
        _settings(results),
    ]
    return [
        Section("Files of a workload", text, parts),
        Section(f"What the study of {client_2001.YEAR} had", [], [_old()]),
    ]


def _old_mean() -> float:
    pairs = [
        (octets, rate)
        for octets_row, rate_row in zip(client_2001.THROUGHPUT, client_2001.RPS, strict=True)
        for octets, rate in zip(octets_row, rate_row, strict=True)
    ]
    return sum(octets for octets, _ in pairs) / sum(rate for _, rate in pairs)


def _median(results: Results, field: str, server: str) -> Spread | None:
    return spread(
        float(sample[field])
        for sample in results.samples
        if sample["server"] == server and field in sample
    )


def _remarks(results: Results, servers: Sequence[str]) -> list[str]:
    said = []
    saturated = [
        server
        for server in servers
        if (busy := _median(results, "client_busy", server)) and busy.median >= SATURATED
    ]
    if saturated:
        said.append(f"The client was the limit, and not the server, with: {', '.join(saturated)}.")
    for server in servers:
        own = [sample for sample in results.samples if sample["server"] == server]
        failed = sum(sum(sample["errors"].values()) for sample in own)
        if failed:
            asked = failed + sum(sample["requests"] for sample in own)
            often = "" if failed < MOST_FAILED * asked else f", {failed / asked:.0%} of all"
            said.append(f"{server}: {failed:,} requests failed{often}, and are not counted.")
    said += [f"Failed: {one['what']}: {one['reason']}." for one in results.failures]
    said += [f"Left out: {one['server']}: {one['reason']}." for one in results.missing]
    return said


def _ours(servers: Sequence[str]) -> frozenset[str]:
    return frozenset(server for server in servers if server.startswith("poorhttp"))


def _measured(results: Results, servers: Sequence[str]) -> Table:
    columns = (
        ("rate", Column("requests", "/s")),
        ("octet_rate", Column("Throughput", "MB/s", 2, 1 / MEGA)),
        ("ramp_up_rate", Column("ramping up", "/s")),
        ("ramp_down_rate", Column("ramping down", "/s")),
        ("p50_us", Column("p50", "ms", 2, 1e-3)),
        ("p99_us", Column("p99", "ms", 2, 1e-3)),
        ("cpu_us", Column("CPU per request", "µs", 1)),
        ("client_busy", Column("client busy", "%", 0, 100)),
    )
    rows: list[list[Cell]] = [
        [server, *(_median(results, field, server) for field, _ in columns)] for server in servers
    ]
    return Table(
        NAME,
        "Requests and bytes per second",
        [Column("server"), *(column for _, column in columns)],
        rows,
        _ours(servers),
        "Times are from the beginning of a connection, or from the request on one that is kept, to "
        "the end of the answer. CPU is the server's, and is not known where it serves requests by "
        "processes that end.",
    )


def _bars(
    results: Results, servers: Sequence[str], field: str, title: str, unit: str, scale: float
) -> Bars:
    bars = []
    for server in servers:
        found = _median(results, field, server)
        value = found and Spread(
            found.median * scale, found.low * scale, found.high * scale, found.rounds
        )
        ours = server.startswith("poorhttp")
        bars.append(Bar(server, colour_of(server), [value], ours))
    return Bars(
        f"{NAME}-{field}", title, Axis(title.partition(" ")[0].lower(), unit, low=0.0), bars
    )


def _classes() -> Table:
    files = workload.files()
    rows: list[list[Cell]] = []
    for kind in workload.CLASSES:
        sizes = [file.size for file in files if file.kind == kind.name]
        rows.append(
            [
                kind.name,
                float(len(sizes)),
                float(sum(sizes)),
                float(min(sizes)),
                float(max(sizes)),
                kind.probability,
            ]
        )
    total = float(sum(file.size for file in files))
    rows.append(["all", float(len(files)), total, None, None, 1.0])
    return Table(
        f"{NAME}-classes",
        "The workload",
        [
            Column("class"),
            Column("files"),
            Column("together", "bytes"),
            Column("smallest", "bytes"),
            Column("largest", "bytes"),
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

    rows: list[list[Cell]] = [
        ["Ramp up, ramp down", client_2001.SETTINGS["Ramp up, ramp down"], told("ramp", " s")],
        ["Length", client_2001.SETTINGS["Length"], told("length", " s")],
        ["Delay, think time", client_2001.SETTINGS["Delay, think time"], told("think", " s")],
        ["Threads", client_2001.SETTINGS["Threads"], told("threads")],
        ["Receive buffer", client_2001.SETTINGS["Receive buffer"], told("receive", " bytes")],
        ["Request type", client_2001.SETTINGS["Request type"], f"HTTP {told('http')}"],
    ]
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
