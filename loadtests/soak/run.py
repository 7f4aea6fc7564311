"""One server under mixed load, from its start to the verdict."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from loadtests.clients.steady.known_requests import Wrong, tidying
from loadtests.programs import ROOT
from loadtests.soak import gauge
from loadtests.soak.client import Client, Deadlines, World
from loadtests.soak.clients import COMPANY, Killer, company
from loadtests.soak.dialogue import Dialogue, Lost
from loadtests.soak.gate import Gate
from loadtests.soak.journal import Journal, unexpected_words
from loadtests.soak.tally import Deaths, Tally
from loadtests.store import Store
from tests.testkit.server import Server

APPLICATION = "loadtests/apps/mixed.py"

#: How each mode is started.
OPTIONS = {
    "single": (),
    "forking": ("--workers", "3"),
    "threading": ("--threads", "8"),
    "gevent": (),
}

ENVIRONMENT = {
    # A worker that aborts says so on standard error, and not in the middle of a line of somebody
    # else's in the log.
    "PYTHONFAULTHANDLER": "1",
    # glibc's default. Saying it keeps glibc from raising it as it likes, up to 64 MiB for each
    # thread: that would hide what is kept by mistake.
    "MALLOC_TRIM_THRESHOLD_": str(128 << 10),
}

#: How long clients may take to come to rest, and the server to close their connections.
PATIENCE = 60.0


@dataclass(frozen=True)
class Plan:
    """Plan of a soak: `seconds` of load and how often something happens in them."""

    mode: str
    seconds: float
    #: Load before the first quiet moment; part of `seconds`.
    warm_up: float
    #: Quiet moments after the first.
    rests: int
    #: From one reading to the next.
    interval: float
    #: From the end of one worker to the next.
    killing: float
    seed: int
    application: str = APPLICATION

    @property
    def settled(self) -> bool:
        """Whether memory can be judged."""
        return self.seconds >= 120

    @classmethod
    def of(cls, mode: str, seconds: float, application: str = APPLICATION) -> Plan:
        """The usual plan for so many seconds."""
        return cls(
            mode=mode,
            seconds=seconds,
            warm_up=min(60.0, seconds / 4),
            rests=4 if seconds >= 60 else 1,
            interval=min(5.0, seconds / 40),
            killing=min(15.0, seconds / 8),
            seed=Random().randrange(1 << 32),
            application=application,
        )


class Soak:
    """Runs a plan. `say` is told how it goes."""

    def __init__(self, plan: Plan, store: Store, say: Callable[[str], None]) -> None:
        self.plan = plan
        self.store = store
        self.say = say
        self.failures: list[str] = []
        self.readings: list[gauge.Reading] = []
        self.tally = Tally(self._tell)
        self.gate = Gate(sum(COMPANY.values()) + (plan.mode == "forking"))
        self.loaded = 0.0

    def _tell(self, record: str, **values: object) -> None:
        self.store.add(record, **{"mode": self.plan.mode, **values})

    def run(self) -> list[str]:
        """Do it; returns what was wrong, one thing a line."""
        self._tell("soak", **asdict(self.plan))
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            logs = {name: Path(folder) / f"{name}.log" for name in ("error", "access")}
            deadlines = Deadlines()
            server = Server(
                str(ROOT / self.plan.application),
                self.plan.mode,
                *OPTIONS[self.plan.mode],
                *deadlines.options(),
                # Clients that have closed their half are to be answered.
                "--abort-on-close=off",
                f"--error-log={logs['error']}",
                f"--access-log={logs['access']}",
                tracebacks=True,
                env=ENVIRONMENT,
            )
            with server:
                self.server = server
                self.journal = Journal(logs["error"])
                self._load(deadlines)
                self._stop()
            self._read_logs(logs["access"])
        self.failures += gauge.growth(self.readings, settled=self.plan.settled)
        self._tell(
            "outcome",
            seconds=round(self.loaded, 1),
            right=dict(self.tally.right.most_common()),
            natures=dict(self.tally.natures),
            lost=dict(self.tally.lost.most_common()),
            wrong=dict(self.tally.wrong.most_common()),
            faults=dict(self.tally.faults.most_common()),
            log=dict(self.journal.counts.most_common()),
            killed=self.killed,
            failures=self.failures,
        )
        return self.failures

    # Load

    def _load(self, deadlines: Deadlines) -> None:
        world = World(self.server.port, self.tally, Deaths(), self.gate, deadlines)
        clients: list[Client] = company(world, self.plan.seed)
        killer = Killer(world, "killer", self.plan.seed, self.plan.killing)
        if self.plan.mode == "forking":
            clients.append(killer)
        for client in clients:
            client.thread.start()
        rest = (self.plan.seconds - self.plan.warm_up) / self.plan.rests
        try:
            for seconds in (self.plan.warm_up, *[rest] * self.plan.rests):
                if not self._stretch(seconds):
                    break
                self.gate.close()
                for client in clients:
                    client.interrupt()
                if not self.gate.wait(PATIENCE):
                    self.failures.append("a client does not come to rest")
                    break
                self._be_quiet()
                self.gate.open()
        finally:
            self.gate.end()
            for client in clients:
                client.thread.join(PATIENCE)
            self.killed = killer.killed

    def _stretch(self, seconds: float) -> bool:
        """Load for so long, with readings; False if the server has ended."""
        begun = time.monotonic()
        while (elapsed := time.monotonic() - begun) < seconds:
            time.sleep(min(self.plan.interval, seconds - elapsed))
            if self.server.process.poll() is not None:
                self.failures.append(f"the server has ended, code {self.server.process.returncode}")
                return False
            self._take(self.loaded + time.monotonic() - begun)
            self.journal.read()
        self.loaded += time.monotonic() - begun
        return True

    def _take(self, at: float, *, quiet: bool = False) -> gauge.Reading:
        reading = gauge.read(self.server.process.pid, self.server.port, round(at, 1), quiet=quiet)
        self.readings.append(reading)
        self._tell("reading", **reading.record())
        wrong = sum(self.tally.wrong.values())
        self.say(
            f"{at:6.0f} s of {self.plan.seconds:.0f}  {self.tally.total():10,} right, {wrong} wrong"
            f"  {reading.pss / 2**20:6.1f} MiB  {reading.descriptors:4} descriptors"
            f"{'  quiet' if quiet else ''}"
        )
        return reading

    def _be_quiet(self) -> None:
        """Wait until nothing is left of the clients, and all workers are there; take a reading."""
        processes = 1 + self.server.workers
        end = time.monotonic() + PATIENCE
        while True:
            reading = gauge.read(self.server.process.pid, self.server.port, 0)
            if reading.connections == 0 and reading.processes == processes:
                break
            if time.monotonic() > end:
                self.failures.append(
                    f"{reading.connections} connections and {reading.processes} processes are left "
                    "when all clients have gone"
                )
                break
            time.sleep(0.1)
        self._tidy()
        self._take(self.loaded, quiet=True)

    def _tidy(self) -> None:
        """Have every process that serves give back what it does not need; wait for our leaving."""
        tidied: set[int] = set()
        dialogues = []
        end = time.monotonic() + PATIENCE
        while len(tidied) < self.server.workers and time.monotonic() < end:
            # Kept open, so that the next connection is somebody else's.
            dialogues.append(Dialogue(self.server.port))
            question = tidying(f"tidy{len(dialogues)}")
            dialogues[-1].say(question.request)
            try:
                dialogues[-1].answer(question)
            except (Wrong, Lost) as error:
                self.tally.count_wrong("tidies", str(error), question.request, b"")
            else:
                tidied.add(dialogues[-1].process)
        for dialogue in dialogues:
            dialogue.close()
        if len(tidied) < self.server.workers:
            self.failures.append("a worker is not reached by any of so many connections")
        while gauge.connections(self.server.port) and time.monotonic() < end:
            time.sleep(0.02)

    # The end

    def _stop(self) -> None:
        if lines := unexpected_words(self.server.log()):
            self.failures.append(f"unexpected on standard error: {lines[:20]}")
        try:
            self.server.stop()
        except AssertionError as error:
            self.failures.append(str(error))

    def _read_logs(self, access: Path) -> None:
        self.journal.read(end=True)
        self.failures += [f"unexpected in the log: {entry}" for entry in self.journal.unexpected]
        replaced = self.journal.counts["worker replaced"]
        if replaced != self.killed:
            self.failures.append(f"{self.killed} workers were killed, and {replaced} replaced")
        with access.open("rb") as file:
            if any(b"/smuggled" in line for line in file):
                self.failures.append("a request behind a refused one was run")
        wrong = sum(self.tally.wrong.values())
        if wrong:
            self.failures.append(
                f"{wrong} answers were wrong: {'; '.join(self.tally.first_wrong[:5])}"
            )
        if self.tally.total() == 0:
            self.failures.append("not one request was answered")


def run(plan: Plan, path: Path, run: str) -> list[str]:
    """Runs a plan by itself, for tests: says how it goes on standard error."""
    store = Store(path, run)
    try:
        return Soak(plan, store, lambda line: print(line, file=sys.stderr, flush=True)).run()
    finally:
        store.close()
