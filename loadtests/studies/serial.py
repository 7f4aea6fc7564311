"""The study `serial`: one request after another, each on a connection of its own."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from loadtests.reporting.model import Axis, Column, Section
from loadtests.servers.pages import PAGES, with_pages
from loadtests.servers.registry import ALONE_AND_PROXIED, Server
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import originals, sample, tables
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.study import Scale, Study

NAME = "serial"
REQUESTS = 4_800
"""As many as the faster ones of the study answered in its minute: 80 a second."""
FEWEST = 50
LONGEST = 20.0
"""Seconds for all requests for a page: a server that hangs is given up then."""
PATIENCE = 1.0
"""Seconds more for the last of them."""


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """Every server once a round, with both pages."""
    requests = max(FEWEST, round(REQUESTS * scale.share / scale.rounds))
    return rounds(lab, NAME, with_pages(chosen), partial(_take, requests=requests))


def _take(trial: Trial, requests: int) -> str:
    told = []
    with trial.running(target=f"/{PAGES[0]}") as running:
        for page in PAGES:
            sample.warm(running, f"/{page}", trial.lab.client_core)
            seen = sample.load(
                trial.lab, running, LONGEST, 1, f"/{page}", requests=requests, patience=PATIENCE
            )
            taken = sample.described(page, *seen)
            trial.sample(**taken)
            told.append(f"{page} {taken['rate']:,.0f}/s, {taken['mean_us']:,.0f} µs")
    return "; ".join(told)


ABOUT = (
    "How long does one request take on an idle server? Requests come one after another, each on "
    "a connection of its own. Times are from the connection to the first 15 bytes of the "
    "response, and to its end. Beside them is how often each time fits into a second, and how "
    "many requests per second were really answered, including the work of the client."
)
BEGUN = tables.each(lambda one: 1e6 / one["answer_us"])
WHOLE = tables.each(lambda one: 1e6 / one["mean_us"])
VALUES = (
    (Column("time to the whole page", "µs", 1), "mean_us"),
    (Column("p99 of that", "µs"), "p99_us"),
    (Column("time to its first bytes", "µs", 1), "answer_us"),
    (Column("whole pages that fit into a second"), WHOLE),
    (Column("first bytes that fit into a second"), BEGUN),
    (Column("requests answered", "/s"), "rate"),
    (Column("server CPU per request", "µs", 1), "cpu_us"),
    (Column("client busy", "%", 0, 100), "client_busy"),
    (Column("failed requests"), tables.total("failed")),
)


def _section(page: str, samples: Sequence[Record]) -> Section:
    found = {
        "first bytes": tables.spreads(samples, BEGUN),
        "whole page": tables.spreads(samples, WHOLE),
    }
    figure = tables.bars(
        f"{NAME}-{page}-bars",
        f"One after another: the {page} page",
        Axis("requests", "/s", low=0),
        found,
        highest=True,
        subtitle="each on a connection of its own; longer is better",
        caption="From the connection to the first 15 bytes of the response, and to its end: how "
        "often each fits into a second.",
    )
    table = tables.compared(
        f"{NAME}-{page}", f"The {page} page", samples, VALUES, "time to the whole page"
    )
    times = tables.spreads(samples, "mean_us")
    curves = tables.percentiles(f"{NAME}-{page}", samples, "page_times")
    said = tables.answer(f"Time to a whole {page} page", times, "µs")
    about = [ABOUT] if page == PAGES[0] else []
    text = [*about, *tables.saturated(samples), *tables.failed(samples, page)]
    return Section(
        f"One request after another: the {page} page", text, [figure, *curves, table], said
    )


def report(results: Results) -> list[Section]:
    """A section for each page, and what the study of 2010 had."""
    pages = tables.by(tables.latest(results.samples), "scenario")
    sections = [_section(page, pages[page]) for page in PAGES if page in pages]
    return [*sections, originals.section("One request after another in 2010", "serial-2010")]


STUDY = Study(
    NAME,
    "one request after another, each on a connection of its own",
    originals.POORHTTP,
    lambda: ALONE_AND_PROXIED,
    plan,
    report,
    given=True,
)
