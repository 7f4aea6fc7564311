"""The test command: `python -m tests [--full] [--jobs N] [PATH ...] [-- PYTEST-OPTION ...]`.

Runs cargo's tests beside pytest's, and alone behind both the tests that depend on time. Prints what
failed and how long each part took; its exit code is 0 if everything passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
CRATES = ("http", "files", "cgi", "reactor", "fuzz")

#: Seconds after which a part is ended: hours before CI would.
LIMIT = 3600

#: pytest's exit code if no test was chosen.
NO_TESTS = 5


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every test in every mode it has")
    # Tests wait for servers, clocks and each other more than they compute.
    jobs = 2 * len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=jobs, help="tests at the same time")
    parser.add_argument("paths", nargs="*", default=["tests"], help="files, folders or tests")
    parser.add_argument("--options", default="", help="more options of pytest")
    return parser.parse_args()


def cargo(output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the tests of the Rust crates, whose output goes to a file."""
    crates = [word for crate in CRATES for word in ("-p", f"poorhttp-{crate}")]
    manifest = ROOT / "core" / "Cargo.toml"
    command = ["cargo", "test", "--quiet", "--manifest-path", str(manifest), *crates]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def pytest(*words: str) -> int:
    """Run pytest; its exit code."""
    command = [sys.executable, "-m", "pytest", *words]
    return subprocess.run(command, cwd=ROOT, check=False, timeout=LIMIT).returncode


def main() -> int:
    """Run all parts; 0 if everything passed."""
    chosen = arguments()
    words = [*chosen.options.split(), *chosen.paths]
    if chosen.full:
        words.append("--full")
    whole = chosen.paths == ["tests"] and not chosen.options
    began = time.monotonic()
    codes = {}
    with tempfile.TemporaryFile() as output:
        rust = cargo(output) if whole else None
        together = ("-n", str(chosen.jobs), "--dist", "loadgroup", "--durations", "20")
        codes["pytest"] = pytest(*together, "-m", "not timing", *words)
        if rust:
            codes["cargo test"] = rust.wait(LIMIT)
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))
            sys.stdout.flush()
    codes["pytest -m timing"] = pytest("-m", "timing", "--reruns", "2", "-rR", *words)
    ran = [code for name, code in codes.items() if code != NO_TESTS]
    failed = [name for name, code in codes.items() if code not in (0, NO_TESTS)]
    print(f"{time.monotonic() - began:.0f} seconds;", end=" ")
    if failed or not ran:
        print(f"FAILED: {', '.join(failed) or 'no test was chosen'}")
        return 1
    print("everything passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
