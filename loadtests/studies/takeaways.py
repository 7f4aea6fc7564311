"""The first sentence of each benchmark page that `docs.py` lists, made of numbers in its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from loadtests.errors import LabError
from loadtests.reporting.cells import brief, number
from loadtests.reporting.model import Section, Table
from loadtests.stats.results import Spread

THREADS = "poorhttp threading 8"


class Tables:
    """The tables of a report, by their names."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self._tables: dict[str, Table] = {}
        for section in sections:
            for part in section.parts:
                if isinstance(part, Table):
                    self._tables.setdefault(part.name, part)

    def value(self, table: str, column: str, *row: str) -> float:
        """The number, or the median, of the row that begins with these cells, in the column's unit.

        Raises LabError if the results have none.
        """
        found = self._tables.get(table)
        names = [one.name for one in found.columns] if found else []
        if found and column in names:
            place = names.index(column)
            for cells in found.rows:
                if all(_same(cell, asked) for cell, asked in zip(cells, row, strict=False)):
                    cell, scale = cells[place], found.columns[place].scale
                    if isinstance(cell, Spread):
                        return cell.median * scale
                    if isinstance(cell, float | int):
                        return cell * scale
        raise LabError(f"the results have no {column!r} of {' '.join(row)} in table {table!r}")

    def said(self, table: str, column: str, unit: str = "") -> Callable[..., str]:
        """Writes the value of a row of this column."""
        return lambda *row: f"{brief(self.value(table, column, *row))}{unit}"

    def sum(self, table: str, column: str) -> float:
        """All numbers of a column together."""
        found = self._tables[table]
        return sum(self.value(table, column, str(row[0])) for row in found.rows)

    def least(self, table: str, column: str) -> float:
        """The lowest number of a column."""
        found = self._tables[table]
        place = [one.name for one in found.columns].index(column)
        medians = [row[place] for row in found.rows]
        return min(one.median for one in medians if isinstance(one, Spread))

    def times(self, table: str, column: str, row: str, other: str) -> str:
        """How many times the value of the other row this one is."""
        return brief(self.value(table, column, row) / self.value(table, column, other))


def _same(cell: object, asked: str) -> bool:
    return (number(cell) if isinstance(cell, float | int) else cell) == asked


def serving(tables: Tables) -> str:
    name, column = "cpu-hello-hello-64", "CPU per request"
    cpu = tables.said(name, column, " µs")
    times = tables.times(name, column, "gunicorn gthread 8", THREADS)
    return (
        f"A small response costs poorhttp (threading) {cpu(THREADS)} of CPU time, bjoern "
        f"{cpu('bjoern')} and gunicorn gthread {cpu('gunicorn gthread 8')}, which is {times} times "
        f"as much as poorhttp."
    )


def serial(tables: Tables) -> str:
    time = tables.said("serial-light", "time to the whole page", " µs")
    return (
        f"A client that asks for one page at a time gets it in {time(THREADS)} from poorhttp "
        f"(threading), in "
        f"{time('bjoern')} from bjoern and in {time('gunicorn gthread 8')} from gunicorn gthread."
    )


def parallel(tables: Tables) -> str:
    name = "parallel-slow"
    time = tables.said(name, "time to the whole page", " ms")
    most = tables.said(name, "most unanswered requests")
    return (
        f"When 100 requests arrive each second for a handler that waits 50 ms, poorhttp with 8 "
        f"threads answers within {time(THREADS)}, with gevent "
        f"within {time('poorhttp gevent')}, and "
        f"with a single thread it falls behind by {most('poorhttp single')} requests."
    )


def memory(tables: Tables) -> str:
    pss = tables.said("memory-pages", "PSS", " MiB")
    return (
        f"After 100 parallel requests poorhttp with 8 threads takes {pss(THREADS)} of memory "
        f"(PSS), its supervisor included; waitress takes {pss('waitress 8 threads')} and gunicorn "
        f"gthread {pss('gunicorn gthread 8')}."
    )


