"""Tables, bars, lines and sentences that compare servers, made of the samples of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from loadtests.clients.load import SATURATED
from loadtests.measure import histogram
from loadtests.reporting import percentiles as plots
from loadtests.reporting.cells import brief
from loadtests.reporting.model import Axis, Bar, Bars, Cell, Column, Line, Lines, Table
from loadtests.servers.registry import PROXIED, colour_of
from loadtests.stats.results import Results, Spread, spread
from loadtests.store import Record

Value: TypeAlias = str | Callable[[Sequence[Record]], Cell]
"""What the samples of a server have: the spread of a field over them, or what a function says."""
BASELINE = "floor"
"""It answers without doing anything, so it is in tables but never the best server."""
NAMED = 4
"""Servers that a sentence names if noise does not separate them; of others it gives the number."""
_OURS = frozenset(server.name for server in PROXIED if server.ours)


def is_ours(name: object) -> bool:
    """Whether a server is one of ours, alone or behind a proxy."""
    return str(name).startswith("poorhttp") or name in _OURS


def ours(names: Iterable[object]) -> frozenset[str]:
    return frozenset(str(name) for name in names if is_ours(name))


def latest(samples: Iterable[Record]) -> list[Record]:
    """The samples; of a step that was taken again after an interruption only the last."""
    keys = ("run", "scenario", "server", "injectors", "round")
    return list({tuple(map(one.get, keys)): one for one in samples}.values())


def by(samples: Iterable[Record], field: str) -> dict[Any, list[Record]]:
    """The samples of each value of a field, in the order of their appearance."""
    found: dict[Any, list[Record]] = {}
    for one in samples:
        found.setdefault(one[field], []).append(one)
    return found


def by_server(samples: Iterable[Record]) -> dict[str, list[Record]]:
    return by(samples, "server")


def each(number: Callable[[Record], float]) -> Value:
    """The spread of a number that is made of each sample."""
    return lambda samples: spread(map(number, samples))


def total(field: str) -> Value:
    return lambda samples: float(sum(one[field] for one in samples))


def where(field: str, is_: object, value: Value) -> Value:
    """A value of those samples only of which a field is this."""
    return lambda samples: cell([one for one in samples if one[field] == is_], value)


def cell(samples: Sequence[Record], value: Value) -> Cell:
    if callable(value):
        return value(samples)
    return spread(float(one[value]) for one in samples if value in one)


def spreads(samples: Iterable[Record], value: Value, scale: float = 1.0) -> dict[str, Spread]:
    """A value of each server that has it."""
    found = {server: cell(own, value) for server, own in by_server(samples).items()}
    return {name: scaled(one, scale) for name, one in found.items() if isinstance(one, Spread)}


def along(samples: Iterable[Record], value: Value, field: str) -> dict[float, Spread]:
    """A value of a server by another field, in the order of that."""
    found = {at: cell(own, value) for at, own in sorted(by(samples, field).items())}
    return {at: one for at, one in found.items() if isinstance(one, Spread)}


def scaled(found: Spread, scale: float) -> Spread:
    return Spread(found.median * scale, found.low * scale, found.high * scale, found.rounds)


def once(value: float, rounds: int = 1) -> Spread:
    """One number for all rounds."""
    return Spread(value, value, value, rounds)


def ranked(
    found: Mapping[str, Spread], names: Iterable[str], *, highest: bool = False
) -> list[str]:
    """Names by their medians, best first; those without one at the end."""
    sign = -1 if highest else 1
    return sorted(names, key=lambda n: sign * found[n].median if n in found else float("inf"))


def compared(
    name: str,
    title: str,
    samples: Iterable[Record],
    values: Sequence[tuple[Column, Value]],
    ranking: str,
    *,
    highest: bool = False,
    note: str = "",
    first: str = "server",
) -> Table:
    """A row for each server, by the column `ranking`, best first."""
    own = by_server(samples := list(samples))
    best = next(value for column, value in values if column.name == ranking)
    names = ranked(spreads(samples, best), own, highest=highest)
    rows = [[name, *(cell(own[name], value) for _, value in values)] for name in names]
    return table(name, title, [first, *(column for column, _ in values)], rows, note, ranking)


def table(
    name: str,
    title: str,
    columns: Iterable[str | Column],
    rows: Iterable[Sequence[Cell]],
    note: str = "",
    ranking: str = "",
) -> Table:
    """A table of which each row begins with the name of a server."""
    heads = [Column(one) if isinstance(one, str) else one for one in columns]
    cells = list(rows)
    return Table(name, title, heads, cells, ours(row[0] for row in cells), note, ranking)


def bars(
    name: str,
    title: str,
    axis: Axis,
    found: Mapping[str, Mapping[str, Spread]],
    *,
    highest: bool = False,
    **more: Any,
) -> Bars:
    """Bars of each part by server (`found`), ordered by the last part, best first."""
    parts = list(found)
    names = dict.fromkeys(server for part in found.values() for server in part)
    drawn = [
        Bar(server, colour_of(server), [found[part].get(server) for part in parts], is_ours(server))
        for server in ranked(found[parts[-1]], names, highest=highest)
    ]
    return Bars(name, title, axis, drawn, parts if len(parts) > 1 else (), **more)


def line(server: str, found: Iterable[tuple[float, float | Spread]], scale: float = 1.0) -> Line:
    """A curve; of spreads it has the medians, and from where to where the rounds went."""
    drawn: list[tuple[float, float]] = []
    band: list[tuple[float, float, float]] = []
    for x, y in found:
        median, low, high, _ = y if isinstance(y, Spread) else (y, y, y, 1)
        drawn.append((float(x), median * scale))
        band += [(float(x), low * scale, high * scale)] if isinstance(y, Spread) else []
    return Line(server, colour_of(server), drawn, band, is_ours(server))


def lines(
    name: str,
    title: str,
    x: Axis,
    y: Axis,
    servers: Mapping[str, Iterable[tuple[float, float | Spread]]],
    scale: float = 1.0,
    **more: Any,
) -> Lines:
    """A curve of each server."""
    drawn = [line(server, found, scale) for server, found in servers.items()]
    return Lines(name, title, x, y, drawn, **more)


def percentiles(name: str, samples: Iterable[Record], field: str) -> list[Lines]:
    """A percentile plot of histograms, all rounds of a server together; none without any."""
    kept = [one for one in samples if field in one]
    drawn = []
    for server, own in by_server(kept).items():
        longest = max(one.get("max_us", histogram.LONGEST) for one in own)
        whole = histogram.merge(one[field] for one in own)
        drawn.append(line(server, plots.points(whole, longest)))
    return [plots.plot(f"{name}-percentiles", drawn)] if drawn else []


def listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def answer(what: str, found: Mapping[str, Spread], unit: str, *, highest: bool = False) -> str:
    """A sentence: who is best, by how much, and whom the spread of the rounds does not separate."""
    names = [name for name in ranked(found, found, highest=highest) if name != BASELINE]
    if not names:
        return ""
    unit = unit if unit.startswith("/") else f" {unit}"

    def told(name: str) -> str:
        return f"{name} ({brief(found[name].median)}{unit})"

    best, *others = names
    if not others:
        return f"{what}: {told(best)}."
    low, high = found[best].low, found[best].high
    alike = list(takewhile(lambda n: low <= found[n].high and found[n].low <= high, others))
    if alike:
        those = [told(name) for name in names[: 1 + min(len(alike), NAMED - 1)]]
        if len(alike) >= NAMED:
            those.append(f"{len(alike) - NAMED + 1} more")
        said = (
            f"{what}: the rounds show no clear difference between {listed(those)}, which are best"
        )
    else:
        said = f"{what}: {told(best)} is best"
    behind = others[len(alike) :]
    if behind:
        ratio = found[behind[0]].median / found[best].median if found[best].median else 0.0
        far = f" reaches {ratio:.0%} of that" if highest else f" takes {ratio:.2f} times as much"
        said += f"; the next, {told(behind[0])},{far if ratio else ' is behind'}"
    if len(behind) > 1:
        said += f", and {told(behind[-1])} is last"
    once = all(found[name].rounds == 1 for name in names)
    return said + ("; each was measured once, so small differences may be noise." if once else ".")


def saturated(samples: Iterable[Record]) -> list[str]:
    """A sentence on the servers with which the client had no time left."""
    busy = dict.fromkeys(s["server"] for s in samples if s["client_busy"] >= SATURATED)
    return [f"The client was the limit in samples with: {', '.join(busy)}."] if busy else []


def errors(samples: Iterable[Record]) -> Counter[str]:
    counts = Counter[str]()
    for sample in samples:
        counts.update(sample["errors"])
    return counts


def failed(samples: Iterable[Record], where: str = "", *ignored: str) -> list[str]:
    """A sentence for each server of which requests failed; those of `ignored` kinds aside."""
    told = []
    for server, own in by_server(samples).items():
        wrong = errors(own)
        counts = {kind: count for kind, count in wrong.items() if kind not in ignored}
        if counts:
            asked = sum(one["requests"] for one in own) + wrong.total()
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
            place = f", {where}" if where else ""
            count = f"{sum(counts.values()):,} of {asked:,}"
            told.append(f"{server}{place}: {count} requests failed ({kinds}).")
    return told


def lost(results: Results) -> list[str]:
    """A sentence for each step that failed and each server that was left out."""
    told = [f"Failed: {one['what']}: {one['reason']}." for one in results.failures]
    return told + [f"Left out: {one['server']}: {one['reason']}." for one in results.missing]
