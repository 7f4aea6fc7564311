"""Experiments for promised figures that a plain comparison does not measure."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from loadtests.clients.connection import Connection, request_bytes
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.machine import allow_files
from loadtests.servers import registry
from loadtests.servers.running import Running
from loadtests.studies.bench import scenarios
from loadtests.studies.engine import Lab, Step, figure, sample_step, steps, take

IDLE_CONNECTIONS = 10_000
WARM_CONNECTIONS = 100
PER_ADDRESS = 4_000
STARTS = 20
LIGHT_REQUESTS = 1_000
LIGHT_CLIENTS = 8


def cost(lab: Lab) -> list[Step]:
    """CPU per request against the floor and the best peers, and pipelining."""
    chosen = registry.named(
        [
            "floor",
            "poorhttp single",
            "poorhttp single + log",
            "fastpysgi",
            "fastwsgi",
            "bjoern",
            "granian 1 thread",
        ]
    )
    names = ["hello-1", "hello-64", "hello-512", "browser-64", "hello-64x16"]
    return steps(lab, chosen, scenarios.named(names), "cost")


def threads(lab: Lab) -> list[Step]:
    """Eight threads beside one, where the handler is tiny."""
    chosen = registry.named(["poorhttp single", "poorhttp threading 8"])
    names = ["hello-1", "hello-2", "hello-64", "hello-512"]
    return steps(lab, chosen, scenarios.named(names), "threads")


def sleepers(lab: Lab) -> list[Step]:
    """32 threads, 32 connections, a handler that sleeps 10 ms."""
    chosen = registry.named(["poorhttp threading 32"])
    return steps(lab, chosen, scenarios.named(["sleep10ms-32"]), "sleepers")


class Sleeper:
    """A client that keeps one request of one second running until the block ends."""

    def __init__(self, port: int) -> None:
        self.answers = 0
        self._port = port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sleeper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        request = request_bytes("/?seconds=1")
        while not self._stop.is_set():
            try:
                with Connection(self._port) as connection:
                    while not self._stop.is_set():
                        connection.ask(request)
                        self.answers += 1
            except (OSError, ServerFailure):
                # Its absence is noticed by the count of answers.
                self._stop.wait(0.1)


def neighbours(lab: Lab) -> list[Step]:
    """The latency of four connections while another request sleeps a second, again and again."""
    scenario = scenarios.named(["beside-4"])[0]
    planned = []
    for number in range(lab.rounds):
        for server in registry.named(["poorhttp threading 8", "poorhttp gevent"]):

            def action(server: registry.Server = server, number: int = number) -> str:
                with (
                    Running(
                        server,
                        scenario.application,
                        target=scenario.target,
                        request=scenario.request(),
                        core=lab.server_core,
                    ) as running,
                    Sleeper(running.port) as sleeper,
                ):
                    sample = take(lab, "neighbours", number, server, scenario, running)
                if sleeper.answers == 0:
                    raise ServerFailure("the sleeping request was never answered")
                return (
                    f"p99 {sample['p99_us'] / 1000:.2f} ms, worst {sample['max_us'] / 1000:.2f} ms"
                )

            planned.append(
                Step(server, f"{scenario.name}, round {number + 1}, {server.name}", action)
            )
    return planned


def gevent(lab: Lab) -> list[Step]:
    """Our gevent mode beside gevent's own server and gunicorn's gevent worker."""
    chosen = registry.named(["poorhttp gevent", "gevent pywsgi", "gunicorn gevent"])
    return steps(lab, chosen, scenarios.named(["hello-64"]), "gevent")


def forking(lab: Lab) -> list[Step]:
    """Two workers beside one, all cores free for both server and client.

    The client needs a core too, so the handler computes: then wrk takes a percent or two of it.
    """
    chosen = registry.named(["poorhttp forking 1", "poorhttp forking 2"])
    scenario = scenarios.named(["burn-16"])[0]
    return [
        sample_step(lab.unpinned(), "forking", number, server, scenario)
        for number in range(lab.rounds)
        for server in (chosen if number % 2 == 0 else chosen[::-1])
    ]


def memory(lab: Lab) -> list[Step]:
    """Memory after 1,000 requests for a bare WSGI `light`, from clients enough for all workers."""

    def step(server: registry.Server, number: int) -> Step:
        def action() -> str:
            with Running(server, scenarios.LIGHT) as running:
                with ThreadPoolExecutor(LIGHT_CLIENTS) as clients:
                    for client in [
                        clients.submit(ask_often, running, LIGHT_REQUESTS // LIGHT_CLIENTS)
                        for _ in range(LIGHT_CLIENTS)
                    ]:
                        client.result()
                used = resources.memory(running.processes())
            for name in ("pss", "uss", "rss"):
                figure(lab, "memory", number, server, name, getattr(used, name), "bytes")
            figure(lab, "memory", number, server, "processes", used.processes, "")
            return f"PSS {used.pss / 2**20:.1f} MiB in {used.processes} processes"

        return Step(server, f"memory, round {number + 1}, {server.name}", action)

    chosen = registry.named(
        [
            "poorhttp single",
            "poorhttp threading 8",
            "poorhttp forking 4",
            "bjoern",
            "gunicorn sync 4",
        ]
    )
    return [step(server, number) for number in range(lab.rounds) for server in chosen]


def idle(lab: Lab) -> list[Step]:
    """What 10,000 idle keep-alive connections add to private memory, each having had an answer."""

    def step(server: registry.Server) -> Step:
        def action() -> str:
            allow_files(IDLE_CONNECTIONS + WARM_CONNECTIONS + 200)
            connections: list[Connection] = []
            with Running(server, scenarios.HELLO) as running:
                try:
                    _open(running, connections, WARM_CONNECTIONS)
                    before = resources.memory(running.processes())
                    _open(running, connections, IDLE_CONNECTIONS)
                    time.sleep(0.5)
                    after = resources.memory(running.processes())
                    for connection in random.Random(1).sample(connections, 200):
                        connection.ask(running.request)
                except (OSError, ServerFailure) as error:
                    raise ServerFailure(
                        f"with {len(connections):,} connections open: {error}"
                    ) from None
                finally:
                    for connection in connections:
                        connection.close()
            each = (after.uss - before.uss) / IDLE_CONNECTIONS
            figure(lab, "idle", 0, server, "bytes per connection", round(each, 1), "bytes")
            return f"{each:,.0f} bytes per connection"

        return Step(server, f"idle, {server.name}", action)

    names = [
        "poorhttp single",
        "poorhttp threading 8",
        "fastpysgi",
        "fastwsgi",
        "bjoern",
        "granian",
    ]
    return [step(server) for name in names for server in registry.named([name])]


def start(lab: Lab) -> list[Step]:
    """From exec to the first complete answer, `hello`."""

    def step(server: registry.Server, number: int) -> Step:
        def action() -> str:
            with Running(server, scenarios.HELLO, core=lab.server_core) as running:
                taken = running.first_answer_seconds
            figure(lab, "start", number, server, "seconds", round(taken, 5), "s")
            return f"{taken * 1000:.0f} ms"

        return Step(server, f"start {number + 1}, {server.name}", action)

    names = ["poorhttp single", "poorhttp threading 8", "poorhttp gevent", "bjoern", "granian"]
    names += ["gunicorn gthread 8", "waitress 8 threads"]
    starts = STARTS if lab.rounds > 1 else 5
    return [
        step(server, number)
        for number in range(starts)
        for name in names
        for server in registry.named([name])
    ]


EXPERIMENTS: dict[str, Callable[[Lab], list[Step]]] = {
    experiment.__name__: experiment
    for experiment in (cost, threads, sleepers, neighbours, gevent, forking, memory, idle, start)
}


def ask_often(running: Running, count: int) -> None:
    """Asks for `count` answers, on a new connection whenever the server has closed the last."""
    answers = 0
    while answers < count:
        before = answers
        with Connection(running.port) as connection, contextlib.suppress(ServerFailure, OSError):
            while answers < count:
                connection.ask(running.request)
                answers += 1
        if answers == before:
            raise ServerFailure("a new connection got no answer")


def _open(running: Running, connections: list[Connection], count: int) -> None:
    """Opens connections and lets each have one answer; several addresses, for ports are few."""
    for _ in range(count):
        source = f"127.0.0.{1 + len(connections) // PER_ADDRESS}"
        connection = Connection(running.port, source=source)
        connections.append(connection)
        answer = connection.ask(running.request)[0]
        if answer.status != running.answer.status:
            raise ServerFailure(f"a connection was answered {answer.status}")
