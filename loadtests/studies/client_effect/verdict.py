"""One sentence on whether the client was the bottleneck."""

from __future__ import annotations

from loadtests.clients.load import SATURATED
from loadtests.stats.results import Results, spread
from loadtests.stats.variance import analyse
from loadtests.studies.client_effect.grid import Part, grid, largest

CONSIDERABLE = 0.1
"""The share of the variation from which on clients mattered, alone and with the servers."""


def verdict(results: Results) -> str:
    """By the clients' busy shares, and by what explains the variation of requests per second."""
    found = grid(results, "rate")
    limits = {
        client: [server for server in found.servers if _is_limit(results, client, server)]
        for client in found.clients
    }
    limits = {client: those for client, those in limits.items() if those}
    shares, matters = _shares(largest(found))
    if limits:
        everywhere = sum(map(len, limits.values())) == len(found.clients) * len(found.servers)
        begins = "Yes" if everywhere else "In part"
        which = ", ".join(
            f"{client} with {_of(len(those), len(found.servers))}"
            for client, those in limits.items()
        )
        clients = f"{len(limits)} of {len(found.clients)} clients"
        told = f"{begins}, the client was the bottleneck: {clients} used {SATURATED:.0%} of a core "
        return f"{told}or more ({which})" + (f", and {shares}." if shares else ".")
    begins = "No, the client was not the bottleneck"
    idle = f"none used {SATURATED:.0%} of a core"
    if matters:
        return f"{begins} by its speed, for {idle}, but how it asks mattered{matters}: {shares}."
    return f"{begins}: {idle}" + (f", and {shares}." if shares else ".")


def _shares(part: Part) -> tuple[str, str]:
    """What explains the variation, and how much clients mattered if they did, in words."""
    if not part.replications:
        return "", ""
    analysis = analyse(part.grid.cells(part.replications))
    of = {source.name: source.share for source in analysis.sources()}
    said = (
        f"the client explains {of['A']:.1%} of the variation of requests per second, the server "
        f"{of['B']:.1%}"
    )
    if analysis.replicated:
        said += f", both together {of['AB']:.1%}"
    if of["A"] > of["B"]:
        return said, " more than who answered"
    return said, ", too" if of["A"] + of.get("AB", 0.0) >= CONSIDERABLE else ""


def _of(count: int, whole: int) -> str:
    servers = "server" if whole == 1 else "servers"
    return f"all {whole} {servers}" if count == whole else f"{count} of {whole} {servers}"


def _is_limit(results: Results, client: str, server: str) -> bool:
    # Whoever spins is busy whatever the server does.
    busy = spread(
        float(sample["client_busy"])
        for sample in results.samples
        if sample["client"] == client and sample["server"] == server and not sample["spins"]
    )
    return busy is not None and busy.median >= SATURATED
