"""Commands to start and to reload each server of the experiments `operate`.

Peers are configured as their documentation recommends for graceful reloads.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from loadtests.clients.steady.handle import STEADY
from loadtests.servers.registry.commands import GRANIAN, GUNICORN, MODULE, UWSGI, serve
from loadtests.servers.registry.server import Server
from loadtests.servers.running import Running

GRACE = 10
"""Seconds for requests in hand when a server is told to stop."""


def _hang_up(running: Running) -> None:
    os.kill(running.main, signal.SIGHUP)


def _chain_reload(running: Running) -> None:
    with open(running.folder / "fifo", "w", encoding="ascii") as fifo:
        fifo.write("c")


@dataclass(frozen=True)
class Configuration:
    """A file that a server is started with, how it says that, and what breaks it."""

    name: str
    option: str
    sound: str
    broken: str


@dataclass(frozen=True)
class OperatedServer(Server):
    """A server and how it is operated.

    In `command`, WORKERS and LISTEN stand for what differs between experiments: their number, by
    experiment in `workers`, and by what it listens, in `listen`; there "" is all others. `options`
    are added, and the keys of `cannot` are experiments that it cannot take part
    in, with the reason. `clients` are a steady load that it can bear.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    workers: Mapping[str, int] = field(default_factory=dict)
    listen: Mapping[str, str] = field(default_factory=dict)
    cannot: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, int] = field(default_factory=lambda: STEADY)
    reload: Callable[[Running], None] = _hang_up
    how: str = "HUP"
    configuration: Configuration | None = None
    lifetime: float = 0
    """Seconds of load that `recycle` needs at least, where workers are recycled by time."""
    most: int = 1_000
    """Reloads or upgrades of a round, where each takes long or not much depends on it."""

    def server(self, experiment: str) -> Server:
        """The server as it is started for an experiment."""
        command = self.command.replace(
            "WORKERS", str(self.workers.get(experiment, self.workers.get("", 2)))
        )
        command = command.replace("LISTEN", self.listen.get(experiment, self.listen.get("", "")))
        command += " " + self.options.get(experiment, self.options.get("", ""))
        if experiment == "broken" and self.configuration:
            command += " " + self.configuration.option
        return Server(self.name, "", command.strip(), self.package, self.extra, compared=False)


_FOUR = {"balance": 4, "preload": 4}
_INI = Configuration(
    "service.ini", "-c {folder}/service.ini", "[http]\nbacklog = 2048\n", "[http\nbacklog = many\n"
)


def _ours(mode: str, extra: str = "") -> OperatedServer:
    return OperatedServer(
        f"poorhttp {mode}",
        "",
        serve(f"{mode} --workers WORKERS", options=f"--graceful-timeout {GRACE}", log=""),
        "poorhttp",
        extra,
        options={
            "upgrade": "--pidfile {folder}/pid",
            "recycle": "--max-requests 100",
            "timeout": "--request-timeout 1",
            "preload": "--preload",
        },
        workers={**_FOUR, "kill": 2, "": 2 if mode == "forking" else 1},
        configuration=_INI,
    )


_GUNICORN = (
    f"{GUNICORN} --backlog {{backlog}} --workers WORKERS --graceful-timeout {GRACE} "
    "--no-control-socket "
)
_GUNICORN_OPTIONS = {
    "upgrade": "--pid {folder}/pid",
    "recycle": "--max-requests 100 --max-requests-jitter 20",
    "timeout": "--timeout 1",
    "preload": "--preload",
}
_GUNICORN_FILE = Configuration(
    "service.conf.py", "--config {folder}/service.conf.py", "backlog = 2048\n", "backlog = = 2048\n"
)


def _gunicorn(worker: str, options: str = "") -> OperatedServer:
    return OperatedServer(
        f"gunicorn {worker}",
        "",
        f"{_GUNICORN}--worker-class {worker}{options}{MODULE}",
        "gunicorn",
        options=_GUNICORN_OPTIONS,
        workers=_FOUR,
        configuration=_GUNICORN_FILE,
        most=5,
    )


SERVERS = (
    _ours("single"),
    _ours("forking"),
    _ours("threading"),
    _ours("gevent", extra="gevent"),
    _gunicorn("sync"),
    _gunicorn("gthread", " --threads 8 --keep-alive 75"),
    OperatedServer(
        "granian",
        "",
        f"{GRANIAN} --backlog {{backlog}} --workers WORKERS --blocking-threads 8 "
        f"--respawn-failed-workers --workers-kill-timeout {GRACE}{MODULE}",
        "granian",
        options={"recycle": "--workers-lifetime 60"},
        workers=_FOUR,
        lifetime=80,
        most=2,
        cannot={
            "upgrade": "has no such signal",
            "timeout": "has no time limit for requests",
            "preload": "has no such option",
        },
    ),
    OperatedServer(
        "uWSGI",
        "",
        f"{UWSGI} LISTEN "
        "--listen {backlog} --master --need-app "
        "--processes WORKERS --threads 8 --disable-logging --pythonpath . "
        "--module {module}:{callable} --master-fifo {folder}/fifo "
        f"--worker-reload-mercy {GRACE} --reload-mercy {GRACE} "
        "--hook-master-start unix_signal:15~gracefully_kill_them_all",
        "uWSGI",
        options={
            "recycle": "--lazy-apps --max-requests 100 --min-worker-lifetime 1",
            "timeout": "--lazy-apps --harakiri 1",
            "preload": "",
            # Its default is to load the application first, but then a chain reload changes nothing.
            "": "--lazy-apps",
        },
        workers=_FOUR,
        listen={
            "": "--http 127.0.0.1:{port} --http-keepalive=75",
            # Whose connection dies can only be told without its router in front; and that lets a
            # client wait on whose worker was killed.
            "kill": "--http-socket 127.0.0.1:{port}",
            "timeout": "--http-socket 127.0.0.1:{port}",
        },
        cannot={"upgrade": "has no such signal"},
        # It drops what is pipelined.
        clients={**STEADY, "pipelining": 0},
        reload=_chain_reload,
        most=5,
        how="chain reload",
        configuration=Configuration(
            "service.ini", "--ini {folder}/service.ini", "[uwsgi]\nvacuum = true\n", "[uwsgi\n= \n"
        ),
    ),
)
