"""The experiments of `cluster`: each round makes a new network, servers and a load."""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from loadtests.clients.steady.handle import STEADY, Fault, State, SteadyClients
from loadtests.errors import LabError, ServerFailure
from loadtests.measure.cpu_affinity import USABLE
from loadtests.measure.waiting import wait_until
from loadtests.servers.registry import Server
from loadtests.studies.engine import Lab, Step
from loadtests.studies.study import Scale
from loadtests.studies.trial import Trial
from tests.testkit.balancer import CONNECT, NOTICED, PORT
from tests.testkit.cluster import NAMES, Cluster, Member
from tests.testkit.network.hosts import Network, Unavailable

APPLICATION = "loadtests.apps.operated:application"
CLIENTS = {**STEADY, "patient": 10, "posting": 8, "pipelining": 0}
"""More that are in hand for a while. A balancer that answers one of several pipelined requests with
an error drops the others, so nobody sends any."""
SETTLE = 1.5
"""Seconds of load before something is done, and after it."""
GONE = 6.0
"""Seconds for which a host is cut off."""
PATIENCE = 30.0
INTERVALS = {"haproxy": NOTICED, "nginx": float(CONNECT)}
"""Seconds in which a balancer has to find out that a host is gone: HAProxy by its checks; nginx has
none, and needs a request that it cannot deliver."""


@dataclass(frozen=True)
class Setup:
    """A balancer, and how far away the servers are from it: seconds each way."""

    name: str
    balancer: str
    delay: float

    def server(self) -> Server:
        """Under whose name results are stored."""
        command = f"tests/testkit/cluster.py~{self.balancer}"
        return Server(self.name, "", command, "poorhttp", compared=False, programs=(self.balancer,))


SETUPS = tuple(
    Setup(f"{name}{', 20 ms away' if delay else ''}", name.lower(), delay)
    for delay in (0.0, 0.02)
    for name in ("HAProxy", "nginx")
)


@contextlib.contextmanager
def running(setup: Setup) -> Iterator[Cluster]:
    """The cluster. Raises LabError if this machine cannot make the network."""
    with contextlib.ExitStack() as stack:
        # The lab keeps off a core, its servers need not.
        stack.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, USABLE)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="loadtests-"))
        try:
            network = stack.enter_context(Network(*NAMES))
        except Unavailable as reason:
            raise LabError(str(reason)) from None
        cluster = stack.enter_context(
            Cluster(
                network, setup.balancer, Path(folder), APPLICATION, variable="LOADTESTS_VERSION"
            )
        )
        if setup.delay:
            for member in cluster.members:
                member.host.disturb(delay=setup.delay)
        yield cluster


def loaded(cluster: Cluster) -> SteadyClients:
    """Clients on a host of their own."""
    return SteadyClients(
        PORT, CLIENTS, host=cluster.balancer.host.address, launcher=cluster.client.launcher
    )


@dataclass(frozen=True)
class Round(Trial):
    """One round of an experiment with a setup."""

    setup: Setup

    def conclude(self, state: State) -> str:
        """Stores what the load has met; tells it."""
        self.figure("requests", state.requests)
        self.figure("failed", state.failed)
        self.figure("gap", state.gap, "s")
        for name, value in (("p50", state.p50), ("p99", state.p99), ("longest", state.longest)):
            if value is not None:
                self.figure(name, value, "s")
        self.faults(state.kinds, [vars(fault) for fault in state.faults], unlucky=state.unlucky)
        return f"{state.requests:,} answered, {state.failed} failed {state.kinds or ''}"


def rolling(how: Callable[[Member, str], None]) -> Callable[[Round], str]:
    """All hosts, one after the other: the next one when the one before is in use again."""

    def run(this: Round) -> str:
        with running(this.setup) as cluster, loaded(cluster) as load:
            time.sleep(SETTLE)
            for number, member in enumerate(cluster.members, 2):
                how(member, str(number))
                _wait(lambda: str(number) in load.state().versions, f"version {number} answers")  # noqa: B023
            time.sleep(SETTLE)
            state = load.end()
        this.figure("hosts restarted", len(cluster.members))
        return this.conclude(state)

    return run


def cut(this: Round) -> str:
    """One host is cut off, and is back some seconds later."""
    with running(this.setup) as cluster, loaded(cluster) as load:
        lost, *others = cluster.members
        time.sleep(SETTLE)
        at = time.monotonic()
        lost.host.cut()
        in_hand = lost.in_hand()
        _wait(lambda: cluster.balancer.misses(lost.host), "the balancer misses a host")
        noticed = time.monotonic() - at
        time.sleep(max(0.0, at + GONE - time.monotonic()))
        known = set(_requests(lost))
        lost.host.mend()
        mended = time.monotonic()
        pids = set(lost.pids())
        _wait(lambda: _last(load.state(), pids) > mended, "the host is used again")
        back = time.monotonic() - mended
        time.sleep(SETTLE)
        state = load.end()
        elsewhere = {request for member in others for request in _requests(member)}
    arrived = [fault for fault in state.faults if fault.asked in known]
    lost_on_the_way = [
        fault
        for fault in state.faults
        if fault not in arrived and fault.asked not in elsewhere and fault.began <= at + noticed
    ]
    others_failed = state.failed - _count(arrived) - _count(lost_on_the_way)
    this.figure("in its hands", in_hand)
    this.figure("failed that it had in hand", _count(arrived))
    this.figure("failed on the way to it", _count(lost_on_the_way))
    this.figure("failed otherwise", others_failed)
    this.figure("noticed after", noticed, "s")
    last_sent = max((fault.began - at for fault in state.faults), default=0.0)
    this.figure("last request that failed was sent after", max(0.0, last_sent), "s")
    last_told = max((fault.at - at for fault in state.faults), default=0.0)
    this.figure("last client was told after", last_told, "s")
    this.figure("used again after", back, "s")
    return f"{in_hand} in its hands, noticed after {noticed:.2f} s; {this.conclude(state)}"


def _count(faults: Sequence[Fault]) -> int:
    return sum(fault.requests for fault in faults)


def _requests(member: Member) -> list[str]:
    """The request lines that a server has had in hand."""
    return member.requests.read_text(encoding="latin-1").splitlines()


def _last(state: State, pids: set[int]) -> float:
    """When one of these has last answered."""
    return max((seen.last for pid, seen in state.processes.items() if pid in pids), default=0.0)


def _wait(condition: Callable[[], bool], what: str) -> None:
    if not wait_until(condition, PATIENCE, 0.01):
        raise ServerFailure(f"not in {PATIENCE:.0f} s: {what}")


EXPERIMENTS: dict[str, Callable[[Round], str]] = {
    "rolling-reload": rolling(Member.reload),
    "rolling-replace": rolling(Member.replace),
    "cut": cut,
}


def plan(
    lab: Lab, scale: Scale, setups: Sequence[Setup], options: argparse.Namespace
) -> list[Step]:
    """All rounds of the chosen experiments, every setup once a round."""
    del scale
    return [
        Step(
            this.server,
            f"{name}, round {this.number + 1} of {lab.rounds}, {this.server.name}",
            partial(EXPERIMENTS[name], this),
        )
        for name in options.names
        for number in range(lab.rounds)
        for setup in setups
        for this in [Round(lab, name, number, setup.server(), setup)]
    ]
