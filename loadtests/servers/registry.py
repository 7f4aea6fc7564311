"""The servers that can be measured: command and package of each.

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


FLOOR = Server("floor", "#8a8f98", "{floor} {port} {body} {content_type} {request_body}")


def _ours(
    mode: str, colour: str, options: str, *, log: bool = False, compared: bool = True
) -> Server:
    access_log = "{log}" if log else "off"
    return Server(
        f"poorhttp {mode}",
        colour,
        "{python} -m poorhttp serve {module}.py:{callable} --bind 127.0.0.1:{port} "
        f"{options} --access-log {access_log}",
        "poorhttp",
        "gevent" if "gevent" in options else "",
        compared,
    )


_GUNICORN = (
    "{python} -m gunicorn --bind 127.0.0.1:{port} --backlog {backlog} --keep-alive 75 "
    "--log-level error "
)
_GRANIAN = (
    "{python} -m granian --interface wsgi --host 127.0.0.1 --port {port} --backlog {backlog} "
    "--log-level error "
)
_BJOERN = (
    "import~bjoern,{module};"
    "bjoern.run({module}.{callable},'127.0.0.1',{port},listen_backlog={backlog})"
)
_PYWSGI = (
    "from~gevent~import~monkey;monkey.patch_all();import~socket,{module};"
    "from~gevent.pywsgi~import~WSGIServer;"
    "listener=socket.create_server(('127.0.0.1',{port}),backlog={backlog});"
    "listener.setsockopt(socket.IPPROTO_TCP,socket.TCP_NODELAY,1);"
    "WSGIServer(listener,{module}.{callable},log=None).serve_forever()"
)

SERVERS = (
    FLOOR,
    _ours("single", "#0b4f9e", "--mode single"),
    _ours("single + log", "#5b8fd0", "--mode single", log=True),
    _ours("threading 8", "#1a7fb8", "--mode threading --threads 8"),
    _ours("forking 2", "#2ca6c4", "--mode forking --workers 2"),
    _ours("gevent", "#7cc7df", "--mode gevent"),
    _ours("threading 32", "#1a7fb8", "--mode threading --threads 32", compared=False),
    _ours("forking 1", "#7fd0e2", "--mode forking --workers 1", compared=False),
    _ours("forking 4", "#14788f", "--mode forking --workers 4", compared=False),
    Server(
        "fastpysgi",
        "#c8452c",
        "{scripts}/fastpysgi --host 127.0.0.1 -p {port} -l 0 {module}:{callable}",
        "fastpysgi",
    ),
    Server(
        "fastwsgi",
        "#e8843c",
        "{scripts}/fastwsgi --host 127.0.0.1 -p {port} -l 0 {module}:{callable}",
        "fastwsgi",
    ),
    Server("bjoern", "#d9a514", "{python} -c " + _BJOERN, "bjoern"),
    Server(
        "granian 1 thread",
        "#7a3e9d",
        _GRANIAN + "--blocking-threads 1 {module}:{callable}",
        "granian",
    ),
    Server("granian", "#b57fd0", _GRANIAN + "{module}:{callable}", "granian"),
    Server(
        "uWSGI 8 threads",
        "#3f8f3f",
        "{scripts}/uwsgi --http11-socket 127.0.0.1:{port} --listen {backlog} --threads 8 --master "
        "--die-on-term --disable-logging --pythonpath . --module {module}:{callable}",
        "uWSGI",
    ),
    Server(
        "gunicorn gthread 8",
        "#8c5a2b",
        _GUNICORN + "--worker-class gthread --threads 8 {module}:{callable}",
        "gunicorn",
    ),
    Server(
        "gunicorn gevent",
        "#c39a6b",
        _GUNICORN + "--worker-class gevent {module}:{callable}",
        "gunicorn",
        "gevent",
    ),
    Server(
        "gunicorn sync 4",
        "#5e3a17",
        _GUNICORN + "--workers 4 {module}:{callable}",
        "gunicorn",
        compared=False,
    ),
    Server(
        "waitress 8 threads",
        "#c03a78",
        "{python} -m waitress --listen 127.0.0.1:{port} --threads 8 "
        "--backlog {backlog} --connection-limit 900 {module}:{callable}",
        "waitress",
    ),
    Server(
        "cheroot 8 threads",
        "#e58fb4",
        "{python} -m cheroot --bind 127.0.0.1:{port} --threads 8 --request-queue-size {backlog} "
        "{module}:{callable}",
        "cheroot",
    ),
    Server(
        "gevent pywsgi",
        "#6b7a1e",
        "{python} -c " + _PYWSGI,
        "gevent",
        note="is given TCP_NODELAY, which it does not set itself: it sends head and body apart, "
        "and without it each answer waits 40 ms for the client's acknowledgement",
    ),
)


def named(names: Iterable[str]) -> list[Server]:
    """The servers of these names; a beginning stands for all servers that begin so.

    Raises LabError for a name that fits none.
    """
    chosen: list[Server] = []
    for name in names:
        fitting = [server for server in SERVERS if server.name == name]
        fitting = fitting or [
            server for server in SERVERS if server.compared and server.name.startswith(name)
        ]
        if not fitting:
            known = ", ".join(server.name for server in SERVERS)
            raise LabError(f"no server is called {name!r}. There are: {known}")
        chosen += [server for server in fitting if server not in chosen]
    return chosen


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
    """How our core was built, `release` or `debug`; empty if it cannot be imported."""
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
