"""One measurement of one candidate: the server is started, loaded, sampled and stopped."""

from __future__ import annotations

import contextlib
import sys
import textwrap
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from loadtests.advise.commands import Commands
from loadtests.advise.configuration import Configuration
from loadtests.advise.target import Target
from loadtests.advise.workload import Workload
from loadtests.clients.connection import Connection
from loadtests.clients.load import Load
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import histogram, resources
from loadtests.measure.cpu_affinity import USABLE
from loadtests.store import Store

EXPERIMENT = "advise"
WRONG = 0.01
"""The share of requests that may fail before a candidate is out of the question."""
FEW = 20
"""Requests of which some may be unanswered: their age is among the times."""
EXAMPLES = 20
"""Requests that are sent one by one to say which of them fails."""
WARM_SECONDS = 0.25
LONGER = 10
"""How many times as long a trial takes that is repeated, as nothing was answered in it."""
KINDS = {
    "connect": "connections refused",
    "read": "connections cut",
    "write": "requests not taken",
    "status": "error answers",
    "timeout": "unanswered",
}


@dataclass(frozen=True)
class Sample:
    """What one measurement saw. `stage` is what it was taken for, `asked` the rate, 0 for as fast
    as possible. Times are in microseconds, memory in octets; `delayed_us` is how long a
    request waited for a core; `failure` says why it does not count.
    """

    configuration: Configuration
    stage: str
    round: int | None
    connections: int
    asked: float
    seconds: float = 0.0
    requests: int = 0
    rate: float = 0.0
    least_us: float = 0.0
    mean_us: float = 0.0
    p50_us: float = 0.0
    p99_us: float = 0.0
    max_us: float = 0.0
    cpu_us: float = 0.0
    delayed_us: float = 0.0
    client_busy: float = 0.0
    others_busy: float = 0.0
    pss: int = 0
    processes: int = 0
    start_seconds: float = 0.0
    wrong: float = 0.0
    failure: str = ""

    def calm(self) -> float:
        """The inverse of the p99, in Hz: more is better, as with rates."""
        return 1e6 / max(self.p99_us, 1.0)


