"""What is done to the server of a soak: replaced, killed, out of disk space, at another time."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from loadtests.clients.native import compiled
from loadtests.clients.steady import known_requests as known
from loadtests.errors import LabError, ServerFailure
from loadtests.measure.waiting import HANG, wait_until
from loadtests.servers.poorhttp_server import PoorhttpServer
from loadtests.soak.client import DEATH, FULL, TURNOVER, Client, Turn

PHASES = (
    (0.2, ("upgrade", "kill", "clock", "disk")),
    (0.4, ("reload", "disk", "kill", "clock")),
    (1.0, ("kill", "disk", "clock")),
)
"""Until which part of the time which incidents take turns.

Workers live through the last phase, and the main process from the second on: what a process keeps
by mistake adds up in it.
"""
JUMPS = (0, 86_400, -86_400, 2_000_000_000)
"""Seconds by which the time of day differs from the real one, one after the other."""
CLOCK = Path(__file__).with_name("clock.c")
DISK = "256m"


def schedule(seconds: float, step: float) -> list[tuple[float, str]]:
    """When what happens, in seconds from the beginning."""
    planned, begins = [], 0.0
    for part, kinds in PHASES:
        times = [one * step for one in range(1, round(seconds / step) + 1)]
        due = [at for at in times if begins < at <= part * seconds]
        planned += [(at, kinds[number % len(kinds)]) for number, at in enumerate(due)]
        begins = part * seconds
    return planned


class Surroundings:
    """A small disk and a clock of its own for a server, as far as this machine allows.

    Attributes:
        folder: on the small disk, for what the server writes.
        environ: for the server.
        missing: incidents that are impossible here.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "disk"
        self.folder.mkdir()
        self.environ: dict[str, str] = {}
        self.missing: set[str] = set()
        self._shift = folder / "clock"
        self._shift.write_bytes(bytes(8))
        self._jumps = deque(JUMPS)
        self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            library = compiled.program(CLOCK, preloaded=True)
            self.environ = {"LD_PRELOAD": str(library), "SOAK_CLOCK": str(self._shift)}
        except LabError:
            self.missing.add("clock")
        options = f"size={DISK},mode=700".encode()
        if self._libc.mount(b"tmpfs", os.fsencode(self.folder), b"tmpfs", 0, options):
            self.missing.add("disk")

    def close(self) -> None:
        if "disk" not in self.missing:
            self._libc.umount2(os.fsencode(self.folder), 2)

    def jump(self) -> None:
        self._jumps.rotate(-1)
        # In place: the processes have it in their memory.
        with self._shift.open("r+b", buffering=0) as file:
            file.write(struct.pack("q", self._jumps[0]))

    @contextmanager
    def full(self) -> Iterator[None]:
        """Nothing can be written in this block."""
        filler = self.folder / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
            except OSError:
                # And what is left of the last page.
                pass
            try:
                yield
            finally:
                filler.unlink()


class Incidents:
    """All of them, as the turn of a client that meets the server at each time of the schedule.

    Args:
        planned: the schedule, in seconds under load; what is impossible is left out.
        error_log: read until a reload is over.
        pidfile: read after an upgrade.
        full: how long the disk is full, in seconds.

    Attributes:
        left: what is not done yet.
        replacing: whether the main process is being replaced.
    """

    def __init__(
        self,
        planned: list[tuple[float, str]],
        server: PoorhttpServer,
        around: Surroundings,
        error_log: Path,
        pidfile: Path,
        full: float,
    ) -> None:
        impossible = {*around.missing, *(("kill",) if server.workers == 1 else ())}
        self.planned = [one for one in planned if one[1] not in impossible]
        self.left = deque(self.planned)
        self._server, self._around, self._log, self._full = server, around, error_log, full
        self.replacing = False
        self._pidfile = pidfile
        self._begun = time.monotonic()
        self._spared = 0
        #: Each returns whether it has come to its end: clients may have to rest.
        self._acts: dict[str, Callable[[Client], bool]] = {
            "upgrade": self._upgrade,
            "reload": self._reload,
            "kill": self._kill,
            "disk": self._fill_disk,
            "clock": self._jump,
        }

    def turn(self) -> Turn:
        """What the client does again and again."""

        def incidents(client: Client) -> None:
            time.sleep(0.02)
            if self.left and time.monotonic() >= self._begun + self.left[0][0]:
                kind = self.left[0][1]
                try:
                    if not self._acts[kind](client):
                        return
                    client.world.count(("incidents", kind))
                except ServerFailure as error:
                    client.wrong(kind, str(error))
                self.left.popleft()

        return incidents

    def rested(self, seconds: float) -> None:
        """There was no load for so long."""
        self._begun += seconds

    def are_left(self, until: float) -> bool:
        """Whether one is not done that was planned before this time."""
        return bool(self.left) and self.left[0][0] <= until

    def done(self) -> str:
        """What is done, of how many of each kind."""
        planned, left = (Counter(kind for _, kind in one) for one in (self.planned, [*self.left]))
        return ", ".join(f"{kind} {planned[kind] - left[kind]}/{planned[kind]}" for kind in planned)

    def _upgrade(self, client: Client) -> bool:
        """Another main process takes over, with workers of its own."""
        with client.world.during(TURNOVER):
            self.replacing = True
            try:
                self._server.upgrade(self._pidfile, HANG)
            finally:
                self.replacing = False
        return True

    def _reload(self, client: Client) -> bool:
        """New workers take over."""
        with client.world.during(TURNOVER), self._log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            said = b""

            def over() -> bool:
                nonlocal said
                said += log.read()
                return re.search(rb"reloaded: |reload has failed|keeps serving", said) is not None

            os.kill(self._server.main, signal.SIGHUP)
            if not wait_until(over, HANG) or b"reloaded: " not in said:
                raise ServerFailure(f"it has not reloaded: {said[-300:]!r}")
        return True

    def _kill(self, client: Client) -> bool:
        """A worker dies, but never the first that was met: that one lives as long as it can."""
        end = time.monotonic() + HANG
        with ExitStack() as opened:
            # While workers are replaced there may be one alone.
            while time.monotonic() < end and not client.world.closing:
                time.sleep(0.01)
                dialogue = client.connect()
                client.dialogue = None
                opened.callback(dialogue.close)
                question = known.plain("small")(client.token(), client.random)
                dialogue.say(question.request)
                if not client.hear(dialogue, question):
                    continue
                client.dialogue = None
                process = dialogue.process
                if not self._spared or not Path(f"/proc/{self._spared}").exists():
                    self._spared = process
                elif process != self._spared:
                    client.dialogue = dialogue
                    with client.world.during(DEATH):
                        client.ask(client.make(known.DYING))
                    client.world.count(("killed", "worker"))
                    return True
        if client.world.closing:
            return False
        raise ServerFailure("only one worker answers")

    def _jump(self, client: Client) -> bool:
        """The server has another time of day."""
        self._around.jump()
        return True

    def _fill_disk(self, client: Client) -> bool:
        """The disk of the access log and of temporary files is full for a while."""
        with client.world.during(FULL), self._around.full():
            time.sleep(self._full)
        return True
