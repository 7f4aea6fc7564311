"""The study `content`: files, a site, CGI programs and template pages, beside web servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from loadtests.reporting.model import MIB, Column, Listing, Section, method
from loadtests.reporting.promises import Places, Promise, mode
from loadtests.servers.registry import content
from loadtests.servers.registry.content import FLASK, PHP, SERVERS
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies import comparison
from loadtests.studies.comparison import CPU, P50, P99, PSS, RATE, REMARKS, Measure, median
from loadtests.studies.content import experiments
from loadtests.studies.content.experiments import DOWNLOADS, PAGE_LOADS, PROGRAM_LOADS, PROGRAMS
from loadtests.studies.study import QUICK, TINY, Scale, Study
from loadtests.studies.tables import ranked

FLOOR, NGINX, LIGHTTPD, APACHE = "floor", "nginx", "lighttpd", "Apache"
OURS = [name for name, server in SERVERS.items() if server.ours]
FILE = f"file-{DOWNLOADS}"


def _against(
    scenario: str, field: str, *others: str, without: str = ""
) -> Callable[[Results], Places]:
    """Ours, but one, to the best of the others in a round, which is named if there are several."""

    def read(results: Results) -> Places:
        known = {name: found for name in others if (found := results.median(scenario, name, field))}
        best = next(iter(ranked(known, known, highest=field == "rate")), "")
        return {
            f"{mode(server)} to {best}" if len(others) > 1 else mode(server): found
            for server in OURS
            if server not in (*others, without)
            if (found := results.ratio(scenario, server, best, field))
        }

    return read


def _growth(results: Results, server: str) -> Spread | None:
    """How much more memory the clients of a large file took, in MiB."""
    before = results.rounds(FILE, server, "pss_before")
    highest = results.rounds(FILE, server, "pss_highest")
    return spread((highest[key] - before[key]) * MIB for key in highest)


def _grown(results: Results) -> Places:
    return {mode(server): found for server in OURS if (found := _growth(results, server))}


def _promises() -> Iterator[Promise]:
    for load in PAGE_LOADS:
        for other, limit in ((LIGHTTPD, 1.0), (FLOOR, 1.25)):
            what = f"CPU per request for a page of 1.5 KB, {load} connections, against {other}"
            read = _against(f"static-page-{load}", "cpu_us", other)
            yield Promise(f"page-{load}", what, limit, "×", read)
    what = "requests/s for five pages with their images, against nginx and lighttpd"
    read = _against("site-64", "rate", NGINX, "nginx + open_file_cache", LIGHTTPD)
    yield Promise("site", what, 1, "×", read, at_least=True)
    what = "CPU per GB of 10 MB files for 100 clients at once, against nginx"
    yield Promise("file", what, 1, "×", _against(FILE, "cpu_ms_per_gb", NGINX))
    yield Promise("file", "memory that these clients take", 16, "MiB", _grown, places=1)
    for language in PROGRAMS:
        for load in PROGRAM_LOADS:
            what = f"requests/s for a program in {language}, {load} at once"
            # It runs one program at a time.
            without = "poorhttp single" if load > 1 else ""
            scenario = f"cgi-{language.lower()}-{load}"
            read = _against(scenario, "rate", LIGHTTPD, APACHE, without=without)
            yield Promise(
                "cgi", f"{what}, against lighttpd and Apache", 1, "×", read, at_least=True
            )
    what = "requests/s for a page with a table, against PHP and Flask"
    read = _against("template-64", "rate", *(server.name for server in (*FLASK, *PHP)))
    yield Promise("template", what, 1, "×", read, at_least=True)


_CPU = median("cpu_us", "CPU per request", "µs", 1)
KINDS: dict[str, tuple[str, dict[str, str], Sequence[Measure]]] = {
    "page": (
        "1.5 KB page",
        {f"static-page-{load}": f"{load} connections" for load in PAGE_LOADS},
        (CPU, comparison.ratio("cpu_us", lambda _: FLOOR, "× floor"), RATE),
    ),
    "site": ("Five pages with their images", {"site-64": ""}, (RATE, _CPU)),
    "file": (
        f"10 MB file, {DOWNLOADS} clients",
        {FILE: ""},
        (
            median("cpu_ms_per_gb", "CPU per GB", "ms"),
            median("gb_per_second", "transferred", "GB/s", 2),
            median("pss_before", "memory before", "PSS MiB", 1, MIB),
            Measure(
                Column("more with the clients", "MiB", 1),
                lambda results, _, server: _growth(results, server),
            ),
        ),
    ),
    **{
        f"cgi-{language.lower()}": (
            f"CGI program in {language}",
            {f"cgi-{language.lower()}-{load}": f"{load} at once" for load in PROGRAM_LOADS},
            (RATE, median("cpu_us", "CPU per request, with the program", "ms", 2, 1e-3)),
        )
        for language in PROGRAMS
    },
    "template": (
        "Page with a table of 50 rows, 64 connections",
        {"template-64": ""},
        (RATE, _CPU, median("p99_us", "p99", "ms", 1, 1e-3), PSS),
    ),
}
"""What is served: its title, the words for each scenario, and what is told; the first ranks."""
DETAILS = (CPU.with_range(), RATE.with_range(), P50, P99, PSS, REMARKS)


def report(results: Results) -> list[Section]:
    """A section for each kind of content, all with their spread, and how it was measured."""
    titles = {
        scenario: f"{title}, {words}" if words else title
        for title, scenarios, _ in KINDS.values()
        for scenario, words in scenarios.items()
    }
    notes = "".join(f"- {name} {one.note}.\n" for name, one in SERVERS.items() if one.note)
    listings = [
        Listing(f"{name}-{file}", f"{name}, `{file}`", text.strip())
        for name, server in SERVERS.items()
        for file, text in server.files
    ]
    return [
        *(
            comparison.section(results, f"content-{kind}", title, shown, measures, limits=True)
            for kind, (title, scenarios, measures) in KINDS.items()
            if (shown := comparison.measured(results, scenarios))
        ),
        comparison.details(results, "content", titles, DETAILS),
        method(__file__, more=notes, experiments=experiments, content=content),
        Section("Configurations", parts=listings, detail=True),
    ]


STUDY = Study(
    "content",
    "compare servers of files, a site, CGI programs and template pages",
    "",
    lambda: list(SERVERS.values()),
    experiments.plan,
    report,
    promises=tuple(_promises()),
    experiments=experiments.EXPERIMENTS,
    scales=(Scale("full", 5, 2.0), QUICK, TINY),
    wrk=True,
)
