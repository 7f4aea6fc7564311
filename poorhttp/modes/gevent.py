"""Mode `gevent`: a greenlet for each request, in one thread.

For thousands of handlers that wait at the same time (long polling, calls to other services).
gevent's hub polls the reactor's descriptor. The standard library is patched before the application
is imported, so that blocking calls switch to another greenlet.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from poorhttp import logs
from poorhttp._core import Request
from poorhttp.logs.text_stream import UNFINISHED
from poorhttp.process.signals import STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from poorhttp.worker.worker import Worker


def prepare() -> None:
    """Patch the standard library (`gevent.monkey.patch_all`)."""
    # A handler that raised during the patch would leave locks held for ever: no exit would follow.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        with entry_points_read_once():
            from gevent import monkey

            monkey.patch_all()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def entry_points_read_once() -> Iterator[None]:
    """Keep gevent from reading the metadata of all installed distributions some 25 times.

    gevent looks for plug-ins before and after each module that it patches. If no distribution
    declares a plug-in of gevent, `importlib.metadata` is not imported: that saves a third of the
    time and 2.7 MiB.
    """
    if has_plugins():
        from importlib import metadata

        entry_points = metadata.entry_points
        metadata.entry_points = entry_points().select
        try:
            yield
        finally:
            metadata.entry_points = entry_points
    else:
        name = "importlib.metadata"
        imported = sys.modules.get(name)
        empty: Any = ModuleType(name)
        empty.entry_points = lambda **_: ()
        sys.modules[name] = importlib.metadata = empty
        try:
            yield
        finally:
            del sys.modules[name], importlib.metadata
            if imported:
                sys.modules[name] = importlib.metadata = imported


def has_plugins() -> bool:
    """Whether an installed distribution may declare plug-ins of gevent.

    gevent's own is none: it warns of patches that `patch_all` without arguments does not choose.
    """
    for folder in sys.path:
        try:
            names = [each for each in os.listdir(folder or ".") if not each.startswith("gevent-")]
        except NotADirectoryError:
            return True  # an archive
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info", "EGG-INFO")):
                path = os.path.join(folder, name, "entry_points.txt")
                with suppress(OSError), open(path, "rb") as file:
                    if b"gevent.plugins" in file.read():
                        return True
    return False


#: Most greenlets that are kept for the next request: a new one costs as much as some requests.
MAX_IDLE_GREENLETS = 64

#: Most requests that are started before the hub handles other events.
MAX_BATCH = 64


def run(worker: Worker) -> None:
    """Serve until the reactor stops."""
    from gevent import GreenletExit, get_hub, sleep, spawn
    from gevent.event import Event
    from gevent.hub import Waiter

    def client_disconnected() -> bool:
        # Found by the stack of this greenlet: a key set for each request would cost it 3 %.
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code is serve_one_by_one.__code__:
                request: Request = frame.f_locals["request"]
                return request.client_disconnected()
            frame = frame.f_back
        raise RuntimeError(
            "poorhttp.client_disconnected was called in a greenlet that runs no request: only the "
            "greenlet of a request can ask"
        )

    hub = get_hub()
    # gevent would install its SIGCHLD handler only after the first fork, and could wait for ever
    # for a child that has already exited.
    os.register_at_fork(before=hub.loop.install_sigchld)
    if worker.signals is not None:
        # Most signal handlers run in the hub, which must not block: on a log's lock, in `os.close`.
        worker.signals.call_soon = spawn
    reactor = worker.reactor(
        multithread=True,
        new_event=Event,
        external_loop=True,
        hub=hub,
        client_disconnected=client_disconnected,
    )
    idle: list[Waiter[Request]] = []
    finished = Event()

    def serve_one_by_one(request: Request) -> None:
        while True:
            worker.serve(worker.application, (request,))
            if UNFINISHED:
                logs.end_line()
            if len(idle) >= MAX_IDLE_GREENLETS:
                return
            waiter: Waiter[Request] = Waiter(hub)
            idle.append(waiter)
            del request
            request = waiter.get()

    def serve_ready() -> None:
        if reactor.foreign:
            # This process was forked by the application, and has inherited the hub.
            watcher.stop()
            return
        for _ in range(MAX_BATCH):
            request = reactor.poll()
            if request is None:
                break
            if idle:
                idle.pop().switch(request)
            else:
                spawn(serve_one_by_one, request)
        else:
            hub.loop.run_callback(serve_ready)
        if reactor.finished:
            finished.set()

    readable = 1
    watcher = hub.loop.io(reactor.fileno(), readable)

    def begin() -> None:
        worker.ready = ready  # or this function would keep the application alive
        # The hub begins while signals are blocked: an exception in its first lines would end it.
        sleep(0)
        ready()
        watcher.start(serve_ready)

    ready, worker.ready = worker.ready, begin
    if worker.settings.slow_request:
        # Time that the hub has not waited is time in which new requests had to wait.
        before, after = hub.loop.prepare(priority=-2), hub.loop.check()
        begun = [reactor.time()]
        before.start(lambda: begun.__setitem__(0, reactor.time()))
        after.start(lambda: reactor.waited_since(begun[0]))
    try:
        worker.run(finished.wait, reactor)
    finally:
        # A hub that comes after this one would find the watcher in the same loop, and hand
        # requests to greenlets of this one.
        watcher.stop()
    reactor.flush_log()
    # Idle greenlets would keep the application alive.
    for waiter in idle:
        hub.loop.run_callback(waiter.throw, GreenletExit)
    sleep(0)
