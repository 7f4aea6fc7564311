"""The reactor in a foreign event loop: its descriptor in an epoll, poll or select."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from poorhttp import logs
from poorhttp.config.settings import Settings
from poorhttp.net import sockets
from poorhttp.worker.worker import Worker
from poorhttp.worker.wsgi import serve
from tests.testkit.client import HANG, Connection

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp._core import Reactor, Request

#: Waits up to so many seconds for its descriptor to be readable; tells whether it is.
Wait: TypeAlias = "Callable[[float], bool]"


def path(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with the path; below /large, with something that no socket takes at once."""
    large = environ["PATH_INFO"].startswith("/large")
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["PATH_INFO"].encode() * (500_000 if large else 1)]


def in_epoll(fd: int) -> Wait:
    epoll = select.epoll()
    epoll.register(fd, select.EPOLLIN)
    return lambda seconds: bool(epoll.poll(seconds))


def in_select(fd: int) -> Wait:
    return lambda seconds: bool(select.select([fd], [], [], seconds)[0])


class Loop:
    """An event loop of a few lines that knows the reactor by its descriptor only."""

    def __init__(self, reactor: Reactor, wait: Wait) -> None:
        self.reactor = reactor
        self.wait = wait

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Serve until `condition()` holds."""
        while not condition():
            assert self.wait(HANG), "not readable although there is something to do"
            while (request := self.reactor.poll()) is not None:
                serve(path, [request])

    def calm_down(self) -> None:
        """Until there is nothing to do; then it must stay so without a client."""
        for _ in range(1000):
            if not self.wait(0):
                return
            while (request := self.reactor.poll()) is not None:
                serve(path, [request])
        raise AssertionError("the descriptor is readable although there is nothing to do")


@contextmanager
def listening(settings: Settings, **more: Any) -> Iterator[tuple[Reactor, int]]:
    """A reactor and its port."""
    listeners = sockets.open_listeners(settings)
    logs.error_log.open(settings)
    reactor = Worker(path, settings, listeners, **more).reactor(external_loop=True)
    yield reactor, int(listeners[0].url.rpartition(":")[2])
    for listener in listeners:
        listener.close()


@pytest.fixture(params=[in_epoll, in_select])
def loop(request: pytest.FixtureRequest) -> Iterator[tuple[Loop, int]]:
    with listening(Settings(bind="127.0.0.1:0")) as (reactor, port):
        yield Loop(reactor, request.param(reactor.fileno())), port


def test_requests_in_another_loop(loop: tuple[Loop, int]) -> None:
    ours, port = loop

    def client(number: int) -> None:
        with Connection(("127.0.0.1", port)) as connection:
            for turn in range(20):
                target = f"/{number}/{turn}"
                assert connection.request("GET", target).body == target.encode()
            # In two pieces, a turn of the loop between them.
            connection.send(b"GET /split HTTP/1.1\r\n")
            connection.send(b"Host: a\r\n\r\n")
            assert connection.response().body == b"/split"
            # As many octets as have to wait for the client.
            assert len(connection.request("GET", "/large").body) == 3_000_000

    with ThreadPoolExecutor(10) as pool:
        done = [pool.submit(client, number) for number in range(10)]
        gone = threading.Event()

        def finished() -> bool:
            return all(future.done() for future in done)

        # The loop must not miss the moment in which the last client is done.
        def nudge() -> None:
            for future in done:
                future.exception()
            gone.set()
            Connection(("127.0.0.1", port)).close()

        pool.submit(nudge)
        ours.run_until(lambda: gone.is_set() and finished())
        for future in done:
            future.result()
    ours.calm_down()


def test_stopping_in_another_loop(loop: tuple[Loop, int]) -> None:
    ours, port = loop
    with Connection(("127.0.0.1", port)) as connection:
        connection.send_request("GET", "/one")
        ours.run_until(lambda: bool(select.select([connection.socket], [], [], 0)[0]))
        assert connection.response().body == b"/one"
        ours.reactor.stop()
        ours.run_until(lambda: ours.reactor.finished)
        assert connection.at_end()


def test_streams_without_a_thread() -> None:
    """Bodies are received and sent as far as is possible at once; notices tell when to go on."""
    many, content, answer = 3, bytes(range(256)) * 1000, bytes(range(251)) * 80_000
    settings = Settings(bind="127.0.0.1:0", spool_limit=0)
    ready: list[Callable[[], None]] = []
    bodies: dict[int, bytes] = {}
    ended: list[int] = []
    #: All requests wait for data; for room.
    starved, full = threading.Event(), threading.Event()
    waiting: dict[threading.Event, set[int]] = {starved: set(), full: set()}

    def note(event: threading.Event, request: Request) -> None:
        waiting[event].add(request.number)
        if len(waiting[event]) == many:
            event.set()

    def receive(request: Request) -> None:
        buffer = bytearray(10_000)
        while (length := request.receive_nowait(buffer)) != 0:
            if length is None:
                note(starved, request)
                request.notify(partial(ready.append, partial(receive, request)), data=True)
                return
            bodies[request.number] = bodies.get(request.number, b"") + buffer[:length]
        request("200 OK", [("Content-Length", str(len(answer)))])
        send(request, answer)

    def send(request: Request, rest: bytes) -> None:
        while rest:
            taken = request.send_nowait(rest)
            rest = rest[taken:]
            if rest:
                note(full, request)
                request.notify(partial(ready.append, partial(send, request, rest)), room=True)
                return
        request.end()
        ended.append(request.number)

    def client(port: int) -> None:
        with Connection(("127.0.0.1", port)) as connection:
            head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(content)}\r\n\r\n"
            connection.send(head.encode() + content[:20_000])
            assert starved.wait(HANG)
            connection.send(content[20_000:])
            assert full.wait(HANG)
            assert connection.response().body == answer

    with (
        listening(settings, streamed_bodies=[("", "", True)]) as (reactor, port),
        ThreadPoolExecutor(many) as pool,
    ):
        wait = in_epoll(reactor.fileno())
        clients = [pool.submit(client, port) for _ in range(many)]
        while len(ended) < many:
            assert ready or wait(HANG), "nobody has said that there is something to do"
            while (request := reactor.poll()) is not None:
                request.take_environ()
                receive(request)
            calls, ready[:] = ready[:], []
            for call in calls:
                call()
        reactor.stop()
        while not reactor.finished:
            assert wait(HANG)
            assert reactor.poll() is None
        for future in clients:
            future.result()
    assert list(bodies.values()) == [content] * many
