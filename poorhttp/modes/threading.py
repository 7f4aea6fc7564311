"""Mode `threading`: several threads that share one reactor.

For handlers that wait for databases and other services. As long as no handler waits, one thread
does all the work, as in mode `single`; when it blocks, another takes over
(`core/reactor/src/scheduler/leader_followers.rs`).
"""

from __future__ import annotations

import posix
import select

from poorhttp._core import forget_fd, note_fd
from poorhttp.process import signals, threads
from poorhttp.process.unpatched import allocate_lock, get_native_id, poll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Thread
    from typing import Any

    from poorhttp.process.threads import NativeThread
    from poorhttp.worker.worker import Worker


def run(worker: Worker) -> None:
    """Serve until the reactor stops. The main thread only waits, to be free for signals."""
    if threads.are_replaced():
        worker.note_greenlets(threads.replaced_by())
    reactor = worker.reactor(multithread=True)
    # Not a lock: a signal that arrives just before the wait would be handled only after the next.
    wakeups, write = posix.pipe2(posix.O_NONBLOCK | posix.O_CLOEXEC)
    for fd in (wakeups, write):
        note_fd(fd)
    wakeup_fd = signals.set_wakeup_fd(write)
    poller = poll()
    poller.register(wakeups, select.POLLIN)
    #: A lock for each thread, which the first thread with that number acquires.
    claims = [allocate_lock() for _ in range(worker.settings.threads)]
    started: list[Thread | NativeThread] = []
    #: Threads that serve, or go on with a request in whose place another thread serves.
    alive = len(claims)
    counting = allocate_lock()
    #: By their native IDs.
    running: dict[int, Thread | NativeThread] = {}
    ended: list[Thread | NativeThread] = []

    def new_thread(name: str, claim: Any) -> Thread | NativeThread:
        def serve_in_thread() -> None:
            nonlocal alive
            if claim.acquire(blocking=False):
                running[get_native_id()] = thread
                try:
                    worker.serve(worker.application, reactor)
                finally:
                    ended.append(running.pop(get_native_id()))
                    with counting:
                        alive -= 1
                    posix.write(write, b"\0")

        thread = threads.create(serve_in_thread, name)
        return thread

    def replace_thread(thread_id: int = 0) -> bool:
        """Start another thread: see `Worker.replace_thread`. Not called by the main thread."""
        nonlocal alive
        thread = running.get(thread_id or get_native_id())
        with counting:
            alive += 1
        name = thread.name if thread is not None else f"poorhttp-{alive}"
        replacement = new_thread(name, allocate_lock())
        try:
            replacement.start()
        except RuntimeError:
            with counting:
                alive -= 1
            return False
        if thread is None:
            return True
        if not thread_id:
            reactor.leave()
        thread.name = f"{thread.name}-{'streaming' if thread_id else 'upgraded'}"
        return True

    def start_and_wait() -> None:
        # Called again when a signal handler has raised, possibly in the middle of `start`. If the
        # thread was started after all, its successor finds the lock acquired and ends.
        while len(started) < len(claims):
            number = len(started)
            thread = new_thread(f"poorhttp-{number + 1}", claims[number])
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
            posix.read(wakeups, 4096)

    worker.replace_thread = replace_thread
    worker.run(start_and_wait, reactor)
    # The reactor refers to the worker: a cycle that would keep the application from being freed.
    worker.replace_thread = None
    signals.set_wakeup_fd(wakeup_fd)
    for fd in (wakeups, write):
        forget_fd(fd)
        posix.close(fd)
