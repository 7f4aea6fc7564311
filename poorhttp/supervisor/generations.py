"""All pools of a server: those that serve, those that are to take their place, those that leave."""

from __future__ import annotations

import time

from poorhttp import logs
from poorhttp._core import adopt_orphans
from poorhttp.net.handshakes import drain_handshakes
from poorhttp.process.signals import signal
from poorhttp.supervisor.scoreboard import Totals, added
from poorhttp.supervisor.worker_pool import WorkerPool
from poorhttp.worker.service import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings
    from poorhttp.dev.reload.reloader import Reloader
    from poorhttp.dev.reload.spawner import Spawner
    from poorhttp.net.listener import Listener
    from poorhttp.supervisor.scoreboard import Counts


class Generations:
    """The pools, and the listening sockets that they share.

    A socket is closed when no pool wants it any more that serves or is to serve.

    Attributes:
        serving: one for each service.
        starting: those of a reload; they take the place of those that serve when all are complete.
        leaving: those that finish what they have in hand.
        early: those that answer until those that serve, in name, have been loaded.
    """

    def __init__(
        self,
        services: Sequence[Settings],
        have: Sequence[Listener],
        application: WSGIApplication | None,
        reloader: Reloader | None = None,
    ) -> None:
        """Open the sockets that are not open already.

        Args:
            services: what is to be served.
            have: listeners that are open.
            application: if it is loaded already.
            reloader: by which versions follow each other, if they do.

        Raises:
            Failure: a service cannot be; nothing stays behind.
        """
        self.application = application
        self.reloader = reloader
        #: Of each service, by its name.
        self.totals: dict[str, Totals] = {}
        self.serving: list[WorkerPool] = []
        self.starting: list[WorkerPool] = []
        self.leaving: list[WorkerPool] = []
        self.early: list[WorkerPool] = []
        try:
            self.serving = self._pools(services, have)
        finally:
            self._close_unwanted(have)

    def __iter__(self) -> Iterator[WorkerPool]:
        return iter([*self.serving, *self.early, *self.starting, *self.leaving])

    @property
    def listeners(self) -> list[Listener]:
        """All listening sockets, each once."""
        return list(dict.fromkeys(_listeners_of(self)))

    @property
    def over(self) -> bool:
        """Whether the last worker has ended, and nobody is to follow."""
        return all(pool.over for pool in self)

    @property
    def stop_timeout(self) -> float:
        """Seconds that the slowest may take to finish."""
        return max(pool.stop_timeout for pool in self)

    def tick(self, now: float) -> None:
        """Do what is due, and forget pools whose last worker has ended."""
        for pool in self:
            pool.tick(now)
        for pool in [pool for pool in self.leaving if pool.over]:
            self.leaving.remove(pool)
            pool.close()

    def due(self) -> float:
        """Return when there is something to do although nothing happens."""
        return min((pool.due() for pool in self), default=float("inf"))

    def reap(self, pid: int, code: int) -> bool:
        """See to a child that has died; `False` if it was none of these."""
        return any(pool.reap(pid, code) for pool in self)

    def on_stopped(self, pid: int, number: int) -> None:
        """Note that a child was stopped by a signal, or continued (0)."""
        for pool in self:
            pool.on_stopped(pid, number)

    def counts(self, service: str) -> Counts:
        """Return what all workers of a service have counted, those that are gone included."""
        counts = self.totals[service].ended
        for pool in self:
            if pool.settings.service == service:
                counts = added(counts, pool.counts())
        return counts

    def begin_reload(self, services: Sequence[Settings]) -> None:
        """Have new pools begin beside the old ones, to serve these.

        Raises:
            Failure: a service cannot be; nothing has changed.
        """
        self.starting = self._pools(services, self.listeners)
        for pool in self.starting:
            pool.service.serving = True

    def end_reload(self) -> None:
        """Let those that were starting take the place of those that served."""
        before = [*self.serving, *self.early]
        self.serving, self.starting, self.early = self.starting, [], []
        wanted = set(_listeners_of(self.serving))
        self._close_unwanted(_listeners_of(before))
        for pool in before:
            if wanted.issuperset(pool.service.listeners):
                pool.retire()
            else:
                # Nobody else will let in who waits at an address that is given up.
                pool.stop(signal.SIGTERM, time.monotonic() + pool.stop_timeout)
        self.leaving += before

    def drop_reload(self) -> None:
        """Give up what was to come."""
        if not self.starting:
            return
        dropped, self.starting = self.starting, []
        self._close_unwanted(_listeners_of(dropped))
        for pool in dropped:
            pool.stop(signal.SIGTERM, time.monotonic() + pool.stop_timeout)
        self.leaving += dropped

    def replace(self, spawners: Sequence[Spawner]) -> None:
        """Have another version serve at once: whoever comes waits until it does."""
        self.end_progress()
        before = self.starting or self.serving
        after = [self._make_pool(spawner.service, spawner) for spawner in spawners]
        for old, new in zip(before, after, strict=True):
            new.count = old.count
            old.detach()
        self.leaving += before
        if self.starting:
            self.starting = after
        else:
            self.serving = after

    def show_progress(self, spawners: Sequence[Spawner]) -> None:
        """Have somebody answer who waits for a version that takes long."""
        self.early = [self._make_pool(spawner.service, spawner) for spawner in spawners]

    def end_progress(self) -> None:
        """Leave it to who serves, or is about to."""
        for pool in self.early:
            pool.detach()
        self.leaving += self.early
        self.early = []

    def reload_browsers(self) -> None:
        """Have pages that are open in browsers reload themselves."""
        for pool in self.serving:
            pool.reload_browsers()

    def resize(self, step: int) -> None:
        """Have one worker more or fewer, in each service."""
        for pool in self.serving:
            if pool.settings.reuse_port:
                # Each has a socket of its own, and there is one for each.
                logs.write("warning", f"{pool.name}with reuse_port, change workers and reload")
                continue
            pool.resize(pool.count + step)
            logs.write("info", f"{pool.name}{pool.count} workers from now on")

    def drain(self) -> None:
        """Have all workers say that nobody new should come, and go on serving."""
        for pool in self:
            pool.drain()

    def stop(self, number: int, until: float) -> None:
        """Tell all workers to stop, by the signal by which we were told; nobody listens on."""
        drain_handshakes(self.listeners)
        for listener in self.listeners:
            listener.release()
        for pool in self:
            pool.stop(number, until)

    def detach(self) -> None:
        """Leave everything to a successor that holds the same sockets."""
        for listener in self.listeners:
            listener.owned = False
        for pool in self:
            pool.retire()

    def close(self) -> None:
        """Close everything."""
        for listener in self.listeners:
            listener.close()
        for pool in self:
            pool.close()

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
        if any(settings.preload for settings in services):
            adopt_orphans()
        if self.reloader is not None:
            return [
                self._make_pool(spawner.service, spawner)
                for spawner in self.reloader.spawners(made)
            ]
        return [self._make_pool(service) for service in made]

    def _make_pool(self, service: Service, spawner: Spawner | None = None) -> WorkerPool:
        return WorkerPool(
            service, self.totals.setdefault(service.settings.service, Totals()), spawner
        )

    def _close_unwanted(self, listeners: Iterable[Listener]) -> None:
        wanted = {*_listeners_of([*self.serving, *self.starting])}
        unwanted = {*listeners} - wanted
        drain_handshakes(unwanted)
        for listener in unwanted:
            listener.close()


def _listeners_of(pools: Iterable[WorkerPool]) -> Iterator[Listener]:
    return (listener for pool in pools for listener in pool.service.listeners)
