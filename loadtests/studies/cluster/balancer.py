"""HAProxy and nginx before several hosts of a network."""

from __future__ import annotations

import csv
import os
import socket
import string
import subprocess
from collections.abc import Sequence
from pathlib import Path

from loadtests import programs
from loadtests.clients.strict import Connection
from loadtests.measure.waiting import HANG
from loadtests.network.hosts import Host
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
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*host.launcher, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

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
