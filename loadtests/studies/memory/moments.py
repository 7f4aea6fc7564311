"""Memory of a server when idle, after ten and after a hundred parallel requests.

It is looked at as `ps` counts it, and with shared pages divided (PSS).
"""

from __future__ import annotations

import contextlib
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence

from loadtests import programs
from loadtests.clients.connection import Connection, request_bytes
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import patience, wait_until
from loadtests.reporting.model import MIB, Axis, Column, Section, Table
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import originals, tables
from loadtests.studies.bench.scenarios import LIGHT
from loadtests.studies.engine import Trial

NAME = "memory"
IDLE = "idle"
AFTER = {"after 10": 10, "after 100": 100}
"""Parallel requests before each further look, by the name of its scenario."""
MOMENTS = (IDLE, *AFTER)
LAST = MOMENTS[-1]
QUIET_SECONDS = patience(5.0)
SECONDS = patience(20.0)
"""Within which all parallel requests must be answered."""
ATTEMPTS = 5
PS_SECONDS = patience(10.0)


def take(trial: Trial) -> str:
    """Looks at a server when it has started, and after each number of requests."""
    with trial.running(LIGHT) as running:
        settle(running)
        looks = {IDLE: look(running)}
        for moment, count in AFTER.items():
            ask(running, count)
            looks[moment] = look(running)
    requests = 1
    for moment, usage in looks.items():
        requests += AFTER.get(moment, 0)
        trial.sample(scenario=moment, requests=requests, **usage)
    last = looks[LAST]
    return f"PSS {last['pss'] * MIB:.1f} MiB in {last['processes']} processes"


def settle(running: Running) -> None:
    """Waits until all workers have started: the first answers before the last is there.

    Then no process begins, ends or works any more.
    """

    def quiet() -> bool:
        before = running.processes()
        return running.is_quiet() and running.processes() == before

    wait_until(quiet, QUIET_SECONDS, 0)


def ask(running: Running, count: int) -> None:
    """So many requests at once, each on a connection of its own: all are sent before one is read.

    Raises ServerFailure if one is not answered, or wrongly.
    """
    deadline = time.monotonic() + SECONDS
    answered = 0
    request = request_bytes(running.at("/"), [("Connection", "close")])
    try:
        with contextlib.ExitStack() as stack, selectors.DefaultSelector() as waiting:
            for _ in range(count):
                connection = stack.enter_context(Connection(running.port, timeout=SECONDS / 2))
                waiting.register(connection, selectors.EVENT_READ, connection)
            for key in waiting.get_map().values():
                key.data.send(request)
            while waiting.get_map():
                ready = waiting.select(max(deadline - time.monotonic(), 0))
                if not ready:
                    raise ServerFailure(f"not answered within {SECONDS:g} s")
                for key, _ in ready:
                    answer = key.data.read()
                    if not running.application.accepts(answer, running.answer):
                        raise ServerFailure(f"an answer is wrong: status {answer.status}")
                    # At once, for some servers wait until their client has closed.
                    waiting.unregister(key.data)
                    key.data.close()
                    answered += 1
    except (OSError, ServerFailure) as error:
        running.processes()
        raise ServerFailure(f"{answered} of {count} parallel requests: {error}") from None


def parse_ps(text: str) -> dict[int, tuple[int, int]]:
    """Bytes of the processes in what `ps axo pid,size,vsize` says.

    The first are what would have to be written to swap if all writable memory had been used, the
    second the whole address space. Raises LabError if it says something else.
    """
    head, *lines = text.splitlines() or [""]
    if head.split() != ["PID", "SIZE", "VSZ"]:
        raise LabError(f"ps has other columns than pid, size and vsize: {head.strip()!r}")
    found = {}
    for line in lines:
        try:
            process, size, vsize = map(int, line.split())
        except ValueError:
            raise LabError(f"ps says a line that is not three numbers: {line.strip()!r}") from None
        found[process] = size * 1024, vsize * 1024
    return found


