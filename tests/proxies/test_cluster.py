"""Three hosts behind HAProxy and nginx, each with an address of its own in a network namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loadtests.network.hosts import Network
from loadtests.studies.cluster.members import NAMES, Cluster, Member
from tests.packages import need
from tests.support.each_value import each_value
from tests.support.load import Load
from tests.support.network import hosts
from tests.testkit.client import Closed, Connection
from tests.testkit.server import wait_for

APP = "tests.apps.clustered:application"


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """A client, a balancer and three servers at a switch."""
    with hosts(*NAMES) as network:
        yield network


@pytest.fixture(scope="module", params=["haproxy", "nginx"])
def cluster(
    request: pytest.FixtureRequest, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Each test leaves it as it was."""
    need(request.param)
    with Cluster(network, request.param, tmp_path_factory.mktemp("cluster"), APP) as cluster:
        yield cluster


def clients(cluster: Cluster) -> Load:
    """They are on a host of their own."""
    return Load(cluster.connect, clients=4)


def numbers(member: Member) -> set[int]:
    """The requests of a load that its application has had in hand."""
    found = re.findall(r"^[A-Z]+ /\d*\?(\d+) ", member.requests.read_text(), re.MULTILINE)
    return set(map(int, found))


def test_one_is_cut_off(cluster: Cluster, tmp_path: Path) -> None:
    """What it has in hand fails, and what is sent to it before that is known; nothing else.

    First: what a balancer has missed before it does not forget.
    """
    gate = tmp_path / "gate"
    lost, *others = cluster.members
    with clients(cluster) as load, ExitStack() as stack:
        load.wait_more(30)
        waiting: list[Connection] = []
        while f"entered {gate}\n" not in lost.server.log():
            connection = stack.enter_context(cluster.connect())
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
        load.wait_more(100)
        lost.host.mend()
        load.pids.clear()
        load.wait_pids(lost.pids())
    for member in others:
        assert not load.failed & numbers(member), load.faults
    assert all(number < known for number in load.failed), (known, load.faults)


@pytest.mark.parametrize("cluster", ["haproxy"], indirect=True)
def test_far_away(cluster: Cluster) -> None:
    """Long and lossy ways make everything slow, and nothing wrong."""
    hosts = [member.host for member in cluster.members]
    try:
        for host in hosts:
            host.disturb(delay=0.02, loss=0.01)
        with clients(cluster) as load:
            for member in cluster.members:
                load.wait_pids(member.pids())
            load.wait_more(100)
        load.check()
    finally:
        for host in hosts:
            host.disturb()


@pytest.mark.parametrize(
    ("cluster", "how"),
    each_value(["haproxy", "nginx"], ["replace", "reload"]),
    indirect=["cluster"],
)
def test_rolling_restart(cluster: Cluster, how: str) -> None:
    """One after the other; each is in use before, and must be again before the next.

    The delay of a stop is enough for HAProxy: it takes two refusals that are soon apart.
    """
    with clients(cluster) as load:
        for member in cluster.members:
            load.wait_pids(member.pids())
        for number, member in enumerate(cluster.members, 2):
            getattr(member, how)(str(number))
            load.wait_version(str(number))
        load.wait_more(100)
    load.check()


def entered(gate: Path, cluster: Cluster) -> int:
    """How many requests wait at a gate."""
    return sum(member.server.log().count(f"entered {gate}\n") for member in cluster.members)


def answered(connection: Connection) -> int:
    """The status of an answer; 0 if there is none."""
    try:
        return connection.response("POST").status
    except Closed:
        return 0
