"""pip and `python3 -m venv`: environments that have the packages of the test environment.

An environment sees all of them from the beginning; `pip install` checks the names, and puts their
programs into the environment's `bin`. `.` and a path of `poorhttp` are a clone of the repository.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = os.environ["MANUAL_ROOT"]
PROGRAMS = os.environ["MANUAL_PROGRAMS"]
SELF = 'PYTHONPATH="$MANUAL_ROOT" exec "$MANUAL_PYTHON" -S -m tests.manual.stand_ins.pip'
PIP = f'#!/bin/sh\nMANUAL_VENV="$(cd "$(dirname "$0")/.." && pwd)" {SELF} pip "$@"\n'


def site_packages() -> list[str]:
    """The folders of the test environment's packages."""
    words = [f"{PROGRAMS}/python3", "-c", "import sys; print('\\n'.join(sys.path))"]
    found = subprocess.run(words, capture_output=True, text=True, check=True, timeout=240)
    return [path for path in found.stdout.splitlines() if os.path.isdir(path)]


def make(folder: str) -> int:
    """`python3 -m venv FOLDER`."""
    words = [os.environ["MANUAL_PYTHON"], "-m", "venv", "--without-pip", folder]
    if subprocess.run(words, check=False, timeout=240).returncode:
        return 1
    for packages in Path(folder).glob("lib/*/site-packages"):
        paths = [path for path in site_packages() if "-packages" in path]
        (packages / "tests.pth").write_text("\n".join([ROOT, *paths, ""]))
    for name in ("pip", "pip3"):
        program = Path(folder, "bin", name)
        program.write_text(PIP)
        program.chmod(0o755)
    return 0


def install(words: list[str]) -> int:
    """`pip install …`: check names, add programs."""
    names: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in ("-r", "--requirement"):
            lines = Path(next(rest)).read_text().splitlines()
            names += [line for line in lines if line.strip() and not line.startswith("#")]
        elif word in ("-c", "--constraint", "--find-links", "--index-url"):
            next(rest)
        elif not word.startswith("-"):
            names.append(word)
    found = {
        normal(distribution.metadata["Name"]): distribution
        for distribution in distributions(path=site_packages())
    }
    folder = os.environ.get("MANUAL_VENV") or os.environ.get("VIRTUAL_ENV")
    for name in names:
        is_clone = re.match(r"(.*/)?(\.|poorhttp)(\[|$)", name)
        package = "poorhttpd" if is_clone else re.split(r"[\[=<>!~ ;]", name.strip())[0]
        distribution = found.get(normal(package))
        if distribution is None:
            message = f"ERROR: {name} is not in the environment of the tests"
            print(message, file=sys.stderr)
            return 1
        if folder:
            add_programs(distribution, Path(folder))
    print("Successfully installed", *names)
    return 0


def normal(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def add_programs(distribution: Distribution, folder: Path) -> None:
    """Put the programs of a package into an environment."""
    for entry in distribution.entry_points:
        if entry.group == "console_scripts":
            program = folder / "bin" / entry.name
            program.write_text(
                f"#!{folder.absolute()}/bin/python3\nimport sys\n"
                f"from {entry.module} import {entry.attr.split('.')[0]}\nsys.exit({entry.attr}())\n"
            )
            program.chmod(0o755)


def main(words: list[str]) -> int:
    """Do what `pip` or `python3 -m venv` would."""
    if words[0] == "venv":
        return make(next(word for word in words[1:] if not word.startswith("-")))
    if words[1:2] == ["install"]:
        return install(words[2:])
    print(f"pip: the stand-in of tests/manual does not know {words[1:]}", file=sys.stderr)
    return 2


sys.exit(main(sys.argv[1:]))