def ps() -> dict[int, tuple[int, int]]:
    """All processes of the machine. Raises LabError if `ps` of procps does not run."""
    try:
        done = subprocess.run(
            [programs.path("ps"), "axo", "pid,size,vsize"],
            capture_output=True,
            text=True,
            check=True,
            timeout=PS_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(f"ps failed: {error}") from None
    return parse_ps(done.stdout)


def look(running: Running) -> dict[str, int]:
    """The bytes that a server takes now, and its processes and threads.

    `size` and `vsize` are of the largest process, all else is of all processes together; `shared`
    are pages that more than one process maps, counted once for each.

    Raises ServerFailure if it has died, or if its processes end again and again.
    """
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(ServerFailure):
            return _total(running.processes(), ps())
    return _total(running.processes(), ps())


def _total(processes: Sequence[int], sizes: Mapping[int, tuple[int, int]]) -> dict[str, int]:
    if gone := [process for process in processes if process not in sizes]:
        raise ServerFailure(f"{len(gone)} of its processes ended while they were measured")
    all_sizes, all_vsizes = zip(*(sizes[process] for process in processes), strict=True)
    used = resources.memory(processes)
    return {
        "size": max(all_sizes),
        "vsize": max(all_vsizes),
        "sizes": sum(all_sizes),
        "vsizes": sum(all_vsizes),
        **used._asdict(),
        "shared": used.rss - used.uss,
        "threads": resources.threads(processes),
    }


KIB = 2**-10
FIELDS = {"pss": "PSS", "uss": "USS", "rss": "RSS", "shared": "shared"}
PRELOAD = " + preload"
FIRST = "configuration"
PS: Sequence[tuple[Column, tables.Value]] = (
    (Column("size of all processes", "KiB", scale=KIB), "sizes"),
    (Column("vsize of all processes", "KiB", scale=KIB), "vsizes"),
    (Column("size of the largest", "KiB", scale=KIB), "size"),
    (Column("vsize of the largest", "KiB", scale=KIB), "vsize"),
    (Column("processes"), "processes"),
    (Column("threads"), "threads"),
)


def section(results: Results) -> Section:
    """Use by configuration, and what the study of 2010 had."""
    at = tables.by(tables.latest(results.samples), "scenario")
    pss, uss = (tables.spreads(at[LAST], field, MIB) for field in ("pss", "uss"))
    text = [
        "How much memory does each configuration take to serve the light page: after its start "
        "and first response, after 10 parallel requests, and after 100 more? "
        "`ps axo size,vsize` counts address space, so shared memory counts once for each "
        "process. PSS divides a shared page among all processes that map it, USS has "
        "only pages that no other process shares, RSS counts a shared page once for each process; "
        "all are sums over all processes of the server, the main process and a proxy included.",
        *_remarks(at),
        *tables.lost(results),
    ]
    figure = tables.bars(
        "memory-bars",
        "Memory of all processes",
        Axis("memory", "MiB", low=0),
        {"USS": uss, "PSS": pss},
        subtitle=f"{LAST} parallel requests for the light page",
        caption="Median of the rounds, with the lowest and the highest.",
    )
    pages = tables.compared(
        "memory-pages",
        "Memory after 100 parallel requests",
        at[LAST],
        [(Column(title, "MiB", 1, MIB), field) for field, title in FIELDS.items()],
        "PSS",
        note="PSS depends on which other programs run the same Python on the machine, as the load "
        "lab does.",
        first=FIRST,
    )
    ps = tables.compared(
        "memory-ps",
        "As ps counts, after 100 parallel requests",
        at[LAST],
        PS,
        "size of all processes",
        note="What the study of 2010 estimated as 4 × size is measured here: the sum over all "
        "processes, also for configurations with four workers.",
        first=FIRST,
    )
    then = originals.table("memory-2010")
    said = tables.answer("Memory (PSS) after 100 parallel requests", pss, "MiB")
    return Section("Memory", text, [figure, pages, _course(at), ps, then], said)


def _course(at: Mapping[str, list[Record]]) -> Table:
    """Memory at each moment, in order of the memory at the last."""
    own = {when: tables.by_server(at[when]) for when in MOMENTS}
    last = tables.spreads(at[LAST], "pss")
    columns = [
        (when, field, Column(f"{FIELDS[field]}, {when}", "MiB", 1, MIB))
        for field in ("pss", "uss")
        for when in MOMENTS
    ]
    columns += [(when, "processes", Column(f"processes, {when}")) for when in (IDLE, LAST)]
    return tables.table(
        "memory-course",
        "Before and after requests",
        [FIRST, *(column for _, _, column in columns)],
        [
            [name, *(tables.cell(own[when].get(name, []), field) for when, field, _ in columns)]
            for name in tables.ranked(last, last)
        ],
    )


def _remarks(at: Mapping[str, list[Record]]) -> list[str]:
    told = []
    before, after = (tables.spreads(at[when], "uss") for when in (IDLE, LAST))
    growth = {name: after[name].median - before[name].median for name in after if name in before}
    if growth:
        most = max(growth, key=lambda name: growth[name])
        told.append(
            f"Over these {sum(AFTER.values())} requests USS rises by {growth[most] * KIB:,.0f} KiB "
            f"at most ({most}). The study of 2010 saw some hundred bytes."
        )
    for name, shared in after.items():
        alone = after.get(name.removesuffix(PRELOAD))
        if name.endswith(PRELOAD) and alone:
            told.append(
                f"{name} has {shared.median * MIB:.1f} MiB of its own (USS), without preload "
                f"{alone.median * MIB:.1f}."
            )
    return told
