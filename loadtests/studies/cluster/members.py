"""Hosts with a server each, and a balancer before them."""

from __future__ import annotations

import re
import signal
from contextlib import ExitStack
from pathlib import Path

from loadtests.clients.strict import Connection
from loadtests.errors import ServerFailure
from loadtests.measure.waiting import HANG, wait_until
from loadtests.network.hosts import Host, Network
from loadtests.servers.poorhttp_server import PoorhttpServer
from loadtests.studies.cluster.balancer import NOTICED, PORT, Balancer

#: Where a member tells how it is.
ADMIN = 9080
HOSTS = ("one", "two", "three")
#: All hosts of the network of a cluster.
NAMES = ("client", "balancer", *HOSTS)


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
            self._app,
            "--mode",
            "threading",
            "--access-log",
            str(self.requests),
            "--access-log-format",
            "%r",
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
        self,
        network: Network,
        balancer: str,
        folder: Path,
        app: str,
        variable: str = "VERSION_FILE",
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
