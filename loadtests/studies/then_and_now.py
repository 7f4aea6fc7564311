"""The page that has findings of the five old studies beside those of today, from stored results."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from loadtests.reporting import markdown
from loadtests.reporting.model import Cell, Column, Table
from loadtests.studies.takeaways import THREADS, Tables

NAME = "then-and-now"
PAGE = f"benchmarks/{NAME}.md"
TITLE = "2001 to 2010, and today"
HEAD = (
    "Five old studies asked what the lab still asks. Machine, network and servers of then and now "
    "differ, so compare the order of the servers and the ratios, not the numbers."
)
SINGLE, PREFORK = "poorhttp single", "Apache prefork"
FILES = SINGLE, THREADS, "nginx", PREFORK


class Row(NamedTuple):
    """A question of a study, what it found, and today's answer; `results` has that, and is the name
    of the command and of its page."""

    study: str
    question: str
    results: str
    then: str
    now: Callable[[Tables], str]


def _each(table: str, column: str, unit: str, *servers: str) -> Callable[[Tables], str]:
    """Words on the value of each of these servers."""
    return lambda tables: (
        ", ".join(f"{one} {tables.said(table, column)(one)}" for one in servers) + unit
    )


def _dead(tables: Tables) -> str:
    def times(server: str, dead: str) -> str:
        table = "deadconn-cpu_us-128"
        ratio = tables.value(table, dead, server) / tables.value(table, "0 dead", server)
        return f"{server} beside {dead} {ratio:.2f}"

    both = times(THREADS, "18,000 dead"), times("waitress 8 threads, poll", "3,000 dead")
    return f"CPU time of a response, in times of that without: {', '.join(both)}"


def _power(tables: Tables) -> str:
    rate = tables.said("power-injectors", "requests per second")
    one, three, twelve = (rate(THREADS, count) for count in ("1", "3", "12"))
    return f"{THREADS}: 1 gets {one}, 3 get {three}, 12 get {twelve}"


def _sizes(tables: Tables) -> str:
    names = (
        SINGLE,
        "poorhttp forking 4",
        THREADS,
        "lighttpd + 4 × single",
        "Apache mod_wsgi prefork",
    )
    sizes = (tables.value("memory-ps", "size of all processes", name) / 1024 for name in names)
    return ", ".join(f"{name} {size:.1f}" for name, size in zip(names, sizes, strict=True)) + " MiB"


def _shares(tables: Tables) -> str:
    share = tables.said("influence-rate-variance", "share of variation", " %")
    return f"client {share('client')}, server {share('server')}, both {share('both (interaction)')}"


def _template(tables: Tables) -> str:
    row = "page with a table, by a template of ours or by PHP: processing"
    names = {"ours": "template of ours", "lighttpd": "PHP with lighttpd", "Apache": "with Apache"}
    said = (
        f"{name} {tables.said('ordered-klone', f'{one} today, median')(row)}"
        for one, name in names.items()
    )
    return ", ".join(said) + " ms"


ROWS = (
    Row(
        "Poor HTTP, 2010",
        "How long does a page take, one after the other?",
        "serial",
        "Single 9.0, Forking 20.3, Threading 9.6, Apache 7.2, Lighttpd + Single 12.8 ms",
        _each(
            *("serial-light", "time to the whole page", " µs", SINGLE, "poorhttp forking 2"),
            *(THREADS, "Apache mod_wsgi prefork", "lighttpd + single"),
        ),
    ),
    Row(
        "",
        "Are 100 new requests each second answered?",
        "parallel",
        "Single 83, Forking 61, Threading 59, Apache 71 of them",
        _each(
            *("parallel-slow", "answered in the time of the test"),
            *(" of them, by a handler that waits 50 ms", SINGLE, "poorhttp forking 2"),
            *(THREADS, "Apache mod_wsgi prefork"),
        ),
    ),
    Row(
        "",
        "How much memory do all processes take (`size` of `ps`)?",
        "memory",
        "Single 4.1, Forking 41, Threading 37.1, Lighttpd + 4 × Single 17.2, Apache 896 MiB",
        _sizes,
    ),
    Row(
        "Uniserve, 2005",
        "How long does a page of 8.6 KB take on the same machine?",
        "loops",
        "Uniserve 4.7 ms",
        _each("loops-l1", "mean time of a request", " ms", *FILES),
    ),
    Row(
        "",
        "And over a network of 100 Mbit/s?",
        "loops",
        "Apache 2.6, Uniserve 3.5, Apache with Magic! 39 ms",
        _each("loops-r1-lan", "mean time of a request", " ms", SINGLE, "nginx", PREFORK),
    ),
    Row(
        "",
        "How many requests per second do more and more clients get?",
        "power",
        "1 gets 317, 3 get 630, 12 get 633: then the server is the limit",
        _power,
    ),
    Row(
        "",
        "Which server needs less of the machine?",
        "resources",
        "Apache 4 % of the CPU and 13 % in the kernel, Uniserve 45 and 17 %",
        _each("resources", "CPU time per request", " µs", SINGLE, "nginx", PREFORK),
    ),
    Row(
        "Study of epoll, 2001",
        "Do dead connections slow a server down?",
        "deadconn",
        "not with /dev/epoll or RT signals; with poll() they do",
        _dead,
    ),
    Row(
        "Study of load generators, 2001",
        "Is it the server that a benchmark measures?",
        "influence",
        "client 38 % of the variation, server 44 % (correctly computed, 51 and 33 %)",
        _shares,
    ),
    Row(
        "",
        "How many of 6,471 files are sent each second?",
        "webbench",
        "89 by the fastest machine",
        _each("webbench", "requests", "", THREADS, "lighttpd", PREFORK),
    ),
    Row(
        "KLone, 2008",
        "How long does a page of 1.5 KB take 1,000 clients at once, once they are connected?",
        "ordered",
        "KLone never above 30, Lighttpd 280, Boa 1,000, Apache 1,000 ms",
        _each("ordered-page-1000", "processing time, median", " ms", *FILES[1:], "lighttpd"),
    ),
    Row(
        "",
        "And a page that a program makes?",
        "ordered",
        "KLone 25 ms, PHP with Lighttpd more with each client",
        _template,
    ),
)


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
