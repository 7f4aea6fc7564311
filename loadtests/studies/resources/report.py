"""Report of the study `resources`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.servers.registry import colour_of
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import tables
from loadtests.studies.originals import uniserve_2005
from loadtests.studies.remote import LAN

DRAWN = 6
MIB = 2.0**-20
FULL_LINE = 0.9
"""The share of what a line can carry from which on it is full."""
COST = "CPU time per request"


def _cost(sample: Record) -> float:
    """CPU seconds of a request."""
    return float((sample["user"] + sample["system"]) * sample["seconds"] / sample["requests"])


def _packets(sample: Record) -> float:
    """Packets sent for a request."""
    return float(sample["sent_packets"] * sample["seconds"] / sample["requests"])


VALUES: Sequence[tuple[Column, tables.Value]] = (
    (Column(COST, "µs", 0, 1e6), tables.each(_cost)),
    (Column("requests", "/s"), tables.each(lambda s: s["requests"] / s["seconds"])),
    (Column("CPU time in the server", "%", 1, 100), "user"),
    (Column("CPU time in the kernel", "%", 1, 100), "system"),
    (Column("memory (PSS)", "MiB", 1, MIB), "pss"),
    (Column("of the machine", "%", 2, 100), tables.each(lambda s: s["pss"] / s["memory"])),
    (Column("memory (RSS)", "MiB", 1, MIB), "rss"),
    (Column("processes"), "processes"),
    (Column("packets sent per request", "", 1), tables.each(_packets)),
    (Column("packets sent", "/s"), "sent_packets"),
    (Column("sent", "Mbit/s", 2, 8e-6), "sent_octets"),
    (Column("packets received", "/s"), "received_packets"),
    (Column("received", "Mbit/s", 2, 8e-6), "received_octets"),
)


def report(results: Results) -> list[Section]:
    """What each server used, and what was in 2005."""
    samples = tables.latest(results.samples)
    return [*([_used(samples)] if samples else []), _then(results)]


def _used(samples: Sequence[Record]) -> Section:
    local = sorted({sample["local"] for sample in samples if "local" in sample})
    counted = "Traffic is what the server's own interface counts, heads of all layers included."
    if local:
        counted = (
            "Traffic is that of the loopback interface, so it is what the client sends, too, and "
            "what others do on this machine."
        )
    costs = tables.spreads(samples, tables.each(_cost), 1e6)
    table = tables.compared(
        "resources",
        "R2: what the server used",
        samples,
        VALUES,
        COST,
        note="Shares of one core, of all processes of the server together; memory is the highest "
        "seen. PSS divides what processes share, RSS counts it for each. " + counted,
    )
    processor = tables.bars(
        "resources-processor",
        "CPU time of the server during R2",
        Axis("share of a core", "%", low=0),
        {
            "in the server": tables.spreads(samples, tables.each(lambda s: s["user"] * 100)),
            "in the kernel": tables.spreads(samples, tables.each(lambda s: s["system"] * 100)),
        },
        caption="A server that answers faster is asked more, and works more: see the table.",
        stacked=True,
    )
    text = [
        "What does a server use while one client asks for five pages of 8.6 KB, one request after "
        "another, each on a connection of its own (R2), "
        + ("on the machine itself? " if local else f"{LAN.title}? ")
        + "Several times a second the lab looks at its processes and its interface.",
        *(f"Not in a network of its own: {reason}." for reason in local),
    ]
    full = [
        sample["server"]
        for sample in samples
        if "rate_bits" in sample and sample["sent_octets"] * 8 > FULL_LINE * sample["rate_bits"]
    ]
    if full:
        text.append(f"The line was full with {', '.join(dict.fromkeys(full))}.")
    return Section(
        "What a server uses",
        [*text, *tables.saturated(samples)],
        [processor, *_curves(samples), table],
        tables.answer("CPU time per request", costs, "µs"),
    )


def _curves(samples: Sequence[Record]) -> list[Panels]:
    shown: list[tuple[str, str, str, Callable[[Mapping[str, list[float]], int], float]]] = [
        ("user and system", "CPU", "%", lambda s, i: (s["user"][i] + s["system"][i]) * 100),
        ("memory", "PSS", "MiB", lambda s, i: s["pss"][i] * MIB),
        ("packets sent", "Packets", "/s", lambda s, i: s["sent_packets"][i]),
        ("bytes sent", "Sent", "Mbit/s", lambda s, i: s["sent_octets"][i] * 8e-6),
    ]
    first = {s["server"]: s["series"] for s in reversed(samples) if s["series"]}
    planned = list(dict.fromkeys(sample["server"] for sample in samples))
    drawn = [server for server in planned if server in first][:DRAWN]
    if not drawn:
        return []
    panels = []
    for title, label, unit, value in shown:
        lines = []
        for server in drawn:
            series = first[server]
            points = [(float(at), float(value(series, i))) for i, at in enumerate(series["at"])]
            lines.append(Line(server, colour_of(server), points, strong=tables.is_ours(server)))
        x, y = Axis("Time", "s", low=0), Axis(label, unit, low=0)
        panels.append(Lines(f"resources-{label.lower()}", title, x, y, lines))
    caption = (
        "The first round, between one look and the next; the load has a pause before it and behind "
        "it."
    )
    return [Panels("resources-time", "A server during R2", panels, caption=caption)]


def _then(results: Results) -> Section:
    names = ("CPU user, %", "Memory, %", "CPU system, %")
    columns = [Column("Server"), *map(Column, names)]
    columns += [Column("Packets sent", "/s"), Column("Bits sent, 1/s")]
    rows: list[list[Cell]] = [
        [one.server, one.user, one.memory, one.system, one.packets, one.bits]
        for one in uniserve_2005.RESOURCES
    ]
    table = Table(
        "resources-2005",
        "What the study of 2005 had",
        columns,
        rows,
        note="R2 from the Xeon to a Pentium III of 254 MB, by vmstat; the bits as they are printed "
        "there. Its conclusion: Apache sends half as many packets again, and needs less CPU.",
    )
    return Section("Resources in 2005", tables.lost(results), [table])
