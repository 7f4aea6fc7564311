"""ApacheBench: HTTP/1.0, each request on a connection of its own or on kept ones."""

from __future__ import annotations

import math
import re
import tempfile
from pathlib import Path

from loadtests import programs
from loadtests.clients.client import Job
from loadtests.clients.external.wrk import DEAF
from loadtests.clients.load import Load, happened
from loadtests.clients.program import no_result, number, outcome

MOST_REQUESTS = 2_000_000
"""Requests for which ab allocates memory before it begins; it ends by time."""


def parse(output: str, percentages: str = "", cpu_seconds: float = 0.0) -> Load:
    """Reads what it prints, and the file of percentages that `-e` writes.

    Times are from the beginning of a connection, or of the next request on it, to the end of the
    answer. A connection that ends without an answer is a complete request to it, one that is
    refused a failure to receive. Raises LabError if there is no result.
    """
    complete = int(number(r"^Complete requests: +(\d+)", output))
    seconds = number(r"^Time taken for tests: +([\d.]+)", output)
    if not re.search(r"^Complete requests:", output, re.MULTILINE):
        raise no_result("ab", output)
    errors = {
        "connect": int(number(r"\(Connect: (\d+)", output)),
        "read": int(number(r"Receive: (\d+)", output)),
        "status": int(number(r"^Non-2xx responses: +(\d+)", output)),
    }
    rows = dict(line.split(",") for line in percentages.splitlines() if line[:1].isdigit())

    def quantile(percent: int) -> float:
        return float(rows.get(str(percent), 0)) * 1000

    return Load(
        requests=max(complete - errors["status"] - errors["read"], 0),
        seconds=seconds,
        octets=int(number(r"^Total transferred: +(\d+)", output)),
        mean_us=number(r"^Time per request: +([\d.]+) \[ms\] \(mean\)", output) * 1000,
        p50_us=quantile(50),
        p99_us=quantile(99),
        max_us=quantile(100),
        errors=happened(errors),
        busy=cpu_seconds / seconds if seconds else 0.0,
    )


def perform(job: Job, core: int | None) -> Load:
    """Does a job."""
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as file:
        command = [*DEAF, programs.path("ab"), "-q", "-l", "-r"]
        if job.keep:
            command.append("-k")
        command += ["-e", file.name, "-s", "5"]
        command += ["-t", str(math.ceil(job.seconds)), "-n", str(MOST_REQUESTS)]
        command += ["-c", str(job.connections), job.url]
        whole = job.seconds == math.ceil(job.seconds)
        output, cpu_seconds = outcome(command, job.seconds, core, interrupt=not whole)
        return parse(output, Path(file.name).read_text(encoding="ascii"), cpu_seconds)
