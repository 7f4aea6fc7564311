"""HAProxy and nginx before several hosts of a network."""

from __future__ import annotations

import csv
import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from loadtests import programs
from loadtests.clients.strict import Connection
from loadtests.measure.waiting import HANG
from loadtests.network.hosts import Host

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

HAPROXY = """\
global
    stats socket {folder}/haproxy.sock mode 600 level user
    maxconn 1000
    nbthread 1

defaults
    mode http
    timeout connect {connect}s
    timeout client 60s
    timeout server 60s
    timeout http-keep-alive 60s
    # For the answer to a check, or it would be `inter`: on a busy machine no server would be up.
    timeout check {read}s
    # Who cannot be reached has not had the request: another one gets it, at once.
    retries 3
    option redispatch 1
    retry-on conn-failure empty-response

listen cluster
    bind {address}:{port}
    # One that was sent may have had its effect, unless its method is safe.
    http-request disable-l7-retry unless METH_GET
    balance roundrobin
    option httpchk
    http-check send meth GET uri {check} ver HTTP/1.1 hdr Host health
    http-check expect status 200
    # A host that is gone ends no connection: TCP asks those that wait for it for signs of life.
    # (on-marked-down shutdown-sessions would also end what a host has in hand that is only slow.)
    option srvtcpka
    srvtcpka-idle 1s
    srvtcpka-intvl 1s
    srvtcpka-cnt 2
    default-server check inter {interval}ms fall {fall} rise 1
{servers}
"""

NGINX = """\
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/fastcgi;
    scgi_temp_path {folder}/scgi;
    uwsgi_temp_path {folder}/uwsgi;
    # Clients of the test expect that a connection is kept as long as they want.
    keepalive_requests 1000000;
    upstream cluster {{
{servers}
        keepalive 16;
        # Less than drain_timeout: who lets go first never sends into a connection that is closed.
        keepalive_timeout 900ms;
    }}
    server {{
        listen {address}:{port};
        client_max_body_size 0;
        location / {{
            proxy_pass http://cluster;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_connect_timeout {connect}s;
            proxy_read_timeout {read}s;
            proxy_next_upstream error timeout;
        }}
    }}
}}
"""


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
            lines = [
                f"    server {server.name} {server.address}:{PORT} tcp-ut {SILENT}s"
                for server in servers
            ]
            config.write_text(HAPROXY.format(servers="\n".join(lines), **values))
            command = [program, "-db", "-f", str(config)]
        else:
            lines = [
                f"        server {server.address}:{PORT} max_fails=2 fail_timeout=2s;"
                for server in servers
            ]
            config.write_text(NGINX.format(servers="\n".join(lines), **values))
            command = [program, "-e", "stderr", "-p", str(folder), "-c", str(config)]
            if os.geteuid() == 0:
                # Else it becomes another user, who may not write into the folder.
                command += ["-g", "user root;"]
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
        """A connection from a host."""
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
