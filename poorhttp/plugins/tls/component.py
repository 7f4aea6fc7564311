"""Has certificates read again in the main process, and gives new ones to workers that run."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from poorhttp.plugins.tls.certificate_watcher import CertificateWatcher
from poorhttp.plugins.tls.certificates import Certificates
from poorhttp.process.control_channel import RENEW
from poorhttp.supervisor.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.component import Main
    from poorhttp.supervisor.worker_handle import WorkerHandle


class Renewal(Component):
    """Watches the files of all services, as long as one of them has certificates."""

    def __init__(self, main: Main) -> None:
        super().__init__(main)
        self._watcher: CertificateWatcher | None = None
        #: How often the certificates of a worker's service had been read again when it last got
        #: them.
        self._sent: WeakKeyDictionary[WorkerHandle, int] = WeakKeyDictionary()

    def stop(self) -> None:
        """End the watch."""
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def filenos(self) -> Sequence[int]:
        """Return the descriptor of the watch."""
        return self._watcher.filenos() if self._watcher is not None else ()

    def due(self) -> float:
        """Return when files that have changed are read."""
        return self._watcher.due() if self._watcher is not None else float("inf")

    def tick(self, now: float) -> None:
        """Read certificate files that have changed, and send them to workers that run."""
        pools = [
            (pool, pool.service.transport)
            for pool in self.main.generations
            if isinstance(pool.service.transport, Certificates)
        ]
        if not pools:
            self.stop()
            return
        if self._watcher is None:
            self._watcher = CertificateWatcher()
        self._watcher.tick(now, list(dict.fromkeys(each for _, each in pools)))
        for pool, certificates in pools:
            number = certificates.number
            for worker in pool.workers.values():
                # The process that has forked it may have the old ones.
                if self._sent.get(worker, 0) != number and worker.channel.send_fd(
                    RENEW, certificates.fd
                ):
                    self._sent[worker] = number
