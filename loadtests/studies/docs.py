"""Pages and figures of docs/, made from the stored results of all studies."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from loadtests import store
from loadtests.arguments import unknown
from loadtests.programs import ROOT
from loadtests.reporting import markdown
from loadtests.stats.results import Results
from loadtests.studies import command


class Made(NamedTuple):
    """What docs/ has of a file of results: a whole page, a page with its tables between marks, and
    the one figure that answers the question of its study."""

    page: str = ""
    into: str = ""
    figure: str = ""


MADE = {
    "balance": Made(into="internals/scaling.md"),
    "cluster": Made("benchmarks/cluster.md", "guides/scaling.md"),
    "compress": Made("benchmarks/compress.md", "benchmarks/index.md"),
    "content": Made("benchmarks/content.md", "benchmarks/index.md", "content-page"),
    "deadconn": Made("benchmarks/deadconn.md", figure="deadconn-cpu_us-figure"),
    "development": Made("benchmarks/reload.md", "guides/development.md", "save-to-answer"),
    "influence": Made("benchmarks/influence.md", figure="influence-interaction"),
    "loops": Made("benchmarks/loops.md", figure="loops-means-local"),
    "memory": Made("benchmarks/memory.md", figure="memory-bars"),
    "operations": Made("benchmarks/lifecycle.md", "guides/operations.md", "operate-failed-figure"),
    "ordered": Made("benchmarks/ordered.md", figure="ordered-page-1000-curves"),
    "overload": Made("benchmarks/overload.md", "guides/operations.md", "overload-heavy-figure"),
    "parallel": Made("benchmarks/parallel.md", figure="parallel-slow-lines"),
    "power": Made("benchmarks/power.md", figure="power-total"),
    "power-locust": Made("benchmarks/power-locust.md"),
    "proxies": Made("benchmarks/proxies.md", "benchmarks/index.md"),
    "resources": Made("benchmarks/resources.md", figure="resources-time"),
    "serial": Made("benchmarks/serial.md", figure="serial-light-bars"),
    "serve": Made("benchmarks/serve.md", figure="cpu-hello"),
    "soak": Made(into="internals/reliability.md", figure="soak"),
    "strict": Made("benchmarks/adverse.md", figure="dead-rate"),
    "tls": Made("benchmarks/tls.md", "benchmarks/index.md"),
    "uploads": Made("benchmarks/uploads.md", "benchmarks/index.md"),
    "webbench": Made("benchmarks/webbench.md", figure="webbench-rate"),
    "websocket": Made("benchmarks/websocket.md", "benchmarks/index.md"),
}
"""By the name of the results; all other figures are drawn by `make figures` only."""


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
    """Writes the pages made of these results, or of all, and the figures that they show."""
    for name in names or MADE:
        if name not in MADE:
            raise unknown("page", name, list(MADE), " ")
        made, docs = MADE[name], root / "docs"
        figures = docs / "figures"
        records = store.load([root / store.RESULTS.relative_to(ROOT) / f"{name}.jsonl"])
        results, studies = Results(records), command.by_study(records)
        if made.page:
            command.write_markdown(docs / made.page, results, studies, figures, made.figure)
        if made.into:
            command.insert(docs / made.into, studies)
            for told in studies.values():
                markdown.write_figures(told, figures, made.figure)
