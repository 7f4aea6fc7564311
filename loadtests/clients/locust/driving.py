"""A load by Locust, of our users or of those in the user's own file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from loadtests.clients.client import Job
from loadtests.clients.load import KINDS, Load, of_times
from loadtests.clients.locust import swarm
from loadtests.clients.locust.swarm import Outcome
from loadtests.errors import LabError

VISITOR = swarm.FOLDER / "visitor.py"


def drive(job: Job, core: int | None, workers: int = 0) -> Load:
    """Does a job with as many users as it has connections, in one process or in workers.

    Measured is from when all users are there. Octets are those of bodies. What Locust needs to
    start does not count for its processor time.
    """
    plan = {"seconds": job.seconds, "target": job.target, "keep": job.keep}
    url = f"http://{job.host}:{job.port}"
    users = max(job.connections, workers)
    return load(swarm.run([VISITOR], plan, url, users, workers, core, job.seconds))


def own(
    file: Path, url: str, users: int, seconds: float, workers: int = 0, core: int | None = None
) -> Load:
    """Runs somebody's own locustfile against `url`, for so many `seconds` with all users there.

    Raises LabError if it cannot be run, or if its users ask for nothing.
    """
    if not file.is_file():
        raise LabError(f"the locustfile {file} does not exist")
    files = [file.resolve(), swarm.RECORDER]
    found = load(swarm.run(files, {"seconds": seconds}, url, users, workers, core, seconds))
    if not found.requests and not found.errors:
        raise LabError(f"the users of {file.name} asked for nothing in {seconds:g} s")
    return found


def load(outcome: Outcome) -> Load:
    """The requests that ended while the load was measured."""
    times, octets, errors = [], 0, Counter[str]()
    for report in outcome.reports:
        rows = zip(report.ends, report.times, report.octets, report.kinds, strict=True)
        for end, time, size, kind in rows:
            if outcome.begun <= end <= outcome.ended:
                octets += size
                if kind:
                    errors[KINDS[kind]] += 1
                else:
                    times.append(time * 1000)
    return of_times(times, outcome.ended - outcome.begun, octets, errors, outcome.cpu)
