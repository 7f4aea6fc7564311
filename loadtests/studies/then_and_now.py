"""The page that has findings of the five old studies beside those of today, from stored results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from loadtests.reporting import markdown
from loadtests.reporting.model import Cell, Column, Table
from loadtests.sections import sections, texts
from loadtests.studies.takeaways import THREADS, Tables, Takeaway, sentence

NAME = "then-and-now"
PAGE = f"benchmarks/{NAME}.md"
TITLE = "2001 to 2010, and today"
HEAD = (
    "Five old studies asked what the lab still asks. Machine, network and servers of then and now "
    "differ, so compare the order of the servers and the ratios, not the numbers."
)


class Row(NamedTuple):
    """A question of a study, what it found, and today's answer; `results` has that, and is the name
    of the command and of its page."""

    study: str
    question: str
    results: str
    then: str
    now: Takeaway


def _dead(tables: Tables) -> str:
    def times(server: str, dead: str) -> str:
        table = "deadconn-cpu_us-128"
        ratio = tables.value(table, dead, server) / tables.value(table, "0 dead", server)
        return f"{server} beside {dead} {ratio:.2f}"

    both = times(THREADS, "18,000 dead"), times("waitress 8 threads, poll", "3,000 dead")
    return f"CPU time of a response, in times of that without: {', '.join(both)}"


def _sizes(tables: Tables) -> str:
    names = (
        "poorhttp single",
        "poorhttp forking 4",
        THREADS,
        "lighttpd + 4 × single",
        "Apache mod_wsgi prefork",
    )
    sizes = (tables.value("memory-ps", "size of all processes", name) / 1024 for name in names)
    return ", ".join(f"{name} {size:.1f}" for name, size in zip(names, sizes, strict=True)) + " MiB"


WRITERS: Mapping[str, Takeaway] = {"dead": _dead, "sizes": _sizes}


def _rows() -> Iterator[Row]:
    for section in sections(__file__, "then_and_now.ini"):
        own = texts(section)
        now = WRITERS.get(own.get("writer", ""))
        now = now or sentence(own["table"], own["column"], own["now"])
        yield Row(own.get("study", ""), section.name, own["results"], own["then"], now)


ROWS = tuple(_rows())


def text(tables: Callable[[str], Tables]) -> str:
    """The page; `tables` finds the tables of a file of results."""
    cells: list[tuple[Cell, ...]] = [
        (one.study, one.question, one.then, one.now(tables(one.results)), f"[{link}]({link}.md)")
        for one in ROWS
        for link in [one.results]
    ]
    names = ("study", "question", "then", "today", "command and page")
    table = markdown.lines(Table("", "", [Column(name) for name in names], cells))
    made = (
        f"`python -m loadtests docs {NAME}` makes this page of the stored results; do not edit it."
    )
    return "\n\n".join((f"# {TITLE}", HEAD, table, made)) + "\n"
