"""Runs the load client `fetch.c`, and reads its trace: times and outcome of every request."""

from __future__ import annotations

import tempfile
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.clients.load import KINDS, Job, Load
from loadtests.clients.native import compiled
from loadtests.clients.program import run
from loadtests.errors import LabError
from loadtests.measure.waiting import patience

SOURCE = Path(__file__).with_name("fetch.c")
PATIENCE = patience(5.0)
"""Seconds that what is unanswered at the end may take."""
MAGIC = 0x3165636172746C
FIELDS = 9
RIGHT = 0


class Trace:
    """The requests in order of their intended times, a column for each field.

    Times are microseconds from the beginning of the run, 0 for what never happened: `intended` is
    when a request should have been sent, `sent` when connect(2) was called for it, `connected` when
    the connection was there and the request went out, `answered` when the first 15 octets of the
    answer had come, `ended` when all of it had, or when it was given up. On a connection that was
    there `connected` is `sent`, and without a clock `intended` is `sent`, too.

    `octets` came, head included; `status` is that of the answer, 0 without one; `kind` is an index
    of KINDS; `target` a number in the order of the visits, from 0.

    `began` is the beginning by time.monotonic(), `seconds` what the run took, and `stopped` says
    that too many requests were unanswered.
    """

    def __init__(self, numbers: array[int], *, began: float, seconds: float, stopped: bool) -> None:
        self.began = began
        self.seconds = seconds
        self.stopped = stopped
        columns = [numbers[field::FIELDS] for field in range(FIELDS)]
        self.intended, self.sent, self.connected, self.answered, self.ended = columns[:5]
        self.octets, self.status, self.kind, self.target = columns[5:]

    def __len__(self) -> int:
        return len(self.kind)

    def _between(self, begin: array[int], end: array[int]) -> list[int]:
        return [end[row] - begin[row] for row, kind in enumerate(self.kind) if kind == RIGHT]

    def connect(self) -> list[int]:
        """Microseconds from the SYN to the connection, of the requests that succeeded."""
        return self._between(self.sent, self.connected)

    def processing(self) -> list[int]:
        """Microseconds from the request to the end of the answer."""
        return self._between(self.connected, self.ended)

    def answer(self) -> list[int]:
        """Microseconds from the intended time to the first 15 bytes of the answer."""
        return self._between(self.intended, self.answered)

    def total(self) -> list[int]:
        """Microseconds from the intended time to the end of the answer."""
        return self._between(self.intended, self.ended)

    def failed(self) -> dict[str, int]:
        """Numbers of failed requests, by kind."""
        counts = Counter(self.kind)
        return {name: counts[kind] for kind, name in enumerate(KINDS) if kind and counts[kind]}


def read_trace(path: Path) -> Trace:
    """The trace that `fetch` wrote. Raises LabError if it is none, or is cut off."""
    numbers = array("Q")
    numbers.frombytes(path.read_bytes())
    if len(numbers) < FIELDS or numbers[0] != MAGIC or len(numbers) != FIELDS * (numbers[1] + 1):
        raise LabError(f"the trace {path.name} is not whole")
    _, _, began, lasted, stopped = numbers[:5]
    rows = numbers[FIELDS:]
    return Trace(rows, began=began / 1e9, seconds=lasted / 1e9, stopped=bool(stopped))


@dataclass(frozen=True)
class Traced:
    """Result of a run: the whole load, and every request."""

    load: Load
    trace: Trace


def drive(
    port: int,
    seconds: float,
    connections: int,
    visits: Sequence[Sequence[str]],
    *,
    requests: int = 0,
    keep: bool = True,
    every: float = 0,
    patience: float = 0,
    options: Sequence[str] = (),
    launcher: Sequence[str] = (),
    core: int | None = None,
) -> Load:
    """Makes visits, each of targets that are asked for one after the other, from the first on.

    It ends after so many `requests` (0: any number) or `seconds`. With `keep` the next visit is
    made on the same connection. With `every` it begins `connections` visits whenever so many
    seconds have passed. `options` are further ones of `fetch.c`, and `patience` is the time that
    they give to what is unanswered. `launcher` begins the command, which runs on `core`, or
    anywhere if that is None.
    """
    pace = f"{every * 1000:.6f}" if every else "keep" if keep else "close"
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
        file.writelines(" ".join(visit) + "\n" for visit in visits)
        file.flush()
        command = [*launcher, str(compiled.program(SOURCE)), *options]
        command += [str(port), str(connections), str(requests), f"{seconds:g}", pace, file.name]
        return run(command, seconds + patience, core)


def traced(
    port: int,
    seconds: float,
    connections: int,
    visits: Sequence[Sequence[str]],
    *,
    requests: int = 0,
    keep: bool = False,
    every: float = 0,
    rate: float = 0,
    most_unanswered: int = 0,
    give_up: float = 0,
    think: float = 0,
    receive: int = 0,
    old: bool = False,
    host: str = "127.0.0.1",
    patience: float = PATIENCE,
    launcher: Sequence[str] = (),
    core: int | None = None,
) -> Traced:
    """As `drive`, with what became of each request.

    Nothing is begun after `requests` or `seconds`; what is unanswered then has `patience` more
    seconds, and counts as timed out. A request that failed counts as one of `requests`.

    Open loads, whose times count from when a request should have been sent: with `every` so many
    `connections` begin each time; with `rate` one begins at a time, so many a second. With
    `most_unanswered` of these the run stops, and says so (`Trace.stopped`). Without it no more than
    six times `connections` are there at once, and what should have been begun counts as timed out.
    With `give_up` a client leaves so many seconds after the intended time, which is a timeout, too;
    what this client is too slow to begin is not in the trace then.

    Closed loads, whose times count from the connection, or from the request on one that is kept:
    `connections` at once, each with a pause of `think` seconds behind every answer.

    With `receive` no more bytes are received at once (up to 65,536, and they are copied); `old`
    requests are HTTP/1.0. `host` is an IPv4 address.
    """
    if rate:
        connections, every = 1, 1 / rate
        requests = requests or round(rate * seconds)
    options = ["-a", host, "-p", f"{patience:g}", "-u", str(most_unanswered)]
    options += ["-w", f"{think * 1000:g}", "-r", str(receive), "-g", f"{give_up:g}"]
    if old:
        options.append("-o")
    with tempfile.NamedTemporaryFile() as file:
        load = drive(
            port,
            seconds,
            connections,
            visits,
            requests=requests,
            keep=keep,
            every=every,
            patience=patience,
            options=[*options, "-t", file.name],
            launcher=launcher,
            core=core,
        )
        return Traced(load, read_trace(Path(file.name)))


def drive_job(job: Job, core: int | None) -> Load:
    """Does a job; of the times the mean to the beginning of an answer, too."""
    visits = [[job.target]]
    found = traced(
        job.port, job.seconds, job.connections, visits, keep=job.keep, host=job.host, core=core
    )
    return found.load


def missing() -> str:
    """Why it cannot run; empty if it can."""
    try:
        compiled.program(SOURCE)
    except LabError as error:
        return str(error)
    return ""
