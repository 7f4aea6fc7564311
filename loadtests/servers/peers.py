"""Installs the servers of comparisons, and records which could not be installed and why."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from loadtests.clients.native.compiled import cache_folder

PEERS = Path(__file__).with_name("peers.txt")
_PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")


def _memory() -> Path:
    return cache_folder() / f"peers-{sys.version_info.major}.{sys.version_info.minor}.json"


def names() -> list[str]:
    """The distributions of peers.txt."""
    lines = PEERS.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def failures() -> dict[str, str]:
    """Distributions that the last installation could not install, in lower case, and why."""
    if not _memory().exists():
        return {}
    found: dict[str, str] = json.loads(_memory().read_text(encoding="utf-8"))
    return found


def install(say: Callable[[str], None]) -> dict[str, str]:
    """Installs every peer by pip into this interpreter's environment and returns the failures."""
    failed = {}
    everything = names()
    for number, name in enumerate(everything, 1):
        say(f"peer {number} of {len(everything)}: {name}, which may compile for a while")
        done = subprocess.run([*_PIP, name], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = [line for line in (done.stdout + done.stderr).splitlines() if "rror" in line]
            failed[name.lower()] = said[-1].strip() if said else "pip failed without a reason"
            say(f"{name} cannot be installed: {failed[name.lower()]}")
    _memory().write_text(json.dumps(failed), encoding="utf-8")
    return failed
