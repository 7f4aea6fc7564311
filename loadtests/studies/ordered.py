"""The study `ordered`: who answers sooner, with each content and each number of clients.

Requests are ordered by their times. A second client is that of the study of 2008, Apache Bench.
"""

from __future__ import annotations

import csv
import functools
import statistics
import subprocess
import tempfile
import time
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from loadtests import programs
from loadtests.clients.load import SATURATED
from loadtests.clients.native import fetch
from loadtests.clients.native.fetch import Trace, Traced
from loadtests.errors import ServerFailure
from loadtests.measure import histogram, resources
from loadtests.measure.cpu_affinity import pinned
from loadtests.measure.machine import allow_files
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.servers.fixtures import TABLE, Fixtures, Reporting
from loadtests.servers.registry import Server, missing
from loadtests.servers.registry.studies import CGI, FILES, FLOOR, NOT_CGI, ORDERED, TEMPLATES
from loadtests.servers.running import Running
from loadtests.stats.results import Results, spread
from loadtests.store import Record
from loadtests.studies import originals, sample, tables
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.study import Scale, Study

NAME = "ordered"
LEAST = 10
"""Requests of the smallest sample, as far as the study made so many."""


@dataclass(frozen=True)
class Content:
    """`requests` by `at_once` clients in `rounds`, each on a connection of its own, in FULL.

    A smaller scale makes its share of them, and `ease` times as many of what is quickly made.
    After `longest` seconds a sample is over, whatever is still unanswered.
    """

    name: str
    title: str
    target: str
    at_once: Sequence[int]
    requests: int
    rounds: int
    longest: float
    ease: float = 1.0

    def number(self, scale: Scale) -> int:
        share = min(scale.share * self.ease, 1.0)
        return max(min(LEAST, self.requests), round(self.requests * share))

    def levels(self, scale: Scale) -> list[int]:
        """Clients at once: no more than requests, and for all of these if the study had that."""
        most = self.number(scale)
        levels = [level for level in self.at_once if level <= most]
        return levels or [most]

    def servers(self, fixtures: Fixtures) -> Serving:
        """Those that serve it, each with its application and target, by name, in order."""
        target = self.target
        if self.name == "template":
            php = target.replace(".html", ".php")
            found = [
                replace(one, application=fixtures.pages, target=target)
                if one.ours
                else replace(one, application=fixtures.php, target=php)
                for one in TEMPLATES
            ]
        elif self.name in ("page", "file"):
            # The floor has but one answer, and that from its memory.
            files = [FLOOR, *FILES] if self.name == "page" else FILES
            found = [replace(one, application=fixtures.static, target=target) for one in files]
        else:
            found = [
                replace(one, application=fixtures.cgi, target=one.target + target, forks=True)
                for one in CGI
            ]
        return {one.name: one for one in found}


_UP_TO_ALL = (1, 10, 100, 1_000)
PAGE = Content("page", "1.5 KB page", "/page.html", _UP_TO_ALL, 1_000, 2, 8, ease=10)
FILE = Content("file", "10 MB file", "/large.bin", (100,), 100, 2, 40)
SHELL = Content("cgi-shell", "CGI program in shell", "/report.sh?a=1", _UP_TO_ALL, 1_000, 1, 30)
PERL = Content("cgi-perl", "CGI program in Perl", "/report.pl?a=1", (200,), 200, 1, 30)
_BY_EITHER = "page with a table, by a template of ours or by PHP"
TEMPLATE = Content("template", _BY_EITHER, f"/table.html{TABLE}", (1, 100, 1_000), 1_000, 2, 20)
CONTENTS = (PAGE, FILE, SHELL, PERL, TEMPLATE)
Serving: TypeAlias = Mapping[str, Server]
"""Servers of a content by their names."""


WARM_REQUESTS = 10
FILES_BESIDE = 200
"""Open files that server and client have besides those of connections."""
SIGCHLD_IGNORED = 1 << 16
PARTS = ("connect", "processing", "total")
"""Until the connection is there; from then to the end of the answer; both."""
REPEATS = (1, 3, 7, 15, 31)
"""Seconds after which Linux sends a SYN again: the first after one, each next after twice that."""
EARLY, LATE = 0.98, 0.35
"""How much of that has passed at least, and seconds after it within which who waited is served."""


