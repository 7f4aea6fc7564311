"""Figures and findings of the old studies, as they are printed there (`originals.json`).

- 2001: ways to wait for events beside dead connections; and "Influence of the client on web server
  benchmarks": machines of very different speed, asked by WebBench 2.0.
- 2005: Uniserve 0.9.9 (REBOL) and Apache 1.3.27.
- 2008: "KLone against Boa, Lighttpd and Apache": milliseconds from its text, for its diagrams show
  no numbers that could be read. Client: Apache Bench 2.0.4-dev on a MacBook Pro, over a network;
  server: Xeon 3060, Debian Etch; KLone 2.0.3, Boa 0.94, lighttpd 1.4.19, Apache 2.2.8.
- 2010: "Poor HTTP": a netbook with an Intel Atom N270 of 1.6 GHz and 2 GB, Debian Squeeze, asked by
  another machine over an ad-hoc WLAN (WEP 40), which the study itself calls the bottleneck. Each
  test took about a minute.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadtests.reporting.model import Column, Section, Table
from loadtests.stats.variance import Analysis, analyse

_ORIGINALS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
FIGURES: dict[str, list[list[Any]]] = _ORIGINALS["figures"]
"""Rows by year and name, of what is shown beside figures of today.

- settings: of the client of 2001.
- times: content, one of the times, and what the study says of each server; empty: nothing.
"""

CLIENTS = ("Client 1", "Client 2", "Client 1+2")
SERVERS = ("Server 1", "Server 2", "Server 3", "Server 4")
RPS, THROUGHPUT = FIGURES["2001 requests per second"], FIGURES["2001 bytes per second"]
"""Of 2001: a row for each client, the servers in their order."""
FILES = 6_471
OCTETS = 64 * 2**20
"""Of all files together."""

KLONE = ("KLone", "Lighttpd", "Boa", "Apache 2")
"""The servers of 2008."""

POORHTTP = "Poor HTTP, 2010"
SECONDS = 60
AT_ONCE, EVERY = 100, 1.0
"""New requests of the parallel test, and the seconds from one burst of them to the next."""
MOST_UNANSWERED = 600


def table(name: str) -> Table:
    """A table as a study had it.

    - loops: seconds of all requests together, mean, shortest and longest, of the mean row of each.
    - power: of R99, the injectors that were active, or their number, with 5,000 requests each.
    - resources: of R2 in the local network ("2 2500 000" is printed; the text has 2.5 MB/s, 5 % of
      the bandwidth).
    - serial and parallel: as `poorhttp` shows them.
    - memory: KiB, as `ps` gives it: size, virtual size and 4 × size.
    """
    found = _ORIGINALS["tables"][name]
    columns = [Column(*one) for one in found["columns"]]
    rows = [tuple(row) for row in found["rows"]]
    return Table(name, found["title"], columns, rows, note=found["note"])


def section(title: str, *names: str, text: Sequence[str] = ()) -> Section:
    """Tables of a study, at the end of the report of today's."""
    return Section(title, text, list(map(table, names)))


def analysed(table: Sequence[Sequence[float]]) -> Analysis:
    """The analysis of a table of 2001: A are the clients. The study gives no single runs."""
    return analyse([[[value] for value in row] for row in table])


def printed(analysis: Analysis) -> tuple[float, float, float]:
    """Sums of squares as the study prints them: of clients, servers and what neither explains.

    It multiplies the squares of the effects by the number of levels of the factor itself, 3 for
    clients and 4 for servers. An effect occurs once for each level of the other factor, 4 and 3
    times (Jain, chapter 21), so it gives the clients three quarters of what is theirs, and the
    servers four thirds. Its error is what is left.
    """
    clients, servers = len(analysis.a_effects), len(analysis.b_effects)
    ssa = analysis.ssa * clients / servers
    ssb = analysis.ssb * servers / clients
    return ssa, ssb, analysis.sst - ssa - ssb
