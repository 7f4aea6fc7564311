"""The list of all benchmark pages in docs/, and the pages with figures from stored results."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from loadtests import store
from loadtests.arguments import unknown
from loadtests.programs import ROOT
from loadtests.reporting import markdown
from loadtests.reporting.model import Cell, Column, Table
from loadtests.stats.results import Results
from loadtests.studies import command, takeaways, then_and_now
from loadtests.studies.takeaways import Tables, Takeaway


class Made(NamedTuple):
    """A page of docs/ that is made of a file of results.

    `command` measures it again, without `python -m loadtests`; `takeaway` writes its first
    sentence. `figure` is the one that answers the question of its study.
    """

    page: str = ""
    title: str = ""
    command: str = ""
    takeaway: Takeaway | None = None
    figure: str = ""


MADE = {
    "serve": Made(
        "benchmarks/serve.md",
        "CPU time of a response",
        "compare bench show --full",
        takeaways.serving,
        "cpu-hello",
    ),
    "serial": Made(
        "benchmarks/serial.md",
        "One request after another",
        "serial --full",
        takeaways.serial,
        "serial-light-bars",
    ),
    "parallel": Made(
        "benchmarks/parallel.md",
        "100 new requests each second",
        "parallel --full",
        takeaways.parallel,
        "parallel-slow-lines",
    ),
    "overload": Made(
        "benchmarks/overload.md",
        "Overload",
        "overload --full",
        takeaways.overload,
        "overload-heavy-figure",
    ),
    "ordered": Made(
        "benchmarks/ordered.md",
        "1,000 requests at once",
        "ordered --full",
        takeaways.ordered,
        "ordered-page-1000-curves",
    ),
    "memory": Made(
        "benchmarks/memory.md",
        "Memory",
        "memory --full",
        takeaways.memory,
        "memory-bars",
    ),
    "resources": Made(
        "benchmarks/resources.md",
        "CPU, memory and traffic",
        "resources --full",
        takeaways.resources,
        "resources-time",
    ),
    "content": Made(
        "benchmarks/content.md",
        "Static files, CGI and templates",
        "content --full",
        takeaways.content,
        "content-page",
    ),
    "webbench": Made(
        "benchmarks/webbench.md",
        "A mixed workload of files",
        "webbench --full",
        takeaways.webbench,
        "webbench-rate",
    ),
    "loops": Made(
        "benchmarks/loops.md",
        "One page over three networks",
        "loops --full",
        takeaways.loops,
        "loops-means-local",
    ),
    "power": Made(
        "benchmarks/power.md",
        "More and more clients",
        "power --full",
        takeaways.power,
        "power-total",
    ),
    "power-locust": Made(
        "benchmarks/power-locust.md",
        "More and more clients, by Locust",
        "power --by locust --full",
        takeaways.locust,
    ),
    "influence": Made(
        "benchmarks/influence.md",
        "Influence of the load generator",
        "influence --full",
        takeaways.influence,
        "influence-interaction",
    ),
    "tls": Made(
        "benchmarks/tls.md",
        "TLS",
        "tls --full",
        takeaways.tls,
    ),
    "compress": Made(
        "benchmarks/compress.md",
        "Compression",
        "compress --full",
        takeaways.compress,
    ),
    "uploads": Made(
        "benchmarks/uploads.md",
        "Uploads",
        "uploads --full",
        takeaways.uploads,
    ),
    "websocket": Made(
        "benchmarks/websocket.md",
        "WebSockets",
        "websocket --full",
        takeaways.websocket,
    ),
    "proxies": Made(
        "benchmarks/proxies.md",
        "Behind a proxy",
        "compare proxies gateways --full",
        takeaways.proxies,
    ),
    "cluster": Made(
        "benchmarks/cluster.md",
        "Rolling reloads behind a load balancer",
        "cluster --full",
        takeaways.cluster,
    ),
    "operations": Made(
        "benchmarks/lifecycle.md",
        "Reloads, upgrades and crashes",
        "operate --full",
        takeaways.lifecycle,
        "operate-failed-figure",
    ),
    "development": Made(
        "benchmarks/reload.md",
        "Reload in development",
        "develop --full",
        takeaways.reload,
        "save-to-answer",
    ),
    "deadconn": Made(
        "benchmarks/deadconn.md",
        "Dead connections",
        "deadconn --full",
        takeaways.dead,
        "deadconn-cpu_us-figure",
    ),
    "strict": Made(
        "benchmarks/adverse.md",
        "Slow and dead clients",
        "endure --full",
        takeaways.adverse,
        "dead-rate",
    ),
    "soak": Made(
        "benchmarks/soak.md",
        "Faults of all kinds at once",
        "soak",
        takeaways.soak,
        "soak",
    ),
    "balance": Made(
        "benchmarks/balance.md",
        "Spread over workers",
        "balance --full",
        takeaways.balance,
    ),
}
"""By the name of the results, in the order of the index; all other figures are drawn by
`make figures` only."""
INDEX = "benchmarks/index.md"


def figures(root: Path = ROOT) -> list[str]:
    """Draws all figures into build/figures, a folder for each file of results, and those that docs
    show into docs/figures, too. Returns a line for each that is shown and has no results."""
    all_of_them, few = root / "build" / "figures", root / "docs" / "figures"
    shutil.rmtree(all_of_them, ignore_errors=True)
    few.mkdir(parents=True, exist_ok=True)
    missing = {made.figure for made in MADE.values() if made.figure}
    for path in sorted((root / store.RESULTS.relative_to(ROOT)).glob("*.jsonl*")):
        name = path.name.partition(".")[0]
        for told in command.by_study(store.load([path])).values():
            for drawn in markdown.write_figures(told, all_of_them / name):
                if name in MADE and drawn.stem == MADE[name].figure:
                    shutil.copy(drawn, few)
                    missing.remove(drawn.stem)
    return [f"docs/figures/{name}.svg is shown, and no results have it" for name in sorted(missing)]


def pages(names: Sequence[str], root: Path = ROOT) -> None:
    """Writes the pages made of these results, or of all, with their figures, and the index."""
    for name in names or (*MADE, then_and_now.NAME):
        if name == then_and_now.NAME:
            page = then_and_now.text(lambda results: tables(results, root))
            (root / "docs" / then_and_now.PAGE).write_text(page, encoding="utf-8")
            continue
        if name not in MADE:
            raise unknown("page", name, [*MADE, then_and_now.NAME], " ")
        made, docs = MADE[name], root / "docs"
        records = store.load([root / store.RESULTS.relative_to(ROOT) / f"{name}.jsonl"])
        studies = command.by_study(records)
        told = [section for own in studies.values() for section in own]
        command.write_markdown(
            docs / made.page,
            Results(records),
            studies,
            docs / "figures",
            command.Head(
                made.title,
                made.takeaway(takeaways.Tables(told)) if made.takeaway else "",
                name,
                made.figure,
            ),
        )
    markdown.insert(root / "docs" / INDEX, "pages", index(root))


@functools.cache
def tables(name: str, root: Path = ROOT) -> Tables:
    """The tables that the stored results of this name make."""
    records = store.load([root / store.RESULTS.relative_to(ROOT) / f"{name}.jsonl"])
    told = command.by_study(records).values()
    return Tables([section for own in told for section in own])


def index(root: Path = ROOT) -> str:
    """A table of all pages that there are: each with its first sentence and its command."""
    rows: list[tuple[Cell, ...]] = []
    for made in MADE.values():
        page = root / "docs" / made.page
        if page.is_file():
            title, _, rest = page.read_text(encoding="utf-8").removeprefix("# ").partition("\n\n")
            link = f"[{title}]({page.name})"
            rows.append((link, rest.partition("\n\n")[0], f"`{made.command}`"))
    columns = tuple(map(Column, ("page", "what it shows", "command")))
    return markdown.lines(Table("pages", "", columns, rows))
