"""A server that can be measured: command, files and package; whether it can run here.

In a command, {python} is our interpreter, {scripts} the folder of its programs, {port} a free port
of 127.0.0.1, {first} and {second} two more for servers behind a proxy, {module} and {callable} name
the application (its folder is the working directory), {backlog} is the longest backlog that the
kernel allows up to 2048, {folder} a folder and {log} a file in it that vanish with the run, {root}
is the folder that is served, a name of `loadtests.programs` the path of that program, and {floor},
{body}, {content_type} and {request_body} are what the floor needs. "~" is a space within a word.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from loadtests import programs
from loadtests.errors import LabError
from loadtests.programs import ROOT
from loadtests.servers import baseline
from loadtests.servers.peers import failures


@dataclass(frozen=True)
class Server:
    """`package` is the distribution on PyPI (empty for the floor); `extra` is one it needs besides.

    `compared` servers take part in the benchmark; the others belong to single experiments.
    `note` is what a reader of the report should know. `programs` of the system are needed, and
    `files` are written into {folder} before: names and texts, in which $port and the like stand for
    the same as in the command.
    """

    name: str
    colour: str
    command: str
    package: str = ""
    extra: str = ""
    compared: bool = True
    note: str = ""
    programs: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()

    @property
    def ours(self) -> bool:
        """Whether it is one of our modes."""
        return self.package == "poorhttp"

    @property
    def peer(self) -> bool:
        """Whether it is somebody else's server: neither ours nor the floor."""
        return self.package not in ("", "poorhttp") or bool(self.programs)


def missing(server: Server) -> str:
    """Why a server cannot run here; empty if it can."""
    if "{floor}" in server.command:
        try:
            baseline.build()
        except LabError as error:
            return str(error)
        return ""
    reasons = [reason for name in server.programs if (reason := programs.missing(name))]
    if reasons or not server.package:
        return ", ".join(reasons)
    if server.ours:
        reason = "" if build_profile() else "its core is not built"
    else:
        reason = _absent(server.package)
    return reason or (_absent(server.extra) if server.extra else "")


def _absent(package: str) -> str:
    if version(package):
        return ""
    why = failures().get(package.lower())
    return f"{package} is not installed" + (f": {why}" if why else "")


def version(package: str) -> str:
    """The installed version of a distribution; empty if there is none."""
    if package == "poorhttp":
        return _ask_ours("import poorhttp; print(poorhttp.__version__)")
    # Only now: it is slow to load.
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def versions(servers: Iterable[Server]) -> dict[str, str]:
    """The versions of everything that these servers need, as far as it is installed."""
    servers = list(servers)
    packages = sorted({package for s in servers for package in (s.package, s.extra) if package})
    found = {package: version(package) for package in packages}
    found |= {name: programs.version(name) for server in servers for name in server.programs}
    return {name: number for name, number in found.items() if number}


def build_profile() -> str:
    """Build profile of our core, `release` or `debug`; empty if it cannot be imported."""
    return _ask_ours(
        "from poorhttp import _core; print(getattr(_core, 'build_profile', 'of an unknown build'))"
    )


def _ask_ours(code: str) -> str:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environ
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def require_release(servers: Iterable[Server]) -> None:
    """Raises LabError if one of ours would be measured with a core that is not a release build."""
    if any(server.ours for server in servers):
        profile = build_profile()
        if profile and profile != "release":
            raise LabError(
                f"poorhttp._core is not a release build (it is {profile}), so its figures "
                "would mean nothing. Build it with optimisation, for instance by `pip install .`"
            )
