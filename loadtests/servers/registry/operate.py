"""Commands to start and to reload each server of the experiments `operate`.

Peers are configured as their documentation recommends for graceful reloads.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from loadtests.clients.steady.handle import STEADY
from loadtests.servers.registry.commands import GRANIAN, GUNICORN, MODULE, UWSGI, serve
from loadtests.servers.registry.server import Server
from loadtests.servers.running import Running

GRACE = 10
"""Seconds for requests in hand when a server is told to stop."""
FOUR = 4
"""Workers in `preload`, `memory`, `refork` and `balance`."""


def hang_up(running: Running) -> None:
    """Reloads as most do."""
    os.kill(running.main, signal.SIGHUP)


def _chain_reload(running: Running) -> None:
    (running.folder / "fifo").write_text("c", encoding="ascii")


@dataclass(frozen=True)
class Configuration:
    """A file that a server is started with by an `option`, and what breaks it."""

    name: str
    option: str
    sound: str
    broken: str


@dataclass(frozen=True)
class OperatedServer(Server):
    """A server and how it is operated.

    In `command`, WORKERS stands for their number: `workers`, but in some experiments. `options` are
    added by experiment; there "" is all others. The keys of `cannot` are experiments that it cannot
    take part in, with the reason. `clients` are a steady load that it can bear.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    workers: int = 2
    cannot: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, int] = field(default_factory=lambda: STEADY)
    reload: Callable[[Running], None] = hang_up
    configuration: Configuration | None = None
    lifetime: float = 0
    """Seconds of load that `recycle` needs at least, where workers are recycled by time."""
    most: int = 1_000
    """Reloads or upgrades of a round, where each takes long or not much depends on it."""
    protocol: str = "http/1.1"
    """What the clients speak: this, or HTTP/2 over TLS (`h2`) or by prior knowledge (`h2c`)."""
    preloads: bool = False
    """Is measured in `refork`, and in nothing else."""

    def takes_part(self, experiment: str) -> bool:
        """Whether it is measured in an experiment."""
        return self.preloads == (experiment == "refork") and experiment not in self.cannot

    def server(self, experiment: str) -> Server:
        """The server as it is started for an experiment."""
        own = {**dict.fromkeys(("preload", "memory", "refork", "balance"), FOUR), "kill": 2}
        workers = own.get(experiment, self.workers)
        words = [self.command.replace("WORKERS", str(workers))]
        words.append(self.options.get(experiment, self.options.get("", "")))
        if experiment == "broken" and self.configuration:
            words.append(f"{self.configuration.option} {{folder}}/{self.configuration.name}")
        command = " ".join(filter(None, words))
        name, package, extra = self.name, self.package, self.extra
        return Server(name, "", command, package, extra, compared=False, tls=self.tls)


UPGRADING = ("threading", "gevent")
"""Our modes in which a worker has many WebSockets."""
_UNTOLD = {"sockets": "does not tell WebSockets that it is reloaded"}


def _ours(mode: str, workers: int = 1) -> OperatedServer:
    return OperatedServer(
        f"poorhttp {mode}",
        "",
        serve(f"{mode} --workers WORKERS", options=f"--graceful-timeout {GRACE}", log=""),
        "poorhttp",
        "gevent" if mode == "gevent" else "",
        options={
            "upgrade": "--pidfile {folder}/pid",
            "recycle": "--max-requests 100",
            "timeout": "--request-timeout 1",
            "preload": "--preload",
            "sockets": "--bind https://127.0.0.1:{first} --tls-certificate {folder}/cert.pem "
            "--tls-key {folder}/key.pem",
        },
        cannot={} if mode in UPGRADING else {"sockets": "has a worker for each WebSocket"},
        workers=workers,
        configuration=Configuration(
            "service.ini", "-c", "[http]\nbacklog = 2048\n", "[http\nbacklog = many\n"
        ),
    )


def _reforked(*numbers: int) -> OperatedServer:
    """Ours with the application loaded in advance, and forks of workers after so many requests."""
    after = f" --refork-after {','.join(map(str, numbers))}" if numbers else ""
    words = " ".join(["reforked after", *map(str, numbers)]) if numbers else "preload"
    return replace(
        _ours("forking"),
        name=f"poorhttp forking + {words}",
        options={"refork": f"--preload{after}"},
        preloads=True,
    )


