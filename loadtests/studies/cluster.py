"""The study `cluster`: three hosts behind a balancer, restarted, and one of them cut off.

Each host is a network namespace (`loadtests.network`), and has a server; before them is HAProxy or
nginx. The load is steady (`loadtests.clients.steady`).
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
import signal
import socket
import statistics
import string
import subprocess
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from loadtests import programs
from loadtests.clients.steady.handle import STEADY, SteadyClients
from loadtests.clients.steady.tally import State
from loadtests.clients.strict import Connection
from loadtests.errors import LabError, ServerFailure
from loadtests.measure.cpu_affinity import USABLE
from loadtests.measure.waiting import HANG, patience, wait_until
from loadtests.network.hosts import Host, Network, Unavailable
from loadtests.reporting import faults
from loadtests.reporting.model import Axis, Column, Section, method
from loadtests.reporting.promises import Promise, all_finished, none, of_figures
from loadtests.servers.poorhttp_server import PoorhttpServer
from loadtests.servers.registry import Server
from loadtests.servers.registry.commands import configured
from loadtests.stats.results import Results, Spread
from loadtests.studies import comparison
from loadtests.studies.comparison import Measure, figures
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.study import QUICK, TINY, Scale, Study
from loadtests.studies.tables import bars, ranked, scaled

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
HOSTS_OF_ALL = ("client", "balancer", *HOSTS)


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


LAST = "last request that failed was sent after"
APPLICATION = "loadtests.apps.operated:application"
CLIENTS = {**STEADY, "patient": 10, "posting": 8, "pipelining": 0}
"""More that are in hand for a while. A balancer that answers one of several pipelined requests with
an error drops the others, so nobody sends any."""
SETTLE = 1.5
"""Seconds of load before something is done, and after it."""
GONE = 6.0
"""Seconds for which a host is cut off."""
PATIENCE = patience(30.0)
INTERVALS = {"haproxy": NOTICED, "nginx": float(CONNECT)}
"""Seconds in which a balancer has to find out that a host is gone: HAProxy by its checks; nginx has
none, and needs a request that it cannot deliver."""


@dataclass(frozen=True)
class Setup(Server):
    """A balancer, and how far away the servers are from it: seconds each way."""

    balancer: str = ""
    delay: float = 0.0


SETUPS = tuple(
    Setup(
        f"{name}{', 20 ms away' if delay else ''}",
        "",
        f"loadtests/studies/cluster.py~{name.lower()}",
        "poorhttp",
        programs=(name.lower(),),
        balancer=name.lower(),
        delay=delay,
    )
    for delay in (0.0, 0.02)
    for name in ("HAProxy", "nginx")
)


@contextlib.contextmanager
def loaded(setup: Setup) -> Iterator[tuple[Cluster, SteadyClients]]:
    """The cluster under load from clients on a host of their own.

    Raises LabError if this machine cannot make the network.
    """
    with ExitStack() as stack:
        # The lab keeps off a core, its servers need not.
        stack.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, USABLE)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="loadtests-")))
        try:
            network = stack.enter_context(Network(*HOSTS_OF_ALL))
        except Unavailable as reason:
            raise LabError(str(reason)) from None
        what = APPLICATION, "LOADTESTS_VERSION"
        cluster = stack.enter_context(Cluster(network, setup.balancer, folder, *what))
        if setup.delay:
            for member in cluster.members:
                member.host.disturb(delay=setup.delay)
        host, launcher = cluster.balancer.host.address, cluster.client.launcher
        load = stack.enter_context(SteadyClients(PORT, CLIENTS, host=host, launcher=launcher))
        time.sleep(SETTLE)
        yield cluster, load


@dataclass(frozen=True)
class Round(Trial):
    """One round of an experiment with a setup."""

    server: Setup

    def conclude(self, load: SteadyClients) -> State:
        """Ends the load, stores what it has met, and returns it."""
        time.sleep(SETTLE)
        state = load.end()
        self.figure("requests", state.requests)
        self.figure("failed", state.failed)
        self.figure("gap", state.gap, "s")
        for name in ("p50", "p99", "longest"):
            if (value := getattr(state, name)) is not None:
                self.figure(name, value, "s")
        self.faults(state.kinds, [vars(fault) for fault in state.faults], unlucky=state.unlucky)
        return state


def _told(state: State) -> str:
    return f"{state.requests:,} answered, {state.failed} failed {state.kinds or ''}"


def rolling(this: Round, how: Callable[[Member, str], None]) -> str:
    """All hosts, one after the other: the next one when the one before is in use again."""
    with loaded(this.server) as (cluster, load):
        for number, member in enumerate(cluster.members, 2):
            how(member, str(number))
            _wait(lambda: str(number) in load.state().versions, f"version {number} answers")  # noqa: B023
        state = this.conclude(load)
    this.figure("hosts restarted", len(cluster.members))
    return _told(state)


def cut(this: Round) -> str:
    """One host is cut off, and is back some seconds later."""
    with loaded(this.server) as (cluster, load):
        lost, *others = cluster.members
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

        def last() -> float:
            """When one of these has last answered."""
            seen = load.state().processes
            return max((seen[pid].last for pid in pids & seen.keys()), default=0.0)

        _wait(lambda: last() > mended, "the host is used again")
        back = time.monotonic() - mended
        state = this.conclude(load)
        elsewhere = {request for member in others for request in _requests(member)}
    arrived = [fault for fault in state.faults if fault.asked in known]
    on_the_way = [
        fault
        for fault in state.faults
        if fault.asked not in known | elsewhere and fault.began <= at + noticed
    ]
    had, way = (sum(fault.requests for fault in faults) for faults in (arrived, on_the_way))
    last_sent = max((fault.began - at for fault in state.faults), default=0.0)
    last_told = max((fault.at - at for fault in state.faults), default=0.0)
    for name, value, unit in (
        ("in its hands", in_hand, ""),
        ("failed that it had in hand", had, ""),
        ("failed on the way to it", way, ""),
        ("failed otherwise", state.failed - had - way, ""),
        ("noticed after", noticed, "s"),
        (LAST, max(0.0, last_sent), "s"),
        ("last client was told after", last_told, "s"),
        ("used again after", back, "s"),
    ):
        this.figure(name, value, unit)
    return f"{in_hand} in its hands, noticed after {noticed:.2f} s; {_told(state)}"


def _requests(member: Member) -> list[str]:
    """The request lines that a server has had in hand."""
    return member.requests.read_text(encoding="latin-1").splitlines()


def _wait(condition: Callable[[], bool], what: str) -> None:
    if not wait_until(condition, PATIENCE, 0.01):
        raise ServerFailure(f"not in {PATIENCE:.0f} s: {what}")


EXPERIMENTS: dict[str, Callable[[Round], str]] = {
    "rolling-reload": partial(rolling, how=Member.reload),
    "rolling-replace": partial(rolling, how=Member.replace),
    "cut": cut,
}


def plan(lab: Lab, scale: Scale, setups: Sequence[Setup], options: Namespace) -> list[Step]:
    """All rounds of the chosen experiments, every setup once a round."""
    return [
        Round(lab, name, number, setup).step(EXPERIMENTS[name])
        for name in options.names
        for number in range(lab.rounds)
        for setup in setups
    ]


NAMES = {setup.name: setup.name for setup in SETUPS}


def _none(experiment: str, what: str, figure: str = "failed") -> Promise:
    return none(experiment, f"failed requests {what}", NAMES, figure)


def _until(name: str, what: str) -> Promise:
    names = {setup.name: setup.name for setup in SETUPS if setup.balancer == name}
    what = f"seconds until requests sent from then on no longer fail: {what}"
    return of_figures("cut", what, INTERVALS[name], "s", names, (LAST,), max)


PROMISES = (
    _none("rolling-reload", "while three hosts reload in turn (HUP)"),
    _none("rolling-replace", "while three hosts are replaced in turn (TERM, then a new server)"),
    _none("cut", "when a host is cut off, except those in flight at this host", "failed otherwise"),
    _until("haproxy", "HAProxy, the interval of its checks times the failures it waits for"),
    _until("nginx", "nginx, its limit for an attempt to connect"),
    all_finished(NAMES),
)


def _sum(name: str, figure: str = "") -> Measure:
    return figures(Column(name), sum, figure or name)


def _longest(name: str, figure: str = "") -> Measure:
    return figures(Column(name, "s", 2), max, figure or name)


GAP = "longest time without any answer"
COMMON = (figures(Column(GAP, "ms", 0, 1e3), max, "gap"), _sum("requests"))
P50, P99 = (figures(Column(name, "ms", 1, 1e3), statistics.median) for name in ("p50", "p99"))
SLOWEST = figures(Column("slowest quick request", "ms", 0, 1e3), max, "longest")
ROUNDS = figures(Column("rounds"), lambda found: float(len(found)), "requests")
LOAD = (*COMMON, _sum("failed"), P50, P99, SLOWEST, ROUNDS)
CUT = (
    *COMMON,
    _sum("in its hands"),
    _sum("of them failed", "failed that it had in hand"),
    _sum("failed on the way to it"),
    _sum("failed otherwise"),
    _longest("balancer knew after", "noticed after"),
    _longest("last that failed was sent after", LAST),
    _longest("last client was told after"),
    _longest("used again after"),
    *(P99, ROUNDS),
)
KINDS = {
    "rolling-reload": ("Three hosts reload in turn (HUP)", LOAD),
    "rolling-replace": ("Three hosts are replaced in turn (TERM, then a new server)", LOAD),
    "cut": (f"One host is cut off for {GONE:.0f} s", CUT),
}


def report(results: Results) -> list[Section]:
    """A section for each experiment of which something was measured, and how it was measured."""
    sections = [
        _section(results, experiment, title, measures)
        for experiment, (title, measures) in KINDS.items()
        if any(results.values(experiment, name, "requests") for name in NAMES)
    ]
    clients, interval = sum(CLIENTS.values()), INTERVAL * 1000
    how = method(__file__, clients=clients, interval=interval, fall=FALL, read=READ)
    return [*sections, *faults.sections("cluster", results), how]


def _section(results: Results, experiment: str, title: str, measures: Sequence[Measure]) -> Section:
    def total(figure: str) -> str:
        return f"{sum(sum(results.values(experiment, name, figure)) for name in names):,.0f}"

    gaps = {
        name: scaled(Spread(max(found), min(found), max(found), len(found)), 1e3)
        for name in NAMES
        if (found := results.values(experiment, name, "gap"))
    }
    known = [name for name in NAMES if results.values(experiment, name, "requests")]
    names = ranked(gaps, known)
    answer = f"{total('failed')} of {total('requests')} requests failed"
    if gaps:
        longest, name = max((found.median, name) for name, found in gaps.items())
        answer += f"; the longest time without any answer was {longest:,.0f} ms ({name})"
    return Section(
        title,
        parts=[
            bars(
                f"cluster-{experiment}",
                f"{title}: {GAP}",
                Axis(GAP, "ms", low=0),
                {"": gaps},
                subtitle="The longest and the shortest of the rounds; less is better",
            ),
            comparison.of_figures(
                *(results, experiment, f"cluster-{experiment}", names),
                *(measures, GAP, "balancer"),
            ),
        ],
        answer=f"{answer}.",
    )


STUDY = Study(
    "cluster",
    "restart three hosts behind a balancer, and cut one off, under load",
    "",
    lambda: SETUPS,
    plan,
    report,
    promises=PROMISES,
    experiments=tuple(EXPERIMENTS),
    scales=(Scale("full", 5, 0.1), QUICK, TINY),
)
