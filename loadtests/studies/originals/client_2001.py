"""Figures of the study of 2001, "Influence of the client on web server benchmarks".

Its clients and servers were machines of very different speed, WebBench 2.0 was the client program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadtests.stats.variance import Analysis, analyse

YEAR = 2001
CLIENTS = ("Client 1", "Client 2", "Client 1+2")
SERVERS = ("Server 1", "Server 2", "Server 3", "Server 4")
RPS = (
    (16.138, 48.567, 52.033, 80.742),
    (8.246, 9.225, 9.154, 9.254),
    (16.696, 50.638, 64.638, 88.833),
)
THROUGHPUT = (
    (99_792.0, 297_643.0, 325_530.0, 500_135.0),
    (50_568.0, 57_223.0, 53_787.0, 51_959.0),
    (98_219.0, 311_194.0, 405_227.0, 569_941.0),
)
"""Bytes per second. As in the table of RPS: a row for each client, the servers in their order."""

FILES = 6_471
OCTETS = 64 * 2**20
"""Of all files together."""
SETTINGS: Mapping[str, str] = {
    "Ramp up, ramp down": "30 s",
    "Length": "300 s",
    "Delay, think time": "0 s",
    "Threads": "4",
    "Receive buffer": "8192 bytes",
    "Request type": "HTTP 1.0",
}


def analysed(table: Sequence[Sequence[float]]) -> Analysis:
    """The analysis of a table of the study: A are the clients. It gives no single runs."""
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
