"""The machine of a measurement: hardware, cores used, versions of the programs."""

from __future__ import annotations

import os
import platform
import re
import resource
from pathlib import Path
from typing import Any

import psutil

from loadtests.errors import LabError


def describe(versions: dict[str, str], client: str = "") -> dict[str, Any]:
    """The machine, for the head of a results file. Names neither host nor user.

    `versions` are those of the servers; `client` is the one of all samples, if there is one.
    """
    told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    models = re.findall(r"^(?:model name|Hardware)[^:]*: *(.*)", told, re.MULTILINE)
    return {
        "cpu": models[0] if models else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "virtual": " hypervisor " in told,
        "memory": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "system": platform.system(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "client": client,
        "versions": versions,
    }


def allow_files(count: int) -> None:
    """Lets this process and its children have so many files open. Raises LabError if it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise LabError(
            f"{count:,} open files are needed, and the hard limit is {hard:,} (ulimit -Hn)"
        )
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
