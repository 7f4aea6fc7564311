"""Load generators that are programs of their own: wrk, ab (ApacheBench), httperf and h2load.

wrk (with `wrk.lua`) is the client of most comparisons. ab speaks HTTP/1.0. httperf is driven as a
closed load: endless sessions that begin at once, without think time. h2load of nghttp2 keeps its
connections; it speaks HTTP/1.1, or HTTP/2 with several requests at once.
"""

from __future__ import annotations

import math
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from loadtests import programs
from loadtests.clients.load import Job, Load, counted
from loadtests.clients.program import no_result, outcome, run
from loadtests.errors import LabError
from loadtests.measure.waiting import patience

DEAF = ["env", "--ignore-signal=INT"]
"""The beginning of a command that an interrupt does not end before it listens for one."""


def _numbers(pattern: str, output: str, count: int = 1) -> list[float]:
    """So many numbers that a pattern finds in what a client prints; zeros if it finds nothing."""
    found = re.search(pattern, output, re.MULTILINE)
    return [float(number) for number in found.groups()] if found else [0.0] * count


def wrk_version() -> str:
    """wrk's own version. Raises LabError if wrk is not installed."""
    done = subprocess.run([programs.path("wrk"), "-v"], capture_output=True, text=True, check=False)
    return " ".join(done.stdout.split()[:2])


def wrk(job: Job, core: int | None) -> Load:
    """Does a job. What it received, its latencies and errors are those of wrk."""
    whole = math.ceil(job.seconds)
    command = [*DEAF, programs.path("wrk"), "-t1", f"-c{job.connections}", f"-d{whole}"]
    command += ["-s", str(Path(__file__).with_name("wrk.lua"))]
    for name, value in (*job.headers, *(() if job.keep else [("Connection", "close")])):
        command += ["-H", f"{name}: {value}"]
    command += [job.url, "--", str(job.depth)]
    with tempfile.NamedTemporaryFile() as file:
        file.write(job.body)
        file.flush()
        command += ["POST", job.target, file.name] if job.body else ["GET", job.target]
        return run(command, job.seconds, core, interrupt=job.seconds != whole)


MOST_REQUESTS = 2_000_000
"""Requests for which ab allocates memory before it begins; it ends by time."""


def parse_ab(output: str, percentages: str = "", cpu_seconds: float = 0.0) -> Load:
    """Reads what it prints, and the file of percentages that `-e` writes.

    Times are from the beginning of a connection, or of the next request on it, to the end of the
    answer. A connection that ends without an answer is a complete request to it, one that is
    refused a failure to receive. Raises LabError if there is no result.
    """
    complete = re.search(r"^Complete requests: +(\d+)", output, re.MULTILINE)
    if complete is None:
        raise no_result("ab", output)
    [seconds] = _numbers(r"^Time taken for tests: +([\d.]+)", output)
    [octets] = _numbers(r"^Total transferred: +(\d+)", output)
    [mean] = _numbers(r"^Time per request: +([\d.]+) \[ms\] \(mean\)", output)
    [refused] = _numbers(r"\(Connect: (\d+)", output)
    [unread] = _numbers(r"Receive: (\d+)", output)
    [wrong] = _numbers(r"^Non-2xx responses: +(\d+)", output)
    rows = dict(line.split(",") for line in percentages.splitlines() if line[:1].isdigit())
    return counted(
        max(int(complete[1]) - int(wrong) - int(unread), 0),
        seconds,
        int(octets),
        {"connect": int(refused), "read": int(unread), "status": int(wrong)},
        cpu_seconds,
        mean_us=mean * 1000,
        p50_us=float(rows.get("50", 0)) * 1000,
        p99_us=float(rows.get("99", 0)) * 1000,
        max_us=float(rows.get("100", 0)) * 1000,
    )


def ab(job: Job, core: int | None) -> Load:
    """Does a job, each request on a connection of its own or on kept ones."""
    whole = math.ceil(job.seconds)
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as file:
        command = [*DEAF, programs.path("ab"), "-q", "-l", "-r", *(["-k"] if job.keep else [])]
        command += ["-e", file.name, "-s", "5", "-t", str(whole), "-n", str(MOST_REQUESTS)]
        command += ["-c", str(job.connections), job.url]
        output, cpu_seconds = outcome(command, job.seconds, core, interrupt=job.seconds != whole)
        return parse_ab(output, Path(file.name).read_text(encoding="ascii"), cpu_seconds)


MOST_CONNECTIONS = 1000
"""The limit of httperf, which waits with select(2)."""
CALLS = 10_000_000
"""More than a session makes before it is interrupted."""
SESSIONS_PER_SECOND = 100_000

_HTTPERF_ERRORS = {
    "connect": ("connrefused", "fd-unavail", "addrunavail", "ftab-full"),
    "read": ("connreset", "other"),
    "timeout": ("client-timo", "socket-timo"),
}


