"""Runs of the study `show`: memory, start, and a request beside one that sleeps."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from loadtests.clients.connection import Connection, request_bytes
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.machine import allow_files
from loadtests.servers import registry
from loadtests.servers.running import Running
from loadtests.studies import engine
from loadtests.studies.bench import scenarios
from loadtests.studies.bench.scenarios import Scenario
from loadtests.studies.engine import Lab, Step, Trial

IDLE_CONNECTIONS = 10_000
WARM_CONNECTIONS = 100
PER_ADDRESS = 4_000
LIGHT_REQUESTS = 1_000
LIGHT_CLIENTS = 8
SINGLE, THREADING, GEVENT = "poorhttp single", "poorhttp threading 8", "poorhttp gevent"
UNMONITORED, MONITORED = "poorhttp single, no monitoring", "poorhttp single + monitoring"

LOADED: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    # CPU per request against the floor and the best peers, and pipelining.
    "cost": (
        (
            *("floor", SINGLE, "poorhttp single + log"),
            *("fastpysgi", "fastwsgi", "bjoern", "granian 1 thread"),
        ),
        ("hello-1", "hello-64", "hello-512", "browser-64", "hello-64x16"),
    ),
    # Eight threads beside one, where the handler is tiny.
    "threads": ((SINGLE, THREADING), ("hello-1", "hello-2", "hello-64", "hello-512")),
    # 32 threads, 32 connections, a handler that sleeps 10 ms.
    "sleepers": (("poorhttp threading 32",), ("sleep10ms-32",)),
    # The latency of four connections while another request sleeps a second, again and again.
    "neighbours": ((THREADING, GEVENT), ("beside-4",)),
    # Our gevent mode beside gevent's own server and gunicorn's gevent worker.
    "gevent": ((GEVENT, "gevent pywsgi", "gunicorn gevent"), ("hello-64",)),
    # Process titles (the default), the figures of `admin`, and both with ids of requests, beside a
    # server without any of them.
    "monitoring": ((UNMONITORED, SINGLE, "poorhttp single + admin", MONITORED), ("hello-64",)),
    # Two workers beside one, all cores free for both server and client. The client needs a core,
    # too, so the handler computes: then wrk takes a percent or two of it.
    "forking": (("poorhttp forking 1", "poorhttp forking 2"), ("burn-16",)),
}
"""Experiments that load servers with scenarios."""


@contextlib.contextmanager
def _sleeping(port: int) -> Iterator[None]:
    """Keeps one request of one second running until the block ends."""
    request, stop = request_bytes("/?seconds=1"), threading.Event()
    answers: list[object] = []

    def run() -> None:
        while not stop.is_set():
            # Its absence is noticed by the number of answers.
            with contextlib.suppress(OSError, ServerFailure), Connection(port) as connection:
                while not stop.is_set():
                    answers.append(connection.ask(request))
            stop.wait(0.1)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if not answers:
        raise ServerFailure("the sleeping request was never answered")


def _neighbours(trial: Trial, scenario: Scenario) -> str:
    with trial.started(scenario) as running, _sleeping(running.port):
        sample = trial.take(scenario, running)
    return f"p99 {sample['p99_us'] / 1000:.2f} ms, worst {sample['max_us'] / 1000:.2f} ms"


def _memory(this: Trial) -> str:
    """After 1,000 requests for a bare WSGI `light`, from clients enough for all workers."""
    with Running(this.server, scenarios.LIGHT) as running:
        with ThreadPoolExecutor(LIGHT_CLIENTS) as clients:
            share = [LIGHT_REQUESTS // LIGHT_CLIENTS] * LIGHT_CLIENTS
            list(clients.map(partial(ask_often, running), share))
        used = this.memory(running, "{}")
    return f"PSS {used.pss / 2**20:.1f} MiB in {used.processes} processes"


def _idle(this: Trial) -> str:
    """What 10,000 idle keep-alive connections add to private memory, each having had an answer."""
    allow_files(IDLE_CONNECTIONS + WARM_CONNECTIONS + 200)
    with Running(this.server, scenarios.HELLO) as running, contextlib.ExitStack() as stack:
        connections: list[Connection] = []
        try:
            _open(running, connections, stack, WARM_CONNECTIONS)
            before = resources.memory(running.processes())
            _open(running, connections, stack, IDLE_CONNECTIONS)
            time.sleep(0.5)
            after = resources.memory(running.processes())
            for connection in random.Random(1).sample(connections, 200):
                connection.ask(running.request)
        except (OSError, ServerFailure) as error:
            raise ServerFailure(f"with {len(connections):,} connections open: {error}") from None
    each = (after.uss - before.uss) / IDLE_CONNECTIONS
    this.figure("bytes per connection", round(each, 1), "bytes")
    return f"{each:,.0f} bytes per connection"


def _open(
    running: Running, connections: list[Connection], stack: contextlib.ExitStack, count: int
) -> None:
    """Opens connections and lets each have one answer; several addresses, for ports are few."""
    for _ in range(count):
        source = f"127.0.0.{1 + len(connections) // PER_ADDRESS}"
        connections.append(stack.enter_context(Connection(running.port, source=source)))
        answer = connections[-1].ask(running.request)[0]
        if answer.status != running.answer.status:
            raise ServerFailure(f"a connection was answered {answer.status}")


def _start(this: Trial) -> str:
    """From exec to the first complete answer, `hello`."""
    with this.running(scenarios.HELLO) as running:
        taken = running.first_answer_seconds
    this.figure("seconds", round(taken, 5), "s")
    return f"{taken * 1000:.0f} ms"


ALONE: dict[str, tuple[Callable[[Trial], str], Sequence[str]]] = {
    "memory": (_memory, (SINGLE, THREADING, "poorhttp forking 4", "bjoern", "gunicorn sync 4")),
    "idle": (_idle, (SINGLE, THREADING, "fastpysgi", "fastwsgi", "bjoern", "granian")),
    "start": (
        _start,
        (
            *(SINGLE, THREADING, GEVENT),
            *("bjoern", "granian", "gunicorn gthread 8", "waitress 8 threads"),
        ),
    ),
}
"""Experiments without a load, and their servers."""
EXPERIMENTS = (*LOADED, *ALONE)


def steps(lab: Lab, name: str) -> list[Step]:
    if name in LOADED:
        servers, asked = LOADED[name]
        return engine.steps(
            lab.unpinned() if name == "forking" else lab,
            scenarios.asked(registry.named(servers), asked),
            name,
            _neighbours if name == "neighbours" else engine.measure,
        )
    action, servers = ALONE[name]
    rounds = {"idle": 1, "start": 20 if lab.rounds > 1 else 5}.get(name, lab.rounds)
    return engine.rounds(replace(lab, rounds=rounds), name, registry.named(servers), action)


def ask_often(running: Running, count: int, requests: Sequence[bytes] = ()) -> None:
    """Asks for `count` answers, on a new connection whenever the server has closed the last.

    `requests` are sent in turn; by default always that of the scenario.
    """
    requests = requests or [running.request]
    answers = 0
    while answers < count:
        before = answers
        with Connection(running.port) as connection, contextlib.suppress(ServerFailure, OSError):
            while answers < count:
                connection.ask(requests[answers % len(requests)])
                answers += 1
        if answers == before:
            raise ServerFailure("a new connection got no answer")
