"""h2load of nghttp2, speaking HTTP/1.1, on connections that are kept."""

from __future__ import annotations

import re

from loadtests import programs
from loadtests.clients.client import Job
from loadtests.clients.load import Load, happened
from loadtests.clients.program import no_result, outcome
from loadtests.errors import LabError

UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6}
"""Microseconds."""


def microseconds(text: str) -> float:
    """A time as it writes it: `238us`, `2.42ms`, `1.00s`."""
    found = re.fullmatch(r"([\d.]+)([a-z]+)", text)
    return float(found.group(1)) * UNITS[found.group(2)] if found else 0.0


def parse(output: str, cpu_seconds: float = 0.0) -> Load:
    """Reads what it prints. It tells mean and highest of the times, and no quantiles.

    Raises LabError if there is no result.
    """
    ended = re.search(r"^finished in (\S+),", output, re.MULTILINE)
    counts = re.search(
        r"^requests: \d+ total, (\d+) started, \d+ done, \d+ succeeded, \d+ failed, (\d+) errored, "
        r"(\d+) timeout",
        output,
        re.MULTILINE,
    )
    codes = re.search(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", output, re.M)
    if ended is None or counts is None or codes is None:
        raise no_result("h2load", output)
    seconds = microseconds(ended.group(1)) / 1e6
    right, *others = map(int, codes.groups())
    started, errored, late = map(int, counts.groups())
    if started == 0 and errored == 0:
        raise no_result("h2load", output)
    errors = {"read": errored, "status": sum(others), "timeout": late}
    traffic = re.search(r"^traffic: \S+ \((\d+)\) total", output, re.MULTILINE)
    times = re.search(r"^time for request: +(\S+) +(\S+) +(\S+)", output, re.MULTILINE)
    _, highest, mean = map(microseconds, times.groups()) if times else (0.0, 0.0, 0.0)
    return Load(
        requests=right,
        seconds=seconds,
        octets=int(traffic.group(1)) if traffic else 0,
        mean_us=mean,
        max_us=highest,
        errors=happened(errors),
        busy=cpu_seconds / seconds if seconds else 0.0,
    )


def perform(job: Job, core: int | None) -> Load:
    """Does a job."""
    if not job.keep:
        raise LabError("h2load does not end its connections")
    command = [programs.path("h2load"), "--h1", "-t", "1", "-N", "5"]
    command += ["-D", f"{round(job.seconds * 1000)}ms", "-c", str(job.connections), job.url]
    return parse(*outcome(command, job.seconds, core))