@dataclass(frozen=True)
class Task:
    """`requests` by so many at once, each on a connection of its own, within `longest` seconds."""

    requests: int
    at_once: int
    longest: float


def start(lab: Lab, one: Server, task: Task) -> Running:
    """Its server, to be entered. Raises ServerFailure if that is missing.

    Programs that it starts may use all cores.
    """
    if reason := missing(one):
        raise ServerFailure(reason)
    allow_files(task.at_once + FILES_BESIDE)
    core = None if isinstance(one.application, Reporting) else lab.server_core
    return Running(one, target=one.target, core=core)


def load(lab: Lab, port: int, one: Server, task: Task) -> Traced:
    visits, requests, core = [[one.target]], task.requests, lab.client_core
    return fetch.traced(
        port, task.longest, task.at_once, visits, requests=requests, patience=0, core=core
    )


def measured(lab: Lab, one: Server, task: Task) -> tuple[dict[str, Any], ServerFailure | None]:
    """What a fresh server took for the task, and whether it outlived that.

    Raises ServerFailure if it answers nothing.
    """
    forks, died = one.forks, None
    whole_life = resources.ended_seconds()
    with start(lab, one, task) as running:
        known = not (forks and any(map(_forgets_children, running.processes())))
        whole_life += sample.settled(running)
        warm = load(lab, running.port, one, Task(WARM_REQUESTS, 1, task.longest))
        cpu = -resources.cpu_seconds(running.processes()) if not forks else 0.0
        seen = load(lab, running.port, one, task)
        try:
            if forks:
                sample.settled(running)
            else:
                cpu += resources.cpu_seconds(running.processes())
        except ServerFailure as failure:
            died, known = failure, False
        if not seen.load.requests:
            raise died or ServerFailure(
                f"it answered none of {task.requests} requests in {task.longest:.0f} s: "
                f"{seen.trace.failed()}; {running.last_words()}"
            )
    if forks:
        clients = sum(one.load.busy * one.load.seconds for one in (warm, seen))
        done = seen.load.requests / (seen.load.requests + warm.load.requests)
        cpu = (resources.ended_seconds() - whole_life - clients) * done
    described = describe(seen, task)
    if known:
        described["cpu_us"] = round(cpu / seen.load.requests * 1e6, 3)
    return described, died


def times(trace: Trace) -> dict[str, list[int]]:
    """The three times of each request that was answered, in microseconds."""
    return {part: getattr(trace, part)() for part in PARTS}


def describe(seen: Traced, task: Task) -> dict[str, Any]:
    """The distributions of the three times, what failed, and how busy the client was."""
    found = times(seen.trace)
    answered = len(found["total"])
    return {
        "requests": task.requests,
        "at_once": task.at_once,
        "answered": answered,
        "failed": task.requests - answered,
        "errors": seen.trace.failed(),
        "seconds": round(seen.load.seconds, 6),
        "rate": round(seen.load.rate, 1),
        "octets": seen.load.octets,
        "client_busy": round(seen.load.busy, 3),
        "repeated_syn": repeated(found["connect"]),
        **{part: histogram.encode(histogram.record(each)) for part, each in found.items()},
    }


def repeats(connect_seconds: float) -> int:
    """How many SYNs were sent again until the connection was there; 0 if time does not tell so.

    Who finds the queue of a listening socket full hears nothing, and asks again after 1 s, 3 s, …
    """
    for count, after in enumerate(REPEATS, 1):
        if after * EARLY <= connect_seconds <= after + LATE:
            return count
    return 0


def repeated(connect_us: Iterable[float]) -> dict[str, int]:
    """How many requests waited for how many repeated SYNs: their number is the key."""
    return dict(Counter(str(count) for time in connect_us if (count := repeats(time / 1e6))))


