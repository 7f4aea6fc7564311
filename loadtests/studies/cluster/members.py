"""Hosts with a server each, and HAProxy or nginx before them."""

from __future__ import annotations

import csv
import os
import re
import signal
import socket
import string
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from loadtests import programs
from loadtests.clients.strict import Connection
from loadtests.errors import ServerFailure
from loadtests.measure.waiting import HANG, wait_until
from loadtests.network.hosts import Host, Network
from loadtests.servers.poorhttp_server import PoorhttpServer
from loadtests.servers.registry.commands import configured

PORT = 8080
#: Seconds between two health checks of HAProxy, and how many must fail.
INTERVAL, FALL = 0.25, 2
#: Seconds until HAProxy knows that a server is gone, or not ready: a check has just begun when that
#: happens, and each that fails waits for an interval.
NOTICED = 2 * FALL * INTERVAL
#: Seconds after which both give up an attempt to connect.
CONNECT = 1
#: Seconds after which HAProxy gives up a connection on which the host acknowledges nothing. (tcp-ut
#: of default-server is not heard by HAProxy 2.6.)
SILENT = 3
#: Seconds in which a health check must have been answered, once there is a connection, and an
#: application must have begun its answer, behind nginx: it has nothing else by which to find out
#: that a host is gone which has a request in hand.
READ = 3
#: Where a member tells how it is.
ADMIN = 9080
HOSTS = ("one", "two", "three")
#: All hosts of the network of a cluster.
NAMES = ("client", "balancer", *HOSTS)


class Balancer:
    """One of the two, on `host`, before servers at `PORT` of other hosts.

    `check` is the path that HAProxy asks for.
    """

    def __init__(
        self, name: str, host: Host, servers: Sequence[Host], folder: Path, check: str
    ) -> None:
        self.name = name
        self.host = host
        self.folder = folder
        self.log = folder / "log"
        program = programs.path(name)
        config = folder / f"{name}.cfg"
        values = {
            "folder": folder,
            "address": host.address,
            "port": PORT,
            "check": check,
            "connect": CONNECT,
            "read": READ,
            "interval": round(INTERVAL * 1000),
            "fall": FALL,
        }
        if name == "haproxy":
            template, ends = "haproxy-cluster.cfg", f"tcp-ut {SILENT}s"
            lines = [f"    server {one.name} {one.address}:{PORT} {ends}" for one in servers]
            command = [program, "-db", "-f", str(config)]
        else:
            template, ends = "nginx/cluster.conf", "max_fails=2 fail_timeout=2s"
            lines = [f"        server {one.address}:{PORT} {ends};" for one in servers]
            command = [program, "-e", "stderr", "-p", str(folder), "-c", str(config)]
            if os.geteuid() == 0:
                # Else it becomes another user, who may not write into the folder.
                command += ["-g", "user root;"]
        text = configured(template, SERVERS="\n".join(lines))
        config.write_text(string.Template(text).substitute(values))
        command, nothing = [*host.launcher, *command], subprocess.DEVNULL
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=nothing, stdout=log, stderr=log)

    def __enter__(self) -> Balancer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(HANG)

    def connect(self, client: Host) -> Connection:
        with client.inside():
            return Connection((self.host.address, PORT))

    def is_ready(self, client: Host) -> bool:
        """Whether it lets clients in, and HAProxy sends requests to all servers."""
        assert self._process.poll() is None, self.log.read_text()
        try:
            self.connect(client).close()
            return set(self._states().values()) <= {"UP"}
        except (ConnectionRefusedError, FileNotFoundError):
            return False

    def misses(self, server: Host) -> bool:
        """Whether it has found out that a server is gone: HAProxy now, nginx at any time."""
        if self.name == "nginx":
            return f"http://{server.address}:{PORT}/" in self.log.read_text()
        return self._states()[server.name] != "UP"

    def _states(self) -> dict[str, str]:
        """What HAProxy tells of each server: UP, DOWN, or what is between them. nginx is mute."""
        if self.name == "nginx":
            return {}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.folder / "haproxy.sock"))
            connection.sendall(b"show stat\n")
            said = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        rows = csv.DictReader(said.removeprefix("# ").splitlines())
        return {
            row["svname"]: row["status"]
            for row in rows
            if row["svname"] not in ("FRONTEND", "BACKEND")
        }


