"""Starts, replaces and stops the process of the address `admin` at start and reload."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from poorhttp import logs
from poorhttp.config.settings import Settings
from poorhttp.net.listener import Listener
from poorhttp.supervisor.generations import Generations
from poorhttp.supervisor.watchdog import Watchdog
from poorhttp.supervisor.worker_pool import WorkerPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.admin.endpoint import AdminEndpoint


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
        #: Their state is reported; `None` until clients are accepted.
        self._generations: Generations | None = None
        self._endpoint = _opened(services, have)
        #: Endpoints before this one, until their processes have ended.
        self._previous: list[AdminEndpoint] = []
        #: That of a configuration that is being loaded.
        self._next: AdminEndpoint | None = None
        #: Why the server was not ready at the last check; empty if it was.
        self._unready = ""

    @property
    def listeners(self) -> Sequence[Listener]:
        """The listening sockets."""
        return self._endpoint.listeners if self._endpoint is not None else ()

    @property
    def pools(self) -> list[WorkerPool]:
        """The worker pools of one process each: the present one, and previous ones that end."""
        return [each.pool for each in self._endpoints] if self._generations is not None else []

    @property
    def _endpoints(self) -> list[AdminEndpoint]:
        return [*self._previous, *([self._endpoint] if self._endpoint is not None else [])]

    def start(self, generations: Generations) -> None:
        """Accept clients, which get the state of `generations`."""
        self._generations = generations
        self._begin(())

    def prepare(self, services: Sequence[Settings]) -> None:
        """Open the address of a configuration that is being loaded.

        Raises:
            BindError: it cannot be used.
        """
        self._next = _opened(services, self.listeners)

    def replace(self) -> None:
        """Go on at the address that `prepare` has opened; clients are served for a moment."""
        previous, self._endpoint, self._next = self._endpoint, self._next, None
        self._begin(previous.listeners if previous is not None else ())
        if previous is not None and self._endpoint is not None:
            previous.pool.retire()
            previous.close_listeners(keep=self.listeners)
            self._previous.append(previous)
        elif previous is not None:
            previous.close()
        self.tick(time.monotonic())

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

    def filenos(self) -> Iterator[int]:
        """Return the descriptors that are readable when a process asks something."""
        return (each.fileno() for each in self._endpoints)

    def tick(self, now: float) -> None:
        """Do what is due for the processes, and answer their questions."""
        for each in list(self._previous):
            if each.pool.ended:
                self._previous.remove(each)
                each.close(keep=each.listeners)
        if self._generations is not None:
            for each in self._endpoints:
                each.tick(now, self._generations, self._on_question)

    def _on_question(self) -> str:
        self._watchdog.on_question()
        return self._why_not_ready()

    def detach(self) -> None:
        """Leave the address to a new main process, which has the same sockets."""
        for listener in self.listeners:
            listener.owned = False
        for pool in self.pools:
            if not pool.retiring:
                pool.retire()

    def stop(self) -> None:
        """End the processes and close everything."""
        self.cancel()
        for each in self._endpoints:
            each.close()

    def _begin(self, have: Sequence[Listener]) -> None:
        """Log the address, unless it is that of `have`."""
        if self._endpoint is not None and self.listeners != have:
            where = ", ".join(listener.url for listener in self.listeners)
            logs.write("info", f"/-/live, /-/ready and /-/metrics are at {where}")


def _opened(services: Sequence[Settings], have: Sequence[Listener]) -> AdminEndpoint | None:
    if services[0].admin is None:
        return None
    from poorhttp.supervisor.admin.endpoint import AdminEndpoint

    return AdminEndpoint(services[0], have)
