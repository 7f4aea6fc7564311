"""What the main process does when the project has changed: one version follows another."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence

from poorhttp import logs
from poorhttp._core import adopt_orphans
from poorhttp.dev.debug.plain_page import PlainPage
from poorhttp.dev.reload.fork_server import ForkServer
from poorhttp.dev.reload.generation import Generation
from poorhttp.dev.reload.shared_state import SharedState
from poorhttp.dev.reload.spawner import Spawner
from poorhttp.process.exit_status import end_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.generations import Generations
    from poorhttp.supervisor.worker_pool import WorkerPool
    from poorhttp.worker.service import Service

#: Seconds after which it is said that a version is still being loaded, and where it is.
SLOW_LOADING = 10.0

#: Seconds that it has to tell where.
DUMP_WAIT = 0.2

#: Modules that a version had to import before a keeper for them is worth its memory.
WORTH_FORK_SERVER = 20

#: What a process ends with that says itself why it cannot begin (`poorhttp.errors`).
REPORTED_EXIT_CODES = (2, 3, 4, 5)

#: Files that are named when they have changed; of more it is said how many they are.
MOST_NAMED = 3


class Reloader:
    """Has one version follow another, from the first.

    Attributes:
        generations: the worker pools; set when it has the first cradles.
        configuration_changed: the settings are to be read again.
    """

    generations: Generations

    def __init__(
        self, *, uses_fork_server: bool, file: str | None, say: Callable[[str, str], object]
    ) -> None:
        """Begin.

        Args:
            uses_fork_server: have a keeper.
            file: of the configuration, if there is one.
            say: tells a person something, in a style of `poorhttp.dev.terminal.STYLES`.
        """
        self._say = say
        self.uses_fork_server = uses_fork_server
        self.file = file
        self.configuration_changed = False
        #: How its file was when it was read again.
        self._configuration_state: tuple[int, int, int] | None = None
        self._has_terminal = _has_terminal()
        self._shared: SharedState | None = None
        #: Others, versions of which have something in hand.
        self._past: list[SharedState] = []
        self._fork_server: ForkServer | None = None
        #: What versions had to import that no keeper knows of.
        self._learned: dict[str, None] = {}
        #: How many of them the last keeper knew of.
        self._learned_before = 0
        #: Of the version that was ordered last.
        self._number = 0
        #: When it was; 0: it serves.
        self._loading_since = 0.0
        #: Why, for people.
        self._reason = ""
        #: When something is to be done about a version that takes long.
        self._check_at = float("inf")
        #: It was asked where it is.
        self._dump_requested = False
        #: It is to be ordered when the keeper has imported everything again.
        self._waits_for_fork_server = False
        adopt_orphans()

    def spawners(self, services: Sequence[Service]) -> list[Spawner]:
        """Return where the first versions of services come from that were read anew."""
        self.stop_helpers()
        if self._shared is not None:
            self._past.append(self._shared)
        # What exists by now is shared with all that are forked; the collector shall not write to
        # it.
        gc.collect()
        gc.freeze()
        self._shared = SharedState(services, self.file)
        self._start_fork_server()
        return self._next_generation("")

    # Life

    @property
    def is_terminal_closed(self) -> bool:
        """Whether the terminal in which we were started has been closed."""
        return self._has_terminal and not _has_terminal()

    def filenos(self) -> Iterator[int]:
        """Return what is readable when there is something to do."""
        for each in (self._shared, self._shared and self._shared.watcher, self._fork_server):
            if each is not None and each.fileno() >= 0:
                yield each.fileno()

    def due(self) -> float:
        """Return when there is something to do although nothing is readable."""
        if self._loading_since and all(pool.complete or pool.failed for pool in self._pools):
            # That was heard after we had last looked.
            return 0.0
        return self._check_at

    @property
    def _pools(self) -> list[WorkerPool]:
        """The pools of the version that was ordered."""
        return self.generations.starting or self.generations.serving

    def tick(self, now: float) -> None:
        """Do what is due."""
        if self._shared is None:
            return
        self._read_fork_server()
        self._read_generations(self._shared)
        self._read_watcher(self._shared)
        self._check_loading(now)
        for past in list(self._past):
            pools = [pool for pool in self.generations if pool.spawner is not None]
            if not any(pool.spawner.generation.shared is past for pool in pools if pool.spawner):
                self._past.remove(past)
                past.close()

    def reap(self, pid: int, code: int) -> bool:
        """See to a child that has died; `False` if it was none of these."""
        shared, fork_server = self._shared, self._fork_server
        if shared is not None and shared.watcher.reap(pid):
            logs.write("error", f"the process that watches files {end_of(code)}")
            return True
        if fork_server is None or fork_server.pid != pid:
            return False
        fork_server.receive_reports()
        if not fork_server.has_given_up:
            importing = (
                f" while it imported {fork_server.importing}" if fork_server.importing else ""
            )
            fork_server.refusal = f"the process that does {end_of(code)}{importing}"
        self._read_fork_server()
        return True

    def stop_helpers(self) -> None:
        """End the processes that serve nobody."""
        if self._fork_server is not None:
            self._fork_server.end()
            self._fork_server = None
        if self._shared is not None:
            self._shared.watcher.close()

    def close(self) -> None:
        """Close everything."""
        self.stop_helpers()
        for shared in (*self._past, *([self._shared] if self._shared else ())):
            shared.close()

    # What others say

    def _read_fork_server(self) -> None:
        fork_server = self._fork_server
        if fork_server is None:
            return
        fork_server.receive_reports()
        if fork_server.refusal:
            self._say(f"each save is a full restart from now on: {fork_server.refusal}", "warning")
            self.uses_fork_server = False
        if fork_server.has_given_up:
            fork_server.close()
            self._fork_server = None
        if self._waits_for_fork_server and (self._fork_server is None or fork_server.ready):
            self._waits_for_fork_server = False
            self._start_generation(self._reason)

    def _read_generations(self, shared: SharedState) -> None:
        """Have the keeper import for the next version what this one had to."""
        names = [name for name in shared.receive_modules() if name not in self._learned]
        self._learned.update(dict.fromkeys(names))
        if names and self._fork_server is not None:
            self._fork_server.preimport(names)
        elif (
            self.uses_fork_server
            and self._fork_server is None
            and len(self._learned) - self._learned_before >= WORTH_FORK_SERVER
        ):
            self._start_fork_server()

    def _read_watcher(self, shared: SharedState) -> None:
        paths: dict[str, list[str]] = {}
        for kind, path in shared.watcher.receive():
            paths.setdefault(kind, []).append(path)
        for notice in paths.get("notice", ()):
            self._say(notice, "warning")
        outside, code = paths.get("outside", []), paths.get("code", [])
        if (
            "configuration" in paths
            and (now := _file_state(self.file)) != self._configuration_state
        ):
            # A watcher that has just begun tells once more what was saved a moment ago.
            self._configuration_state = now
            self.configuration_changed = True
        elif outside and self.uses_fork_server:
            self._reason = _file_names(outside, shared)
            self._say(f"saved outside of the project: {self._reason}; all is loaded again", "info")
            self._start_fork_server()
            self._waits_for_fork_server = True
        elif code or outside:
            self._start_generation(_file_names(code or outside, shared))
        elif "asset" in paths:
            self.generations.reload_browsers()

    # What is done about it

    def _start_fork_server(self) -> None:
        """Have a new keeper, if one is wanted."""
        if self._fork_server is not None:
            self._fork_server.end()
            self._fork_server = None
        if self.uses_fork_server and self._shared is not None:
            self._learned_before = len(self._learned)
            self._fork_server = ForkServer(self._shared, list(self._learned))

    def _next_generation(self, reason: str, page: str = "") -> list[Spawner]:
        """Return where the next version comes from, of each service."""
        assert self._shared is not None
        self._number += 1
        self._loading_since = time.monotonic()
        self._reason = reason
        self._check_at, self._dump_requested = self._loading_since + SLOW_LOADING, False
        application = PlainPage(page) if page else None
        return [
            Spawner(
                Generation(self._number, self._shared, service_index, application),
                self._fork_server,
            )
            for service_index in range(len(self._shared.services))
        ]

    def _start_generation(self, reason: str, page: str = "") -> None:
        """Have the next version serve."""
        self.generations.replace(self._next_generation(reason, page))

    def _check_loading(self, now: float) -> None:
        """See what becomes of the version that was ordered."""
        if not self._loading_since:
            return
        pools = self._pools
        failed = next((pool for pool in pools if pool.failed), None)
        if failed is not None and (failed.failed not in REPORTED_EXIT_CODES or self._number > 1):
            # It has died without an exception that could be shown.
            why = f"version {self._number} {failed.failure} while it was loaded"
            self._say(why, "bad")
            self._start_generation(self._reason, f"{why[0].upper()}{why[1:]}")
        elif all(pool.complete for pool in pools):
            self.generations.end_progress()
            took = f"in {(now - self._loading_since) * 1000:.0f} ms"
            if any(pool.broken for pool in pools):
                self._say(f"an error page {took}: {self._reason or 'the application'}", "bad")
            elif self._reason:
                self._say(f"reloaded {took}: {self._reason}", "good")
            self._loading_since = 0.0
            self._check_at = float("inf")
        elif now >= self._check_at:
            self._report_slow_loading(pools)

    def _report_slow_loading(self, pools: Sequence[WorkerPool]) -> None:
        """Tell that a version takes long, in the browser too, and go on waiting for it."""
        assert self._shared is not None
        workers = [worker for pool in pools for worker in pool.workers.values()]
        if not self._dump_requested:
            for worker in workers:
                if not worker.serves:
                    self._shared.stack_dump.request(worker.pid)
                    break
            self._check_at, self._dump_requested = time.monotonic() + DUMP_WAIT, True
            return
        self._check_at = float("inf")
        place, trace = self._shared.stack_dump.read(
            self._shared.project, self._shared.services[0].folder
        )
        if not place and self._fork_server is not None and self._fork_server.importing:
            place = f"{self._fork_server.importing} is being imported"
        heading = f"version {self._number} has been loading for {SLOW_LOADING:g} s"
        self._say(f"{heading}: {place}" if place else heading, "warning")
        if self.generations.starting:
            # Others serve until it does.
            return
        text = f"{heading[0].upper()}{heading[1:]}"
        early = []
        for service_index, pool in enumerate(pools):
            if not pool.complete:
                shown = f"\n{trace or place}" if pool.settings.debug != "off" else ""
                page = PlainPage(text + shown)
                generation = Generation(self._number, self._shared, service_index, page, early=True)
                early.append(Spawner(generation, None))
        self.generations.show_progress(early)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _file_state(path: str | None) -> tuple[int, int, int]:
    """Return what is another one when a file has been saved."""
    try:
        found = os.stat(path or "")
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size


def _file_names(paths: list[str], shared: SharedState) -> str:
    """Name files, as they are seen from where we have begun: that folder may be gone."""
    here = shared.services[0].folder + "/"
    names = sorted({path.removeprefix(here) for path in paths})
    text = ", ".join(names[:MOST_NAMED])
    return f"{text} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else text
