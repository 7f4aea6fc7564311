"""Several threads over one reactor.

For handlers that wait for databases and other services. As long as none of them waits, one thread
does all the work as if it were alone; when one stalls, others take over
(`core/reactor/src/event_loop/leader_followers.rs`).
"""

from __future__ import annotations

import os
import select
from threading import Lock, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from poorhttp.worker.worker import Worker
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _signal as signal


def run(worker: Worker) -> None:
    """Serve until told to stop. The main thread only waits, so that it is free for signals."""
    reactor = worker.reactor(multithread=True)
    # It does not wait for a lock: of a signal that comes just before, it would learn with the next.
    wakeups, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    wakeup_fd = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    poller = select.poll()
    poller.register(wakeups, select.POLLIN)
    #: Of each thread that is wanted, taken by the one that is it.
    claims = [Lock() for _ in range(worker.settings.threads)]
    started: list[Thread] = []
    ended: list[None] = []

    def serve_in_thread(claim: Lock) -> None:
        if claim.acquire(blocking=False):
            try:
                worker.serve(worker.application, reactor)
            finally:
                ended.append(None)
                os.write(write, b"\0")

    def start_and_wait() -> None:
        # Called again when a signal handler has raised, which may be in the middle of `start`: was
        # it started after all, the next one finds its claim taken.
        while len(started) < len(claims):
            number = len(started)
            name = f"poorhttp-{number + 1}"
            thread = Thread(target=serve_in_thread, name=name, args=(claims[number],))
            thread.start()
            started.append(thread)
        while len(ended) < len(claims):
            poller.poll()
            os.read(wakeups, 4096)
        for thread in started:
            thread.join()

    worker.run(start_and_wait, reactor)
    signal.set_wakeup_fd(wakeup_fd)
    os.close(wakeups)
    os.close(write)
