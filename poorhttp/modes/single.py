"""One request after another, in the main thread.

The leanest mode, and the fastest for handlers that do not wait. A slow client holds nobody up,
because requests are read and answers written by the reactor; a slow handler holds up everybody.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.worker.worker import Worker


def run(worker: Worker) -> None:
    """Serve until told to stop."""
    reactor = worker.reactor()
    worker.run(lambda: worker.serve(worker.application, reactor), reactor)
