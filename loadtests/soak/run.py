"""Runs one server under mixed load, from its start to the verdict."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from loadtests.clients.steady.known_requests import Wrong, tidying
from loadtests.errors import ServerFailure
from loadtests.measure.waiting import HANG, patience
from loadtests.programs import ROOT
from loadtests.servers.certificate import certificate
from loadtests.servers.poorhttp_server import PoorhttpServer
from loadtests.soak import gauge
from loadtests.soak.client import DEADLINES, TURNOVER, Client, Dialogue, Lost, NoRoom, World
from loadtests.soak.clients import COMPANY, dead
from loadtests.soak.error_log_check import ErrorLogCheck, unexpected_words
from loadtests.soak.incidents import PHASES, Incidents, Surroundings, schedule
from loadtests.soak.protocols import company
from loadtests.store import Store

SOCKETS = "--mount", "/sockets=loadtests/apps/sockets.py"
EVENTS = "--mount", "/events=loadtests/apps/events.py"
REFORK = "--preload", "--refork-after=500", "--refork-after=5000"
#: How each mode is started.
OPTIONS = {
    "single": (),
    "forking": ("--workers", "3"),
    "threading": ("--workers", "2", "--threads", "auto", *REFORK, *SOCKETS, *EVENTS),
    "gevent": (*SOCKETS, *EVENTS),
    "asyncio": (
        *("--workers", "2", "--threads", "8", *SOCKETS, *EVENTS),
        *("--mount", "/live=loadtests/apps/sockets_asgi.py"),
    ),
}

ENVIRONMENT = {
    # A worker that aborts says so on standard error, and not in the middle of a line of somebody
    # else's in the log.
    "PYTHONFAULTHANDLER": "1",
    # glibc's default. Saying it keeps glibc from raising it as it likes, up to 64 MiB for each
    # thread: that would hide what is kept by mistake.
    "MALLOC_TRIM_THRESHOLD_": str(128 << 10),
}

#: Clients of each kind in a short soak, at most.
FEW = 2

#: Bytes of an access log from which on it is taken away.
LONG_LOG = 8 << 20

#: How long clients may take to come to rest, and the server to close their connections.
PATIENCE = patience(60.0)


@dataclass
class Plan:
    """Plan of a soak: `seconds` of load, and from them how often something happens.

    Load for `warm_up` comes before the first quiet moment, and `rests` others follow. A reading is
    taken every `interval` seconds, something is done to the server every `step` seconds. `settled`:
    whether the load is long enough to judge memory; if not, there are few clients of each kind.
    """

    mode: str
    seconds: float
    application: str = "loadtests/apps/mixed.py"
    seed: int = field(default_factory=lambda: Random().randrange(1 << 32))

    def __post_init__(self) -> None:
        self.settled = self.seconds >= 300
        # In a short one the first quiet moment is behind what replaces all workers.
        self.warm_up = 60.0 if self.settled else self.seconds / 2
        self.rests = 12 if self.settled else 1
        self.interval = min(5.0, max(0.5, self.seconds / 40))
        # A short one has each incident once.
        self.step = min(15.0, self.seconds / 5)
        # From when on the main process stays, and from when on workers stay as well.
        self.calm = [0.0]
        if self.settled:
            self.calm = [part * self.seconds + self.warm_up for part, _ in PHASES[:-1]]


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
        with tempfile.TemporaryDirectory(prefix="soak-") as name, ExitStack() as stack:
            folder = Path(name)
            around = Surroundings(folder)
            stack.callback(around.close)
            self.access = around.folder / "access.log"
            logs = {"error": folder / "error.log", "access": self.access}
            for file, text in certificate().items():
                (folder / file).write_text(text, encoding="ascii")
                (folder / file).chmod(0o600)
            self.pidfile = folder / "pid"
            self.server = PoorhttpServer(
                str(ROOT / self.plan.application),
                "--mode",
                self.plan.mode,
                *OPTIONS[self.plan.mode],
                *("--bind", "https://127.0.0.1:0", "--http2", "on"),
                *("--tls-certificate", str(folder / "both.pem"), "--pidfile", str(self.pidfile)),
                *("--temp-dir", str(around.folder)),
                *(f"--{name}-timeout={seconds:g}" for name, seconds in DEADLINES.items()),
                # Clients that have closed their half are to be answered.
                "--abort-on-close=off",
                # On a busy machine requests wait long: no reason to refuse them with 503.
                "--queue-timeout=0",
                *(f"--{name}-log={path}" for name, path in logs.items()),
                environ={**ENVIRONMENT, **around.environ},
            )
            with self.server:
                self.error_log = ErrorLogCheck(logs["error"])
                planned = schedule(self.plan.seconds, self.plan.step)
                full = min(3.0, self.plan.step / 2)
                self.incidents = Incidents(
                    planned, self.server, around, logs["error"], self.pidfile, full
                )
                self._load()
                if lines := unexpected_words(self.server.log()):
                    self.failures.append(f"unexpected on standard error: {lines[:20]}")
                try:
                    self.server.stop(tracebacks=True)
                except ServerFailure as error:
                    self.failures.append(str(error))
            self._judge()
        plan = self.plan
        self.failures += gauge.growth(self.readings, settled=plan.settled, calm=plan.calm)
        self._tell(
            "outcome",
            seconds=round(self.loaded, 1),
            **{name: dict(counts.most_common()) for name, counts in self.world.counts.items()},
            log=dict(self.error_log.counts.most_common()),
            failures=self.failures,
        )
        return self.failures

    def _load(self) -> None:
        many = COMPANY if self.plan.settled else COMPANY & Counter(dict.fromkeys(COMPANY, FEW))
        turns = [*many.elements(), *company(self.plan.mode), self.incidents.turn()]
        # Workers are forked anew whenever one has begun enough requests.
        always = (TURNOVER,) if "--preload" in OPTIONS[self.plan.mode] else ()
        self.world = world = World(self.server.ports, len(turns), self._tell, always)
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
                begun = time.monotonic()
                self._be_quiet()
                self.incidents.rested(time.monotonic() - begun)
                world.go_on()
        finally:
            world.end()
            for client in clients:
                client.thread.join(PATIENCE)

    def _stretch(self, seconds: float) -> bool:
        """Load for so long, with readings; False if the server has ended.

        Longer if not everything was done that should be: a short soak on a busy machine.
        """
        begun = time.monotonic()
        until = self.loaded + seconds
        while (elapsed := time.monotonic() - begun) < seconds or (
            self.incidents.are_left(until) and elapsed < seconds + HANG
        ):
            time.sleep(max(0.1, min(self.plan.interval, seconds - elapsed)))
            if not self.incidents.replacing and not self.server.lives():
                self.failures.append(f"the server has ended, {self.server.how_it_ended()}")
                return False
            self._take(self.loaded + time.monotonic() - begun)
            self.error_log.read()
            self._rotate()
        self.loaded += time.monotonic() - begun
        return True

    def _take(self, at: float, *, quiet: bool = False) -> None:
        reading = gauge.read(self.server.process.pid, self.server.port, round(at, 1), quiet=quiet)
        self.readings.append(reading)
        so_far = {name: self.world.total(name) for name in ("right", "incidents")}
        self._tell("reading", **vars(reading), **so_far)
        left = max(self.plan.seconds - at, 0)
        self.say(
            f"{at:.0f} s done, {left:.0f} s left; {self.world.total('right'):,} right, "
            f"{self.world.total('wrong')} wrong; {self.incidents.done()}; "
            f"{reading.pss / 2**20:.1f} MiB, {reading.descriptors} descriptors"
            f"{', quiet' if quiet else ''}"
        )

    def _rotate(self) -> None:
        """Take a long access log away, and look into it: its disk is small."""
        # A main process that ends does not expect the signal any more.
        with suppress(FileNotFoundError):
            if not self.incidents.replacing and self.access.stat().st_size >= LONG_LOG:
                self._look_into(self.access.rename(self.access.with_name("old")))
                os.kill(self.server.main, signal.SIGUSR1)

    def _look_into(self, access: Path) -> None:
        with access.open("rb") as file:
            if any(b"/smuggled" in line for line in file):
                self.failures.append("a request behind a refused one was run")

    def _be_quiet(self) -> None:
        """Wait until nothing is left of the clients, and all workers are there; take a reading."""
        pid, port = self.server.process.pid, self.server.port
        # With `preload` a process of its own has loaded the application, until there is a refork.
        more = 1 + ("--preload" in OPTIONS[self.plan.mode])
        processes = range(1 + self.server.workers, 1 + self.server.workers + more)
        end = time.monotonic() + PATIENCE
        while (left := gauge.read(pid, port, 0)).connections or left.processes not in processes:
            if time.monotonic() > end:
                self.failures.append(
                    f"{left.connections} connections and {left.processes} processes are left "
                    "when all clients have gone"
                )
                break
            time.sleep(0.1)
        self._tidy()
        calm = [one for one in self.readings if one.quiet and one.at >= self.plan.calm[-1]]
        if calm and self.plan.settled:
            # Threads of `auto` that have nothing to do end after 10 s.
            end = time.monotonic() + patience(15.0)
            while gauge.read(pid, port, 0).threads > calm[0].threads and time.monotonic() < end:
                time.sleep(0.2)
        self._take(self.loaded, quiet=True)

    def _tidy(self) -> None:
        """Have every process that serves give back what it does not need; wait for our leaving."""
        tidied: set[int] = set()
        end = time.monotonic() + PATIENCE
        with ExitStack() as opened:
            while len(tidied) < self.server.workers and time.monotonic() < end:
                # Kept open, so that the next connection is somebody else's.
                dialogue = Dialogue(self.server.ports["http"])
                opened.callback(dialogue.close)
                question = tidying(f"tidy{len(tidied)}")
                dialogue.say(question.request)
                try:
                    dialogue.answer(question)
                except (Wrong, Lost, NoRoom) as error:
                    self.world.count_wrong("tidies", str(error), question.request, b"")
                else:
                    tidied.add(dialogue.process)
        if len(tidied) < self.server.workers:
            self.failures.append("a worker is not reached by any of so many connections")
        while gauge.connections(self.server.port) and time.monotonic() < end:
            time.sleep(0.02)

    def _judge(self) -> None:
        """What logs and counts tell when the server has ended."""
        self.error_log.read(end=True)
        self.failures += [f"unexpected in the log: {entry}" for entry in self.error_log.unexpected]
        replaced = self.error_log.counts["worker replaced"]
        if replaced != (killed := self.world.total("killed")):
            self.failures.append(f"{killed} workers were killed, and {replaced} replaced")
        self._look_into(self.access)
        if self.incidents.left:
            self.failures.append(f"not everything was done: {self.incidents.left}")
        if wrong := self.world.total("wrong"):
            told = "; ".join(self.world.first_wrong[:5])
            self.failures.append(f"{wrong} answers were wrong: {told}")
        if self.world.total("right") == 0:
            self.failures.append("not one request was answered")
