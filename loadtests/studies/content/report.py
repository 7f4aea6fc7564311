"""Report of the study `content`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.reporting.model import MIB, Column, Listing, Section, method
from loadtests.servers.registry.commands import PHP_CHILDREN
from loadtests.servers.registry.content import APACHE_SPARE, SERVERS
from loadtests.stats.results import Results
from loadtests.studies.comparison import (
    CPU,
    P50,
    P99,
    PSS,
    RATE,
    REMARKS,
    Measure,
    details,
    measured,
    median,
    ratio,
    section,
)
from loadtests.studies.content.experiments import (
    DOWNLOADS,
    PAGE_LOADS,
    PROGRAM_LOADS,
    PROGRAM_REQUESTS,
    PROGRAMS,
    SITE_VISITS,
    WARM_REQUESTS,
)
from loadtests.studies.content.promises import FLOOR, growth


@dataclass(frozen=True)
class Kind:
    """What is served: its scenarios, the words for each, and what is told; the first ranks."""

    name: str
    title: str
    scenarios: dict[str, str]
    measures: Sequence[Measure]


def _cpu(places: int = 1) -> Measure:
    return median("cpu_us", "CPU per request", "µs", places)


KINDS = (
    Kind(
        "page",
        "1.5 KB page",
        {f"static-page-{load}": f"{load} connections" for load in PAGE_LOADS},
        (CPU, ratio("cpu_us", lambda _: FLOOR, "× floor"), RATE),
    ),
    Kind("site", "Five pages with their images", {"site-64": ""}, (RATE, _cpu())),
    Kind(
        "file",
        f"10 MB file, {DOWNLOADS} clients",
        {f"file-{DOWNLOADS}": ""},
        (
            median("cpu_ms_per_gb", "CPU per GB", "ms"),
            median("gb_per_second", "transferred", "GB/s", 2),
            median("pss_before", "memory before", "PSS MiB", 1, MIB),
            Measure(
                Column("more with the clients", "MiB", 1),
                lambda results, _, name: growth(results, name),
            ),
        ),
    ),
    *(
        Kind(
            f"cgi-{language.lower()}",
            f"CGI program in {language}",
            {f"cgi-{language.lower()}-{load}": f"{load} at once" for load in PROGRAM_LOADS},
            (RATE, median("cpu_us", "CPU per request, with the program", "ms", 2, 1e-3)),
        )
        for language in PROGRAMS
    ),
    Kind(
        "template",
        "Page with a table of 50 rows, 64 connections",
        {"template-64": ""},
        (RATE, _cpu(), median("p99_us", "p99", "ms", 1, 1e-3), PSS),
    ),
)
DETAILS = (CPU.with_range(), RATE.with_range(), P50, P99, PSS, REMARKS)


def report(results: Results) -> list[Section]:
    """A section for each kind of content, all with their spread, and how it was measured."""
    titles = {
        scenario: f"{kind.title}, {words}" if words else kind.title
        for kind in KINDS
        for scenario, words in kind.scenarios.items()
    }
    notes = "".join(f"- {name} {one.note}.\n" for name, one in SERVERS.items() if one.note)
    listings = [
        Listing(f"{name}-{file}", f"{name}, `{file}`", text.strip())
        for name, server in SERVERS.items()
        for file, text in server.files
    ]
    return [
        *(
            section(results, f"content-{kind.name}", kind.title, shown, kind.measures, limits=True)
            for kind in KINDS
            if (shown := measured(results, kind.scenarios))
        ),
        details(results, "content", titles, DETAILS),
        method(METHOD + notes),
        Section("Configurations", parts=listings, detail=True),
    ]


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
