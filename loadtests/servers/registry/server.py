"""A server that can be measured: command, files and package; whether it can run here.

In a command, {python} is our interpreter, {scripts} the folder of its programs, {port} a free port
of {host} (127.0.0.1), {first} and {second} two more for servers behind a proxy, {module} and
{callable} name the application (its folder is the working directory), {backlog} is the longest
backlog that the kernel allows up to 2048, {folder} a folder and {log} a file in it that vanish with
the run, {root} is the folder that is served, a name of `loadtests.programs` the path of that
program, and {floor}, {body}, {content_type} and {request_body} are what the floor needs. "~" is a
space within a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from loadtests import programs
from loadtests.clients.native import compiled
from loadtests.errors import LabError
from loadtests.network.port import LOOPBACK
from loadtests.servers.application import OWN, Application
from loadtests.servers.peers import failures

BASELINE = Path(__file__).parents[1] / "baseline" / "floor.c"


@dataclass(frozen=True)
class Server:
    """`package` is the distribution on PyPI (empty for the floor); `extra` is one it needs besides.

    `compared` servers take part in the benchmark; the others belong to single experiments.
    `note` is what a reader of the report should know. `programs` of the system are needed, and
    `files` are written into {folder} before: names and texts, in which $port and the like stand for
    the same as in the command. `application` is what it serves, and `target` where, if not all
    servers of a study serve the same. Processes of one that `forks` come and go with the requests.
    One that is `tls` speaks TLS, with whatever certificate.
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
    application: Application | None = None
    target: str = ""
    forks: bool = False
    tls: bool = False

    @property
    def ours(self) -> bool:
        return self.package == "poorhttp"

    @property
    def peer(self) -> bool:
        """Whether it is somebody else's server: neither ours nor the floor."""
        return self.package not in ("", "poorhttp") or bool(self.programs)

    @property
    def given(self) -> bool:
        """Whether the command line has named it (`given`): it is not in the registry."""
        return False

    @property
    def own(self) -> bool:
        """Whether it answers with an application of its own, whatever the lab would ask for."""
        return self.application is OWN

    @property
    def is_told_its_port(self) -> bool:
        """Whether the lab says where it listens."""
        return True

    @property
    def movable(self) -> bool:
        """Whether it can listen on the host of another network."""
        return True

    def varied(self, old: str, new: str, **fields: Any) -> Server:
        """Another server: with `new` in place of `old` in its command, and with these fields."""
        return replace(self, command=self.command.replace(old, new), **fields)

    def argv(self, values: Mapping[str, object], ip: str) -> list[str]:
        """The words of its command with these values."""
        # Split before it is filled in, so a path may hold spaces; "~" is a space within a word.
        words = self.command.replace(LOOPBACK, ip).split()
        return [part.replace("~", " ").format(**values) for part in words]


def chosen(known: Iterable[Server], names: Iterable[str]) -> list[Server]:
    """The servers of these names, in the order of the names."""
    found = {server.name: server for server in known}
    return [found[name] for name in names]


def missing(server: Server) -> str:
    """Why a server cannot run here; empty if it can."""
    if "{floor}" in server.command:
        try:
            compiled.program(BASELINE)
        except LabError as error:
            return str(error)
        return ""
    reasons = ", ".join(filter(None, map(programs.missing, server.programs)))
    return reasons or _absent(server.package) or _absent(server.extra)


def _absent(package: str) -> str:
    if package == "poorhttp":
        how = "pip install poorhttpd" if programs.INSTALLED else "in a clone: pip install '.[lab]'"
        return "" if build_profile() else f"poorhttp is not installed ({how})"
    if not package or version(package):
        return ""
    why = failures().get(package.lower())
    return f"{package} is not installed" + (f": {why}" if why else "")


def version(package: str) -> str:
    """The installed version of a distribution; empty if there is none."""
    if package == "poorhttp":
        try:
            import poorhttp
        except ImportError:
            return ""
        return poorhttp.__version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def versions(servers: Sequence[Server]) -> dict[str, str]:
    """The versions of everything that these servers need, as far as it is installed."""
    packages = sorted({package for s in servers for package in (s.package, s.extra) if package})
    found = {package: version(package) for package in packages}
    found |= {name: programs.version(name) for server in servers for name in server.programs}
    return {name: number for name, number in found.items() if number}


def build_profile() -> str:
    """Build profile of our core, `release` or `debug`; empty if it cannot be imported."""
    try:
        # Only now: the command line decides first which one it is.
        import poorhttp

        return poorhttp.build_profile
    except ImportError:
        return ""


def require_release(servers: Iterable[Server]) -> None:
    """Raises LabError if one of ours would be measured with a core that is not a release build."""
    if any(server.ours for server in servers) and build_profile() == "debug":
        raise LabError(
            "the core of poorhttp is not a release build (it is debug), so its figures "
            "would mean nothing. Build it with optimisation, for instance by `pip install .`"
        )