def loops(tables: Tables) -> str:
    def time(loop: str, server: str) -> str:
        return tables.said(f"loops-{loop}", "mean time of a request", " ms")(server)

    ours = "poorhttp single"
    return (
        f"A page of 8.6 KB takes {time('l1', ours)} with poorhttp (single) and "
        f"{time('l1', 'nginx')} with "
        f"nginx on one machine; over a network of 100 Mbit/s it takes {time('r1-lan', ours)} and "
        f"{time('r1-lan', 'nginx')}."
    )


def power(tables: Tables) -> str:
    rate = tables.said("power-injectors", "requests per second")
    return (
        f"Twelve client processes at once get {rate(THREADS, '12')} requests per second from "
        f"poorhttp (threading), {rate('nginx', '12')} from nginx and {rate('lighttpd', '12')} "
        f"from lighttpd."
    )


def locust(tables: Tables) -> str:
    row = "poorhttp forking 2", "12"
    name = "power-injectors"
    rate = tables.said(name, "requests per second")(*row)
    busy = tables.said(name, "server busy", " %")(*row)
    clients = tables.said(name, "injectors busy", " %")(*row)
    return (
        f"Twelve Locust workers use {clients} of their core to send {rate} requests per second, "
        f"which keep the server's core {busy} busy."
    )


def resources(tables: Tables) -> str:
    cpu = tables.said("resources", "CPU time per request", " µs")
    return (
        f"Over a network of 100 Mbit/s a static page of 8.6 KB costs poorhttp (single) "
        f"{cpu('poorhttp single')} of CPU time, nginx {cpu('nginx')} and gunicorn gthread "
        f"{cpu('gunicorn gthread 8')}."
    )


def dead(tables: Tables) -> str:
    cpu = tables.said("deadconn-cpu_us-128", "18,000 dead", " µs")
    none = tables.said("deadconn-cpu_us-128", "0 dead", " µs")
    return (
        f"Beside 18,000 dead connections a response of 128 bytes costs poorhttp (threading) "
        f"{cpu(THREADS)} of "
        f"CPU time, and {none(THREADS)} without them."
    )


def webbench(tables: Tables) -> str:
    rate = tables.said("webbench", "requests")
    return (
        f"poorhttp (threading) serves {rate(THREADS)} files of a mixed workload per second, "
        f"each on a "
        f"connection of its own; nginx serves {rate('nginx')} and lighttpd {rate('lighttpd')}."
    )


def influence(tables: Tables) -> str:
    share = tables.said("influence-rate-variance", "share of variation", " %")
    return (
        f"The choice of the load generator explains {share('client')} of the variation of requests "
        f"per second, and the choice of the server {share('server')}."
    )


def ordered(tables: Tables) -> str:
    time = tables.said("ordered-page-1000", "total time, median", " ms")
    return (
        f"Of 1,000 requests at once for a page of 1.5 KB, half are answered within "
        f"{time(THREADS)} by poorhttp (threading), {time('lighttpd')} by lighttpd and "
        f"{time('Apache prefork')} by Apache."
    )


def overload(tables: Tables) -> str:
    share = tables.said("overload-heavy", "in time at 5 ×", " %")
    return (
        f"Asked for five times as much as it can compute, poorhttp with 8 threads answers "
        f"{share(THREADS)} of its highest rate in time, and gunicorn gthread "
        f"{share('gunicorn gthread 8')}."
    )


def content(tables: Tables) -> str:
    cpu = tables.said("content-page", "512 connections: CPU per request", " µs")
    return (
        f"A static page of 1.5 KB costs poorhttp (threading) {cpu('poorhttp threading')} of CPU "
        f"time, "
        f"lighttpd {cpu('lighttpd')} and nginx {cpu('nginx')}."
    )


def websocket(tables: Tables) -> str:
    cpu = tables.said("websocket", "32 bytes: CPU per message", " µs")
    return (
        f"A small WebSocket message, received and sent back, costs poorhttp (gevent) "
        f"{cpu('poorhttp gevent')} "
        f"of CPU time, gunicorn gevent {cpu('gunicorn gevent')} and granian (ASGI) "
        f"{cpu('granian ASGI')}."
    )