def _forgets_children(process: int) -> bool:
    """Whether the kernel drops the CPU time of its children, because it ignores their end."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    masks = [line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")]
    return any(int(mask, 16) & SIGCHLD_IGNORED for mask in masks)


KIND = "witness"
ASKED = ("poorhttp single", "poorhttp threading 8", "nginx", "lighttpd", "Apache event", "webfsd")
LEVELS = (10, 100, 1_000)
RESOLUTION = 1.0
"""Milliseconds: ab writes whole ones."""
GRACE = 5.0
COLUMNS = {"connect": "ctime", "processing": "dtime", "total": "ttime"}
"""What ab calls them."""


def parse(text: str) -> dict[str, list[float]]:
    """The three times from the file that `ab -g` writes. Raises ServerFailure if it is none."""
    table = csv.DictReader(text.splitlines(), delimiter="\t")
    if not set(COLUMNS.values()) <= set(table.fieldnames or ()):
        raise ServerFailure("ab wrote no times")
    rows = list(table)
    try:
        return {part: [float(row[name]) for row in rows] for part, name in COLUMNS.items()}
    except (TypeError, ValueError):
        raise ServerFailure("the times that ab wrote are cut off") from None


def ask(
    port: int, target: str, task: Task, core: int | None
) -> tuple[dict[str, list[float]], float]:
    """Milliseconds of each request that ab says was answered, and its share of a core.

    Raises ServerFailure if it gives up, with what it said.
    """
    with tempfile.TemporaryDirectory(prefix="loadtests-") as folder:
        written = Path(folder) / "times.tsv"
        command = [*pinned(core), programs.path("ab"), "-q", "-g", str(written)]
        command += ["-s", f"{task.longest:.0f}", "-n", str(task.requests), "-c", str(task.at_once)]
        command.append(f"http://127.0.0.1:{port}{target}")
        before, begun = resources.ended_seconds(), time.monotonic()
        longest = task.longest + GRACE
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=longest
            )
        except subprocess.TimeoutExpired:
            raise ServerFailure(f"ab was not done after {longest:.0f} s") from None
        elapsed, spent = time.monotonic() - begun, resources.ended_seconds() - before
        if done.returncode != 0 or not written.exists():
            said = done.stderr.strip().splitlines()[-1:] or ["nothing"]
            raise ServerFailure(f"ab failed; it said: {said[0]}")
        return parse(written.read_text(encoding="ascii")), spent / elapsed


def compare(lab: Lab, one: Server, task: Task) -> dict[str, Any]:
    """Medians in milliseconds of both clients, one after the other, with the same server."""
    with start(lab, one, task) as running:
        load(lab, running.port, one, Task(WARM_REQUESTS, 1, task.longest))
        seen = load(lab, running.port, one, task)
        theirs, busy = ask(running.port, one.target, task, lab.client_core)
    ours = times(seen.trace)
    if not ours["total"] or not theirs["total"]:
        raise ServerFailure("one of the two clients was not answered")
    return {
        "requests": task.requests,
        "at_once": task.at_once,
        "busy": {"fetch": round(seen.load.busy, 3), "ab": round(busy, 3)},
        "fetch_ms": {part: round(statistics.median(each) / 1e3, 3) for part, each in ours.items()},
        "ab_ms": {part: statistics.median(each) for part, each in theirs.items()},
    }


def agree(ours: float, theirs: float) -> bool:
    """Whether two medians differ by no more than ab resolves."""
    return abs(ours - theirs) <= RESOLUTION


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """The steps of all contents, one after the other; then those of both clients."""
    fixtures = lab.fixtures.enter_context(Fixtures())
    steps = []
    for content in CONTENTS:
        own = replace(lab, rounds=min(content.rounds, scale.rounds))
        servers = content.servers(fixtures)
        mine = [server for server in chosen if server.name in servers]
        for at_once in content.levels(scale):
            task = Task(content.number(scale), at_once, content.longest)
            take = partial(_take, servers=servers, content=content.name, task=task)
            steps += rounds(own, NAME, mine, take, f" {content.name} at {at_once}")
    servers, once = PAGE.servers(fixtures), replace(lab, rounds=1)
    asked = [server for server in chosen if server.name in ASKED]
    for at_once in LEVELS:
        task = Task(PAGE.number(scale), at_once, PAGE.longest)
        if at_once <= task.requests:
            take = partial(_compare, servers=servers, task=task)
            steps += rounds(once, NAME, asked, take, f" {KIND} at {at_once}")
    return steps


def _take(trial: Trial, servers: Serving, content: str, task: Task) -> str:
    one = servers[trial.server.name]
    described, died = measured(trial.lab, one, task)
    scenario, command = f"{content}-{task.at_once}", one.command.replace("~", " ")
    trial.sample(scenario=scenario, command=command, **described)
    if died:
        raise died
    return f"{described['rate']:9,.0f}/s  {described['failed']} failed"


def _compare(trial: Trial, servers: Serving, task: Task) -> str:
    found = compare(trial.lab, servers[trial.server.name], task)
    trial.sample(scenario=f"{KIND}-{task.at_once}", **found)
    return f"{found['fetch_ms']['total']:.2f} ms, by ab {found['ab_ms']['total']:.0f} ms"


QUESTION = (
    "How long do requests take if so many arrive at once, each on a connection of its "
    "own: until "
    "the connection is there (connect), from then to the end of the answer (processing), and both "
    "(total)? The requests are ordered by each of these times, so a point at 90 % says that 90 % "
    "of them took no longer. The study of 2008 asked this of KLone, lighttpd, Boa "
    "and Apache."
)
TODAY = (
    ("ours", ("poorhttp threading 8", "poorhttp single", "poorhttp forking 2", "poorhttp gevent")),
    ("lighttpd", ("lighttpd", "lighttpd + php-cgi", "lighttpd + php-fpm")),
    ("Apache", ("Apache prefork", "Apache event", "Apache event + php-fpm")),
)
"""Whose medians stand beside the study's: of each the first that was measured."""
CLIENTS = "Our client and Apache Bench, on the 1.5 KB page"
SHARES = (0.0, 0.5, 1.0, *(2.0 * share for share in range(1, 50)), 99.0, 99.5, 100.0)
"""Percent of the requests, ordered by their time, that a curve has a point for."""
QUANTILES = {"median": 50.0, "p90": 90.0, "p99": 99.0, "longest": 100.0}
BANDS = range(0, 101, 10)
"""Percent of the requests for which a curve has its spread."""
WORDS = {"connect": "Connecting", "processing": "Processing", "total": "In all"}
RANKING = "total time, median"
MANY = 100
"""Clients at once from which on the client takes notable time to begin all connections."""


