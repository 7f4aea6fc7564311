"""The worker pools of each version: the serving one, the next during a reload, retiring ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from poorhttp import logs
from poorhttp.config.settings import Settings
from poorhttp.net.handshakes import drain_handshakes
from poorhttp.net.listener import Listener
from poorhttp.process.signals import signal
from poorhttp.supervisor.scoreboard import SETTLED, Totals
from poorhttp.supervisor.tasks import attempt
from poorhttp.supervisor.worker_pool import WorkerPool
from poorhttp.worker.service import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp._core import WorkerStatus
    from poorhttp.supervisor.binary_upgrade import Memory
    from poorhttp.supervisor.hooks.queue import HookQueue
    from poorhttp.supervisor.spawner import Spawner


class Generations:
    """The worker pools, and the listening sockets that they share.

    A socket is closed when neither a serving nor a starting pool has its address.

    Attributes:
        serving: one pool for each service.
        starting: those of a reload, which replace those that serve when all are complete.
        retiring: those that finish their requests, and those that a component has added.
        totals: counters by the name of the service.
    """

    hooks: HookQueue | None = None  # events for functions of hooks, once some were set

    def __init__(
        self,
        services: Sequence[Settings],
        have: Sequence[Listener],
        application: WSGIApplication | None,
        spawners: Callable[[Sequence[Service]], Sequence[Spawner] | None],
        report: Callable[..., object],
    ) -> None:
        """Open the sockets that are not open already.

        Args:
            have: listeners that are open; they are closed if no service wants them.
            application: if it is loaded already.
            spawners: see `Component.spawners`.
            report: see `WorkerPool`.

        Raises:
            Failure: a service cannot be served; all listeners are closed.
        """
        self.application = application
        self._make_spawners = spawners
        self._report = report
        #: This process may have become the parent of processes that an application left (prctl(2)).
        self.adopts = False
        self.totals: dict[str, Totals] = {}
        self.serving: list[WorkerPool] = []
        self.starting: list[WorkerPool] = []
        self.retiring: list[WorkerPool] = []
        try:
            self.serving = self._pools(services, have)
        finally:
            self._close_unwanted(have)

    def __iter__(self) -> Iterator[WorkerPool]:
        return iter([*self.serving, *self.starting, *self.retiring])

    @property
    def listeners(self) -> list[Listener]:
        """All listening sockets, each once."""
        return list(dict.fromkeys(_listeners_of(self)))

    @property
    def ended(self) -> bool:
        """Whether the last worker has ended and is not replaced, and hooks know of it."""
        return self._has_no_workers and (self.hooks is None or self.hooks.ended)

    @property
    def _has_no_workers(self) -> bool:
        return all(pool.ended for pool in self)

    @property
    def stop_timeout(self) -> float:
        """Seconds for which workers may finish their requests, at most."""
        return max(pool.stop_timeout for pool in self)

    def tick(self, now: float) -> None:
        """Do what is due, and forget pools whose last worker has ended."""
        for pool in self:
            attempt(f"{pool.name}the care for workers", pool.tick, now)
        if self.hooks is not None:
            services, last = {pool.service for pool in self}, self._has_no_workers
            tick = self.hooks.tick
            attempt("the delivery of hooks", lambda: tick(now, services, last=last))
        for totals in self.totals.values():
            totals.fold()
        for pool in [pool for pool in self.retiring if pool.ended]:
            self.retiring.remove(pool)
            del pool.spawner.pool  # a circle, which would keep its memory: that is a descriptor

    def filenos(self) -> list[int]:
        """Return descriptors to wait for, besides the control channels."""
        return list(self.hooks.filenos()) if self.hooks is not None else []

    def due(self) -> float:
        # Until the main processes before have ended.
        times = [time.monotonic() + SETTLED for each in self.totals.values() if each.before]
        if self.hooks is not None:
            times += [self.hooks.due() if self.hooks.ends_at or not self._has_no_workers else 0.0]
        return min(times, default=float("inf"))

    def alive(self, service: str) -> list[WorkerStatus]:
        """Return the statuses of the workers of a service."""
        pools = (pool for pool in self if pool.settings.service == service)
        return [status for pool in pools for status in pool.statuses()]

    def memory(self) -> Iterator[Memory]:
        """Yield what the next main process inherits of the figures."""
        for service, totals in self.totals.items():
            pools = [pool for pool in self if pool.settings.service == service]
            yield from totals.memory(service, [pool.scoreboard for pool in pools])

    def inherit(self, memory: Sequence[Memory]) -> None:
        """Go on counting where the main process before has left off."""
        for service, totals in self.totals.items():
            totals.inherit(each for each in memory if each[1] == service)

    def begin_reload(self, services: Sequence[Settings]) -> None:
        """Start pools for new settings beside those that serve; a Failure changes nothing."""
        self.starting = self._pools(services, self.listeners)
        for pool in self.starting:
            pool.service.serving = True

    def on_ready(self) -> None:
        """Announce that all workers serve for the first time."""
        for pool in self.serving:
            pool.service.serving = True
            pool.service.announce(pool.count)
        if self.hooks is not None:
            self.hooks.server_ready(self.serving)

    def on_reloaded(self, message: str, *, succeeded: bool) -> None:
        if self.hooks is not None:
            self.hooks.reload(self.serving, message, succeeded=succeeded)

    def end_reload(self) -> None:
        """Replace the serving pools by those that were starting."""
        before, self.serving, self.starting = self.serving, self.starting, []
        self._end(before, retires=True)

    def cancel_reload(self) -> None:
        cancelled, self.starting = self.starting, []
        self._end(cancelled, retires=False)

    def _end(self, pools: Sequence[WorkerPool], *, retires: bool) -> None:
        """Have pools end that were replaced; those that share their sockets may `retire`."""
        wanted = set(_listeners_of(self.serving))
        self._close_unwanted(_listeners_of(pools))
        for pool in pools:
            pool.end_reason = "reloaded"
            if retires and wanted.issuperset(pool.service.listeners):
                pool.retire()
            else:
                # No other worker accepts from an address that is closed.
                pool.stop(signal.SIGTERM, time.monotonic() + pool.stop_timeout)
        self.retiring += pools

    def replace_pool(self, old: WorkerPool, spawner: Spawner) -> None:
        """Replace one pool, of those that are starting or serving, at once.

        New connections wait until its workers serve.
        """
        pools = self.starting or self.serving
        new = self._make_pool(spawner.service, spawner)
        new.count = old.count
        pools[pools.index(old)] = new
        old.detach("reloaded")
        self.retiring.append(old)

    def add(self, spawner: Spawner) -> WorkerPool:
        """Add a pool beside those that serve, which ends by its `detach`."""
        pool = self._make_pool(spawner.service, spawner)
        self.retiring.append(pool)
        return pool

    def resize(self, step: int, pools: Iterable[WorkerPool]) -> None:
        for pool in pools:
            if pool.settings.reuse_port:
                # Each worker has a socket of its own, opened with the configuration.
                logs.write("warning", f"{pool.name}with reuse_port, change workers and reload")
                continue
            pool.resize(pool.count + step)
            logs.write("info", f"{pool.name}{pool.count} workers from now on")

    def drain(self, *, on: bool = True) -> None:
        """Have all workers report that they are not ready, or ready again, and go on serving."""
        for pool in self:
            pool.drain(on=on)

    def stop(self, number: int, until: float) -> None:
        """Close the listening sockets, and pass the signal to stop on to all workers."""
        attempt("the end of handshakes", drain_handshakes, self.listeners)
        for listener in self.listeners:
            attempt("the close of a listening socket", listener.release)
        for pool in self:
            attempt("the stop of workers", pool.stop, number, until)
        if self.hooks is not None:
            self.hooks.stop(until)

    def reopen_logs(self) -> None:
        """Reopen the log files, here first: this creates them for the user of the workers."""
        for pool in self:
            logs.reopen(pool.settings, None, pool.service.privileges.owner)
        for pool in self:
            pool.reopen_logs()
        if self.hooks is not None:
            self.hooks.signal(signal.SIGUSR1)

    def detach(self) -> None:
        """Leave the sockets to a new main process, which has them as well, and retire."""
        for listener in self.listeners:
            listener.owned = False
        for pool in self:
            pool.end_reason = "upgraded"
            pool.retire()
        if self.hooks is not None:
            self.hooks.stop(time.monotonic() + self.stop_timeout)

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()

    def _pools(self, services: Sequence[Settings], have: Sequence[Listener]) -> list[WorkerPool]:
        made: list[Service] = []
        try:
            for settings in services:
                made.append(Service(settings, self.application, have))
        except BaseException:
            for service in made:
                for listener in set(service.listeners).difference(have):
                    listener.close()
            raise
        spawners = {each.service: each for each in self._make_spawners(made) or ()}
        self.adopts |= bool(spawners)
        return [self._make_pool(service, spawners.get(service)) for service in made]

    def _make_pool(self, service: Service, spawner: Spawner | None = None) -> WorkerPool:
        totals = self.totals.setdefault(service.settings.service, Totals())
        pool = WorkerPool(service, totals, spawner, self._report)
        if service.settings.has_hooks:
            if self.hooks is None:
                from poorhttp.supervisor.hooks.queue import HookQueue  # takes memory

                self.hooks = HookQueue()
            pool.hooks = self.hooks
        return pool

    def _close_unwanted(self, listeners: Iterable[Listener]) -> None:
        unwanted = {*listeners} - {*_listeners_of([*self.serving, *self.starting])}
        drain_handshakes(unwanted)
        for listener in unwanted:
            listener.close()


def _listeners_of(pools: Iterable[WorkerPool]) -> Iterator[Listener]:
    return (listener for pool in pools for listener in pool.service.listeners)
