"""The test command: `python -m tests [--full] [--jobs N] [PATH ...] [--options=PYTEST-OPTIONS]`.

With `--changed`, the paths are changed files, and the tests that cover them are run. Cargo's tests
run beside pytest's, each test once. The last line counts what passed, failed or was skipped; the
exit code is 0 if nothing failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

sys.path.insert(0, str(ROOT / "core"))

# isort: split
import progress  # noqa: E402

from tests.covering import covering  # noqa: E402

#: The crates that have tests: all but the extension modules, which the tests in Python load.
CRATES = sorted(
    path.parent.name
    for path in (ROOT / "core").glob("*/Cargo.toml")
    if not path.parent.name.startswith("python")
)

#: Seconds after which a part is ended.
LIMIT = 3600

#: Outcomes in the order of pytest's own last line.
OUTCOMES = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every test in every mode it has")
    # Tests wait for servers, clocks and each other more than they compute.
    jobs = 4 * len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=jobs, help="tests at the same time")
    parser.add_argument("--options", default="", help="more options of pytest")
    parser.add_argument("--changed", action="store_true", help="the paths are changed files")
    parser.add_argument("--compile", action="store_true", help="only compile Rust's tests")
    parser.add_argument("paths", nargs="*", help="files, folders or tests")
    return parser.parse_args()


class Cargo:
    """The tests of the Rust crates, run in the background."""

    def __init__(self, crates: Iterable[str]) -> None:
        words = self.compile(crates)
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            ["cargo", "test", "--quiet", *words, "--no-fail-fast"],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    @staticmethod
    def compile(crates: Iterable[str]) -> list[str]:
        """Compile the tests, and return cargo's options for them.

        Not beside tests that run a program of these crates, which would wait for the compiler. Of
        what does not compile `cargo test` says so.
        """
        chosen = [word for crate in crates for word in ("-p", f"poorhttp-{crate}")]
        words = ["--manifest-path", str(ROOT / "core" / "Cargo.toml"), *chosen]
        with progress.Step("compiling", "Rust's tests: a few minutes the first time") as step:
            run_cargo(["build", *words, "--all-targets"], step.report)
        return words

    def outcomes(self) -> Counter[str]:
        """Wait for the end, print what it said if anything failed, and count the tests."""
        if self._process.poll() is None:
            with progress.Step("cargo test", "still running: a minute or two"):
                self._process.wait(LIMIT)
        code = self._process.returncode
        self._output.seek(0)
        text = self._output.read()
        self._output.close()
        found = Counter[str]()
        for passed, failed in re.findall(
            r"^test result: .* (\d+) passed; (\d+) failed", text, re.M
        ):
            found.update(passed=int(passed), failed=int(failed))
        if code != 0:
            print(text)
            # One that does not even compile has failed, too.
            found["failed"] = max(found["failed"], 1)
        print(f"cargo test: {found['passed']} passed, {found['failed']} failed")
        return found


def run_cargo(words: list[str], report: Callable[[str], None]) -> None:
    """Run cargo, and report how far it is; what it says otherwise is left to later runs."""
    cargo = subprocess.Popen(
        ["cargo", *words], stderr=subprocess.PIPE, env={**os.environ, **progress.CARGO}
    )
    with cargo:
        assert cargo.stderr is not None
        progress.read_cargo(cargo.stderr.fileno(), report, lambda line: None)


@contextmanager
def compiled_tests() -> Iterator[None]:
    """Rewrite the assertions of all tests, in a fresh clone: else each parallel process does it.

    One process does it while the block is run, and has ended when the block is left.
    """
    if [*(ROOT / "tests" / "__pycache__").glob("conftest.*-pytest-*.pyc")]:
        yield
        return
    collection = subprocess.Popen(
        [sys.executable, "-m", "pytest", "--collect-only", "-qq"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with collection:
        yield
        with progress.Step("compiling", "the tests in Python: half a minute the first time"):
            collection.wait(LIMIT)


def pytest(*words: str) -> Counter[str]:
    """Run pytest and count its tests, by outcome; a session that did not end is an error."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder) / "outcomes.json"
        command = [sys.executable, "-m", "pytest", *words, "--outcomes", str(outcomes)]
        code = subprocess.run(command, cwd=ROOT, check=False, timeout=LIMIT).returncode
        found = Counter[str](json.loads(outcomes.read_text()) if outcomes.exists() else {})
    # 1: tests failed; 5: no test was chosen.
    if code not in (0, 1, 5):
        found["error"] += 1
    return found


def main() -> int:
    """Run all parts; 0 if nothing failed."""
    # A shell has those ignore it that it runs in the background, and all that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Without compiled files, each process would compile all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Trio, which Selenium depends on, has a plug-in for Hypothesis that imports all of Trio.
    os.environ["HYPOTHESIS_NO_PLUGINS"] = "1"
    chosen = arguments()
    if chosen.compile:
        Cargo.compile(CRATES)
        return 0
    paths = chosen.paths or ["tests"]
    crates = CRATES if paths == ["tests"] else []
    if chosen.changed:
        paths, crates = covering(chosen.paths)
        crates = [crate for crate in CRATES if crate in crates or paths == ["tests"]]
        print(f"covered by: {' '.join([*paths, *(f'core/{crate}' for crate in crates)])}")
    words = [*chosen.options.split(), *paths, *(["--full"] if chosen.full else [])]
    began = time.monotonic()
    with compiled_tests():
        cargo = Cargo(crates) if crates and not chosen.options else None
    # In the order of tests/conftest.py: pytest-xdist would begin the groups of few tests last,
    # however long these take, and most processes would wait for them in the end.
    beside = ("-n", str(chosen.jobs), "--dist", "loadgroup", "--no-loadscope-reorder")
    found = pytest(*beside, *words)
    if cargo:
        found += cargo.outcomes()
    counts = [f"{found[outcome]} {outcome}" for outcome in OUTCOMES if found[outcome]]
    print(f"{', '.join(counts) or 'no test was chosen'} in {time.monotonic() - began:.0f}s")
    return 1 if found["failed"] or found["error"] or not found["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
