"""Several threads over one reactor.

For handlers that wait for databases and other services. As long as none of them waits, one thread
does all the work as if it were alone; when one stalls, others take over
(`core/reactor/src/crew.rs`).
"""

from __future__ import annotations

import os
import select
from threading import Thread

from poorhttp import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from poorhttp.worker import Worker
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _signal as signal


def run(worker: Worker) -> None:
    """Serve until told to stop. The main thread only waits, so that it is free for signals."""
    reactor = worker.reactor(multithread=True)
    # It does not wait for a lock: of a signal that comes just before, it would learn with the next.
    wakeups, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    wakeup_fd = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    ended: list[None] = []

    def serve_and_tell() -> None:
        try:
            worker.serve(worker.application, reactor)
        finally:
            ended.append(None)
            os.write(write, b"\0")

    threads = [
        Thread(target=serve_and_tell, name=f"poorhttp-{number}")
        for number in range(1, worker.settings.threads + 1)
    ]
    # Before anybody is let in: who may not serve any more ends here.
    worker.ready()
    for thread in threads:
        thread.start()
    poller = select.poll()
    poller.register(wakeups, select.POLLIN)
    raised: BaseException | None = None
    while True:
        try:
            if isinstance(raised, (SystemExit, KeyboardInterrupt)):
                reactor.stop()
            elif raised is not None:
                log.exception("a signal handler of the application failed", raised)
            raised = None
            if len(ended) < len(threads):
                poller.poll()
                os.read(wakeups, 4096)
                continue
            for thread in threads:
                thread.join()
            break
        except BaseException as error:
            # No more than this: the next signal may come at once, and what its handler raises must
            # not find a way out.
            raised = error
    signal.set_wakeup_fd(wakeup_fd)
    os.close(wakeups)
    os.close(write)
