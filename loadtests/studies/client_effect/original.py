"""The study of 2001, and a second analysis of its tables."""

from __future__ import annotations

from loadtests.reporting.model import Cell, Column, Section, Table
from loadtests.studies.originals import client_2001

PREFIX = "influence"
MEAN, EFFECT = "Mean", "Effect"


def section() -> Section:
    """The study of 2001, and what its table gives when it is analysed once more."""
    parts: list[Table] = []
    tables = (("RPS", client_2001.RPS, 2), ("throughput", client_2001.THROUGHPUT, 0))
    for name, table, places in tables:
        analysis = client_2001.analysed(table)
        unit = "1/s" if name == "RPS" else "bytes/s"
        rows: list[list[Cell]] = [
            [client, *table[level], analysis.mean + effect, effect]
            for level, (client, effect) in enumerate(
                zip(client_2001.CLIENTS, analysis.a_effects, strict=True)
            )
        ]
        means = [analysis.mean + effect for effect in analysis.b_effects]
        rows += [[MEAN, *means, analysis.mean, None], [EFFECT, *analysis.b_effects, None, None]]
        columns = [Column(column, unit, places) for column in (*client_2001.SERVERS, MEAN, EFFECT)]
        parts.append(
            Table(
                f"{PREFIX}-{client_2001.YEAR}-{name.lower()}",
                f"{name} of {client_2001.YEAR}",
                [Column("client"), *columns],
                rows,
            )
        )
    rows = []
    for name, table, _ in tables:
        analysis = client_2001.analysed(table)
        said = client_2001.printed(analysis).shares
        right = [source.share for source in analysis.sources()]
        rows += [[f"{name}, as printed", *said], [f"{name}, recomputed", *right]]
    shares = [Column(name, "%", 2, 100) for name in ("client", "server", "unexplained")]
    parts.append(
        Table(
            f"{PREFIX}-{client_2001.YEAR}-shares",
            "Shares of the variation",
            [Column("analysis"), *shares],
            rows,
            note="The study multiplies the squares of the effects of 3 clients by 3, and those of "
            "4 servers by 4. An effect of a client counts once for each server, and the other way "
            "round: what it gives to clients is three quarters of their share, and what it gives "
            "to servers is four thirds of theirs.",
        )
    )
    text = [
        "Three clients (a fast machine, a slow one, and both at once) and four servers, with "
        "WebBench 2.0. A table of its means is all that is printed of three runs, so interaction "
        "and error are one. Recomputed, more than half of the variation was the client's.",
    ]
    return Section(f"What the study of {client_2001.YEAR} had", text, parts)
