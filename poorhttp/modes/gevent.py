"""A greenlet for each request, in one thread.

For thousands of handlers that wait at the same time (long polling, calls to other services).
gevent's hub watches the reactor's descriptor; what waits must know gevent, so the standard library
is patched before the application is imported.
"""

from __future__ import annotations

from poorhttp.wsgi import serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.worker import Worker


def prepare() -> None:
    """Patch the standard library (`gevent.monkey.patch_all`)."""
    from gevent import monkey

    monkey.patch_all()


def run(worker: Worker) -> None:
    """Serve until told to stop."""
    from gevent import get_hub, spawn
    from gevent.event import Event
    from gevent.socket import wait_write

    reactor = worker.reactor(multithread=True, wait_writable=wait_write, watched=True)
    finished = Event()

    def serve_ready() -> None:
        while (request := reactor.poll()) is not None:
            spawn(serve, worker.application, (request,))
        if reactor.finished:
            finished.set()

    readable = 1
    watcher = get_hub().loop.io(reactor.fileno(), readable)
    watcher.start(serve_ready)
    worker.ready()
    finished.wait()
    watcher.stop()
    reactor.flush_log()
