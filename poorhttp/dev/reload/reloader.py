"""What the main process does when the project has changed: one version follows another."""

from __future__ import annotations

import gc
import os
import time

from poorhttp import logs
from poorhttp._core import adopt_orphans
from poorhttp.dev.debug.plain_page import ended
from poorhttp.dev.reload.fork_server import Keeper
from poorhttp.dev.reload.generation import Version
from poorhttp.dev.reload.shared_state import Lineage
from poorhttp.dev.reload.spawner import Cradle
from poorhttp.process.exit_status import end_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from poorhttp.supervisor.generations import Generations
    from poorhttp.supervisor.worker_pool import WorkerPool
    from poorhttp.worker.service import Service

#: Seconds after which it is said that a version is still being loaded, and where it is.
LONG = 10.0

#: Seconds that it has to tell where.
MOMENT = 0.2

#: Modules that a version had to import before a keeper for them is worth its memory.
MANY = 20

#: What a process ends with that says itself why it cannot begin (`poorhttp.errors`).
FAILURES = (2, 3, 4, 5)

#: Files that are named when they have changed; of more it is said how many they are.
MOST_NAMED = 3


class Succession:
    """Has one version follow another, from the first.

    Attributes:
        generations: the worker pools; set when it has the first cradles.
        configuration_changed: the settings are to be read again.
    """

    generations: Generations

    def __init__(self, *, warm: bool, file: str | None, say: Callable[[str, str], object]) -> None:
        """Begin.

        Args:
            warm: have a keeper.
            file: of the configuration, if there is one.
            say: tells a person something, in a style of `poorhttp.dev.terminal.STYLES`.
        """
        self._say = say
        self.warm = warm
        self.file = file
        self.configuration_changed = False
        #: How its file was when it was read again.
        self._read: tuple[int, int, int] | None = None
        self._has_terminal = _has_terminal()
        self._lineage: Lineage | None = None
        #: Others, versions of which have something in hand.
        self._past: list[Lineage] = []
        self._keeper: Keeper | None = None
        #: What versions had to import that no keeper knows of.
        self._known: dict[str, None] = {}
        #: How many of them the last keeper knew of.
        self._tried = 0
        #: Of the version that was ordered last.
        self._number = 0
        #: When it was; 0: it serves.
        self._begun = 0.0
        #: Why, for people.
        self._because = ""
        #: When something is to be done about a version that takes long.
        self._late = float("inf")
        #: It was asked where it is.
        self._asked = False
        #: It is to be ordered when the keeper has imported everything again.
        self._renewing = False
        adopt_orphans()

    def spawners(self, services: Sequence[Service]) -> list[Cradle]:
        """Return where the first versions of services come from that were read anew."""
        self.rest()
        if self._lineage is not None:
            self._past.append(self._lineage)
        # What exists by now is shared with all that are forked; the collector shall not write to
        # it.
        gc.collect()
        gc.freeze()
        self._lineage = Lineage(services, self.file)
        self._keep_warm()
        return self._next("")

    # Life

    @property
    def is_left(self) -> bool:
        """Whether the terminal in which we were started has been closed."""
        return self._has_terminal and not _has_terminal()

    def filenos(self) -> Iterator[int]:
        """Return what is readable when there is something to do."""
        for each in (self._lineage, self._lineage and self._lineage.watcher, self._keeper):
            if each is not None and each.fileno() >= 0:
                yield each.fileno()

    def due(self) -> float:
        """Return when there is something to do although nothing is readable."""
        if self._begun and all(pool.complete or pool.failed for pool in self._pools):
            # That was heard after we had last looked.
            return 0.0
        return self._late

    @property
    def _pools(self) -> list[WorkerPool]:
        """The pools of the version that was ordered."""
        return self.generations.starting or self.generations.serving

    def tick(self, now: float) -> None:
        """Do what is due."""
        if self._lineage is None:
            return
        self._hear_keeper()
        self._hear_versions(self._lineage)
        self._hear_watcher(self._lineage)
        self._look_after(now)
        for past in list(self._past):
            pools = [pool for pool in self.generations if pool.spawner is not None]
            if not any(pool.spawner.version.lineage is past for pool in pools if pool.spawner):
                self._past.remove(past)
                past.close()

    def reap(self, pid: int, code: int) -> bool:
        """See to a child that has died; `False` if it was none of these."""
        lineage, keeper = self._lineage, self._keeper
        if lineage is not None and lineage.watcher.bury(pid):
            logs.write("error", f"the process that watches files {end_of(code)}")
            return True
        if keeper is None or keeper.pid != pid:
            return False
        keeper.hear()
        if not keeper.is_over:
            importing = f" while it imported {keeper.importing}" if keeper.importing else ""
            keeper.cold = f"the process that does {end_of(code)}{importing}"
        self._hear_keeper()
        return True

    def rest(self) -> None:
        """End the processes that serve nobody."""
        if self._keeper is not None:
            self._keeper.end()
            self._keeper = None
        if self._lineage is not None:
            self._lineage.watcher.close()

    def close(self) -> None:
        """Close everything."""
        self.rest()
        for lineage in (*self._past, *([self._lineage] if self._lineage else ())):
            lineage.close()

    # What others say

    def _hear_keeper(self) -> None:
        keeper = self._keeper
        if keeper is None:
            return
        keeper.hear()
        if keeper.cold:
            self._say(f"each save is a full restart from now on: {keeper.cold}", "warning")
            self.warm = False
        if keeper.is_over:
            keeper.close()
            self._keeper = None
        if self._renewing and (self._keeper is None or keeper.ready):
            self._renewing = False
            self._succeed(self._because)

    def _hear_versions(self, lineage: Lineage) -> None:
        """Have the keeper import for the next version what this one had to."""
        names = [name for name in lineage.hear() if name not in self._known]
        self._known.update(dict.fromkeys(names))
        if names and self._keeper is not None:
            self._keeper.learn(names)
        elif self.warm and self._keeper is None and len(self._known) - self._tried >= MANY:
            self._keep_warm()

    def _hear_watcher(self, lineage: Lineage) -> None:
        paths: dict[str, list[str]] = {}
        for kind, path in lineage.watcher.hear():
            paths.setdefault(kind, []).append(path)
        for notice in paths.get("notice", ()):
            self._say(notice, "warning")
        outside, code = paths.get("outside", []), paths.get("code", [])
        if "configuration" in paths and (now := _state(self.file)) != self._read:
            # A watcher that has just begun tells once more what was saved a moment ago.
            self._read = now
            self.configuration_changed = True
        elif outside and self.warm:
            self._because = _named(outside, lineage)
            self._say(f"saved outside of the project: {self._because}; all is loaded again", "info")
            self._keep_warm()
            self._renewing = True
        elif code or outside:
            self._succeed(_named(code or outside, lineage))
        elif "asset" in paths:
            self.generations.reload_browsers()

    # What is done about it

    def _keep_warm(self) -> None:
        """Have a new keeper, if one is wanted."""
        if self._keeper is not None:
            self._keeper.end()
            self._keeper = None
        if self.warm and self._lineage is not None:
            self._tried = len(self._known)
            self._keeper = Keeper(self._lineage, list(self._known))

    def _next(self, because: str, page: str = "") -> list[Cradle]:
        """Return where the next version comes from, of each service."""
        assert self._lineage is not None
        self._number += 1
        self._begun = time.monotonic()
        self._because = because
        self._late, self._asked = self._begun + LONG, False
        application = ended(page) if page else None
        return [
            Cradle(Version(self._number, self._lineage, which, application), self._keeper)
            for which in range(len(self._lineage.services))
        ]

    def _succeed(self, because: str, page: str = "") -> None:
        """Have the next version serve."""
        self.generations.replace(self._next(because, page))

    def _look_after(self, now: float) -> None:
        """See what becomes of the version that was ordered."""
        if not self._begun:
            return
        pools = self._pools
        failed = next((pool for pool in pools if pool.failed), None)
        if failed is not None and (failed.failed not in FAILURES or self._number > 1):
            # It has died without an exception that could be shown.
            why = f"version {self._number} {failed.end} while it was loaded"
            self._say(why, "bad")
            self._succeed(self._because, f"{why[0].upper()}{why[1:]}")
        elif all(pool.complete for pool in pools):
            self.generations.end_progress()
            took = f"in {(now - self._begun) * 1000:.0f} ms"
            if any(pool.broken for pool in pools):
                self._say(f"an error page {took}: {self._because or 'the application'}", "bad")
            elif self._because:
                self._say(f"reloaded {took}: {self._because}", "good")
            self._begun = 0.0
            self._late = float("inf")
        elif now >= self._late:
            self._be_patient(pools)

    def _be_patient(self, pools: Sequence[WorkerPool]) -> None:
        """Tell that a version takes long, in the browser too, and go on waiting for it."""
        assert self._lineage is not None
        workers = [worker for pool in pools for worker in pool.workers.values()]
        if not self._asked:
            for worker in workers:
                if not worker.serves:
                    self._lineage.whereabouts.ask(worker.pid)
                    break
            self._late, self._asked = time.monotonic() + MOMENT, True
            return
        self._late = float("inf")
        place, trace = self._lineage.whereabouts.answer(
            self._lineage.project, self._lineage.services[0].folder
        )
        if not place and self._keeper is not None and self._keeper.importing:
            place = f"{self._keeper.importing} is being imported"
        heading = f"version {self._number} has been loading for {LONG:g} s"
        self._say(f"{heading}: {place}" if place else heading, "warning")
        if self.generations.starting:
            # Others serve until it does.
            return
        text = f"{heading[0].upper()}{heading[1:]}"
        early = []
        for which, pool in enumerate(pools):
            if not pool.complete:
                shown = f"\n{trace or place}" if pool.settings.debug != "off" else ""
                page = ended(text + shown)
                version = Version(self._number, self._lineage, which, page, early=True)
                early.append(Cradle(version, None))
        self.generations.show_progress(early)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _state(path: str | None) -> tuple[int, int, int]:
    """Return what is another one when a file has been saved."""
    try:
        found = os.stat(path or "")
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size


def _named(paths: list[str], lineage: Lineage) -> str:
    """Name files, as they are seen from where we have begun: that folder may be gone."""
    here = lineage.services[0].folder + "/"
    names = sorted({path.removeprefix(here) for path in paths})
    text = ", ".join(names[:MOST_NAMED])
    return f"{text} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else text