def tls(tables: Tables) -> str:
    cpu = tables.said("tls-handshakes", "TLS 1.3, full, ECDSA: CPU per connection", " µs")
    return (
        f"A new TLS 1.3 connection with one small response costs poorhttp (single) "
        f"{cpu('poorhttp single')} "
        f"of CPU time, nginx {cpu('nginx')} and HAProxy {cpu('HAProxy')}."
    )


def uploads(tables: Tables) -> str:
    more = tables.said("uploads", "more memory (RSS)", " MiB")
    cpu = tables.said("uploads", "CPU per MB", " ms")
    return (
        f"An upload of 1 GiB takes {more('poorhttp threading')} more memory and "
        f"{cpu('poorhttp threading')} of CPU time per MB in poorhttp (threading), and "
        f"{more('gunicorn gthread 8')} and {cpu('gunicorn gthread 8')} in gunicorn gthread."
    )


def compress(tables: Tables) -> str:
    name = "compress-json10-gzip-16"
    cpu, size = (
        tables.said(name, "CPU per request", " µs"),
        tables.said(name, "of the size", " %"),
    )
    ours, theirs = "poorhttp threading", "nginx, level 6"
    return (
        f"10 KB of JSON with gzip cost poorhttp (threading) {cpu(ours)} of CPU time and shrink to "
        f"{size(ours)}; nginx at level 6 needs {cpu(theirs)} and reaches {size(theirs)}."
    )


def proxies(tables: Tables) -> str:
    rate = tables.said("proxies-crowd-light", "requests")
    return (
        f"On two cores, 100 clients get {rate('Single')} responses per second from poorhttp "
        f"(single) and "
        f"{rate('nginx + Single')} through nginx in front of it."
    )


def cluster(tables: Tables) -> str:
    names = "cluster-rolling-reload", "cluster-rolling-replace"
    failed, sent = (
        number(sum(tables.sum(name, column) for name in names)) for column in ("failed", "requests")
    )
    return (
        f"While three hosts behind a load balancer were reloaded and replaced in turn, {failed} of "
        f"{sent} requests failed."
    )


def reload(tables: Tables) -> str:
    def time(column: str) -> str:
        return tables.said("develop-compared", column, " ms")("poorhttp dev")

    return (
        f"After you save a file, `poorhttp dev` sends the first new response within "
        f"{time('hello')} for a small application, {time('Flask with SQLAlchemy and pandas')} for "
        f"Flask with SQLAlchemy and pandas, and {time('Django with the admin')} for Django."
    )


def lifecycle(tables: Tables) -> str:
    failed = tables.said("operate-failed", "failed share", " %")
    return (
        f"During reloads, upgrades, crashes, stops and broken versions {failed(THREADS[:-2])} of "
        f"the requests to poorhttp (threading) failed, {failed('uWSGI')} of those to uWSGI and "
        f"{failed('gunicorn gthread')} of those to gunicorn gthread."
    )


def adverse(tables: Tables) -> str:
    least = min(
        tables.least(f"{name}-compared", "requests/s against none")
        for name in ("dead", "drip", "stalled")
    )
    return (
        f"Beside thousands of clients that stay silent, send a byte each second or do not read, "
        f"other clients get at least {brief(least * 100)} % of the requests per second that they "
        f"get without them."
    )


def soak(tables: Tables) -> str:
    def both(row: str) -> str:
        modes = "forking", "threading"
        return number(sum(tables.value("soak-outcome", mode, row) for mode in modes))

    return (
        f"Under faulty applications, hostile clients and killed workers, "
        f"{both('answers that were right')} responses were right and "
        f"{both('answers that were wrong, crossed or missing')} were wrong, crossed or missing."
    )


def balance(tables: Tables) -> str:
    times = tables.said("balance-bursts", "connections of 64")
    return (
        f"Of 64 connections that are opened together, the busiest of four workers gets "
        f"{times('poorhttp forking 4')} times the mean, and with `reuse_port` "
        f"{times('poorhttp forking 4, reuse-port')} times."
    )


Takeaway: TypeAlias = Callable[[Tables], str]