@functools.lru_cache(maxsize=4096)
def curve(encoded: str) -> dict[float, float]:
    """Milliseconds within which so many percent of the requests of a histogram were done."""
    found = histogram.merge([encoded]).get_percentile_to_value_dict(list(SHARES))
    return {share: value / 1e3 for share, value in found.items()}


def quantile(part: str, name: str) -> tables.Value:
    """Milliseconds within which so many requests were done, over the rounds."""
    share = QUANTILES[name]
    return lambda samples: spread(curve(one[part])[share] for one in samples if one["answered"])


def _counted(samples: Sequence[Record], field: str) -> Counter[str]:
    return sum((Counter(one[field]) for one in samples), Counter())


VALUES: Sequence[tuple[Column, tables.Value]] = (
    *(
        (Column(f"{part} time, {name}", "ms", 2), quantile(part, name))
        for part in reversed(PARTS)
        for name in QUANTILES
    ),
    (Column("requests", "/s"), "rate"),
    (Column("server CPU per request", "µs", 1), "cpu_us"),
    (Column("failed requests"), tables.total("failed")),
    (Column("waited for a repeated SYN"), lambda s: float(_counted(s, "repeated_syn").total())),
)
Levels: TypeAlias = Mapping[int, list[Record]]
"""The samples of a content by number of clients at once, servers in the order of figures."""


def report(results: Results) -> list[Section]:
    """What was asked, and a section for each content that was measured or failed."""
    levels = _levels(tables.latest(one for one in results.samples if "total" in one))
    missing = {one["server"]: one["reason"] for one in results.missing}
    text = [QUESTION, *(f"Left out: {name} ({reason})." for name, reason in missing.items())]
    told = [Section("Times over the ordered requests", text, [_beside(levels)])]
    for content in CONTENTS:
        own = levels[content.name]
        said = [*_remarks(content, own), *_failures(results, content.name)]
        parts: list[Table | Panels] = []
        answer = ""
        for level, samples in own.items():
            parts += _compared(content, level, samples)
            what = f"{RANKING}, {level:,} at once".capitalize()
            answer = tables.answer(what, tables.spreads(samples, quantile("total", "median")), "ms")
        if parts or said:
            title = content.title[0].upper() + content.title[1:]
            told.append(Section(title, said, parts, answer))
    return [*told, *_clients(results)]


