"""The promised figures of content, read from stored samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loadtests.reporting.model import MIB
from loadtests.reporting.promises import Places, Promise
from loadtests.servers.registry.content import FLASK, PHP, SERVERS
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies.content.experiments import PAGE_LOADS, PROGRAM_LOADS, PROGRAMS

FLOOR, NGINX, LIGHTTPD, APACHE = "floor", "nginx", "lighttpd", "Apache"
WEB_SERVERS = (NGINX, "nginx + open_file_cache", LIGHTTPD)
ONE_AT_A_TIME = "poorhttp single"
OURS = {name for name, server in SERVERS.items() if server.ours}


def measured(results: Results, scenario: str) -> list[str]:
    """Who took part in a scenario, in the order of servers."""
    seen = set(results.servers(scenario))
    return [name for name in SERVERS if name in seen]


def best(
    results: Results, scenario: str, field: str, names: Sequence[str], *, highest: bool = False
) -> str | None:
    """Who of these has the best median of a field; None if none was measured."""
    medians = {
        name: found.median
        for name in names
        if (found := results.median(scenario, name, field)) is not None
    }
    choose = max if highest else min
    return choose(medians, key=lambda name: medians[name]) if medians else None


def _mode(server: str) -> str:
    return server.removeprefix("poorhttp ")


def _against(scenario: str, field: str, other: str) -> Callable[[Results], Places]:
    """Ours to another server, within each round."""

    def read(results: Results) -> Places:
        return {
            _mode(server): found
            for server in measured(results, scenario)
            if server in OURS and (found := results.ratio(scenario, server, other, field))
        }

    return read


def _ahead(
    scenario: str, others: Sequence[str], *, without: str = ""
) -> Callable[[Results], Places]:
    """Requests per second of ours, but one, to the best of the others."""

    def read(results: Results) -> Places:
        other = best(results, scenario, "rate", others, highest=True)
        if other is None:
            return {}
        return {
            f"{_mode(server)} to {other}": found
            for server in measured(results, scenario)
            if server in OURS.difference(others, {without})
            and (found := results.ratio(scenario, server, other, "rate"))
        }

    return read


def growth(results: Results, server: str) -> Spread | None:
    """How much more memory the clients of a large file took, in MiB."""
    before = results.rounds("file-100", server, "pss_before")
    highest = results.rounds("file-100", server, "pss_highest")
    return spread((highest[key] - before[key]) * MIB for key in highest)


def _growth(results: Results) -> Places:
    servers = [server for server in measured(results, "file-100") if server in OURS]
    return {_mode(server): found for server in servers if (found := growth(results, server))}


def _page(connections: int, other: str, limit: float) -> Promise:
    return Promise(
        f"page-{connections}",
        f"CPU per request for a page of 1.5 KB, {connections} connections, against {other}",
        limit,
        "×",
        _against(f"static-page-{connections}", "cpu_us", other),
    )


PROMISES = (
    *(
        _page(connections, other, limit)
        for connections in PAGE_LOADS
        for other, limit in ((LIGHTTPD, 1.0), (FLOOR, 1.25))
    ),
    Promise(
        "site",
        "requests/s for five pages with their images, against nginx and lighttpd",
        1,
        "×",
        _ahead("site-64", WEB_SERVERS),
        at_least=True,
    ),
    Promise(
        "file",
        "CPU per GB of 10 MB files for 100 clients at once, against nginx",
        1,
        "×",
        _against("file-100", "cpu_ms_per_gb", NGINX),
    ),
    Promise("file", "memory that these clients take", 16, "MiB", _growth, places=1),
    *(
        Promise(
            "cgi",
            f"requests/s for a program in {language}, {at_once} at once, against lighttpd and "
            "Apache",
            1,
            "×",
            _ahead(
                f"cgi-{language.lower()}-{at_once}",
                (LIGHTTPD, APACHE),
                without=ONE_AT_A_TIME if at_once > 1 else "",
            ),
            at_least=True,
        )
        for language in PROGRAMS
        for at_once in PROGRAM_LOADS
    ),
    Promise(
        "template",
        "requests/s for a page with a table, against PHP and Flask",
        1,
        "×",
        _ahead("template-64", [server.name for server in (*FLASK, *PHP)]),
        at_least=True,
    ),
)
