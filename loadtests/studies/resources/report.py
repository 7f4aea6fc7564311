"""Report of the study `resources`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import (
    Axis,
    Bar,
    Bars,
    Cell,
    Column,
    Line,
    Lines,
    Panels,
    Section,
    Table,
)
from loadtests.servers.lists import colour_of
from loadtests.stats.results import Results, Spread, spread
from loadtests.store import Record
from loadtests.studies.uniserve import past
from loadtests.studies.uniserve.remote import LAN

DRAWN = 6
MIB = 2.0**-20


def report(results: Results) -> list[Section]:
    """One section, and what was in 2005."""
    taken = {(one["server"], one["round"]): one for one in results.samples}
    samples = list(taken.values())
    if not samples:
        return [_past(results)]
    servers = _servers(samples)
    parts: list[Table | Bars | Panels] = [_table(samples, servers), _processor(samples, servers)]
    drawn = _curves(samples, servers)
    if drawn:
        parts.append(drawn)
    return [Section("What a server uses", _text(samples, servers), parts), _past(results)]


def _servers(samples: Iterable[Record]) -> list[str]:
    ordered = sorted(samples, key=lambda sample: int(sample["round"]))
    return list(dict.fromkeys(str(sample["server"]) for sample in ordered))


def _over(
    samples: Iterable[Record], server: str, value: Callable[[Record], float]
) -> Spread | None:
    return spread(value(sample) for sample in samples if sample["server"] == server)


def _field(name: str) -> Callable[[Record], float]:
    return lambda sample: float(sample[name])


def _share(name: str) -> Callable[[Record], float]:
    return lambda sample: float(sample[name]) * 100


def _table(samples: Sequence[Record], servers: Sequence[str]) -> Table:
    values: list[tuple[Column, Callable[[Record], float]]] = [
        (Column("CPU user", "%", 1, 100), _field("user")),
        (Column("Memory", "% of the machine", 2, 100), lambda s: s["pss"] / s["memory"]),
        (Column("CPU system", "%", 1, 100), _field("system")),
        (Column("Packets sent", "/s"), _field("sent_packets")),
        (Column("Sent", "Mbit/s", 2, 8e-6), _field("sent_octets")),
        (Column("Packets received", "/s"), _field("received_packets")),
        (Column("Received", "Mbit/s", 2, 8e-6), _field("received_octets")),
        (Column("Requests", "/s"), lambda s: s["requests"] / s["seconds"]),
        (
            Column("CPU", "µs/request", 0, 1e6),
            lambda s: (s["user"] + s["system"]) * s["seconds"] / s["requests"],
        ),
        (Column("Packets sent", "1/request", 1), _per_request("sent_packets")),
        (Column("PSS", "MiB", 1, MIB), _field("pss")),
        (Column("RSS", "MiB", 1, MIB), _field("rss")),
        (Column("Processes"), _field("processes")),
    ]
    rows: list[list[Cell]] = [
        [server, *(_over(samples, server, value) for _, value in values)] for server in servers
    ]
    return Table(
        "resources",
        "R2: what the server used",
        [Column("Server"), *(column for column, _ in values)],
        rows,
        frozenset(server for server in servers if _ours(server)),
        "Shares of one core, of all processes of the server together; memory is the highest seen. "
        "PSS divides what processes share, RSS counts it for each. " + _counted(samples),
    )


def _per_request(name: str) -> Callable[[Record], float]:
    return lambda sample: sample[name] * sample["seconds"] / sample["requests"]


def _counted(samples: Iterable[Record]) -> str:
    local = any("local" in sample for sample in samples)
    if local:
        return (
            "Traffic is that of the loopback interface, so it is what the client sends, too, and "
            "what others do on this machine."
        )
    return "Traffic is what the server's own interface counts, heads of all layers included."


def _processor(samples: Sequence[Record], servers: Sequence[str]) -> Bars:
    bars = [
        Bar(
            server,
            colour_of(server),
            [_over(samples, server, _share(part)) for part in ("user", "system")],
            _ours(server),
        )
        for server in servers
    ]
    return Bars(
        "resources-processor",
        "CPU time of the server during R2",
        Axis("Share of a core", "%", low=0),
        bars,
        ("user", "system"),
        caption="Whoever answers faster is asked more, and works more: see CPU per request.",
        stacked=True,
    )


def _curves(samples: Sequence[Record], servers: Sequence[str]) -> Panels | None:
    shown: list[tuple[str, str, str, Callable[[dict[str, list[float]], int], float]]] = [
        ("user and system", "CPU", "%", lambda s, i: (s["user"][i] + s["system"][i]) * 100),
        ("memory", "PSS", "MiB", lambda s, i: s["pss"][i] * MIB),
        ("packets sent", "Packets", "/s", lambda s, i: s["sent_packets"][i]),
        ("octets sent", "Sent", "Mbit/s", lambda s, i: s["sent_octets"][i] * 8e-6),
    ]
    first = {s["server"]: s["series"] for s in reversed(samples) if s["series"]}
    drawn = [server for server in servers if server in first][:DRAWN]
    if not drawn:
        return None
    panels = []
    for title, label, unit, value in shown:
        lines = []
        for server in drawn:
            series = first[server]
            points = [(float(at), float(value(series, i))) for i, at in enumerate(series["at"])]
            lines.append(Line(server, colour_of(server), points, strong=_ours(server)))
        x, y = Axis("Time", "s", low=0), Axis(label, unit, low=0)
        panels.append(Lines(f"resources-{label.lower()}", title, x, y, lines))
    return Panels(
        "resources-time",
        "A server during R2",
        panels,
        caption="The first round, between one look and the next; the load has a pause before it "
        "and behind it.",
    )


def _text(samples: Sequence[Record], servers: Sequence[str]) -> list[str]:
    text = [
        "What does a server use while one client asks for five pages of 8.6 KB, one request after "
        "another, each on a connection of its own (R2), "
        + (
            "on the machine itself? "
            if any("local" in sample for sample in samples)
            else f"{LAN.title}? "
        )
        + "Several times a second the lab looks at its processes and its interface."
    ]
    for reason in sorted({sample["local"] for sample in samples if "local" in sample}):
        text.append(f"Not in a network of its own: {reason}.")
    costs = {
        server: found.median
        for server in servers
        if (
            found := _over(
                samples,
                server,
                lambda s: (s["user"] + s["system"]) * s["seconds"] / s["requests"] * 1e6,
            )
        )
    }
    if len(costs) > 1:
        least = min(costs, key=lambda server: costs[server])
        most = max(costs, key=lambda server: costs[server])
        text.append(
            f"A request costs {least} {costs[least]:,.0f} µs of CPU time, the least, and {most} "
            f"{costs[most]:,.0f} µs, the most."
        )
    limit = [
        sample["server"]
        for sample in samples
        if "rate_bits" in sample and sample["sent_octets"] * 8 > 0.9 * sample["rate_bits"]
    ]
    if limit:
        text.append(f"The line was full with {', '.join(dict.fromkeys(limit))}.")
    busy = [sample["server"] for sample in samples if sample["client_busy"] > SATURATED]
    if busy:
        text.append(f"The client was saturated with {', '.join(dict.fromkeys(busy))}.")
    return text


def _past(results: Results) -> Section:
    columns = [
        Column("Server"),
        Column("CPU user, %"),
        Column("Memory, %"),
        Column("CPU system, %"),
        Column("Packets sent", "/s"),
        Column("Bits sent, 1/s"),
    ]
    rows: list[list[Cell]] = [
        [one.server, one.user, one.memory, one.system, one.packets, one.bits]
        for one in past.RESOURCES
    ]
    table = Table(
        "resources-2005",
        "What the study of 2005 had",
        columns,
        rows,
        frozenset(),
        "R2 from the Xeon to a Pentium III of 254 MB, by vmstat; the bits as they are printed "
        "there. Its conclusion: Apache sends half as many packets again, and needs less CPU.",
    )
    text = [f"Failed: {one['what']}: {one['reason']}" for one in results.failures]
    text += [f"Left out: {one['server']}: {one['reason']}" for one in results.missing]
    return Section("Resources in 2005", text, [table])


def _ours(server: str) -> bool:
    return server.startswith("poorhttp")
