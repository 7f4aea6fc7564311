"""The pages of docs/benchmarks/ that are made of stored results: their list, texts and figures."""

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
from loadtests.sections import sections, texts
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import command
from loadtests.studies.takeaways import Tables, Takeaway, written


class Made(NamedTuple):
    """A page of docs/benchmarks/ that is made of a file of results, as in `benchmarks.ini`.

    `command` measures it again, without `python -m loadtests`; `takeaway` writes its first
    sentence. `figure` is the one that answers the question of its study.
    """

    name: str
    title: str
    command: str
    takeaway: Takeaway
    figure: str = ""

    @property
    def page(self) -> str:
        return f"benchmarks/{self.name}.md"


MADE = {
    section.name: Made(
        own.get("page", section.name),
        own["title"],
        own["command"],
        written(own, "sentence"),
        own.get("figure", ""),
    )
    for section in sections(__file__, "benchmarks.ini")
    for own in [texts(section)]
}
"""By the name of the results, in the order of the index; all other figures are drawn by
`make figures` only."""
INDEX = "benchmarks/index.md"
ALL_FIGURES = "`make figures` draws all figures of these results into `build/figures/`."
THEN_AND_NOW = "then-and-now"
"""The page that has findings of the five old studies (`then_and_now.ini`) beside those of today."""


class Row(NamedTuple):
    """A question of a study, what it found, and today's answer; `results` has that, and is the name
    of the command and of its page."""

    study: str
    question: str
    results: str
    then: str
    now: Takeaway


ROWS = tuple(
    Row(own.get("study", ""), section.name, own["results"], own["then"], written(own, "now"))
    for section in sections(__file__, "then_and_now.ini")
    for own in [texts(section)]
)


def _results(name: str, root: Path) -> list[Record]:
    return store.load([root / store.RESULTS.relative_to(ROOT) / f"{name}.jsonl"])


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
    docs = root / "docs"
    for name in names or (*MADE, THEN_AND_NOW):
        if name == THEN_AND_NOW:
            page = docs / "benchmarks" / f"{THEN_AND_NOW}.md"
            page.write_text(then_and_now(root), encoding="utf-8")
            continue
        if name not in MADE:
            raise unknown("page", name, [*MADE, THEN_AND_NOW], " ")
        made, records = MADE[name], _results(name, root)
        studies = command.by_study(records)
        takeaway = made.takeaway(Tables([section for own in studies.values() for section in own]))
        command.write_markdown(
            *(docs / made.page, Results(records), studies, docs / "figures"),
            top=[f"# {made.title}", takeaway],
            end=f"This page is made from `loadtests/results/{name}.jsonl.xz` by "
            f"`python -m loadtests docs {name}`; do not edit it. {ALL_FIGURES}",
            figure=made.figure,
        )
    markdown.insert(docs / INDEX, "pages", index(root))


@functools.cache
def tables(name: str, root: Path = ROOT) -> Tables:
    """The tables that the stored results of this name make."""
    told = command.by_study(_results(name, root)).values()
    return Tables([section for own in told for section in own])


def then_and_now(root: Path = ROOT) -> str:
    """The page about the old studies."""
    cells: list[tuple[Cell, ...]] = [
        (
            one.study,
            one.question,
            one.then,
            one.now(tables(one.results, root)),
            f"[{link}]({link}.md)",
        )
        for one in ROWS
        for link in [one.results]
    ]
    names = ("study", "question", "then", "today", "command and page")
    head = (
        "# 2001 to 2010, and today",
        "Five old studies asked what the lab still asks. Machine, network and servers of then and "
        "now differ, so compare the order of the servers and the ratios, not the numbers.",
    )
    table = markdown.lines(Table("", "", [Column(name) for name in names], cells))
    made = f"`python -m loadtests docs {THEN_AND_NOW}` makes this page of the stored results; "
    return "\n\n".join((*head, table, f"{made}do not edit it.")) + "\n"


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