def _http2(mode: str, protocol: str) -> OperatedServer:
    """Ours under clients of HTTP/2, in the experiments in which processes begin and end."""
    ours = _ours(mode, 2 if mode == "forking" else 1)
    command = f"{ours.command} --http2 on"
    if protocol == "h2":
        files = "--tls-certificate {folder}/cert.pem --tls-key {folder}/key.pem"
        command = command.replace("--bind ", "--bind https://") + f" {files}"
    others = ("sockets", "timeout", "broken", "preload", "memory", "balance")
    return replace(
        ours,
        name=f"{ours.name} {protocol}",
        command=command,
        cannot=dict.fromkeys(others, "is measured with HTTP/1.1"),
        protocol=protocol,
        tls=protocol == "h2",
    )


def _gunicorn(worker: str, options: str = "") -> OperatedServer:
    return OperatedServer(
        f"gunicorn {worker}",
        "",
        f"{GUNICORN} --backlog {{backlog}} --workers WORKERS --graceful-timeout {GRACE} "
        f"--no-control-socket --worker-class {worker}{options}{MODULE}",
        "gunicorn",
        options={
            "upgrade": "--pid {folder}/pid",
            "recycle": "--max-requests 100 --max-requests-jitter 20",
            "timeout": "--timeout 1",
            "preload": "--preload",
        },
        configuration=Configuration(
            "service.conf.py", "--config", "backlog = 2048\n", "backlog = = 2048\n"
        ),
        most=5,
        cannot=_UNTOLD,
    )


_ROUTER = "--http 127.0.0.1:{port} --http-keepalive=75"
# Whose connection dies can only be told without its router in front; and that lets a client wait on
# whose worker was killed.
_WITHOUT = "--http-socket 127.0.0.1:{port}"
SERVERS = (
    _ours("single"),
    _ours("forking", workers=2),
    _ours("threading"),
    _ours("gevent"),
    _gunicorn("sync"),
    _gunicorn("gthread", " --threads 8 --keep-alive 75"),
    OperatedServer(
        "granian",
        "",
        f"{GRANIAN} --backlog {{backlog}} --workers WORKERS --blocking-threads 8 "
        f"--respawn-failed-workers --workers-kill-timeout {GRACE}{MODULE}",
        "granian",
        options={"recycle": "--workers-lifetime 60"},
        lifetime=80,
        most=2,
        cannot={
            "upgrade": "has no such signal",
            "timeout": "has no time limit for requests",
            "preload": "has no such option",
            **_UNTOLD,
        },
    ),
    OperatedServer(
        "uWSGI",
        "",
        f"{UWSGI} --listen {{backlog}} --master --need-app "
        "--processes WORKERS --threads 8 --disable-logging --pythonpath . "
        "--module {module}:{callable} --master-fifo {folder}/fifo "
        f"--worker-reload-mercy {GRACE} --reload-mercy {GRACE} "
        "--hook-master-start unix_signal:15~gracefully_kill_them_all",
        "uWSGI",
        options={
            "recycle": f"{_ROUTER} --lazy-apps --max-requests 100 --min-worker-lifetime 1",
            "timeout": f"{_WITHOUT} --lazy-apps --harakiri 1",
            "kill": f"{_WITHOUT} --lazy-apps",
            "preload": _ROUTER,
            # Its default is to load the application first, but then a chain reload changes nothing.
            "": f"{_ROUTER} --lazy-apps",
        },
        cannot={"upgrade": "has no such signal", **_UNTOLD},
        # It drops what is pipelined.
        clients={**STEADY, "pipelining": 0},
        reload=_chain_reload,
        most=5,
        configuration=Configuration(
            "service.ini", "--ini", "[uwsgi]\nvacuum = true\n", "[uwsgi\n= \n"
        ),
    ),
)
HTTP2 = tuple(
    _http2(mode, protocol)
    for protocol in ("h2", "h2c")
    for mode in ("single", "forking", "threading", "gevent")
)
"""Ours under clients of HTTP/2."""
REFORKED = (
    replace(
        _gunicorn("sync"),
        name="gunicorn sync + preload",
        options={"refork": "--preload"},
        preloads=True,
    ),
    _reforked(),
    _reforked(1000),
    _reforked(1000, 3000),
)
"""Those of `refork`: all have loaded the application before they fork."""
