"""wrk, the client of most comparisons, and the parser of its output."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.errors import LabError
from loadtests.pin import pinned

SCRIPT = Path(__file__).with_name("wrk.lua")
MARK = "loadtests "
SATURATED = 0.97
"""The share of its core from which on the client, not the server, limits requests per second."""

DEAF = ["sh", "-c", 'trap "" INT && exec "$@"', "sh"]
"""The beginning of a command that an interrupt does not end before it listens for one."""


@dataclass(frozen=True)
class Load:
    """What one run of a client saw.

    `octets` were received, latencies are in microseconds, `busy` is the client's share of one core.
    `answer_us` is the mean time to the beginning of an answer, where the client looks for it.

    wrk 4.1 corrects its latencies for coordinated omission: a stall counts for every request that
    the connection would have sent meanwhile.
    """

    requests: int
    seconds: float
    octets: int
    mean_us: float
    p50_us: float
    p99_us: float
    max_us: float
    errors: dict[str, int]
    busy: float
    answer_us: float = 0.0

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


def parse(output: str, cpu_seconds: float = 0.0) -> Load:
    """Reads the line that our script writes at the end of wrk's output.

    Raises LabError, with what wrk said instead, if there is none.
    """
    for line in output.splitlines():
        if line.startswith(MARK):
            said = json.loads(line[len(MARK) :])
            seconds = said["microseconds"] / 1e6
            kinds = ("connect", "read", "write", "status", "timeout")
            return Load(
                requests=said["requests"],
                seconds=seconds,
                octets=said["bytes"],
                mean_us=said["mean_us"],
                p50_us=said["p50_us"],
                p99_us=said["p99_us"],
                max_us=said["max_us"],
                errors={kind: said[kind] for kind in kinds if said[kind]},
                busy=cpu_seconds / seconds if seconds else 0.0,
                answer_us=said.get("answer_us", 0.0),
            )
    raise LabError(f"wrk gave no result; it said: {output.strip() or 'nothing'}")


def version() -> str:
    """wrk's own version. Raises LabError if wrk is not installed."""
    if shutil.which("wrk") is None:
        raise LabError("wrk, the client, is not installed (Debian: apt install wrk)")
    done = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False)
    return " ".join(done.stdout.split()[:2])


def drive(
    port: int,
    seconds: float,
    connections: int,
    *,
    depth: int = 1,
    target: str = "/",
    headers: Sequence[tuple[str, str]] = (),
    body: bytes = b"",
    core: int | None = None,
) -> Load:
    """Loads the server on `port` for `seconds`, fractions allowed, from one thread of wrk.

    wrk runs on `core`, or anywhere if that is None.
    """
    version()
    command = [
        *pinned(core),
        *DEAF,
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{math.ceil(seconds)}",
        "-s",
        str(SCRIPT),
    ]
    for name, value in headers:
        command += ["-H", f"{name}: {value}"]
    command += [f"http://127.0.0.1:{port}{target}", "--", str(depth)]
    with tempfile.NamedTemporaryFile() as body_file:
        if body:
            body_file.write(body)
            body_file.flush()
            command += ["POST", target, body_file.name]
        else:
            command += ["GET", target]
        return run(command, seconds, interrupt=seconds != math.ceil(seconds))


def run(command: list[str], seconds: float, *, interrupt: bool = False) -> Load:
    """Runs a client that ends with our line, by itself or by an interrupt after so many seconds."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    timers = [threading.Timer(seconds + 30, process.kill)]
    if interrupt:
        # wrk counts in whole seconds only, but ends well and reports when it is interrupted. On a
        # machine so busy that it has not begun by then, it takes its whole seconds.
        timers.append(threading.Timer(seconds, process.send_signal, [signal.SIGINT]))
    for timer in timers:
        timer.start()
    try:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return parse(output, usage.ru_utime + usage.ru_stime)
    finally:
        for timer in timers:
            timer.cancel()
        if process.returncode is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
