"""Runs one server under mixed load, from its start to the verdict."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from loadtests.clients.steady.known_requests import Wrong, tidying
from loadtests.errors import ServerFailure
from loadtests.measure.waiting import patience
from loadtests.programs import ROOT
from loadtests.servers.poorhttp_server import PoorhttpServer
from loadtests.soak import gauge
from loadtests.soak.client import DEADLINES, Client, Dialogue, Lost, Turn, World
from loadtests.soak.clients import COMPANY, dead, killer
from loadtests.soak.error_log_check import ErrorLogCheck, unexpected_words
from loadtests.store import Store

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
PATIENCE = patience(60.0)


@dataclass
class Plan:
    """Plan of a soak: `seconds` of load, and from them how often something happens.

    Load for `warm_up` comes before the first quiet moment, and `rests` others follow. A reading is
    taken every `interval` seconds, a worker is ended every `killing` seconds. `settled`: whether
    the load is long enough to judge memory.
    """

    mode: str
    seconds: float
    application: str = "loadtests/apps/mixed.py"
    seed: int = field(default_factory=lambda: Random().randrange(1 << 32))

    def __post_init__(self) -> None:
        self.warm_up = min(60.0, self.seconds / 4)
        self.rests = 4 if self.seconds >= 60 else 1
        self.interval = min(5.0, self.seconds / 40)
        self.killing = min(15.0, self.seconds / 8)
        self.settled = self.seconds >= 120


class Soak:
    """Runs a plan. `say` is told how it goes."""

    def __init__(self, plan: Plan, store: Store, say: Callable[[str], None]) -> None:
        self.plan = plan
        self.store = store
        self.say = say
        self.failures: list[str] = []
        self.readings: list[gauge.Reading] = []
        self.loaded = 0.0

    def _tell(self, record: str, **values: object) -> None:
        self.store.add(record, **{"mode": self.plan.mode, **values})

    def run(self) -> list[str]:
        """Do it; returns what was wrong, one thing a line."""
        self._tell("soak", **vars(self.plan))
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            logs = {name: Path(folder) / f"{name}.log" for name in ("error", "access")}
            self.server = PoorhttpServer(
                str(ROOT / self.plan.application),
                "--mode",
                self.plan.mode,
                *OPTIONS[self.plan.mode],
                *(f"--{name}-timeout={seconds:g}" for name, seconds in DEADLINES.items()),
                # Clients that have closed their half are to be answered.
                "--abort-on-close=off",
                # On a busy machine requests wait long: no reason to refuse them with 503.
                "--queue-timeout=0",
                *(f"--{name}-log={path}" for name, path in logs.items()),
                environ=ENVIRONMENT,
            )
            with self.server:
                self.error_log = ErrorLogCheck(logs["error"])
                self._load()
                if lines := unexpected_words(self.server.log()):
                    self.failures.append(f"unexpected on standard error: {lines[:20]}")
                try:
                    self.server.stop(tracebacks=True)
                except ServerFailure as error:
                    self.failures.append(str(error))
            self._judge(logs["access"])
        self.failures += gauge.growth(self.readings, settled=self.plan.settled)
        self._tell(
            "outcome",
            seconds=round(self.loaded, 1),
            **{name: dict(counts.most_common()) for name, counts in self.world.counts.items()},
            log=dict(self.error_log.counts.most_common()),
            failures=self.failures,
        )
        return self.failures

    def _load(self) -> None:
        turns: list[Turn] = list(COMPANY.elements())
        if self.plan.mode == "forking":
            turns.append(killer(self.plan.killing))
        self.world = world = World(self.server.port, len(turns), self._tell)
        clients = [
            Client(world, f"{turn.__name__}{number}", self.plan.seed, turn)
            for number, turn in enumerate(turns)
        ]
        for client in clients:
            client.thread.start()
        rest = (self.plan.seconds - self.plan.warm_up) / self.plan.rests
        try:
            for seconds in (self.plan.warm_up, *[rest] * self.plan.rests):
                if not self._stretch(seconds):
                    break
                world.closing = True
                for client in clients:
                    if client.turn is dead:
                        client.interrupt()
                if not world.rest(PATIENCE):
                    self.failures.append("a client does not come to rest")
                    break
                self._be_quiet()
                world.go_on()
        finally:
            world.end()
            for client in clients:
                client.thread.join(PATIENCE)

    def _stretch(self, seconds: float) -> bool:
        """Load for so long, with readings; False if the server has ended.

        Longer if no worker has been killed yet that should be: a short soak on a busy machine.
        """
        begun = time.monotonic()
        while (elapsed := time.monotonic() - begun) < seconds or (
            self.plan.mode == "forking" and not self.world.total("killed") and elapsed < PATIENCE
        ):
            time.sleep(max(0.1, min(self.plan.interval, seconds - elapsed)))
            if self.server.process.poll() is not None:
                self.failures.append(f"the server has ended, code {self.server.process.returncode}")
                return False
            self._take(self.loaded + time.monotonic() - begun)
            self.error_log.read()
        self.loaded += time.monotonic() - begun
        return True

    def _take(self, at: float, *, quiet: bool = False) -> None:
        reading = gauge.read(self.server.process.pid, self.server.port, round(at, 1), quiet=quiet)
        self.readings.append(reading)
        self._tell("reading", **vars(reading))
        self.say(
            f"{at:6.0f} s of {self.plan.seconds:.0f}  {self.world.total('right'):10,} right, "
            f"{self.world.total('wrong')} wrong  {reading.pss / 2**20:6.1f} MiB  "
            f"{reading.descriptors:4} descriptors{'  quiet' if quiet else ''}"
        )

    def _be_quiet(self) -> None:
        """Wait until nothing is left of the clients, and all workers are there; take a reading."""
        pid, port, processes = self.server.process.pid, self.server.port, 1 + self.server.workers
        end = time.monotonic() + PATIENCE
        while (left := gauge.read(pid, port, 0)).connections or left.processes != processes:
            if time.monotonic() > end:
                self.failures.append(
                    f"{left.connections} connections and {left.processes} processes are left "
                    "when all clients have gone"
                )
                break
            time.sleep(0.1)
        self._tidy()
        self._take(self.loaded, quiet=True)

    def _tidy(self) -> None:
        """Have every process that serves give back what it does not need; wait for our leaving."""
        tidied: set[int] = set()
        end = time.monotonic() + PATIENCE
        with ExitStack() as opened:
            while len(tidied) < self.server.workers and time.monotonic() < end:
                # Kept open, so that the next connection is somebody else's.
                dialogue = Dialogue(self.server.port)
                opened.callback(dialogue.close)
                question = tidying(f"tidy{len(tidied)}")
                dialogue.say(question.request)
                try:
                    dialogue.answer(question)
                except (Wrong, Lost) as error:
                    self.world.count_wrong("tidies", str(error), question.request, b"")
                else:
                    tidied.add(dialogue.process)
        if len(tidied) < self.server.workers:
            self.failures.append("a worker is not reached by any of so many connections")
        while gauge.connections(self.server.port) and time.monotonic() < end:
            time.sleep(0.02)

    def _judge(self, access: Path) -> None:
        """What logs and counts tell when the server has ended."""
        self.error_log.read(end=True)
        self.failures += [f"unexpected in the log: {entry}" for entry in self.error_log.unexpected]
        replaced = self.error_log.counts["worker replaced"]
        if replaced != (killed := self.world.total("killed")):
            self.failures.append(f"{killed} workers were killed, and {replaced} replaced")
        with access.open("rb") as file:
            if any(b"/smuggled" in line for line in file):
                self.failures.append("a request behind a refused one was run")
        if wrong := self.world.total("wrong"):
            told = "; ".join(self.world.first_wrong[:5])
            self.failures.append(f"{wrong} answers were wrong: {told}")
        if self.world.total("right") == 0:
            self.failures.append("not one request was answered")