@dataclass
class Bench:
    """Measures candidates and stores what was seen. `samples` are all that were taken."""

    target: Target | Commands
    workload: Workload
    store: Store
    samples: list[Sample] = field(default_factory=list)

    def take(
        self,
        configuration: Configuration,
        seconds: float,
        connections: int,
        stage: str,
        number: int | None = None,
        rate: float = 0,
    ) -> Sample:
        """Measures a candidate; one that fails is a sample that says why."""
        name = configuration.name
        begun = Sample(configuration, stage, number, connections, round(rate, 1))
        try:
            sample = self._measured(begun, seconds, rate)
        except (ServerFailure, LabError) as failure:
            sample = replace(begun, failure=str(failure))
        self.samples.append(sample)
        megabytes, milliseconds = sample.pss / 2**20, sample.p99_us / 1000
        pace = sample.asked or sample.rate
        told = f"{pace:9,.0f}/s  p99 {milliseconds:8.1f} ms  {megabytes:6.1f} MiB"
        if why := sample.failure:
            self.store.add("failure", server=name, what=f"{stage}, {name}", reason=why)
            told = f"failed: {textwrap.shorten(why, 160, placeholder='…')}"
        say(f"{stage:10} {name:24} {told}")
        return sample

    def _measured(self, begun: Sample, seconds: float, rate: float) -> Sample:
        running = self.target.running(begun.configuration, self.workload.first)
        started = time.monotonic()
        with running:
            start_seconds = time.monotonic() - started
            warm = min(max(WARM_SECONDS, seconds / 8), seconds)
            before = {one: resources.cpu_seconds([one]) for one in running.processes()}
            delayed_before = delayed_seconds(before)
            busy_before, measured = resources.machine_busy_seconds(), time.monotonic()
            seen = self.workload.drive(running.port, warm, seconds, begun.connections, rate)
            if not seen.load.requests and seen.load.errors.keys() <= {"timeout"}:
                # Where others use the machine, a short trial may end before the first answer.
                seconds *= LONGER
                seen = self.workload.drive(running.port, 0, seconds, begun.connections, rate)
            load, answered = seen.load, max(seen.answered, 1)
            elapsed = time.monotonic() - measured
            busy = resources.machine_busy_seconds() - busy_before
            after = running.processes()
            # One that loads the application for the others may end when it has.
            failed = load.errors.keys() - {"timeout"} or load.unsaid
            if not before.keys() <= set(after) and failed:
                cut = _errors(load) if load.errors else f"{load.unsaid:,} {KINDS['read']}"
                raise ServerFailure(
                    f"a process of it ended under load ({cut}): {running.last_words()}"
                )
            left = before.keys() & after
            cpu = resources.cpu_seconds(after) - sum(before[one] for one in left)
            client = load.busy * load.seconds
            others = max(busy - cpu - client, 0) / elapsed / len(USABLE)
            delayed = max(delayed_seconds(left) - delayed_before, 0.0)
            memory = resources.memory(after)
            unanswered = load.errors.get("timeout", 0)
            # Whoever asks as fast as they can is still in the queue when time is up.
            errors = sum(load.errors.values()) - (0 if rate else unanswered)
            asked = load.requests + sum(load.errors.values()) - load.errors.get("status", 0)
            wrong = errors / max(asked, 1)
            judged = asked >= FEW or load.errors.keys() - {"timeout"}
            fails = wrong > WRONG and judged
            failure = f"{_errors(load)} of {asked:,} requests" if fails else ""
            if failure and "status" in load.errors:
                failure += self._example(running.port)
            if load.requests == 0:
                failure = f"it answered nothing in {seconds:.1f} s ({_errors(load)})"
        some = seen.times.total_count
        sample = replace(
            begun,
            seconds=round(load.seconds, 3),
            requests=load.requests,
            rate=round(load.rate, 2),
            least_us=seen.times.get_min_value() if some else 0.0,
            **{name: getattr(load, name) for name in ("mean_us", "p50_us", "p99_us", "max_us")},
            cpu_us=round(cpu / answered * 1e6, 2),
            delayed_us=round(delayed / answered * 1e6, 2),
            client_busy=round(client / elapsed, 3),
            others_busy=round(others, 3),
            pss=memory.pss,
            processes=memory.processes,
            start_seconds=round(start_seconds, 3),
            wrong=round(wrong, 5),
            failure=failure,
        )
        values = asdict(sample) | ({"histogram": histogram.encode(seen.times)} if some else {})
        del values["configuration"]
        self.store.add(
            "sample",
            experiment=EXPERIMENT,
            scenario=f"{sample.stage} {sample.connections}",
            server=sample.configuration.name,
            options=sample.configuration.values(),
            **values,
        )
        return sample

    def _example(self, port: int) -> str:
        """Which of the first few requests gets a wrong answer, and which."""
        for request in list(dict.fromkeys(self.workload.requests))[:EXAMPLES]:
            with contextlib.suppress(ServerFailure, OSError), Connection(port) as connection:
                status = connection.ask(request.octets())[0].status
                if status >= 400 and status != request.status:
                    return f"; {request.method} {request.target} is answered {status}"
        return ""


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def delayed_seconds(processes: Iterable[int]) -> float:
    """How long threads of these processes could run and had no core; 0 if the kernel does not say.

    On a machine that is busy with something else this is not the application's waiting.
    """
    total = 0
    for process in processes:
        for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                total += int(file.read_text(encoding="ascii").split()[1])
    return total / 1e9


def _errors(load: Load) -> str:
    return ", ".join(f"{count:,} {KINDS[kind]}" for kind, count in load.errors.items()) or "silence"
