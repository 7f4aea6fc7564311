"""Mode `single`: one request at a time, in the main thread.

The smallest mode, and the fastest for handlers that do not wait. A slow client does not block other
requests, because the reactor reads requests and writes responses; a slow handler blocks all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.worker.worker import Worker


def run(worker: Worker) -> None:
    """Serve until the reactor stops."""
    reactor = worker.reactor()
    worker.run(lambda: worker.serve(worker.application, reactor), reactor)