def _levels(samples: Iterable[Record]) -> Mapping[str, Levels]:
    places = {server.name: place for place, server in enumerate(ORDERED)}
    levels: dict[str, dict[int, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(samples, key=lambda s: (s["at_once"], places.get(s["server"], len(places)))):
        content = one["scenario"].rpartition("-")[0]
        levels[content][one["at_once"]].append(one)
    return levels


def _remarks(content: Content, levels: Levels) -> list[str]:
    said: list[str] = []
    busy: list[str] = []
    for level, samples in levels.items():
        for server, own in tables.by_server(samples).items():
            said += _lost(f"{server}, {level:,} at once", own)
        shares = tables.spreads(samples, "client_busy")
        full = [server for server, share in shares.items() if share.median >= SATURATED]
        busy += [f"{server} ({level:,} at once)" for server in full]
    if busy:
        said.append(
            "The client was busy all the time, so the times are its own as much as the server's, "
            f"with {', '.join(busy)}."
        )
    for level, samples in levels.items():
        connect = tables.spreads(samples, quantile("connect", "median")).get(tables.BASELINE)
        if level >= MANY and connect:
            said.append(
                f"The client begins {level:,} connections one after the other: a connection to the "
                "baseline (floor), which does nothing but accept and answer, took "
                f"{connect.median:.1f} ms (the median). That much of each connect time is the "
                "client's and the kernel's."
            )
    if content.name.startswith("cgi") and levels:
        said.append(
            f"{' and '.join(NOT_CGI)} run programs, too, but are left out: they pass on the head "
            "of a program's output with its line ends unchanged, which is not HTTP."
        )
    return said


def _lost(where: str, samples: Sequence[Record]) -> list[str]:
    """Long connects that are those of a full backlog, and requests that failed."""
    said = []
    for count, requests in sorted(_counted(samples, "repeated_syn").items()):
        syns = "a repeated SYN" if count == "1" else f"{count} repeated SYNs"
        said.append(
            f"{where}: {requests:,} {'request' if requests == 1 else 'requests'} waited for "
            f"{syns}, about {REPEATS[int(count) - 1]} s: its backlog was full."
        )
    if failed := sum(one["failed"] for one in samples):
        kinds = _counted(samples, "errors").items()
        known = ", ".join(f"{kind}: {count:,}" for kind, count in kinds)
        asked = sum(one["requests"] for one in samples)
        said.append(
            f"{where}: {failed:,} of {asked:,} requests failed{f' ({known})' if known else ''}; "
            "the times are those of the others."
        )
    return said


def _failures(results: Results, kind: str) -> list[str]:
    """A sentence for each reason for which something of a content could not be measured."""
    found: dict[str, list[str]] = {}
    for one in results.failures:
        if str(one.get("what", "")).startswith(f"ordered {kind} at "):
            found.setdefault(one["reason"], []).append(one["what"].removeprefix("ordered "))
    return [f"Failed: {'; '.join(steps)}: {reason}." for reason, steps in found.items()]


def _compared(content: Content, level: int, samples: Sequence[Record]) -> list[Table | Panels]:
    requests = max(one["requests"] for one in samples)
    name = f"ordered-{content.name}-{level}"
    title = f"{content.title}: {requests:,} requests, {level:,} at once"
    own = tables.by_server(samples)
    x = Axis("share of the requests, ordered", "%", low=0, high=100)
    panels = []
    for part in PARTS:
        lines = [_line(server, taken, part) for server, taken in own.items()]
        y = Axis(f"{part} time", "ms", log=True)
        panels.append(Lines(f"{name}-{part}", WORDS[part], x, y, lines))
    caption = "Medians of the rounds, and from the lowest to the highest round."
    several = max(map(len, own.values())) > 1
    figure = Panels(f"{name}-curves", title, panels, caption=caption if several else "")
    note = (
        "Medians of the rounds, with the lowest and the highest; failed requests, and those that "
        "waited for a repeated SYN, are the sums of all rounds. CPU: all processes of the server; "
        "there is no number where the kernel does not count the processes that the server starts."
    )
    return [figure, tables.compared(name, title, samples, VALUES, RANKING, note=note)]


def _line(server: str, samples: Sequence[Record], part: str) -> Line:
    """One of the times by share of the requests, over the rounds."""
    curves = [curve(one[part]) for one in samples if one["answered"]]
    found = [(share, spread(one[share] for one in curves)) for share in SHARES]
    drawn = tables.line(server, ((share, one) for share, one in found if one))
    several = len(curves) > 1
    return replace(drawn, band=[b for b in drawn.band if several and b[0] in BANDS])


def _clients(results: Results) -> list[Section]:
    """Medians of both clients, and whether they agree."""
    said = _failures(results, KIND)
    last = tables.latest(one for one in results.samples if "ab_ms" in one)
    if not last:
        return [Section(CLIENTS, said)] if said else []
    columns = [Column("server"), Column("at once")]
    for part in PARTS:
        columns += [Column(f"{part} time, ours", "ms", 2), Column(f"{part} time, ab", "ms")]
    columns += [Column(f"{client} busy", "%", scale=100) for client in ("our client", "ab")]
    rows: list[list[Cell]] = []
    ratios = []
    for one in last:
        row: list[Cell] = [one["server"], float(one["at_once"])]
        row += [one[f"{client}_ms"][part] for part in PARTS for client in ("fetch", "ab")]
        rows.append([*row, one["busy"]["fetch"], one["busy"]["ab"]])
        ours, theirs = one["fetch_ms"]["total"], one["ab_ms"]["total"]
        if not agree(ours, theirs):
            lower, higher = sorted((ours, theirs))
            ratios.append(higher / max(lower, RESOLUTION))
    agreed = f"{len(last) - len(ratios)} of {len(last)}"
    answer = (
        f"The medians of the total times differ by no more than ab's millisecond in {agreed} cases."
    )
    if ratios:
        answer += f" In the others one is up to {max(ratios):.2f} times the other."
    note = "Medians over the requests of one run each, one after the other with the same server."
    table = tables.table("ordered-second-client", CLIENTS, columns, rows, note)
    return [Section(CLIENTS, said, [table], answer)]


def _beside(levels: Mapping[str, Levels]) -> Table:
    """The study's numbers, and medians of today at the most clients at once."""
    columns = [Column("content and time")]
    columns += [Column(f"{name}, 2008") for name in originals.KLONE]
    columns += [Column("clients at once today")]
    columns += [Column(f"{name} today, median", "ms", 2) for name, _ in TODAY]
    titles = {content.name: content.title for content in CONTENTS}
    rows: list[list[Cell]] = []
    for content, part, *said in originals.FIGURES["2008 times"]:
        today: list[Cell] = [None] * (1 + len(TODAY))
        if levels[content]:
            level, most = list(levels[content].items())[-1]
            own, median = tables.by_server(most), quantile(part, "median")
            first = (next(filter(own.__contains__, known), "") for _, known in TODAY)
            today = [float(level), *(tables.cell(own.get(one, []), median) for one in first)]
        rows.append([f"{titles[content]}: {part}", *said, *today])
    return Table(
        "ordered-klone",
        "What the study of 2008 had, in ms",
        columns,
        rows,
        note="The study: 1,000 requests (100 of the file) by Apache Bench over a network, a Xeon "
        "3060; figures from its text, because its diagrams show no numbers. Its active page was of "
        "KLone's own kind, with lighttpd running PHP. Of today's servers, the first one measured "
        "in each of these lists: "
        + "; ".join(f"{name}: {', '.join(known)}" for name, known in TODAY)
        + ".",
    )


STUDY = Study(
    NAME,
    "connect, processing and total time over the ordered requests",
    "KLone",
    lambda: ORDERED,
    plan,
    report,
)
