"""Mode `threading`: several threads that share one reactor.

For handlers that wait for databases and other services. As long as no handler waits, one thread
does all the work, as in mode `single`; when it blocks, another takes over
(`core/reactor/src/event_loop/leader_followers.rs`).
"""

from __future__ import annotations

import os
import select
from threading import Lock, Thread, current_thread

from poorhttp._core import forget_fd, note_fd
from poorhttp.process import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.worker.worker import Worker


def run(worker: Worker) -> None:
    """Serve until the reactor stops. The main thread only waits, to be free for signals."""
    reactor = worker.reactor(multithread=True)
    # Not a lock: a signal that arrives just before the wait would be handled only after the next.
    wakeups, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for fd in (wakeups, write):
        note_fd(fd)
    wakeup_fd = signals.set_wakeup_fd(write)
    poller = select.poll()
    poller.register(wakeups, select.POLLIN)
    #: A lock for each thread, which the first thread with that number acquires.
    claims = [Lock() for _ in range(worker.settings.threads)]
    started: list[Thread] = []
    #: Threads that serve, or go on with a connection that the application has got.
    alive = len(claims)
    counting = Lock()
    ended: list[Thread] = []

    def serve_in_thread(claim: Lock) -> None:
        nonlocal alive
        if claim.acquire(blocking=False):
            try:
                worker.serve(worker.application, reactor)
            finally:
                ended.append(current_thread())
                with counting:
                    alive -= 1
                os.write(write, b"\0")

    def replace_thread() -> bool:
        nonlocal alive
        thread = current_thread()
        replacement = Thread(target=serve_in_thread, name=thread.name, args=(Lock(),))
        with counting:
            alive += 1
        try:
            replacement.start()
        except RuntimeError:
            with counting:
                alive -= 1
            return False
        reactor.leave()
        thread.name = f"{thread.name}-upgraded"
        return True

    def start_and_wait() -> None:
        # Called again when a signal handler has raised, possibly in the middle of `start`. If the
        # thread was started after all, its successor finds the lock acquired and ends.
        while len(started) < len(claims):
            number = len(started)
            name = f"poorhttp-{number + 1}"
            thread = Thread(target=serve_in_thread, name=name, args=(claims[number],))
            thread.start()
            started.append(thread)
        while True:
            is_last = not alive
            while ended:
                thread = ended[-1]
                thread.join()
                ended.remove(thread)
            if is_last:
                break
            poller.poll()
            os.read(wakeups, 4096)

    worker.replace_thread = replace_thread
    worker.run(start_and_wait, reactor)
    # The reactor refers to the worker: a cycle that would keep the application from being freed.
    worker.replace_thread = None
    signals.set_wakeup_fd(wakeup_fd)
    for fd in (wakeups, write):
        forget_fd(fd)
        os.close(fd)
