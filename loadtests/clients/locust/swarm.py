"""A load by processes of Locust, of our users or of those in the user's own file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.clients.load import KINDS, Job, Load, of_times
from loadtests.clients.program import no_result
from loadtests.errors import LabError
from loadtests.measure.process_tree import ProcessTree
from loadtests.measure.waiting import patience
from loadtests.network.port import LOOPBACK, free_port
from loadtests.python_path import lab_folder
from loadtests.store import without_paths

FOLDER = Path(__file__).parent
START_SECONDS = patience(60.0)
"""For all processes to start, meet and end, on a machine that is busy."""


@dataclass(frozen=True)
class Report:
    """The requests of a process in the order of their ends, in seconds since the epoch.

    `times` are in milliseconds and `octets` without heads, as Locust has them; `kinds` are indices
    of KINDS, 0 for what was right. `cpu` are seconds of processor time while it was measured.
    """

    cpu: float
    ends: list[float]
    times: list[float]
    octets: list[int]
    kinds: list[int]


@dataclass(frozen=True)
class Outcome:
    """A run from its beginning to its end, and the processes that asked, in order."""

    begun: float
    ended: float
    cpu: float
    reports: list[Report]


def missing() -> str:
    """Why it cannot run; empty if it can."""
    return "" if version() else "locust is not installed (the extra `lab` of poorhttp)"


def version() -> str:
    """The installed version; empty if there is none."""
    # Only now: it is slow to load.
    import importlib.metadata

    try:
        return importlib.metadata.version("locust")
    except importlib.metadata.PackageNotFoundError:
        return ""


def drive(job: Job, core: int | None, workers: int = 0) -> Load:
    """Does a job with as many users as it has connections, in one process or in workers.

    Measured is from when all users are there and have asked once. Bytes are those of bodies. What
    Locust needs to start does not count for its processor time.
    """
    headers = {} if job.keep else {"Connection": "close"}
    plan = {"seconds": job.seconds, "target": job.target, "headers": headers}
    url = f"http://{job.host}:{job.port}"
    users = max(job.connections, workers)
    return load(run("Visitor", plan, url, users, workers, core, job.seconds))


def own(file: Path, url: str, users: int, seconds: float) -> Load:
    """Runs somebody's own locustfile against `url`, for so many `seconds` with all users there.

    Raises LabError if it cannot be run, or if its users ask for nothing.
    """
    if not file.is_file():
        raise LabError(f"the locustfile {file} does not exist")
    found = load(run(file.resolve(), {"seconds": seconds}, url, users, 0, None, seconds))
    if not found.requests and not found.errors:
        raise LabError(f"the users of {file.name} asked for nothing in {seconds:g} s")
    return found


def load(outcome: Outcome) -> Load:
    """The requests that ended while the load was measured."""
    times, octets, errors = [], 0, Counter[str]()
    for report in outcome.reports:
        rows = zip(report.ends, report.times, report.octets, report.kinds, strict=True)
        for end, took, size, kind in rows:
            if outcome.begun <= end <= outcome.ended:
                octets += size
                if kind:
                    errors[KINDS[kind]] += 1
                else:
                    times.append(took * 1000)
    return of_times(times, outcome.ended - outcome.begun, octets, errors, outcome.cpu)


def run(
    who: str | Path,
    plan: dict[str, Any],
    url: str,
    users: int,
    workers: int,
    core: int | None,
    seconds: float,
) -> Outcome:
    """Runs a class of our users, or a locustfile, as the plan says: by workers, or in one process.

    Raises LabError if there is no result after so many `seconds`, and the time to start and end.
    """
    if reason := missing():
        raise LabError(reason)
    files, classes = str(FOLDER / "users.py"), [str(who)]
    if isinstance(who, Path):
        files, classes = f"{who},{FOLDER / 'recorder.py'}", []
    command = [sys.executable, "-m", "locust", "-f", files, "--headless", "--only-summary"]
    command += ["--loglevel", "WARNING", "-H", url, "-u", str(users), "-r", str(users)]
    if workers:
        port = str(free_port())
        command += ["--processes", str(workers), "--master-host", LOOPBACK, "--master-port", port]
        command += ["--master-bind-host", LOOPBACK, "--master-bind-port", port]
    with tempfile.TemporaryDirectory(prefix="loadtests-") as name:
        folder = Path(name)
        askers = min(users, workers) or 1
        plan = {**plan, "folder": name, "workers": workers, "askers": askers}
        path = filter(None, [lab_folder(), os.environ.get("PYTHONPATH")])
        environ = {**os.environ, "LOADTESTS_LOCUST": json.dumps(plan)}
        environ["PYTHONPATH"] = os.pathsep.join(path)
        with (
            (folder / "said").open("wb") as said,
            ProcessTree(
                [*command, *classes],
                core,
                env=environ,
                cwd=who.parent if isinstance(who, Path) else FOLDER,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            ) as tree,
        ):
            _wait(tree.popen, seconds + START_SECONDS, folder if classes else None)
        try:
            master = json.loads((folder / "master.json").read_text(encoding="ascii"))
            reports = [
                Report(**json.loads((folder / f"{number}.json").read_text(encoding="ascii")))
                for number in range(workers or 1)
            ]
        except OSError:
            words = (folder / "said").read_text(encoding="utf-8", errors="replace")
            raise no_result("locust", without_paths(words)) from None
    cpu = master["cpu"] + sum(report.cpu for report in reports)
    return Outcome(master["begun"], master["ended"], cpu, reports)


def _wait(process: subprocess.Popen[bytes], seconds: float, folder: Path | None) -> None:
    """Waits for its end, or for the last report in `folder`: our users have nothing to tidy up.

    Locust itself needs two seconds more to end.
    """
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        if folder and (folder / "master.json").exists():
            return
        time.sleep(0.02)
