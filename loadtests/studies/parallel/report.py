"""Report of the study `parallel`: overloaded servers and latencies."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Section, Table
from loadtests.servers.registry import colour_of
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import tables
from loadtests.studies.originals import poorhttp_2010
from loadtests.studies.originals.poorhttp_2010 import AT_ONCE, MOST_UNANSWERED
from loadtests.studies.parallel import ramp

NAME = "parallel"
SLOW = "slow"
TITLES = {
    "light": "the light page",
    "heavy": "the heavy page",
    SLOW: "a handler that waits",
}


def _moments(samples: Sequence[Record]) -> list[float]:
    """When a server was flooded, in the rounds in which it was."""
    return [one["flooded_after"] for one in samples if one["flooded_after"] is not None]


def _flooded(samples: Sequence[Record]) -> str:
    """When, or not within how long."""
    moments = _moments(samples)
    if not moments:
        return f"not in {max(one['limit'] for one in samples):g} s"
    words = f"after {min(moments):.1f} s"
    return words if len(samples) == 1 else f"{words}, {len(moments)} of {len(samples)} times"


def _late(samples: Sequence[Record]) -> int:
    """Requests that were unanswered when it was over."""
    return sum(int(one["errors"].get("timeout", 0)) for one in samples)


def _failed(samples: Sequence[Record]) -> int:
    """But for those that were unanswered when it was over."""
    return sum(sum(one["errors"].values()) for one in samples) - _late(samples)


MOST, TIME = "most unanswered requests", "time to the whole page"
VALUES: Sequence[tuple[Column, tables.Value]] = (
    (Column(MOST), "most_unanswered"),
    (Column(f"{MOST_UNANSWERED} unanswered"), _flooded),
    (Column("answered in the time of the test", "/s", 1), "rate"),
    (Column(TIME, "ms", 2, 1e-3), "mean_us"),
    (Column("p99 of that", "ms", 1, 1e-3), "p99_us"),
    (Column("time to its first bytes", "ms", 2, 1e-3), "answer_us"),
    (
        Column("whole pages that fit into a second", "", 1),
        tables.each(lambda s: 1e6 / s["mean_us"]),
    ),
    (
        Column("first bytes that fit into a second", "", 1),
        tables.each(lambda s: 1e6 / s["answer_us"]),
    ),
    (Column("server CPU per request", "µs"), "cpu_us"),
    (Column("client busy", "%", 0, 100), "client_busy"),
    (Column("unanswered at the end"), _late),
    (Column("failed requests"), _failed),
)


def _section(handler: str, samples: Sequence[Record], about: Sequence[str]) -> Section:
    title = TITLES[handler]
    own = tables.by_server(samples)
    best = tables.ranked(most := tables.spreads(samples, "most_unanswered"), own)
    figure = Lines(
        f"{NAME}-{handler}-lines",
        f"{AT_ONCE} new requests each second: {title}",
        Axis("time", "s", low=0),
        Axis("most unanswered in the second", low=0),
        [_line(server, own[server]) for server in best],
        f"a server that has {MOST_UNANSWERED} counts as flooded, and is asked no more",
        f"A server that answers all of them within the second stays at {AT_ONCE} or below; behind "
        "the last burst is the time in which the rest may be answered.",
        marks=True,
    )
    flooded = [f"{one} (after {min(when):.1f} s)" for one in best if (when := _moments(own[one]))]
    kept = [one for one in best if not _moments(own[one])]
    behind = [f"{one} ({most[one].high:,.0f} at most)" for one in kept if most[one].high > AT_ONCE]
    silent = [f"{one} ({late:,})" for one in kept if (late := _late(own[one]))]
    # If all keep up, their times tell them apart.
    table = tables.compared(
        f"{NAME}-{handler}",
        title.capitalize(),
        samples,
        VALUES,
        MOST if flooded or behind else TIME,
        note="Times are those of answered requests: what was unanswered at the end took longer.",
    )
    said = f"With {title}, {len(kept) - len(behind)} of {len(own)} servers answered all requests "
    said += f"of a second within it; {MOST_UNANSWERED} "
    said += f"were unanswered at {', '.join(flooded)}." if flooded else "were unanswered at none."
    times = tables.spreads([taken for one in kept for taken in own[one]], "mean_us", 1e-3)
    text = [*about, tables.answer("Time to a whole page", times, "ms")]
    if behind:
        text.append(
            f"Not done with a second's requests when the next came, but below "
            f"{MOST_UNANSWERED}: {', '.join(behind)}."
        )
    if silent:
        text.append(
            f"Unanswered when it was over, of a server that hangs or lags: {', '.join(silent)}."
        )
    text += [*tables.saturated(samples), *tables.failed(samples, handler, "timeout")]
    heading = f"{AT_ONCE} new requests each second: {title}"
    return Section(heading, [one for one in text if one], [figure, table], said)


def _line(server: str, samples: Sequence[Record]) -> Line:
    """The worst of the rounds."""
    waiting: list[int] = max((one["unanswered"] for one in samples), key=max)
    points = [(float(second), float(count)) for second, count in enumerate(waiting)]
    return Line(server, colour_of(server), points, strong=tables.is_ours(server))


def _then() -> Table:
    columns = (
        Column("configuration"),
        Column("first bytes that fit into a second", places=2),
        Column("whole pages that fit into a second", places=2),
        Column("answered in the time of the test", "/s", 2),
        Column("time to the first bytes", "s", 4),
        Column("time to the whole page", "s", 4),
        Column(f"{MOST_UNANSWERED} unanswered"),
    )
    rows: list[Sequence[Cell]] = [
        (*row, "reached" if row.name in poorhttp_2010.FLOODED else "not reached")
        for row in poorhttp_2010.PARALLEL
    ]
    return Table(
        f"{NAME}-{poorhttp_2010.YEAR}",
        f"What the study of {poorhttp_2010.YEAR} had",
        columns,
        rows,
        note=f"The light page over an ad-hoc WLAN, from a netbook, for {poorhttp_2010.SECONDS} "
        "seconds or until its client was flooded; it does not say when that was.",
    )


def report(results: Results) -> list[Section]:
    """A section for each handler, one for the highest rate, and what the study of 2010 had."""
    samples = tables.latest(results.samples)
    about = [
        f"What if requests come whether or not those before are answered? {AT_ONCE} at once at the "
        f"beginning of each second, until {MOST_UNANSWERED} are unanswered. Times count from the "
        "beginning of the second, also for a request that had to wait to be connected."
    ]
    if waits := sorted({one["waits"] for one in samples if "waits" in one}):
        about.append(
            f"The handler that waits does so for {waits[0] * 1e3:g} ms, as for a database: the "
            "pages themselves are too quick today for a hundred of them to matter, but a server of "
            f"one request at a time can wait no more than {1 / waits[0]:.0f} times a second."
        )
    sections: list[Section] = []
    for handler in TITLES:
        if own := [one for one in samples if one["scenario"] == handler]:
            sections.append(_section(handler, own, [] if sections else about))
    if raised := ramp.section(results, NAME):
        sections.append(raised)
    then = f"{AT_ONCE} new requests each second in {poorhttp_2010.YEAR}"
    return [*sections, Section(then, [], [_then()])]
