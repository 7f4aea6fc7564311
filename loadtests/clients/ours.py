"""Our clients in Python, each a process of its own."""

from __future__ import annotations

import platform
import sys

from loadtests.clients.client import Job
from loadtests.clients.load import Load
from loadtests.clients.program import run
from loadtests.programs import ROOT


def version() -> str:
    """That of Python."""
    return f"Python {platform.python_version()}"


def serial(job: Job, core: int | None) -> Load:
    """One request after the other, whatever the number of connections, each on one of its own."""
    return _perform("series", job, 1, core)


def threads(job: Job, core: int | None) -> Load:
    """A thread for each request, so many as there are connections, each on one of its own."""
    return _perform("threads", job, job.connections, core)


def _perform(way: str, job: Job, connections: int, core: int | None) -> Load:
    # By its path it would have its own folder, where the other clients lie, before the library.
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    start += "from loadtests.clients.asker import main; main()"
    command = [sys.executable, "-c", start, way, job.host, str(job.port)]
    command += [job.target, str(connections), str(job.seconds)]
    return run(command, job.seconds, core)
