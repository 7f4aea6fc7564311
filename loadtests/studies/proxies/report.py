"""All setups compared, from stored samples to Markdown.

Measures nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadtests.clients.load import SATURATED
from loadtests.reporting import ending, markdown_insert, provenance
from loadtests.reporting.median_cells import Cell, median, number
from loadtests.reporting.model import MIB
from loadtests.servers.proxies.setups import GATEWAYS, KEPT, PROCESSES, THREADS, Setup, nginx
from loadtests.stats.results import Results
from loadtests.studies.proxies.experiments import (
    AT_ONCE,
    CONNECTIONS,
    EVERY,
    PAGES,
    PASSED,
    STUDIED,
)
from loadtests.studies.proxies.promises import WHICH, table

FULL = 0.95
"""The share of their core from which on proxy and servers together are the limit."""


def _per_second(field: str) -> Cell:
    """What the study calls theoretical: as many as fit into a second, one after the other."""

    def cell(results: Results, scenario: str, server: str) -> str:
        found = results.median(scenario, server, field)
        return f"{1e6 / found.median:,.0f}" if found and found.median else ""

    return cell


def _proxy(results: Results, scenario: str, server: str) -> str:
    found = results.median(scenario, server, "proxy_us")
    return f"{found.median:,.1f}" if found and found.median else "–"


def _failed(results: Results, scenario: str, server: str) -> str:
    failed, answered = (
        sum(results.rounds(scenario, server, field).values()) for field in ("failed", "requests")
    )
    return f"{failed:,.0f} of {answered + failed:,.0f}"


def _limit(results: Results, scenario: str, server: str) -> str:
    """Who had no time left."""
    client, servers, proxy = (
        found.median if (found := results.median(scenario, server, f"{who}_busy")) else 0.0
        for who in ("client", "server", "proxy")
    )
    said = []
    if client >= SATURATED:
        said.append("client")
    if servers + proxy >= FULL:
        said.append("proxy and servers" if proxy else "server")
    shares = " + ".join(f"{share * 100:.0f}" for share in (servers, proxy, client))
    return f"{' and '.join(said) or 'nobody'} ({shares} %)"


STUDY = {
    "ans/s": _per_second("answer_us"),
    "res/s": _per_second("mean_us"),
    "real/s": median("rate"),
    "ans t ms": median("answer_us", 3, 1e-3),
    "res t ms": median("mean_us", 3, 1e-3),
    "p99 ms": median("p99_us", 3, 1e-3),
    "CPU µs: servers": median("cpu_us", 1),
    "proxy": _proxy,
    "failed": _failed,
}
CROWD = {
    "requests/s": median("rate"),
    "p50 ms": median("p50_us", 2, 1e-3),
    "p99 ms": median("p99_us", 2, 1e-3),
    "CPU µs: servers": median("cpu_us", 1),
    "proxy": _proxy,
    "PSS MiB of all": median("pss", 1, MIB),
    "limit (servers + proxy + client)": _limit,
    "failed": _failed,
}


def _table(results: Results, scenario: str, columns: dict[str, Cell]) -> list[str]:
    """A line for each setup; empty if none was measured."""
    names = results.servers(scenario)
    if not names:
        return []
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    # As in the study, whatever the order of the first round was.
    for name in sorted(names, key=_order):
        cells = [cell(results, scenario, name) for cell in columns.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _order(name: str) -> tuple[str, int]:
    """As in the study, whatever the order of the first round was: alone first, one before two."""
    before, _, behind = name.rpartition(" + ")
    known = ("Single", "Forking", "Threading")
    return before, known.index(behind) if behind in known else len(known)


_TESTS = {
    "serial": ("Serial test", STUDY),
    "parallel": (f"Parallel test, {AT_ONCE} at once every second", STUDY),
    "crowd": (f"{AT_ONCE} clients, each asking again as soon as it is answered", CROWD),
}


def studied(results: Results) -> list[list[str]]:
    """The tests of the study, a table for each page."""
    sections = []
    for test, (title, columns) in _TESTS.items():
        for scenario in (one.name for one in STUDIED if one.kind.startswith(f"{test}-")):
            if lines := _table(results, scenario, columns):
                page = scenario.split("-")[1]
                sections.append([f"### {title}: {page}", "", *lines])
    return sections


def _against(results: Results, scenario: str, setup: Setup) -> str:
    cell = number(results.median(scenario, setup.name, "cpu_us"), 2)
    ratio = results.ratio(scenario, setup.name, setup.against, "cpu_us") if setup.against else None
    return f"{cell} ({ratio.median:.2f} ×)" if ratio else cell


def _bold(setup: Setup) -> str:
    return f"**{setup.name}**" if setup.servers[0].ours else setup.name


def passed(results: Results) -> list[list[str]]:
    """Ours and uWSGI behind the same nginx, one line each."""
    scenarios = [one.name for one in PASSED if results.servers(one.name)]
    if not scenarios:
        return []
    heads = [WHICH[scenario.split("-")[1]] for scenario in scenarios]
    lines = [
        "| CPU µs per request of the servers (× uWSGI) | "
        + " | ".join([*heads, *(f"nginx: {head}" for head in heads)])
        + " | "
        + " | ".join(f"requests/s: {head}" for head in heads)
        + " |",
        f"|---|{'--:|' * (3 * len(heads))}",
    ]
    for setup in GATEWAYS:
        if setup.name in results.servers(scenarios[0]):
            cells = [_bold(setup)]
            cells += [_against(results, scenario, setup) for scenario in scenarios]
            cells += [median("proxy_us", 1)(results, one, setup.name) for one in scenarios]
            cells += [median("rate")(results, one, setup.name) for one in scenarios]
            lines.append(f"| {' | '.join(cells)} |")
    return [[f"### nginx before ours and before uWSGI, {CONNECTIONS} connections", "", *lines]]


def comparisons(results: Results) -> list[list[str]]:
    """A section for each comparison of which something was measured."""
    return [*studied(results), *passed(results)]


def details(results: Results, scenario: str) -> list[str]:
    """All setups of a scenario with the spread, the cheapest servers first."""
    lines = [
        "| | CPU µs per request, servers (lowest – highest) | proxy (lowest – highest) "
        "| requests/s (lowest – highest) | limit (servers + proxy + client) |",
        "|---|--:|--:|--:|---|",
    ]

    def cost(server: str) -> float:
        found = results.median(scenario, server, "cpu_us")
        return found.median if found else 0.0

    def spread(server: str, field: str, places: int) -> str:
        found = results.median(scenario, server, field)
        if not found or not found.high:
            return "–"
        median, low, high = (f"{value:,.{places}f}" for value in found[:3])
        return f"{median} ({low} – {high})"

    for server in sorted(results.servers(scenario), key=cost):
        cells = [spread(server, *one) for one in (("cpu_us", 2), ("proxy_us", 2), ("rate", 0))]
        cells.append(_limit(results, scenario, server))
        lines.append(f"| {server} | {' | '.join(cells)} |")
    return lines


def summary(results: Results) -> list[str]:
    """What a person wants to see at the end of a run."""
    return ["\n".join(part) + "\n" for part in comparisons(results)]


def insert(results: Results, page: Path) -> None:
    """Puts promises and the main comparisons into a page.

    Raises LabError if it has no place for them.
    """
    link = "[More of it](benchmarks/proxies.md), with how it was measured."
    shown = [part for part in comparisons(results) if not part[0].endswith(PAGES[1])]
    markdown_insert.insert_parts(
        page,
        markdown_insert.PROXIES_BEGIN,
        markdown_insert.PROXIES_END,
        [table(results), *shown, [link]],
    )


def markdown(results: Results) -> str:
    """The page: promises, comparisons, every scenario, and how it was measured."""
    parts = [
        ["# Behind a proxy, measured"],
        [
            "Made by `python -m loadtests report --proxies loadtests/results/proxies.jsonl`; not",
            "edited by hand.",
        ],
        ["## Promised and measured"],
        table(results),
        ["## Compared"],
        EXPLAINED.splitlines(),
        *comparisons(results),
        ["## With the spread"],
        *(
            [f"### {scenario}", "", *details(results, scenario)]
            for scenario in sorted(results.scenarios(), key=_kind)
        ),
    ]
    method = [f"- {ending.disturbance(results)}", *METHOD.splitlines()]
    return ending.page(parts + ending.ending(results, method, _commands(results)))


def _kind(scenario: str) -> int:
    known: Sequence[str] = [one.name for one in (*STUDIED, *PASSED)]
    return known.index(scenario) if scenario in known else len(known)


def _commands(results: Results) -> list[str]:
    """How each setup was started, and nginx's configuration of the gateways."""
    commands: dict[str, str] = {}
    for record in results.runs:
        commands.update(record["commands"])
    lines = ["| | commands |", "|---|---|"]
    lines += [f"| {name} | `{provenance.bare(command)}` |" for name, command in commands.items()]
    for protocol in ("uwsgi", KEPT):
        for file, text in nginx(protocol).files:
            shown = text.replace("$$", "$").strip()
            lines += ["", f"nginx, {protocol}, `{file}`:", "", "```text", shown, "```"]
    return lines


