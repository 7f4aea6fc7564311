"""Processes of Locust: started, awaited, ended, and their reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.clients.program import no_result
from loadtests.errors import LabError
from loadtests.measure.process_tree import ProcessTree
from loadtests.programs import ROOT
from loadtests.store import without_paths
from tests.testkit.network.port import free_port

FOLDER = Path(__file__).parent
RECORDER = FOLDER / "recorder.py"
START_SECONDS = 60.0
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


def run(
    files: Sequence[Path],
    plan: dict[str, Any],
    url: str,
    users: int,
    workers: int,
    core: int | None,
    seconds: float,
) -> Outcome:
    """Runs these locustfiles as the plan says: by workers and a master, or in one process.

    Raises LabError if there is no result after so many `seconds`, and the time to start and end.
    """
    if reason := missing():
        raise LabError(reason)
    with tempfile.TemporaryDirectory(prefix="loadtests-") as name:
        folder = Path(name)
        plan = {**plan, "folder": name, "workers": workers}
        command = [sys.executable, "-m", "locust"]
        command += ["-f", ",".join(map(str, files)), "--headless", "--only-summary"]
        command += ["--loglevel", "WARNING", "-H", url, "-u", str(users), "-r", str(users)]
        if workers:
            port = str(free_port())
            command += ["--processes", str(workers), "--master-bind-host", "127.0.0.1"]
            command += ["--master-bind-port", port]
            command += ["--master-host", "127.0.0.1", "--master-port", port]
        environ = {**os.environ, "LOADTESTS_LOCUST": json.dumps(plan)}
        environ["PYTHONPATH"] = os.pathsep.join(
            [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        with (
            (folder / "said").open("wb") as said,
            ProcessTree(
                command,
                core,
                env=environ,
                cwd=files[0].parent,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            ) as tree,
        ):
            _wait(tree.popen, seconds + START_SECONDS, None if RECORDER in files else folder)
        found = _read(folder, workers)
        if found is None:
            words = (folder / "said").read_text(encoding="utf-8", errors="replace")
            raise no_result("locust", without_paths(words))
        return found


def _wait(process: subprocess.Popen[bytes], seconds: float, folder: Path | None) -> None:
    """Waits for its end, or for the last report in `folder`: our users have nothing to tidy up.

    Locust itself needs two seconds more to end.
    """
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        if folder and (folder / "master.json").exists():
            return
        time.sleep(0.02)


def _read(folder: Path, workers: int) -> Outcome | None:
    try:
        master = json.loads((folder / "master.json").read_text(encoding="ascii"))
        reports = [
            Report(**json.loads((folder / f"{number}.json").read_text(encoding="ascii")))
            for number in range(workers or 1)
        ]
    except OSError:
        return None
    cpu = master["cpu"] + sum(report.cpu for report in reports)
    return Outcome(master["begun"], master["ended"], cpu, reports)
