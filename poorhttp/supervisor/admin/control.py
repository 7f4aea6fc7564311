"""The address `admin` from one configuration to the next; nothing where it is not set."""

from __future__ import annotations

from poorhttp import logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from poorhttp.config.settings import Settings
    from poorhttp.net.listener import Listener
    from poorhttp.supervisor.admin.endpoint import Admin
    from poorhttp.supervisor.generations import Generations
    from poorhttp.supervisor.watchdog import Watchdog

#: Seconds between two questions to the workers, where `admin` tells whether they answer.
ASKED_EVERY = 2.0


class AdminControl:
    """Opens the address, replaces it at a reload, and passes on what concerns its process."""

    def __init__(
        self,
        services: Sequence[Settings],
        have: Sequence[Listener],
        why_not: Callable[[], str],
        watchdog: Watchdog,
    ) -> None:
        """Open the address.

        Args:
            services: the first says where it is.
            have: listeners that are open already.
            why_not: returns why the server is not ready; nothing if it is.
            watchdog: asks the workers whether they answer.

        Raises:
            BindError: it cannot be used.
        """
        self._why_not = why_not
        self._watchdog = watchdog
        self._now = _opened(services, have)
        #: Who is to tell after a reload.
        self._coming: Admin | None = None
        #: Why we were not ready when that was seen last; empty: we were.
        self._unready = ""

    @property
    def listeners(self) -> list[Listener]:
        """Its listening sockets."""
        return list(self._now.listeners) if self._now is not None else []

    @property
    def is_heard(self) -> bool:
        """Whether somebody may still ask."""
        return self._now is not None and self._now.is_heard

    def begin(self, generations: Generations, before: Admin | None = None) -> None:
        """Let clients in, who are told about `generations`."""
        if self._now is not None:
            self._now.begin(generations, self._why_not, before)
        self._watchdog.ask_every(ASKED_EVERY if self._now is not None else float("inf"))

    def prepare(self, services: Sequence[Settings]) -> None:
        """Open the address of a configuration that is to come.

        Raises:
            BindError: it cannot be used.
        """
        self._coming = _opened(services, self.listeners)

    def replace(self, generations: Generations) -> None:
        """Go on with that of a reload, where it wants to be."""
        before, self._now, self._coming = self._now, self._coming, None
        self.begin(generations, before)
        if before is not None:
            before.close(keep=self.listeners)

    def drop(self) -> None:
        """Give up what was to come."""
        if self._coming is not None:
            self._coming.close(keep=self.listeners)
            self._coming = None

    def log_readiness(self) -> None:
        """Log it when `/-/ready` changes."""
        if self._now is None:
            return
        before, self._unready = self._unready, self._why_not()
        if self._unready and not before:
            logs.write("warning", f"/-/ready is 503 from now on: {self._unready}")
        elif before and not self._unready:
            logs.write("info", "/-/ready is 200 again")

    def filenos(self) -> Iterable[int]:
        """Return what is readable when it asks or tells something."""
        return self._now.filenos() if self._now is not None else ()

    def due(self) -> float:
        """Return when there is something to do although nothing is readable."""
        return self._now.due() if self._now is not None else float("inf")

    def tick(self, now: float) -> None:
        """See to the process, and answer what it asks."""
        if self._now is not None:
            self._now.tick(now)

    def reap(self, pid: int, code: int) -> bool:
        """See to a child that has died; `False` if it was none of these."""
        return self._now is not None and self._now.reap(pid, code)

    def on_stopped(self, pid: int, number: int) -> None:
        """Note that a child was stopped by a signal, or continued (0)."""
        if self._now is not None:
            self._now.on_stopped(pid, number)

    def signal(self, number: int) -> None:
        """Pass a signal on."""
        if self._now is not None:
            self._now.signal(number)

    def detach(self) -> None:
        """Leave the address to another main process, which holds the same sockets."""
        if self._now is not None:
            for listener in self._now.listeners:
                listener.owned = False
            self._now.retire()

    def close(self) -> None:
        """Close the address, which nobody was let in at."""
        if self._now is not None:
            self._now.close()

    def end(self) -> None:
        """End the process with the main process."""
        self.drop()
        if self._now is not None:
            self._now.end()


def _opened(services: Sequence[Settings], have: Sequence[Listener]) -> Admin | None:
    if services[0].admin is None:
        return None
    # Only for those who want it.
    from poorhttp.supervisor.admin.endpoint import Admin

    return Admin(services[0], have)