EXPLAINED = f"""\
The tests are those of the first Poor HTTP's study: one request after the other, each on a
connection of its own; and {AT_ONCE} at once every {EVERY:g} s, whatever became of those before.
`ans t` is the time from the connection to the first 15 octets, `res t` to the end of the page,
`ans/s` and `res/s` how often these fit into a second, `real/s` what was really answered in the
time of the test.
"""
METHOD = f"""\
- Two cores. Servers and proxy share the first, as they shared the one core of the study's machine,
  so the second server brings no more speed here; the client has the other. The limit is told with
  the shares of a core that servers, proxy and client used: "nobody" means that all waited for each
  other.
- Every setup is started anew in every round, each server and the proxy asked whether the answer is
  right, warmed up, asked in all scenarios one after the other, and stopped. Setups take turns
  within a round, and another one begins each round. Ratios are formed within a round, then made a
  median.
- CPU is that of all processes of the servers, and apart from it that of all processes of the
  proxy.
- A failed request is one that got no connection, no whole answer, another status than 200 or, in
  the parallel test, nothing by the end. One is enough for the run to be an error.
- The client of the study's tests is `loadtests/clients/native/fetch.c`, that of the gateways wrk
  with {CONNECTIONS} connections kept.
- The proxies run the configurations of `proxy/`, `balanced.*`, with other ports; for one server
  the line of the second is taken out. lighttpd makes a connection for each request to a server,
  nginx and HAProxy keep some. HAProxy asks each server every second how it is.
- The pages are `light` and `heavy` of `apps/lightheavy`, of its dispatch table; in the gateways
  also for uWSGI, by `loadtests/apps/proxied.py`.
- Gateways: one nginx process, the configuration below. uWSGI as its documentation recommends
  (`master`, `strict`, `need-app`, `single-interpreter`, `die-on-term`), nothing logged by anybody;
  {THREADS} threads or {PROCESSES} processes as ours. "HTTP (closed)" is nginx without `keepalive`,
  which then asks by HTTP/1.0.
"""
