"""Several threads over one reactor.

For handlers that wait for databases and other services. As long as none of them waits, one thread
does all the work as if it were alone; when one stalls, others take over
(`core/reactor/src/crew.rs`).
"""

from __future__ import annotations

from threading import Thread

from poorhttp import log
from poorhttp.wsgi import serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.worker import Worker


def run(worker: Worker) -> None:
    """Serve until told to stop. The main thread only waits, so that it is free for signals."""
    reactor = worker.reactor(multithread=True)
    threads = [
        Thread(target=serve, args=(worker.application, reactor), name=f"poorhttp-{number}")
        for number in range(1, worker.settings.threads + 1)
    ]
    for thread in threads:
        thread.start()
    worker.ready()
    while any(thread.is_alive() for thread in threads):
        try:
            for thread in threads:
                thread.join()
        except (SystemExit, KeyboardInterrupt):
            reactor.stop()
        except BaseException as error:
            log.exception("a signal handler of the application failed", error)
