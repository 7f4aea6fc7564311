"""The study `content`: files, a site, CGI programs and template pages, beside web servers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from random import Random

from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.reporting.model import MIB, Column, Listing, Section, method
from loadtests.reporting.promises import Places, Promise, mode
from loadtests.servers.fixtures import TABLE, Fixtures, visits
from loadtests.servers.registry import Server, content
from loadtests.servers.registry.content import FLASK, PHP, SERVERS
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies import comparison, engine, sample
from loadtests.studies.bench.scenarios import LONGEST, Fetched, Scenario
from loadtests.studies.comparison import CPU, PSS, RATE, Measure, median
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.study import QUICK, TINY, Scale, Study

PAGE_LOADS = (64, 512)
SITE_VISITS = 1_000
DOWNLOADS = 100
"""Clients at once, as in the KLone study."""
PROGRAM_LOADS = (1, 10, 100)
PROGRAM_REQUESTS = 1_000
PROGRAMS = {"shell": "report.sh", "Perl": "report.pl"}
WARM_REQUESTS = 10
GB = 1e9
EXPERIMENTS = (*(f"page-{load}" for load in PAGE_LOADS), "site", "file", "cgi", "template")


def asked(fixtures: Fixtures, requests: int) -> dict[str, list[dict[Server, Scenario]]]:
    """What each server is asked in each experiment; `requests` is a number of those for programs.

    What is in one dictionary is measured in turns.
    """
    random, five, static = Random(1), visits(), fixtures.static
    chosen = tuple(tuple(random.choice(five)) for _ in range(SITE_VISITS))
    page = Scenario("static-page", "1.5 KB page", static, 0, target="/page.html")
    site = Fetched(
        "site", "five pages with their images", static, 64, target="/index1.html", visits=chosen
    )
    file = Fetched("file", "10 MB file", static, DOWNLOADS, target="/large.bin")
    table = Scenario("template", "page with a table", fixtures.pages, 64)
    # It has but one answer, and that from its memory: it is for pages only.
    _floor, *others = content.FILES
    return {
        **{
            f"page-{load}": [dict.fromkeys(content.FILES, replace(page, connections=load))]
            for load in PAGE_LOADS
        },
        "site": [dict.fromkeys(others, site)],
        "file": [dict.fromkeys(others, file)],
        "cgi": [
            dict.fromkeys(
                content.programs(at_once),
                Fetched(
                    f"cgi-{language.lower()}",
                    f"CGI program in {language}",
                    fixtures.cgi,
                    at_once,
                    target=f"/{program}?a=1",
                    keep=False,
                    requests=max(requests, at_once),
                ),
            )
            for language, program in PROGRAMS.items()
            for at_once in PROGRAM_LOADS
        ],
        "template": [
            {
                server: replace(table, application=application, target=target + TABLE)
                for servers, application, target in (
                    (content.PAGES, fixtures.pages, "/table.html"),
                    (content.FLASK, fixtures.view, "/table"),
                    (content.PHP, fixtures.php, "/table.php"),
                )
                for server in servers
            }
        ],
    }


def _file(trial: Trial, scenario: Scenario) -> str:
    """A large file for many clients at once, and the memory that this takes."""
    with trial.started(scenario) as running:
        before = resources.memory(running.processes())
        with resources.Watch(running.processes) as watch:
            taken = trial.observe(scenario, running)
    cpu = taken["cpu_us"] * taken["requests"] / 1e6
    gigabytes = taken["octets"] / GB
    taken |= {
        "cpu_ms_per_gb": round(cpu * 1e3 / gigabytes, 3),
        "gb_per_second": round(gigabytes / taken["seconds"], 3),
        "pss_before": before.pss,
        "pss_highest": watch.highest.pss,
        "rss_before": before.rss,
        "rss_highest": watch.highest.rss,
    }
    trial.lab.store.add("sample", **taken)
    grown = (watch.highest.pss - before.pss) / 2**20
    return f"{taken['cpu_ms_per_gb']:.1f} ms per GB, {grown:.1f} MiB more"


def _cgi(trial: Trial, scenario: Fetched) -> str:
    """A number of requests for programs, so many at once; all cores for everybody.

    Programs have ended when they are looked for, so CPU time is that of the server's whole life:
    without its start, which ends with the first answer; its end is part of it.
    """
    ended = resources.ended_seconds()
    with trial.started(scenario) as running:
        started = resources.cpu_seconds(running.processes())
        warm = fetch.drive(
            running.port, LONGEST, 1, [[scenario.target]], requests=WARM_REQUESTS, keep=False
        )
        busy = resources.machine_busy_seconds()
        load = scenario.drive(running.port, trial.lab.seconds, trial.lab.client_core)
        busy = resources.machine_busy_seconds() - busy
        if load.requests < scenario.requests:
            raise ServerFailure(f"{load.requests} answers in {LONGEST:.0f} s, {load.errors}")
        sample.settled(running)
        used = resources.memory(running.processes())
    clients = sum(one.busy * one.seconds for one in (warm, load))
    spent = resources.ended_seconds() - ended - started - clients
    cpu = spent * load.requests / (load.requests + warm.requests)
    taken = trial.described(scenario, load, cpu, load.seconds, busy, used)
    trial.lab.store.add("sample", **taken)
    return f"{taken['cpu_us']:8.0f} µs  {taken['rate']:9,.0f}/s"


def steps(lab: Lab, fixtures: Fixtures, name: str, chosen: Collection[str]) -> list[Step]:
    """An experiment with those servers that are called so."""
    requests = PROGRAM_REQUESTS if lab.rounds > 1 else PROGRAM_REQUESTS // 10
    groups = [
        {server: scenario for server, scenario in group.items() if server.name in chosen}
        for group in asked(fixtures, requests)[name]
    ]
    action = {"file": _file, "cgi": _cgi}.get(name, engine.measure)
    return engine.steps(lab.unpinned() if name == "cgi" else lab, groups, name, action)


def plan(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """The chosen experiments, one after the other."""
    del scale
    fixtures = lab.fixtures.enter_context(Fixtures())
    chosen = {server.name for server in servers}
    return [step for name in options.names for step in steps(lab, fixtures, name, chosen)]


FLOOR, NGINX, LIGHTTPD, APACHE = "floor", "nginx", "lighttpd", "Apache"
OURS = [name for name, server in SERVERS.items() if server.ours]
FILE = f"file-{DOWNLOADS}"


def _against(
    scenario: str, field: str, *others: str, without: str = ""
) -> Callable[[Results], Places]:
    """Ours, but one, to the best of the others in a round, which is named if there are several."""

    def read(results: Results) -> Places:
        best = comparison.best(results, scenario, field, others)
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
    grown = comparison.places(_growth, {mode(server): (server,) for server in OURS})
    yield Promise("file", "memory that these clients take", 16, "MiB", grown, places=1)
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
        *comparison.sections(
            results, *((f"content-{kind}", *told) for kind, told in KINDS.items()), limits=True
        ),
        comparison.details(results, "content", titles, comparison.DETAILS),
        method(
            __file__,
            more=notes,
            content=content,
            WARM_REQUESTS=WARM_REQUESTS,
            SITE_VISITS=SITE_VISITS,
            DOWNLOADS=DOWNLOADS,
            PROGRAM_REQUESTS=PROGRAM_REQUESTS,
        ),
        Section("Configurations", parts=listings, detail=True),
    ]


STUDY = Study(
    "content",
    "compare servers of files, a site, CGI programs and template pages",
    "",
    lambda: list(SERVERS.values()),
    plan,
    report,
    promises=tuple(_promises()),
    experiments=EXPERIMENTS,
    scales=(Scale("full", 5, 2.0), QUICK, TINY),
    wrk=True,
)
