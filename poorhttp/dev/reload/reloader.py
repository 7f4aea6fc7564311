"""Starts a new generation of the application in the main process when the project has changed."""

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
from poorhttp.process import signals
from poorhttp.process.exit_status import end_of
from poorhttp.supervisor.generations import Generations
from poorhttp.supervisor.worker_pool import WorkerPool
from poorhttp.worker.service import Service

#: Seconds of loading after which a warning names the line at which the generation is.
SLOW_LOADING = 10.0

#: Seconds that the generation has to write its stack dump.
DUMP_WAIT = 0.2

#: New library modules that make a fork server worth its memory after one was not needed.
WORTH_FORK_SERVER = 20

#: Exit codes of workers that report themselves why they cannot start (`poorhttp.errors`).
REPORTED_EXIT_CODES = (2, 3, 4, 5)

#: Changed files that a message names; the others are counted.
MOST_NAMED = 3


class Reloader:
    """Starts generations, and runs the fork server and the watcher.

    Attributes:
        generations: the worker pools; the supervisor sets it.
        configuration_changed: files for which the settings must be read again; empty: none.
    """

    generations: Generations

    def __init__(
        self, *, uses_fork_server: bool, file: str | None, say: Callable[[str, str], object]
    ) -> None:
        """Start nothing yet.

        Args:
            uses_fork_server: import libraries once, in a fork server.
            file: the configuration file, if there is one.
            say: prints a message in a style of `poorhttp.dev.terminal.STYLES`.
        """
        self._say = say
        self.uses_fork_server = uses_fork_server
        self.file = file
        self.configuration_changed = ""
        #: Inode, time and size of the files of the configuration when they were read last.
        self._configuration_state: list[tuple[int, int, int]] = []
        self._has_terminal = _has_terminal()
        self._shared: SharedState | None = None
        #: Of earlier settings, whose workers still have requests in flight.
        self._past: list[SharedState] = []
        self._fork_server: ForkServer | None = None
        #: Library modules that generations had to import themselves.
        self._learned: dict[str, None] = {}
        #: How many of them the last fork server was started with.
        self._learned_before = 0
        #: Number of the latest generation.
        self._number = 0
        #: When its loading began; 0 once it serves.
        self._loading_since = 0.0
        #: The files that have changed, for messages.
        self._reason = ""
        #: When to act on a generation that loads slowly.
        self._check_at = float("inf")
        self._dump_requested = False
        #: Start a generation when the fork server has imported everything again.
        self._waits_for_fork_server = False
        adopt_orphans()

    def spawners(self, services: Sequence[Service]) -> list[Generation]:
        """Return the next generation of each service, after the configuration was read."""
        self.stop_helpers()
        if self._shared is not None:
            self._past.append(self._shared)
        # Forked processes share the objects that exist now; the collector must not write to them.
        gc.collect()
        gc.freeze()
        self._shared = SharedState(services, self.file)
        self._start_fork_server()
        return self._next_generation("")

    @property
    def ends_with_terminal(self) -> bool:
        """Whether HUP says that the terminal was closed in which the server was started.

        By nohup(1), which has HUP ignored, the server outlives it.
        """
        is_closed = self._has_terminal and not _has_terminal()
        return is_closed and signals.original(signals.signal.SIGHUP) != signals.signal.SIG_IGN

    def filenos(self) -> Iterator[int]:
        """Return the descriptors that are readable when `tick` has work."""
        for each in (self._shared, self._shared and self._shared.watcher, self._fork_server):
            if each is not None and each.fileno() >= 0:
                yield each.fileno()

    def due(self) -> float:
        """Return the time at which `tick` has work although nothing is readable."""
        if self._loading_since and all(pool.complete or pool.failed for pool in self._pools):
            # The workers have reported since the last tick.
            return 0.0
        return self._check_at

    @property
    def _pools(self) -> list[WorkerPool]:
        """The worker pools of the latest generation."""
        return self.generations.starting or self.generations.serving

    def tick(self, now: float) -> None:
        """Handle reports, and generations that have loaded or load slowly."""
        if self._shared is None:
            return
        self._read_fork_server()
        self._read_generations(self._shared)
        self._read_watcher(self._shared)
        self._check_loading(now)
        for past in list(self._past):
            if not any(pool.spawner and pool.spawner.shared is past for pool in self.generations):
                self._past.remove(past)
                past.close()

    def reap(self, pid: int, code: int) -> bool:
        """Handle the exit of the watcher or the fork server; `False` if it is neither."""
        shared, fork_server = self._shared, self._fork_server
        if shared is not None and shared.watcher.reap(pid):
            logs.write("error", f"the process that watches files {end_of(code)}")
            return True
        if fork_server is None or fork_server.pid != pid:
            return False
        fork_server.receive_reports()
        if not fork_server.has_given_up:
            name = fork_server.importing
            importing = f" while it imported {name}" if name else ""
            fork_server.refusal = f"the process that does {end_of(code)}{importing}"
        self._read_fork_server()
        return True

    def stop_helpers(self) -> None:
        """End the fork server and the watcher."""
        if self._fork_server is not None:
            self._fork_server.end()
            self._fork_server = None
        if self._shared is not None:
            self._shared.watcher.close()

    def close(self) -> None:
        """End the helper processes and close all shared state."""
        self.stop_helpers()
        for shared in (*self._past, *([self._shared] if self._shared else ())):
            shared.close()

    # Reports of other processes

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
        """Have the fork server import for the next generation what this one had to import."""
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
        state = self._configuration_state
        if "configuration" in paths:
            state = [_file_state(path) for path in shared.project.files]
        if state != self._configuration_state:
            # A watcher that has just started reports the latest save a second time.
            self._configuration_state = state
            self.configuration_changed = _file_names(paths["configuration"], shared)
        elif outside and self.uses_fork_server:
            self._reason = _file_names(outside, shared)
            self._say(
                f"saved outside of the project: {self._reason}; everything is loaded again", "info"
            )
            self._start_fork_server()
            self._waits_for_fork_server = True
        elif code or outside:
            self._start_generation(_file_names(code or outside, shared))
        elif "asset" in paths:
            self.generations.reload_browsers()

    # Actions

    def _start_fork_server(self) -> None:
        """Replace the fork server, if one is used."""
        if self._fork_server is not None:
            self._fork_server.end()
            self._fork_server = None
        if self.uses_fork_server and self._shared is not None:
            self._learned_before = len(self._learned)
            self._fork_server = ForkServer(self._shared, list(self._learned))

    def _next_generation(self, reason: str, page: str = "") -> list[Generation]:
        """Return a new generation of each service; a `page` takes the place of its application."""
        assert self._shared is not None
        self._number += 1
        self._loading_since = time.monotonic()
        self._reason = reason
        self._check_at, self._dump_requested = self._loading_since + SLOW_LOADING, False
        application = PlainPage(page) if page else None
        server = self._fork_server
        return [
            Generation(self._number, self._shared, index, application, fork_server=server)
            for index in range(len(self._shared.services))
        ]

    def _start_generation(self, reason: str, page: str = "") -> None:
        """Replace the serving generation by a new one."""
        self.generations.replace(self._next_generation(reason, page))

    def _check_loading(self, now: float) -> None:
        """Report that the latest generation has loaded, or replace it if its process has ended."""
        if not self._loading_since:
            return
        pools = self._pools
        failed = next((pool for pool in pools if pool.failed), None)
        if failed is not None and (failed.failed not in REPORTED_EXIT_CODES or self._number > 1):
            # The process ended without an exception that could be shown.
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
        """Report a slow load in the terminal and on a page, and go on waiting.

        The first call asks for a stack dump, the second one reads it.
        """
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
            # The generation before it still serves.
            return
        text = f"{heading[0].upper()}{heading[1:]}"
        early = []
        for index, pool in enumerate(pools):
            if not pool.complete:
                shown = f"\n{trace or place}" if pool.settings.debug != "off" else ""
                page = PlainPage(text + shown)
                early.append(Generation(self._number, self._shared, index, page, early=True))
        self.generations.show_progress(early)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _file_state(path: str | None) -> tuple[int, int, int]:
    """Return a file's inode, time and size: they differ after a save."""
    try:
        found = os.stat(path or "")
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size


def _file_names(paths: list[str], shared: SharedState) -> str:
    """Return names for a message, relative to the folder in which the server was started."""
    here = shared.services[0].folder + "/"
    names = sorted({path.removeprefix(here) for path in paths})
    text = ", ".join(names[:MOST_NAMED])
    return f"{text} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else text