class Member:
    """A host with a server, whose application has versions of its own.

    The application finds its version in the file that `variable` names. `requests` is where the
    server writes the request line of each request that it has had in hand.
    """

    def __init__(
        self, host: Host, folder: Path, app: str, variable: str, options: tuple[str, ...]
    ) -> None:
        folder.mkdir()
        self.host = host
        self.requests = folder / "access"
        self._version = folder / "version"
        self._set("1")
        self._app = app
        self._variable = variable
        self._options = options
        self.server = self._start()

    def _set(self, version: str) -> None:
        """Replaces it at once: a worker that starts at this moment must not read half of it."""
        new = self._version.with_name("version.new")
        new.write_text(version)
        new.replace(self._version)

    def _start(self) -> PoorhttpServer:
        return PoorhttpServer(
            *(self._app, "--mode", "threading"),
            *("--access-log", str(self.requests), "--access-log-format", "%r"),
            *self._options,
            bind=f"{self.host.address}:{PORT}",
            environ={self._variable: str(self._version)},
            launcher=self.host.launcher,
        )

    def __enter__(self) -> Member:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            # Without the delay that balancers need.
            self.server.stop(signal.SIGINT)
        else:
            self.server.kill()

    def pids(self) -> list[int]:
        """Its workers."""
        found = re.findall(r'^poorhttp_worker_info\{.*pid="(\d+)"', self._metrics(), re.MULTILINE)
        return list(map(int, found))

    def in_hand(self) -> int:
        """How many requests its application has."""
        metrics = self._metrics()
        found = re.search(r"^poorhttp_requests_in_hand (\d+)$", metrics, re.MULTILINE)
        assert found, metrics
        return int(found[1])

    def _metrics(self) -> str:
        """What it tells on the host itself, which may be cut off."""
        with self.host.inside(), Connection(("127.0.0.1", ADMIN)) as connection:
            return connection.request("GET", "/-/metrics").body.decode()

    def reload(self, version: str) -> None:
        self._set(version)
        self.server.process.send_signal(signal.SIGHUP)

    def replace(self, version: str) -> None:
        """End the server as an administrator does, and start another one."""
        self._set(version)
        self.server.stop()
        self.server = self._start()


class Cluster:
    """Three members behind a balancer, which is HAProxy or nginx."""

    def __init__(
        self, network: Network, balancer: str, folder: Path, app: str, variable: str
    ) -> None:
        self.client = network["client"]
        # HAProxy asks; nginx does not, and there what was refused goes to another server.
        delay = NOTICED + 0.5 if balancer == "haproxy" else 0
        options = ("--health", "/-", "--drain-delay", str(delay), "--admin", f"127.0.0.1:{ADMIN}")
        with ExitStack() as stack:
            self.members = [
                stack.enter_context(Member(network[name], folder / name, app, variable, options))
                for name in HOSTS
            ]
            hosts = [member.host for member in self.members]
            self.balancer = Balancer(balancer, network["balancer"], hosts, folder, "/-/ready")
            stack.enter_context(self.balancer)
            if not wait_until(lambda: self.balancer.is_ready(self.client), HANG):
                raise ServerFailure(f"{balancer} does not use {HOSTS} within {HANG:.0f} s")
            self._stack = stack.pop_all()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *reason: object) -> None:
        self._stack.__exit__(*reason)  # type: ignore[arg-type]

    def connect(self) -> Connection:
        """A connection of the client with the balancer."""
        return self.balancer.connect(self.client)
