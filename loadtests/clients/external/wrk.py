"""wrk, the client of most comparisons."""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from loadtests.clients.client import Job
from loadtests.clients.load import Load
from loadtests.clients.program import run
from loadtests.errors import LabError

SCRIPT = Path(__file__).with_name("wrk.lua")
DEAF = ["sh", "-c", 'trap "" INT && exec "$@"', "sh"]
"""The beginning of a command that an interrupt does not end before it listens for one."""


def missing() -> str:
    """Why wrk cannot run; empty if it can."""
    return (
        "" if shutil.which("wrk") else "wrk, the client, is not installed (Debian: apt install wrk)"
    )


def version() -> str:
    """wrk's own version. Raises LabError if wrk is not installed."""
    if reason := missing():
        raise LabError(reason)
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
    host: str = "127.0.0.1",
    core: int | None = None,
) -> Load:
    """Loads the server on `port` for `seconds`, fractions allowed, from one thread of wrk.

    wrk runs on `core`, or anywhere if that is None.
    """
    version()
    command = [
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
    command += [f"http://{host}:{port}{target}", "--", str(depth)]
    with tempfile.NamedTemporaryFile() as body_file:
        if body:
            body_file.write(body)
            body_file.flush()
            command += ["POST", target, body_file.name]
        else:
            command += ["GET", target]
        return run(command, seconds, core, interrupt=seconds != math.ceil(seconds))


def perform(job: Job, core: int | None) -> Load:
    """Does a job. What it received, its latencies and errors are those of wrk."""
    headers = () if job.keep else (("Connection", "close"),)
    return drive(
        job.port,
        job.seconds,
        job.connections,
        target=job.target,
        headers=headers,
        host=job.host,
        core=core,
    )
