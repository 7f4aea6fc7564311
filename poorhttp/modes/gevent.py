"""A greenlet for each request in hand, in one thread.

For thousands of handlers that wait at the same time (long polling, calls to other services).
gevent's hub watches the reactor's descriptor; what waits must know gevent, so the standard library
is patched before the application is imported.
"""

from __future__ import annotations

import os

from poorhttp.process.signals import STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp._core import Request
    from poorhttp.worker.worker import Worker


def prepare() -> None:
    """Patch the standard library (`gevent.monkey.patch_all`)."""
    import signal
    from importlib import metadata

    # A signal handler that raises half way would leave `threading` with locks that nobody releases,
    # and the process could not end.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    entry_points = metadata.entry_points
    try:
        from gevent import monkey

        # gevent asks for plug-ins before and after each module, and each time the metadata of all
        # installed distributions would be read: with 150 of them, most of a worker's start.
        metadata.entry_points = entry_points().select
        monkey.patch_all()
    finally:
        metadata.entry_points = entry_points
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


#: Greenlets that wait for the next request. Making one costs several times what a small request
#: does (measured: two system calls for its stack), so some are kept.
MAX_IDLE_GREENLETS = 64

#: Requests begun before the hub looks at other things.
MAX_BATCH = 64


def run(worker: Worker) -> None:
    """Serve until told to stop."""
    from gevent import GreenletExit, get_hub, sleep, spawn
    from gevent.event import Event
    from gevent.hub import Waiter
    from gevent.socket import wait_write

    hub = get_hub()
    # gevent would begin to listen for ends of children behind the first fork, and might wait for
    # ever for a child that has ended by then.
    os.register_at_fork(before=hub.loop.install_sigchld)
    if worker.signals is not None:
        # The hub runs most signal handlers, and nothing in it may wait: neither for the lock of a
        # log's handler nor for gevent's own `os.close`.
        worker.signals.call_soon = spawn
    reactor = worker.reactor(
        multithread=True, wait_writable=wait_write, external_loop=True, hub=hub
    )
    idle: list[Waiter[Request]] = []
    finished = Event()

    def serve_one_by_one(request: Request) -> None:
        while True:
            worker.serve(worker.application, (request,))
            if len(idle) >= MAX_IDLE_GREENLETS:
                return
            waiter: Waiter[Request] = Waiter(hub)
            idle.append(waiter)
            del request
            request = waiter.get()

    def serve_ready() -> None:
        if reactor.foreign:
            # A child that the application has forked inherits the hub with all that it watches.
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
    watcher.start(serve_ready)
    if worker.settings.slow_request:
        # How long a request has waited while a greenlet computed is known only to those who know
        # when the hub has waited.
        before, after = hub.loop.prepare(priority=-2), hub.loop.check()
        begun = [reactor.time()]
        before.start(lambda: begun.__setitem__(0, reactor.time()))
        after.start(lambda: reactor.waited_since(begun[0]))
    worker.run(finished.wait, reactor)
    watcher.stop()
    reactor.flush_log()
    # Greenlets that wait would keep the application alive.
    for waiter in idle:
        hub.loop.run_callback(waiter.throw, GreenletExit)
    sleep(0)
