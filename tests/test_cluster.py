"""Three hosts behind HAProxy and nginx, each with an address of its own in a network namespace."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.balancer import PORT, Balancer
from tests.client import Closed, Connection
from tests.load import Load
from tests.network import Host, Network, Unavailable
from tests.process import children
from tests.server import Server, wait_for
from tests.versions import Versions

APP = "tests.apps.clustered:application"
HOSTS = ("one", "two", "three")


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """A client, a balancer and three servers at a switch."""
    try:
        network = Network("client", "balancer", *HOSTS)
    except Unavailable as reason:
        pytest.skip(str(reason))
    with network:
        yield network


class Member:
    """A host with a server, whose application has versions of its own."""

    def __init__(self, host: Host, folder: Path) -> None:
        folder.mkdir()
        self.host = host
        self.requests = folder / "access"
        self.versions = Versions(folder)
        self.server = self._start()

    def _start(self) -> Server:
        return Server(
            APP,
            "threading",
            "--access-log",
            str(self.requests),
            "--access-log-format",
            "%r",
            bind=(f"{self.host.address}:{PORT}",),
            env={"VERSION_FILE": str(self.versions.path)},
            launcher=self.host.launcher,
        )

    def __enter__(self) -> Member:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # The one that runs now.
        self.server.__exit__(kind)

    def pids(self) -> list[int]:
        """Its workers."""
        return children(self.server.process.pid)

    def numbers(self) -> set[int]:
        """The requests that its application has had in hand."""
        found = re.findall(r"^[A-Z]+ /\d*\?(\d+) ", self.requests.read_text(), re.MULTILINE)
        return set(map(int, found))

    def reload(self, version: str) -> None:
        """Have the workers load a version."""
        self.versions.set(version)
        self.server.process.send_signal(signal.SIGHUP)

    def replace(self, version: str) -> None:
        """End the server as an administrator does, and start another one."""
        self.versions.set(version)
        self.server.stop()
        self.server = self._start()


class Cluster:
    """Three members behind a balancer."""

    def __init__(self, balancer: Balancer, members: list[Member], client: Host) -> None:
        self.balancer = balancer
        self.members = members
        self.client = client

    def load(self) -> Load:
        """Clients on a host of their own."""
        return Load(lambda: self.balancer.connect(self.client), clients=12)


@pytest.fixture(params=["haproxy", "nginx"])
def cluster(request: pytest.FixtureRequest, network: Network, tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        members = [stack.enter_context(Member(network[host], tmp_path / host)) for host in HOSTS]
        hosts = [member.host for member in members]
        balancer = Balancer(request.param, network["balancer"], hosts, tmp_path, "/")
        stack.enter_context(balancer)
        wait_for(lambda: balancer.is_ready(network["client"]), "the balancer")
        yield Cluster(balancer, members, network["client"])


def test_all_are_asked(cluster: Cluster) -> None:
    with cluster.load() as load:
        for member in cluster.members:
            load.wait_pids(member.pids())
    load.check()


def test_far_away(cluster: Cluster) -> None:
    """Long and lossy ways make everything slow, and nothing wrong."""
    hosts = [member.host for member in cluster.members]
    try:
        for host in hosts:
            host.disturb(delay=0.02, loss=0.01)
        with cluster.load() as load:
            for member in cluster.members:
                load.wait_pids(member.pids())
            load.wait_more(300)
        load.check()
    finally:
        for host in hosts:
            host.disturb()


@pytest.mark.parametrize("how", ["reload", "replace"])
def test_rolling_restart(cluster: Cluster, how: str) -> None:
    """One after the other; each must be in use again before the next."""
    with cluster.load() as load:
        load.wait_more(100)
        for number, member in enumerate(cluster.members, 2):
            getattr(member, how)(str(number))
            load.wait_version(str(number))
        load.wait_more(100)
    load.check()


def test_one_is_cut_off(cluster: Cluster, tmp_path: Path) -> None:
    """What it has in hand fails, and what is sent to it before that is known; nothing else."""
    gate = tmp_path / "gate"
    lost, *others = cluster.members
    with cluster.load() as load, ExitStack() as stack:
        load.wait_more(100)
        waiting: list[Connection] = []
        while f"entered {gate}\n" not in lost.server.log():
            connection = stack.enter_context(cluster.balancer.connect(cluster.client))
            connection.send_request("POST", f"/wait?{gate}", body=b"x")
            waiting.append(connection)
            wait_for(lambda: entered(gate, cluster) == len(waiting), "the request in hand")
        assert not cluster.balancer.misses(lost.host)
        lost.host.cut()
        gate.touch()
        answers = [answered(connection) for connection in waiting]
        assert answers[-1] != 200
        assert set(answers[:-1]) <= {200}
        wait_for(lambda: cluster.balancer.misses(lost.host), "that it is gone")
        known = load.number()
        load.wait_more(300)
        lost.host.mend()
        load.pids.clear()
        load.wait_pids(lost.pids())
    for member in others:
        assert not load.failed & member.numbers(), load.faults
    assert all(number < known for number in load.failed), (known, load.faults)


def entered(gate: Path, cluster: Cluster) -> int:
    """How many requests wait at a gate."""
    return sum(member.server.log().count(f"entered {gate}\n") for member in cluster.members)


def answered(connection: Connection) -> int:
    """The status of an answer; 0 if there is none."""
    try:
        return connection.response("POST").status
    except Closed:
        return 0
