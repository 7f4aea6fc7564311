"""All servers of content compared, from stored samples to Markdown.

Measures nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.clients.load import SATURATED
from loadtests.reporting import ending, markdown_insert, provenance
from loadtests.reporting.median_cells import Cell, median, number
from loadtests.reporting.model import MIB
from loadtests.servers.registry.commands import PHP_CHILDREN
from loadtests.servers.registry.content import APACHE_SPARE, SERVERS
from loadtests.stats.results import Results
from loadtests.studies.bench import report
from loadtests.studies.content.experiments import (
    DOWNLOADS,
    PAGE_LOADS,
    PROGRAM_LOADS,
    PROGRAM_REQUESTS,
    PROGRAMS,
    SITE_VISITS,
    WARM_REQUESTS,
)
from loadtests.studies.content.promises import FLOOR, OURS, growth, measured, table


def _cpu_of_floor(results: Results, scenario: str, server: str) -> str:
    cell = number(results.median(scenario, server, "cpu_us"), 2)
    ratio = results.ratio(scenario, server, FLOOR, "cpu_us") if server != FLOOR else None
    return f"{cell} ({ratio.median:.2f} ×)" if ratio else cell


def _rate(results: Results, scenario: str, server: str) -> str:
    cell = number(results.median(scenario, server, "rate"), 0)
    return f"{cell} \\*" if _is_client_limit(results, scenario, server) else cell


def _growth(results: Results, _: str, server: str) -> str:
    return number(growth(results, server), 1)


def _is_client_limit(results: Results, scenario: str, server: str) -> bool:
    busy = results.median(scenario, server, "client_busy")
    return busy is not None and busy.median >= SATURATED


@dataclass(frozen=True)
class Row:
    """A line of a comparison."""

    scenario: str
    what: str
    cell: Cell


@dataclass(frozen=True)
class Comparison:
    """All servers of some scenarios in one table."""

    title: str
    rows: Sequence[Row]

    def table(self, results: Results) -> list[str]:
        """As Markdown; empty if nothing of it was measured."""
        rows = [row for row in self.rows if results.servers(row.scenario)]
        seen = {server for row in rows for server in results.servers(row.scenario)}
        columns = [name for name in SERVERS if name in seen]
        if not rows:
            return []
        heads = [f"**{name}**" if name in OURS else name for name in columns]
        lines = [f"| | {' | '.join(heads)} |", f"|---|{'--:|' * len(columns)}"]
        for row in rows:
            cells = [row.cell(results, row.scenario, server) or "–" for server in columns]
            lines.append(f"| {row.what} | {' | '.join(cells)} |")
        return lines


_ANSWERED = (
    *(
        row
        for connections in PAGE_LOADS
        for row in (
            Row(
                f"static-page-{connections}",
                f"1.5 KB page, {connections} connections: CPU µs per request (× floor)",
                _cpu_of_floor,
            ),
            Row(f"static-page-{connections}", "requests/s", _rate),
        )
    ),
    Row("site-64", "five pages with images: requests/s", _rate),
    Row("site-64", "CPU µs per request", median("cpu_us", 1)),
    Row("file-100", "10 MB file, 100 clients: CPU ms per GB", median("cpu_ms_per_gb", 0)),
    Row("file-100", "GB/s", median("gb_per_second", 2)),
    Row("file-100", "memory before, PSS MiB", median("pss_before", 1, MIB)),
    Row("file-100", "more with the clients, MiB", _growth),
)
_PROGRAMS = tuple(
    row
    for language in PROGRAMS
    for at_once in PROGRAM_LOADS
    for row in (
        Row(
            f"cgi-{language.lower()}-{at_once}",
            f"{language}, {at_once} at once: requests/s",
            _rate,
        ),
        Row(
            f"cgi-{language.lower()}-{at_once}",
            "CPU ms per request, with the program",
            median("cpu_us", 2, 1e-3),
        ),
    )
)
_TEMPLATE = (
    Row("template-64", "requests/s", _rate),
    Row("template-64", "CPU µs per request", median("cpu_us", 1)),
    Row("template-64", "p99 ms", median("p99_us", 1, 1e-3)),
    Row("template-64", "PSS MiB", median("pss", 1, MIB)),
)
COMPARISONS = (
    Comparison("Files", _ANSWERED),
    Comparison("CGI programs", _PROGRAMS),
    Comparison("A page with a table of 50 rows, 64 connections", _TEMPLATE),
)
SATURATION = "\\* The client was the limit, not the server."


def _section(title: str, lines: list[str]) -> list[str]:
    told = ["", SATURATION] if any("\\*" in line for line in lines) else []
    return [f"### {title}", "", *lines, *told]


def comparisons(results: Results) -> list[list[str]]:
    """A section for each comparison of which something was measured."""
    tables = ((one.title, one.table(results)) for one in COMPARISONS)
    return [_section(title, lines) for title, lines in tables if lines]


def details(results: Results, scenario: str) -> list[str]:
    """All servers of a scenario with the spread, the cheapest first."""
    lines = [
        "| server | CPU µs per request (lowest – highest) | requests/s (lowest – highest) "
        "| p50 ms | p99 ms | PSS MiB | remarks |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]

    def cost(server: str) -> float:
        found = results.median(scenario, server, "cpu_us")
        return found.median if found else 0.0

    for server in sorted(measured(results, scenario), key=cost):
        cpu, rate = (results.median(scenario, server, field) for field in ("cpu_us", "rate"))
        assert cpu is not None
        assert rate is not None
        cells = [
            f"**{server}**" if server in OURS else server,
            f"{cpu.median:,.2f} ({cpu.low:,.2f} – {cpu.high:,.2f})",
            f"{rate.median:,.0f} ({rate.low:,.0f} – {rate.high:,.0f})",
            median("p50_us", 2, 1e-3)(results, scenario, server),
            median("p99_us", 2, 1e-3)(results, scenario, server),
            median("pss", 1, MIB)(results, scenario, server),
            report.remarks(results, scenario, server),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def summary(results: Results) -> list[str]:
    """What a person wants to see at the end of a run."""
    return ["\n".join(part) + "\n" for part in comparisons(results)]


def insert(results: Results, page: Path) -> None:
    """Puts promises and comparisons into a page. Raises LabError if it has no place for them."""
    link = "[More of it](benchmarks/content.md), with how it was measured."
    parts = [table(results), *comparisons(results), [link]]
    markdown_insert.insert_parts(
        page, markdown_insert.CONTENT_BEGIN, markdown_insert.CONTENT_END, parts
    )


def markdown(results: Results) -> str:
    """The page: promises, comparisons, every scenario, and how it was measured."""
    parts = [
        ["# Content, measured"],
        [
            "Made by `python -m loadtests report --content loadtests/results/content.jsonl`; not",
            "edited by hand.",
        ],
        ["## Promised and measured"],
        table(results),
        ["## Compared"],
        *comparisons(results),
        ["## With the spread"],
        *(
            [f"### {_title(scenario)}", "", *details(results, scenario)]
            for scenario in results.scenarios()
        ),
    ]
    method = [
        f"- {ending.disturbance(results)}",
        *METHOD.splitlines(),
        *(f"- {name} {one.note}." for name, one in SERVERS.items() if one.note),
    ]
    return ending.page(parts + ending.ending(results, method, _commands(results)))


def _title(scenario: str) -> str:
    """`cgi-shell-10` in words."""
    kind, _, connections = scenario.rpartition("-")
    words = {
        "static-page": "1.5 KB page",
        "site": "Five pages with their images",
        "file": "10 MB file",
        "template": "Page with a table",
        **{f"cgi-{language.lower()}": f"CGI program in {language}" for language in PROGRAMS},
    }
    return f"{words.get(kind, kind)}, {connections} at once"


def _commands(results: Results) -> list[str]:
    """How each server was started; under a name there may be several kinds of content."""
    lines = ["| server | command |", "|---|---|"]
    told = set()
    for record in results.runs:
        for name, command in record["commands"].items():
            if (name, command) not in told:
                told.add((name, command))
                lines.append(f"| {name} | `{provenance.bare(command)}` |")
    configurations = []
    for name, server in SERVERS.items():
        for file, text in server.files:
            configurations += ["", f"{name}, `{file}`:", "", "```text", text.strip(), "```"]
    return [*lines, *configurations]


METHOD = f"""\
- Every server is started anew for every sample, asked whether it gives the right answer, warmed up,
  measured and stopped. Servers take turns within a round, and another one begins each round.
  Ratios are formed within a round, then made a median.
