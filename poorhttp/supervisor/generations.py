"""All teams of a server: those that serve, those that are to take their place, those that leave."""

from __future__ import annotations

import time

from poorhttp import logs
from poorhttp._core import adopt_orphans
from poorhttp.net.handshakes import turn_away
from poorhttp.supervisor.scoreboard import Totals, added
from poorhttp.supervisor.worker_pool import Team
from poorhttp.worker.service import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Iterator, Sequence

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings
    from poorhttp.dev.reload.reloader import Succession
    from poorhttp.dev.reload.spawner import Cradle
    from poorhttp.net.listener import Listener
    from poorhttp.supervisor.scoreboard import Counts
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _signal as signal


class Fleet:
    """The teams, and the listening sockets that they share.

    A socket is closed when no team wants it any more that serves or is to serve.

    Attributes:
        serving: one for each service.
        coming: those of a reload; they take the place of those that serve when all are complete.
        leaving: those that finish what they have in hand.
        early: those that answer until those that serve, in name, have been loaded.
    """

    def __init__(
        self,
        services: Sequence[Settings],
        have: Sequence[Listener],
        application: WSGIApplication | None,
        succession: Succession | None = None,
    ) -> None:
        """Open the sockets that are not open already.

        Args:
            services: what is to be served.
            have: listeners that are open.
            application: if it is loaded already.
            succession: by which versions follow each other, if they do.

        Raises:
            Failure: a service cannot be; nothing stays behind.
        """
        self.application = application
        self.succession = succession
        #: Of each service, by its name.
        self.totals: dict[str, Totals] = {}
        self.serving: list[Team] = []
        self.coming: list[Team] = []
        self.leaving: list[Team] = []
        self.early: list[Team] = []
        try:
            self.serving = self._teams(services, have)
        finally:
            self._close_unwanted(have)

    def __iter__(self) -> Iterator[Team]:
        return iter([*self.serving, *self.early, *self.coming, *self.leaving])

    @property
    def listeners(self) -> list[Listener]:
        """All listening sockets, each once."""
        return list(dict.fromkeys(_listeners_of(self)))

    @property
    def over(self) -> bool:
        """Whether the last worker has ended, and nobody is to follow."""
        return all(team.over for team in self)

    @property
    def patience(self) -> float:
        """Seconds that the slowest may take to finish."""
        return max(team.patience for team in self)

    def tend(self, now: float) -> None:
        """Do what is due, and forget teams whose last worker has ended."""
        for team in self:
            team.tend(now)
        for team in [team for team in self.leaving if team.over]:
            self.leaving.remove(team)
            team.close()

    def due(self) -> float:
        """Return when there is something to do although nothing happens."""
        return min((team.due() for team in self), default=float("inf"))

    def bury(self, pid: int, code: int) -> bool:
        """See to a child that has died; `False` if it was none of these."""
        return any(team.bury(pid, code) for team in self)

    def note_stop(self, pid: int, number: int) -> None:
        """Note that a child was stopped by a signal, or continued (0)."""
        for team in self:
            team.note_stop(pid, number)

    def counts(self, service: str) -> Counts:
        """Return what all workers of a service have counted, those that are gone included."""
        counts = self.totals[service].ended
        for team in self:
            if team.settings.service == service:
                counts = added(counts, team.counts())
        return counts

    def begin_reload(self, services: Sequence[Settings]) -> None:
        """Have new teams begin beside the old ones, to serve these.

        Raises:
            Failure: a service cannot be; nothing has changed.
        """
        self.coming = self._teams(services, self.listeners)
        for team in self.coming:
            team.service.begun = True

    def end_reload(self) -> None:
        """Let those that were coming take the place of those that served."""
        before = [*self.serving, *self.early]
        self.serving, self.coming, self.early = self.coming, [], []
        wanted = set(_listeners_of(self.serving))
        self._close_unwanted(_listeners_of(before))
        for team in before:
            if wanted.issuperset(team.service.listeners):
                team.retire()
            else:
                # Nobody else will let in who waits at an address that is given up.
                team.stop(signal.SIGTERM, time.monotonic() + team.patience)
        self.leaving += before

    def drop_reload(self) -> None:
        """Give up what was to come."""
        if not self.coming:
            return
        dropped, self.coming = self.coming, []
        self._close_unwanted(_listeners_of(dropped))
        for team in dropped:
            team.stop(signal.SIGTERM, time.monotonic() + team.patience)
        self.leaving += dropped

    def succeed(self, cradles: Sequence[Cradle]) -> None:
        """Have another version serve at once: whoever comes waits until it does."""
        self.end_early()
        before = self.coming or self.serving
        after = [self._team(cradle.service, cradle) for cradle in cradles]
        for old, new in zip(before, after, strict=True):
            new.count = old.count
            old.hand_over()
        self.leaving += before
        if self.coming:
            self.coming = after
        else:
            self.serving = after

    def begin_early(self, cradles: Sequence[Cradle]) -> None:
        """Have somebody answer who waits for a version that takes long."""
        self.early = [self._team(cradle.service, cradle) for cradle in cradles]

    def end_early(self) -> None:
        """Leave it to who serves, or is about to."""
        for team in self.early:
            team.hand_over()
        self.leaving += self.early
        self.early = []

    def tell_live(self) -> None:
        """Have pages that are open in browsers reload themselves."""
        for team in self.serving:
            team.tell_live()

    def resize(self, step: int) -> None:
        """Have one worker more or fewer, in each service."""
        for team in self.serving:
            if team.settings.reuse_port:
                # Each has a socket of its own, and there is one for each.
                logs.write("warning", f"{team.name}with reuse_port, change workers and reload")
                continue
            team.resize(team.count + step)
            logs.write("info", f"{team.name}{team.count} workers from now on")

    def drain(self) -> None:
        """Have all workers say that nobody new should come, and go on serving."""
        for team in self:
            team.drain()

    def stop(self, number: int, until: float) -> None:
        """Tell all workers to stop, by the signal by which we were told; nobody listens on."""
        turn_away(self.listeners)
        for listener in self.listeners:
            listener.release()
        for team in self:
            team.stop(number, until)

    def hand_over(self) -> None:
        """Leave everything to a successor that holds the same sockets."""
        for listener in self.listeners:
            listener.ours = False
        for team in self:
            team.retire()

    def close(self) -> None:
        """Close everything."""
        for listener in self.listeners:
            listener.close()
        for team in self:
            team.close()

    def _teams(self, services: Sequence[Settings], have: Sequence[Listener]) -> list[Team]:
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
        if self.succession is not None:
            return [self._team(cradle.service, cradle) for cradle in self.succession.cradles(made)]
        return [self._team(service) for service in made]

    def _team(self, service: Service, cradle: Cradle | None = None) -> Team:
        return Team(service, self.totals.setdefault(service.settings.service, Totals()), cradle)

    def _close_unwanted(self, listeners: Iterable[Listener]) -> None:
        wanted = {*_listeners_of([*self.serving, *self.coming])}
        unwanted = {*listeners} - wanted
        turn_away(unwanted)
        for listener in unwanted:
            listener.close()


def _listeners_of(teams: Iterable[Team]) -> Iterator[Listener]:
    return (listener for team in teams for listener in team.service.listeners)
