"""httperf as a closed load: endless sessions that begin at once, without think time."""

from __future__ import annotations

import re
import shutil
import subprocess

from loadtests import programs
from loadtests.clients.client import Job
from loadtests.clients.external.wrk import DEAF
from loadtests.clients.load import Load, happened
from loadtests.clients.program import no_result, number, outcome
from loadtests.errors import LabError

MOST_CONNECTIONS = 1000
"""The limit of httperf, which waits with select(2)."""
CALLS = 10_000_000
"""More than a session makes before it is interrupted."""
SESSIONS_PER_SECOND = 100_000

_ERRORS = {
    "connect": ("connrefused", "fd-unavail", "addrunavail", "ftab-full"),
    "read": ("connreset", "other"),
    "timeout": ("client-timo", "socket-timo"),
}


def version() -> str:
    """The version of httperf, which prints it before a measurement only."""
    if shutil.which("httperf") is None:
        return ""
    command = ["httperf", "--version", "--port", "1", "--timeout", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    found = re.search(r"httperf-([\d.]+\d)", done.stdout)
    return found.group(1) if found else ""


def parse(output: str, cpu_seconds: float = 0.0) -> Load:
    """Reads what it prints. Of times it knows a mean, in tenths of a millisecond, and no others.

    Raises LabError if there is no result.
    """
    total = re.search(r"^Total: .* replies (\d+) test-duration ([\d.]+) s", output, re.MULTILINE)
    if total is None:
        raise no_result("httperf", output)
    replies, seconds = int(total.group(1)), float(total.group(2))
    right = int(number(r"^Reply status: .*2xx=(\d+)", output))
    errors = {
        kind: int(sum(number(rf"^Errors: .*\b{name} (\d+)", output) for name in names))
        for kind, names in _ERRORS.items()
    }
    errors["status"] = replies - right
    response = number(r"^Reply time \[ms\]: response ([\d.]+)", output)
    transfer = number(r"^Reply time \[ms\]: .* transfer ([\d.]+)", output)
    return Load(
        requests=right,
        seconds=seconds,
        octets=round(replies * number(r"^Reply size \[B\]: .*\(total ([\d.]+)\)", output)),
        mean_us=(response + transfer) * 1000,
        errors=happened(errors),
        busy=cpu_seconds / seconds if seconds else 0.0,
    )


def perform(job: Job, core: int | None) -> Load:
    """Does a job."""
    if job.connections > MOST_CONNECTIONS:
        raise LabError(f"httperf has no more than {MOST_CONNECTIONS:,} connections")
    command = [*DEAF, programs.path("httperf"), "--hog", "--timeout", "5"]
    command += ["--server", job.host, "--port", str(job.port), "--uri", job.target]
    command += ["--wsess", f"{job.connections},{CALLS},0", "--rate", str(SESSIONS_PER_SECOND)]
    if not job.keep:
        command += ["--http-version", "1.0"]
    return parse(*outcome(command, job.seconds, core, interrupt=True))
