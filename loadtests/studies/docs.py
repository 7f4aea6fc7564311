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
from loadtests.studies.takeaways import Tables, Takeaway, sentence


class Made(NamedTuple):
    """A page of docs/benchmarks/ that is made of a file of results.

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
        """Its path in docs/."""
        return f"benchmarks/{self.name}.md"


MADE = {
    "serve": Made(
        *("serve", "CPU time of a response", "compare bench show --full"),
        *(takeaways.serving, "cpu-hello"),
    ),
    "serial": Made(
        *("serial", "One request after another", "serial --full"),
        sentence(
            *("serial-light", "time to the whole page"),
            "A client that asks for one page at a time gets it in {poorhttp threading 8} µs from "
            "poorhttp (threading), in {bjoern} µs from bjoern and in {gunicorn gthread 8} µs from "
            "gunicorn gthread.",
        ),
        "serial-light-bars",
    ),
    "parallel": Made(
        *("parallel", "100 new requests each second", "parallel --full"),
        sentence(
            *("parallel-slow", "time to the whole page"),
            "When 100 requests arrive each second for a handler that waits 50 ms, poorhttp with 8 "
            "threads answers within {poorhttp threading 8} ms, with gevent within "
            "{poorhttp gevent} ms, and with a single thread it falls behind by "
            "{poorhttp single | most unanswered requests} requests.",
        ),
        "parallel-slow-lines",
    ),
    "overload": Made(
        *("overload", "Overload", "overload --full"),
        sentence(
            *("overload-heavy", "in time at 5 ×"),
            "Asked for five times as much as it can compute, poorhttp with 8 threads answers "
            "{poorhttp threading 8} % of its highest rate in time, and gunicorn gthread "
            "{gunicorn gthread 8} %.",
        ),
        "overload-heavy-figure",
    ),
    "ordered": Made(
        *("ordered", "1,000 requests at once", "ordered --full"),
        sentence(
            *("ordered-page-1000", "total time, median"),
            "Of 1,000 requests at once for a page of 1.5 KB, half are answered within "
            "{poorhttp threading 8} ms by poorhttp (threading), {lighttpd} ms by lighttpd and "
            "{Apache prefork} ms by Apache.",
        ),
        "ordered-page-1000-curves",
    ),
    "memory": Made(
        *("memory", "Memory", "memory --full"),
        sentence(
            *("memory-pages", "PSS"),
            "After 100 parallel requests poorhttp with 8 threads takes {poorhttp threading 8} MiB "
            "of memory (PSS), its supervisor included; waitress takes {waitress 8 threads} MiB and "
            "gunicorn gthread {gunicorn gthread 8} MiB.",
        ),
        "memory-bars",
    ),
    "resources": Made(
        *("resources", "CPU, memory and traffic", "resources --full"),
        sentence(
            *("resources", "CPU time per request"),
            "Over a network of 100 Mbit/s a static page of 8.6 KB costs poorhttp (single) "
            "{poorhttp single} µs of CPU time, nginx {nginx} µs and gunicorn gthread "
            "{gunicorn gthread 8} µs.",
        ),
        "resources-time",
    ),
    "content": Made(
        *("content", "Static files, CGI and templates", "content --full"),
        sentence(
            *("content-page", "512 connections: CPU per request"),
            "A static page of 1.5 KB costs poorhttp (threading) {poorhttp threading} µs of CPU "
            "time, lighttpd {lighttpd} µs and nginx {nginx} µs.",
        ),
        "content-page",
    ),
    "webbench": Made(
        *("webbench", "A mixed workload of files", "webbench --full"),
        sentence(
            *("webbench", "requests"),
            "poorhttp (threading) serves {poorhttp threading 8} files of a mixed workload per "
            "second, each on a connection of its own; nginx serves {nginx} and lighttpd "
            "{lighttpd}.",
        ),
        "webbench-rate",
    ),
    "loops": Made(
        *("loops", "One page over three networks", "loops --full"),
        sentence(
            *("loops-l1", "mean time of a request"),
            "A page of 8.6 KB takes {poorhttp single} ms with poorhttp (single) and {nginx} ms "
            "with nginx on one machine; over a network of 100 Mbit/s it takes "
            "{poorhttp single | mean time of a request | loops-r1-lan} ms and "
            "{nginx | mean time of a request | loops-r1-lan} ms.",
        ),
        "loops-means-local",
    ),
    "power": Made(
        *("power", "More and more clients", "power --full"),
        sentence(
            *("power-injectors", "requests per second"),
            "Twelve client processes at once get {poorhttp threading 8 & 12} requests per second "
            "from poorhttp (threading), {nginx & 12} from nginx and {lighttpd & 12} from lighttpd.",
        ),
        "power-total",
    ),
    "power-locust": Made(
        *("power-locust", "More and more clients, by Locust", "power --by locust --full"),
        sentence(
            *("power-injectors", "requests per second"),
            "Twelve Locust workers use {poorhttp forking 2 & 12 | injectors busy} % of their core "
            "to send {poorhttp forking 2 & 12} requests per second, which keep the server's core "
            "{poorhttp forking 2 & 12 | server busy} % busy.",
        ),
    ),
    "influence": Made(
        *("influence", "Influence of the load generator", "influence --full"),
        sentence(
            *("influence-rate-variance", "share of variation"),
            "The choice of the load generator explains {client} % of the variation of requests per "
            "second, and the choice of the server {server} %.",
        ),
        "influence-interaction",
    ),
    "tls": Made(
        *("tls", "TLS", "tls --full"),
        sentence(
            *("tls-handshakes", "TLS 1.3, full, ECDSA: CPU per connection"),
            "A new TLS 1.3 connection with one small response costs poorhttp (single) "
            "{poorhttp single} µs of CPU time, nginx {nginx} µs and HAProxy {HAProxy} µs.",
        ),
    ),
    "compress": Made(
        *("compress", "Compression", "compress --full"),
        sentence(
            *("compress-json10-gzip-16", "CPU per request"),
            "10 KB of JSON with gzip cost poorhttp (threading) {poorhttp threading} µs of CPU time "
            "and shrink to {poorhttp threading | of the size} %; nginx at level 6 needs "
            "{nginx, level 6} µs and reaches {nginx, level 6 | of the size} %.",
        ),
    ),
    "uploads": Made(
        *("uploads", "Uploads", "uploads --full"),
        sentence(
            *("uploads", "CPU per MB"),
            "An upload of 1 GiB takes {poorhttp threading | more memory (RSS)} MiB more memory and "
            "{poorhttp threading} ms of CPU time per MB in poorhttp (threading), and "
            "{gunicorn gthread 8 | more memory (RSS)} MiB and {gunicorn gthread 8} ms in gunicorn "
            "gthread.",
        ),
    ),
    "websocket": Made(
        *("websocket", "WebSockets", "websocket --full"),
        sentence(
            *("websocket", "32 bytes: CPU per message"),
            "A small WebSocket message, received and sent back, costs poorhttp (gevent) "
            "{poorhttp gevent} µs of CPU time, gunicorn gevent {gunicorn gevent} µs and granian "
            "(ASGI) {granian ASGI} µs.",
        ),
    ),
    "proxies": Made(
        *("proxies", "Behind a proxy", "compare proxies gateways --full"),
        sentence(
            *("proxies-crowd-light", "requests"),
            "On two cores, 100 clients get {Single} responses per second from poorhttp (single) "
            "and {nginx + Single} through nginx in front of it.",
        ),
    ),
    "cluster": Made(
        *("cluster", "Rolling reloads behind a load balancer", "cluster --full"),
        takeaways.cluster,
    ),
    "operations": Made(
        *("lifecycle", "Reloads, upgrades and crashes", "operate --full"),
        sentence(
            *("operate-failed", "failed share"),
            "During reloads, upgrades, crashes, stops and broken versions {poorhttp threading} % "
            "of the requests to poorhttp (threading) failed, {uWSGI} % of those to uWSGI and "
            "{gunicorn gthread} % of those to gunicorn gthread.",
        ),
        "operate-failed-figure",
    ),
    "development": Made(
        *("reload", "Reload in development", "develop --full"),
        sentence(
            *("develop-compared", "hello"),
            "After you save a file, `poorhttp dev` sends the first new response within "
            "{poorhttp dev} ms for a small application, "
            "{poorhttp dev | Flask with SQLAlchemy and pandas} ms for Flask with SQLAlchemy and "
            "pandas, and {poorhttp dev | Django with the admin} ms for Django.",
        ),
        "save-to-answer",
    ),
    "deadconn": Made(
        *("deadconn", "Dead connections", "deadconn --full"),
        sentence(
            *("deadconn-cpu_us-128", "18,000 dead"),
            "Beside 18,000 dead connections a response of 128 bytes costs poorhttp (threading) "
            "{poorhttp threading 8} µs of CPU time, and {poorhttp threading 8 | 0 dead} µs without "
            "them.",
        ),
        "deadconn-cpu_us-figure",
    ),
    "strict": Made(
        *("adverse", "Slow and dead clients", "endure --full"),
        *(takeaways.adverse, "dead-rate"),
    ),
    "soak": Made("soak", "Faults of all kinds at once", "soak", takeaways.soak, "soak"),
    "balance": Made(
        *("balance", "Spread over workers", "balance --full"),
        sentence(
            *("balance-bursts", "connections of 64"),
            "Of 64 connections that are opened together, the busiest of four workers gets "
            "{poorhttp forking 4} times the mean, and with `reuse_port` "
            "{poorhttp forking 4, reuse-port} times.",
        ),
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
        sections = [section for own in studies.values() for section in own]
        command.write_markdown(
            docs / made.page,
            Results(records),
            studies,
            docs / "figures",
            command.Head(made.title, made.takeaway(Tables(sections)), name, made.figure),
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