def httperf_version() -> str:
    """The version of httperf, which prints it before a measurement only."""
    if programs.missing("httperf"):
        return ""
    command = [programs.path("httperf"), "--version", "--port", "1", "--timeout", "1"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=patience(10.0)
    )
    found = re.search(r"httperf-([\d.]+\d)", done.stdout)
    return found[1] if found else ""


def parse_httperf(output: str, cpu_seconds: float = 0.0) -> Load:
    """Reads what it prints. Of times it knows a mean, in tenths of a millisecond, and no others.

    Raises LabError if there is no result.
    """
    total = re.search(r"^Total: .* replies (\d+) test-duration ([\d.]+) s", output, re.MULTILINE)
    if total is None:
        raise no_result("httperf", output)
    replies = int(total[1])
    [right] = _numbers(r"^Reply status: .*2xx=(\d+)", output)
    [size] = _numbers(r"^Reply size \[B\]: .*\(total ([\d.]+)\)", output)
    times = _numbers(r"^Reply time \[ms\]: response ([\d.]+) transfer ([\d.]+)", output, 2)
    errors = {
        kind: int(sum(_numbers(rf"^Errors: .*\b{name} (\d+)", output)[0] for name in names))
        for kind, names in _HTTPERF_ERRORS.items()
    }
    errors["status"] = replies - int(right)
    octets = round(replies * size)
    mean = sum(times) * 1000
    return counted(int(right), float(total[2]), octets, errors, cpu_seconds, mean_us=mean)


def httperf(job: Job, core: int | None) -> Load:
    if job.connections > MOST_CONNECTIONS:
        raise LabError(f"httperf has no more than {MOST_CONNECTIONS:,} connections")
    command = [*DEAF, programs.path("httperf"), "--hog", "--timeout", "5"]
    command += ["--server", job.host, "--port", str(job.port), "--uri", job.target]
    command += ["--wsess", f"{job.connections},{CALLS},0", "--rate", str(SESSIONS_PER_SECOND)]
    if not job.keep:
        command += ["--http-version", "1.0"]
    return parse_httperf(*outcome(command, job.seconds, core, interrupt=True))


UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6}
"""Microseconds."""


LONGEST = 60.0
"""Seconds for a number of requests."""


def microseconds(text: str) -> float:
    """A time as h2load writes it: `238us`, `2.42ms`, `1.00s`."""
    found = re.fullmatch(r"([\d.]+)([a-z]+)", text)
    return float(found[1]) * UNITS[found[2]] if found else 0.0


def parse_h2load(output: str, cpu_seconds: float = 0.0) -> Load:
    """Reads what it prints. It tells mean and highest of the times, and no quantiles.

    Raises LabError if there is no result.
    """
    ended = re.search(r"^finished in (\S+),", output, re.MULTILINE)
    started, succeeded, errored, late = _numbers(
        r"^requests: \d+ total, (\d+) started, \d+ done, (\d+) succeeded, \d+ failed, "
        r"(\d+) errored, (\d+) timeout",
        output,
        4,
    )
    codes = _numbers(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", output, 4)
    if ended is None or (started == 0 and errored == 0):
        raise no_result("h2load", output)
    [octets] = _numbers(r"^traffic: \S+ \((\d+)\) total", output)
    times = re.search(r"^time for request: +(\S+) +(\S+) +(\S+)", output, re.MULTILINE)
    _, highest, mean = map(microseconds, times.groups()) if times else (0.0, 0.0, 0.0)
    return counted(
        # Of those whose time is over, the status is counted when their head has come.
        int(min(codes[0], succeeded)),
        microseconds(ended[1]) / 1e6,
        int(octets),
        {"read": int(errored), "status": int(sum(codes[1:])), "timeout": int(late)},
        cpu_seconds,
        mean_us=mean,
        max_us=highest,
    )


def h2load(job: Job, core: int | None) -> Load:
    """Does a job, by HTTP/1.1."""
    return h2load_with(job, core, ["--h1", "-N", "5"], job.url)


def h2load_with(
    job: Job, core: int | None, options: Sequence[str], url: str, requests: int = 0
) -> Load:
    """Does a job with further options, or instead of its time so many requests, to their end.

    A body comes from a file, again for each request.
    """
    if not job.keep:
        raise LabError("h2load does not end its connections")
    with tempfile.NamedTemporaryFile() as file:
        file.write(job.body)
        file.flush()
        command = [programs.path("h2load"), "-t", "1", *options]
        long = ["-n", str(requests)] if requests else ["-D", f"{round(job.seconds * 1000)}ms"]
        command += [*long, "-c", str(job.connections)]
        command += [*(["-d", file.name] if job.body else []), url]
        return parse_h2load(*outcome(command, LONGEST if requests else job.seconds, core))
