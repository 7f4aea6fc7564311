"""Requests of the study `ordered`, and a server loaded with a number of them, each timed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadtests.clients.native import fetch
from loadtests.clients.native.fetch import Trace, Traced
from loadtests.errors import ServerFailure
from loadtests.measure import histogram, resources
from loadtests.measure.machine import allow_files
from loadtests.servers.fixtures import TABLE, Fixtures, Reporting
from loadtests.servers.registry import Server, missing
from loadtests.servers.registry.studies import CGI, FILES, FLOOR, TEMPLATES
from loadtests.servers.running import Running
from loadtests.studies.engine import Lab
from loadtests.studies.study import Scale

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

    def servers(self, fixtures: Fixtures) -> Mapping[str, Server]:
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


WARM_REQUESTS = 10
SETTLING = 0.1
"""Seconds within which a process ends that has said all."""
SETTLED_AT_MOST = 3.0
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


def sample(lab: Lab, one: Server, task: Task) -> tuple[dict[str, Any], ServerFailure | None]:
    """What a fresh server took for the task, and whether it outlived that.

    Raises ServerFailure if it answers nothing.
    """
    forks, died = one.forks, None
    whole_life = resources.ended_seconds()
    with start(lab, one, task) as running:
        known = not (forks and any(map(_forgets_children, running.processes())))
        whole_life += _settled_cpu(running)
        warm = load(lab, running.port, one, Task(WARM_REQUESTS, 1, task.longest))
        cpu = -resources.cpu_seconds(running.processes()) if not forks else 0.0
        seen = load(lab, running.port, one, task)
        try:
            if forks:
                _settled_cpu(running)
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


def _settled_cpu(running: Running) -> float:
    """CPU seconds of the server when the last process has ended that was started for a request.

    After SETTLED_AT_MOST it is that of those who are there. Raises ServerFailure if it has died.
    """
    deadline = time.monotonic() + SETTLED_AT_MOST
    before: list[int] = []
    while True:
        now = running.processes()
        try:
            spent = resources.cpu_seconds(now)
        except ServerFailure:
            now = []
        if now and (now == before or time.monotonic() > deadline):
            return spent
        before = now
        time.sleep(SETTLING)
