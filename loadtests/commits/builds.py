"""Builds of the server: that of a commit, and that of the working tree."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from loadtests.arguments import number
from loadtests.errors import LabError
from loadtests.programs import ROOT
from loadtests.servers.registry.server import require_release
from loadtests.servers.registry.wsgi import OURS

FOLDER = ROOT / "build" / "commits"
TREE = "this tree"
"""The name of the working tree in tables."""

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
EXTENSION = f"_core{SUFFIX}"

MODULES = {
    "python": "_core",
    "python-codings": "plugins/compression/_codings",
    "python-tls": "plugins/tls/_tls",
    "python-websocket": "plugins/asgi/_websocket",
}
"""The extension modules in `poorhttp`, by the folders of their crates. Old commits have one."""


@dataclass(frozen=True)
class Build:
    """A server that can run: `folder` holds its package `poorhttp`, with the extension."""

    name: str
    folder: Path

    def environ(self) -> dict[str, str]:
        """The environment in which the interpreter of this process imports this build."""
        # An editable installation is behind this folder on the path.
        return {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONHASHSEED": "0"}


def add_arguments(parser: argparse.ArgumentParser, rounds: int, counts: str) -> None:
    """Adds the two commits to a command, and `rounds`, of which the median or the least counts."""
    words = "the commit to compare with (default HEAD); the server is built from it once"
    parser.add_argument("base", nargs="?", default="HEAD", metavar="BASE", help=words)
    words = f"the commit that is compared (default: {TREE}, with what is not committed)"
    parser.add_argument("commit", nargs="?", default="", metavar="COMMIT", help=words)
    words = f"rounds, of which the {counts} counts (default {rounds})"
    whole = number(1, 1_000, kind=int)
    parser.add_argument("--rounds", type=whole, default=rounds, metavar="N", help=words)


def chosen(options: argparse.Namespace) -> tuple[Build, Build]:
    """The builds that the command line names: that to compare with, and that which is compared."""
    return of_commit(options.base), of_commit(options.commit) if options.commit else working_tree()


def working_tree() -> Build:
    """The server of this clone, as `make run` has built it. Raises LabError for a debug build."""
    require_release(OURS)
    return Build(TREE, ROOT)


def of_commit(name: str) -> Build:
    """The server of a commit; it is built if it is not there. Raises LabError."""
    commit = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not commit:
        raise LabError(f"there is no commit {name!r} in this clone")
    build = Build(commit[:10], FOLDER / commit[:10])
    if not (build.folder / "poorhttp" / EXTENSION).exists():
        _build(commit, build.folder)
    return build


def is_commit(name: str) -> bool:
    """Whether git knows a commit of this name."""
    return bool(_git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"))


def _build(commit: str, folder: Path) -> None:
    """Lay the files of a commit into a folder, and compile its extension as a release."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"building the server of {commit[:10]} (two minutes)", file=sys.stderr, flush=True)
    archive = subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE)
    # With the time of now: cargo would take what it has compiled of another commit for newer.
    subprocess.run(["tar", "-x", "--touch"], cwd=folder, stdin=archive.stdout, check=True)
    if archive.wait() != 0:
        raise LabError(f"git does not give the files of {commit[:10]}")
    # All builds share what they compile of other people's crates.
    target = FOLDER / "target"
    made = {crate: name for crate, name in MODULES.items() if (folder / "core" / crate).exists()}
    command = ["cargo", "build", "--quiet", "--release", *(f"-ppoorhttp-{each}" for each in made)]
    command += ["--manifest-path", "core/Cargo.toml", "--target-dir", str(target)]
    environ = {**os.environ, "PYO3_PYTHON": sys.executable, "PYO3_BUILD_EXTENSION_MODULE": "1"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True, check=False
        )
    except FileNotFoundError:
        raise LabError("there is no cargo on the path; `make instructions` has one") from None
    if done.returncode != 0:
        raise LabError(f"{commit[:10]} does not compile: {done.stderr.strip()[-500:]}")
    for name in made.values():
        built = target / "release" / f"lib{name.rpartition('/')[2]}.so"
        shutil.copy(built, folder / "poorhttp" / f"{name}{SUFFIX}")


def _git(*words: str) -> str:
    """What git says, without its line end; empty if it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