- Files and the page with a table: the server with all its processes on one core, the client on
  another. CGI programs: both cores for server, programs and client.
- CPU is that of all processes of a server, also of php-cgi and php-fpm. CGI programs have ended
  when they could be looked at, and the kernel tells the time of ended children in ticks only, cut
  for each process. So there it is the server's whole life, from the first answer to the end of the
  last process, over all requests ({WARM_REQUESTS} before the measurement).
- `page` and `template`: wrk, connections kept. `site`: {SITE_VISITS:,} visits to one of five pages
  at random, the same for every server, again and again; each page and its images on one of 64 kept
  connections. `file`: {DOWNLOADS} kept connections. `cgi`: {PROGRAM_REQUESTS:,} requests, a
  connection each.
- The client of these three is `loadtests/clients/native/fetch.c`. It takes what is behind the first
  64 KiB of an answer from the socket without copying it, so as not to become the limit before
  servers do.
- The floor is `loadtests/servers/baseline/floor.c`: the same answer from a bare epoll loop that
  parses nothing. Its head is about as long as the others'.
- One worker each, no access log. nginx with `sendfile` and `tcp_nopush`, with and without
  `open_file_cache`; lighttpd with its usual cache of `stat`. uWSGI twice, with and without its HTTP
  router: only that keeps connections of files. Apache with `mod_cgi` (not `mod_cgid`) and
  {APACHE_SPARE} processes more than there are requests at once. PHP with opcache as Debian has it,
  {PHP_CHILDREN} processes.
- `single` runs one request at a time, and so one program: it has no promise for several at once.
- Memory is PSS; it divides a page that several processes share.
"""
