"""Mode `asyncio`: a task for each request of an ASGI application, in one event loop.

The event loop watches the reactor's descriptor. WSGI applications run in a pool of threads.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec

from poorhttp import logs
from poorhttp._core import client_disconnected
from poorhttp.config.address import is_raw_tcp
from poorhttp.errors import Stopped
from poorhttp.plugins.asgi.applications import answering
from poorhttp.plugins.asgi.exchange import HttpExchange
from poorhttp.plugins.asgi.lifespan import Lifespan
from poorhttp.plugins.asgi.options import Asgi
from poorhttp.plugins.asgi.request_threads import RequestThreads
from poorhttp.plugins.asgi.scope import of_http
from poorhttp.plugins.asgi.worker_hooks import HOOKS
from poorhttp.plugins.native import not_built
from poorhttp.process import threads
from poorhttp.process.signals import signal
from poorhttp.process.unpatched import sleep
from poorhttp.worker.stop_signals import GRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextvars import Context
    from typing import Any

    from poorhttp.plugins.asgi.interrupter import TaskInterrupter
    from poorhttp.plugins.asgi.native import Reactor, Request
    from poorhttp.plugins.asgi.scope import Scope
    from poorhttp.worker.worker import Worker

#: Name of the tasks of requests.
TASK = "request"

#: Most requests that are started before the loop handles other events.
MAX_BATCH = 64

#: Seconds that the shutdown of applications has at least, when requests have taken up all of
#: `graceful_timeout`. The main process kills the worker a second after that.
LEAST_SHUTDOWN = 0.7


def run(worker: Worker) -> None:
    """Serve until the reactor stops."""
    loop = new_loop(worker.settings.of(Asgi).asgi_loop)
    asyncio.set_event_loop(loop)
    try:
        EventLoop(worker, loop).run()
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def new_loop(name: str) -> asyncio.AbstractEventLoop:
    """Make an event loop, as the option `asgi_loop` says."""
    if name == "uvloop" or (name == "auto" and find_spec("uvloop") is not None):
        import uvloop

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop
    return asyncio.SelectorEventLoop()


def start_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]
) -> asyncio.Task[None]:
    """Start a task in an event loop that runs; its first step runs at once.

    A request whose application does not wait costs the event loop no further turn.
    """
    if sys.version_info >= (3, 12):
        return asyncio.Task(coroutine, loop=loop, name=TASK, eager_start=True)
    # Before, a task has its first step called by the loop: here, by this function.
    steps: list[tuple[Callable[[], object], Context]] = []
    caller: Any = loop
    caller.call_soon = lambda step, *, context: steps.append((step, context))
    try:
        task = asyncio.Task(coroutine, loop=loop, name=TASK)
    finally:
        del caller.call_soon
    ((step, context),) = steps
    context.run(step)
    return task


class EventLoop:
    """Serves the requests of a worker in an event loop."""

    reactor: Reactor
    _interrupter: TaskInterrupter | None = None
    _refuses = False  # `asgi_concurrency` is reached
    _deadline = 0.0  # until when requests may run, once the server stops

    def __init__(self, worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
        self._worker = worker
        self._loop = loop
        self._whole = HOOKS.whole(worker.settings, worker.application)
        asgi = [each for each in HOOKS.mounted(worker.settings) if each.is_asgi]
        self._lifespans = [Lifespan(each, loop) for each in asgi]
        #: Who answers all requests, if there is only one ASGI application.
        self._only = asgi[0] if asgi and self._whole is asgi[0] else None
        self._exchanges: set[HttpExchange] = set()
        self._threads = RequestThreads(worker.settings.threads, self._serve_in_thread)
        self._finished = loop.create_future()
        options = worker.settings.of(Asgi)
        self._most = options.asgi_concurrency or sys.maxsize
        self._offers_pathsend = options.asgi_pathsend
        self._is_raw_tcp = is_raw_tcp(worker.settings.target)  # its handler blocks
        # WSGI applications in threads may find events of other requests.
        in_loop = partial(partial, loop.call_soon_threadsafe)
        self._wrap_notice = in_loop if self._only is None else None
        if self._only is None and threads.are_replaced():
            worker.note_greenlets(threads.replaced_by())

    def run(self) -> None:
        """Start the applications, serve until the reactor has stopped, and stop them."""
        self._loop.set_exception_handler(log_exception)
        try:
            when = self._worker.settings.of(Asgi).asgi_lifespan
            for each in self._lifespans if when != "off" else ():
                starts = each.startup(
                    is_required=when == "on", logs_failure=HOOKS.logs_failure(self._worker.settings)
                )
                self._loop.run_until_complete(starts)
            self._serve()
        finally:
            try:
                self._shut_down()
            except Stopped:
                # A signal to a group of processes comes a second time from the main process.
                self._shut_down()

    def _serve(self) -> None:
        worker, loop = self._worker, self._loop
        reactor: Any = worker.reactor(
            external_loop=True,
            # WSGI applications run in threads.
            client_disconnected=client_disconnected,
            new_interrupter=self._new_interrupter,
        )
        self.reactor = reactor
        with ExitStack() as ends:
            loop.add_reader(reactor.fileno(), self._serve_ready)
            ends.callback(loop.remove_reader, reactor.fileno())
            if seconds := worker.settings.slow_request:
                from poorhttp.plugins.asgi.blocked_loop import LoopWatch

                ends.callback(LoopWatch(loop, seconds).stop)
            worker.run(partial(loop.run_until_complete, self._finished), reactor)
        reactor.flush_log()

    def _new_interrupter(self, signals: Any) -> TaskInterrupter:
        from poorhttp.plugins.asgi.interrupter import TaskInterrupter

        self._interrupter = TaskInterrupter(signals, self._loop)
        return self._interrupter

    def _serve_ready(self) -> None:
        reactor = self.reactor
        if reactor.foreign:
            # This process was forked by the application, and has inherited the loop.
            self._loop.remove_reader(reactor.fileno())
            return
        begin = self._threads.begin if self._is_raw_tcp else self._begin
        for _ in range(MAX_BATCH):
            request = reactor.poll()
            if request is None:
                break
            begin(request)
        else:
            self._loop.call_soon(self._serve_ready)
        if reactor.stopping and not self._deadline:
            timeout = self._worker.settings.graceful_timeout
            self._deadline = time.monotonic() + timeout
            self._loop.call_later(timeout, self._give_up)
            for exchange in self._exchanges:
                exchange.going_away()
        if reactor.finished and not self._finished.done():
            self._finished.set_result(None)

    def _begin(self, request: Request) -> None:
        """Have a request answered: in a task, or in a thread of the pool."""
        head = request.take_head()
        mounted, prefix = self._only, ""
        if mounted is None:
            mounted, prefix = answering(self._whole, head)
        if mounted is None or not mounted.is_asgi:
            self._threads.begin(request)
            return
        if len(self._exchanges) >= self._most:
            self._refuse(request)
            return
        self._refuses = False
        scope = of_http(head, mounted.state)
        scope["root_path"] += prefix
        if not self._offers_pathsend:
            del scope["extensions"]["http.response.pathsend"]
        if scope["scheme"][0] == "w":
            exchange = self._websocket(request, scope)
            if exchange is None:
                return
        else:
            exchange = HttpExchange(request, scope, self._loop, self._wrap_notice)
        if self._interrupter is not None:
            self._interrupter.beginning = exchange
            request.begin()
            self._interrupter.beginning = None
        self._exchanges.add(exchange)
        run = exchange.run(mounted.application, self._exchanges, request)
        exchange.task = start_task(self._loop, run)

    def _refuse(self, request: Request) -> None:
        """Answer a request beyond `asgi_concurrency`."""
        if not self._refuses:
            self._refuses = True
            logs.write("warning", f"{self._most} requests run (asgi_concurrency): others get 503")
        fields = (b"content-type", b"text/plain; charset=utf-8"), (b"retry-after", b"1")
        request.start_bytes("503 Service Unavailable", fields)
        request.finish_nowait(b"503 Service Unavailable: too many requests run\n")

    def _websocket(self, request: Request, scope: Scope) -> HttpExchange | None:
        """Return the exchange of a handshake; `None`: it was answered."""
        try:
            from poorhttp.plugins.asgi import _websocket, websocket
        except ModuleNotFoundError as error:
            logs.write("error", f"{request.name}: {not_built(error)}", request.name)
            request.start_bytes("500 Internal Server Error", ())
            request.finish_nowait(b"")
            return None
        options = self._worker.settings.of(Asgi)
        handshake = _websocket.Handshake(scope["headers"], options.websocket_compression)
        if handshake.refusal is not None:
            websocket.refuse(request, *handshake.refusal)
            return None
        del scope["method"]
        scope["type"], scope["subprotocols"] = "websocket", handshake.subprotocols
        scope["extensions"] = {"websocket.http.response": {}}
        rest = request, scope, self._loop, self._wrap_notice
        return websocket.WebSocketExchange(options, handshake, *rest)

    def _serve_in_thread(self, request: Request) -> None:
        self._worker.serve(self._worker.application, (request,))
        logs.end_line()

    def _give_up(self) -> None:
        """End requests that take longer than `graceful_timeout`."""
        for exchange in self._exchanges:
            what = exchange.request.name
            logs.write("warning", f"{what}: cancelled, because graceful_timeout is over", what)
            exchange.cancelled = True
            exchange.task.cancel()
        self._loop.call_later(0.1, self.reactor.give_up)

    def _shut_down(self) -> None:
        """Stop the applications, and end what they have left behind in the loop."""
        if tasks := [each.task for each in self._exchanges]:
            # Applications go on behind their responses, until `_give_up` cancels them.
            left = self._deadline - time.monotonic()
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=max(left, 0) + 0.1))
        until = self._loop.time() + max(self._deadline - time.monotonic(), LEAST_SHUTDOWN)
        for each in reversed(self._lifespans):
            self._loop.run_until_complete(each.shutdown(until - self._loop.time()))
        self._threads.stop()
        others = asyncio.all_tasks(self._loop)
        for task in others:
            task.cancel()
        ends = asyncio.wait(others, timeout=0.5) if others else self._loop.shutdown_asyncgens()
        self._loop.run_until_complete(ends)
        signals = self._worker.signals
        if signals is None or signals.supervised:
            return
        # Python would wait for the threads, and no main process kills this one.
        deadline = time.monotonic() + GRACE
        while self._threads.unfinished:
            if time.monotonic() > deadline:
                signals.exit_now(signal.SIGTERM, None)
            sleep(0.01)


def log_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Write an exception that no task of the application has handled to the error log."""
    message, error = f"event loop: {context.get('message')}", context.get("exception")
    if isinstance(error, BaseException):
        logs.exception(message, error)
    else:
        logs.write("error", message)
