"""Starts, replaces and stops the process of the address `admin` at start and reload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from poorhttp import logs
from poorhttp.config.settings import Settings
from poorhttp.net.listener import Listener
from poorhttp.supervisor.watchdog import Watchdog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.admin.endpoint import AdminEndpoint
    from poorhttp.supervisor.generations import Generations
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Seconds between two pings to the workers, where `admin` reports whether they answer.
PING_INTERVAL = 2.0


class AdminControl:
    """Opens the address, and replaces it at a reload."""

    def __init__(
        self,
        services: Sequence[Settings],
        have: Sequence[Listener],
        why_not_ready: Callable[[], str],
        watchdog: Watchdog,
    ) -> None:
        """Open the address.

        Args:
            services: settings of the services; the first have the address.
            have: listeners that are open already.
            why_not_ready: returns why the server is not ready; empty if it is.
            watchdog: pings the workers.

        Raises:
            BindError: the address cannot be used.
        """
        self._why_not_ready = why_not_ready
        self._watchdog = watchdog
        self._endpoint = _opened(services, have)
        #: That of a configuration that is being loaded.
        self._next: AdminEndpoint | None = None
        #: Why the server was not ready at the last check; empty if it was.
        self._unready = ""

    @property
    def listeners(self) -> list[Listener]:
        """The listening sockets."""
        return list(self._endpoint.listeners) if self._endpoint is not None else []

    @property
    def pools(self) -> list[WorkerPool]:
        """The worker pools of one process each: the present one, and previous ones that end."""
        return self._endpoint.pools if self._endpoint is not None else []

    def start(self, generations: Generations, previous: AdminEndpoint | None = None) -> None:
        """Accept clients, which get the state of `generations`."""
        if self._endpoint is not None:
            self._endpoint.start(generations, self._why_not_ready, previous)
        self._watchdog.ping_every(PING_INTERVAL if self._endpoint is not None else float("inf"))

    def prepare(self, services: Sequence[Settings]) -> None:
        """Open the address of a configuration that is being loaded.

        Raises:
            BindError: it cannot be used.
        """
        self._next = _opened(services, self.listeners)

    def replace(self, generations: Generations) -> None:
        """Go on at the address that `prepare` has opened."""
        previous, self._endpoint, self._next = self._endpoint, self._next, None
        self.start(generations, previous)
        if previous is not None:
            previous.close(keep=self.listeners)

    def cancel(self) -> None:
        """Close the address that `prepare` has opened."""
        if self._next is not None:
            self._next.close(keep=self.listeners)
            self._next = None

    def log_readiness(self) -> None:
        """Log changes of `/-/ready`."""
        if self._endpoint is None:
            return
        before, self._unready = self._unready, self._why_not_ready()
        if self._unready and not before:
            logs.write("warning", f"/-/ready is 503 from now on: {self._unready}")
        elif before and not self._unready:
            logs.write("info", "/-/ready is 200 again")

    def filenos(self) -> Iterable[int]:
        """Return the descriptors that are readable when the process asks something."""
        return self._endpoint.filenos() if self._endpoint is not None else ()

    def tick(self, now: float) -> None:
        """Do what is due for the process, and answer its questions."""
        if self._endpoint is not None:
            self._endpoint.tick(now)

    def detach(self) -> None:
        """Leave the address to a new main process, which has the same sockets."""
        if self._endpoint is not None:
            for listener in self._endpoint.listeners:
                listener.owned = False
            self._endpoint.retire()

    def close(self) -> None:
        """Close the address, before `start`."""
        if self._endpoint is not None:
            self._endpoint.close()

    def stop(self) -> None:
        """End the process and close everything."""
        self.cancel()
        if self._endpoint is not None:
            self._endpoint.stop()


def _opened(services: Sequence[Settings], have: Sequence[Listener]) -> AdminEndpoint | None:
    if services[0].admin is None:
        return None
    from poorhttp.supervisor.admin.endpoint import AdminEndpoint

    return AdminEndpoint(services[0], have)
