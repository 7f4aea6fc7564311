"""Starts a new version of the application when the project has changed, in the main process."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator, Sequence

from poorhttp import logs
from poorhttp.plugins.dev.debug.plain_page import PlainPage
from poorhttp.plugins.dev.options import Development
from poorhttp.plugins.dev.reload.fork_server import ForkServer
from poorhttp.plugins.dev.reload.own_writes import OwnWrites
from poorhttp.plugins.dev.reload.shared_state import RUNNING, SERVING, SharedState
from poorhttp.plugins.dev.reload.spawner import JUST_ENDED, OLDER_WAIT, VersionSpawner
from poorhttp.plugins.native import adopt_orphans
from poorhttp.process import signals
from poorhttp.process.exit_status import end_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.component import Main
    from poorhttp.supervisor.generations import Generations
    from poorhttp.supervisor.worker_pool import WorkerPool
    from poorhttp.worker.service import Service

#: Seconds of loading after which a warning names the line at which the generation is.
SLOW_LOADING = 10.0

#: Seconds that the generation has to write its stack dump. gevent's hub looks for signals that are
#: handled in Python three times a second.
DUMP_WAIT = 0.5

#: Seconds after which a client may repeat a request that came while a slow generation was loading.
RETRY_AFTER = 2

#: New library modules that make a fork server worth its memory after one was not needed.
WORTH_FORK_SERVER = 20

#: Exit codes of workers that report themselves why they cannot start (`poorhttp.errors`).
REPORTED_EXIT_CODES = (2, 3, 4, 5)

#: Changed files that a message names; the others are counted.
MOST_NAMED = 3


class Reloader:
    """Starts versions, and runs the fork server and the watcher.

    Attributes:
        configuration_changed: files for which the settings must be read again; empty: none.
    """

    def __init__(self, main: Main, *, uses_fork_server: bool) -> None:
        """Start nothing yet; `uses_fork_server`: import libraries once, in a fork server."""
        self._main = main
        self._say = main.say
        self.uses_fork_server = uses_fork_server
        self.configuration_changed = ""
        #: When the configuration has begun to be read last: what is saved later is another one.
        self._read_at = time.time_ns()
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
        self._own_writes = OwnWrites()
        #: Changed files that have no effect yet, by kind, and until when.
        self._delayed: dict[str, list[str]] = {}
        self._delayed_until = float("inf")
        #: Files of which the user was told that the application writes them.
        self._announced: set[str] = set()
        #: When to act on a generation that loads slowly.
        self._check_at = float("inf")
        self._dump_requested = False
        #: Start a generation when the fork server has imported everything again.
        self._waits_for_fork_server = False
        #: Until when a pool whose process has ended waits for older versions to end; 0: none does.
        self._waits_until = 0.0
        #: Pools with an error page, to be loaded once more when older versions have ended.
        self._blocked: list[WorkerPool] = []
        #: Pools that answer with a progress page while a slow version loads.
        self._progress: list[WorkerPool] = []
        adopt_orphans()

    def spawners(self, services: Sequence[Service]) -> list[VersionSpawner]:
        """Return the next generation of each service, after the configuration was read."""
        self.stop_helpers()
        if self._shared is not None:
            self._past.append(self._shared)
        # Forked processes share the objects that exist now; the collector must not write to them.
        gc.collect()
        gc.freeze()
        is_reload = self._shared is not None
        self._shared = SharedState(services, self._main.file, self._own_writes, self._read_at)
        if is_reload:
            # Those that serve are replaced only when these have loaded.
            for which in range(len(services)):
                self._shared.note_older(which, SERVING)
        self._start_fork_server()
        return self._next_generation("")

    def begin_reload(self) -> None:
        """Note that the configuration is about to be read."""
        self._read_at = time.time_ns()

    @property
    def generations(self) -> Generations:
        """The worker pools."""
        return self._main.generations

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
        if self._loading_since and all(
            pool.complete or pool.failed or pool.held for pool in self._pools
        ):
            # The workers have reported since the last tick; or it waits for older versions.
            return self._waits_until
        return self._check_at if self._loading_since else min(self._check_at, self._delayed_until)

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
        self._note_older(self._shared)
        self._check_loading(now)
        self._check_blocked(now)
        for past in list(self._past):
            if not any(_spawner(pool).shared is past for pool in self.generations):
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
        paths.pop("notice", None)
        changed = [path for some in paths.values() for path in some]
        loads = bool(self._loading_since)
        pause = self._own_writes.pause(changed, is_loading=loads) if changed else 0.0
        # A generation that loads may have written half of them: they are not read, nor is it ended.
        is_loading = loads and self._own_writes.wrote(changed)
        if pause:
            self._announce_pause(changed, pause, shared)
        if pause or (is_loading and changed):
            self._delayed_until = time.monotonic() + pause
        for kind, some in paths.items():
            self._delayed[kind] = list(dict.fromkeys([*self._delayed.get(kind, ()), *some]))
        waits = not changed and time.monotonic() < self._delayed_until
        if pause or is_loading or waits or not self._delayed:
            return
        fresh, paths, self._delayed = paths, self._delayed, {}
        if self._loading_since and "configuration" in paths and "configuration" not in fresh:
            self._delayed["configuration"] = paths.pop("configuration")
        else:
            self._delayed_until = float("inf")
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
            # Open pages in browsers reload themselves.
            for pool in self.generations.serving:
                pool.end_long_polls()

    def _announce_pause(self, paths: Sequence[str], pause: float, shared: SharedState) -> None:
        """Say, once for each file, that the application writes it and how to leave it out."""
        fresh = [path for path in paths if path not in self._announced]
        if fresh:
            self._announced.update(fresh)
            here = shared.services[0].folder + "/"
            some = sorted(fresh)[:MOST_NAMED]
            options = " ".join(f"--reload-exclude {path.removeprefix(here)}" for path in some)
            self._say(
                f"{self._own_writes.writer} has written {_file_names(fresh, shared)} again after a "
                f"reload: the next reload waits {pause:g} s, and later ones longer; leave it out "
                f"with reload_exclude ({options})",
                "warning",
            )

    # Actions

    def _start_fork_server(self) -> None:
        """Replace the fork server, if one is used."""
        if self._fork_server is not None:
            self._fork_server.end()
            self._fork_server = None
        if self.uses_fork_server and self._shared is not None:
            self._learned_before = len(self._learned)
            self._fork_server = ForkServer(self._shared, list(self._learned))

    def _next_generation(self, reason: str, page: str = "") -> list[VersionSpawner]:
        """Return a new generation of each service; a `page` takes the place of its application."""
        assert self._shared is not None
        self._number += 1
        self._loading_since = time.monotonic()
        self._reason = reason
        self._waits_until = 0.0
        self._blocked = []
        self._check_at, self._dump_requested = self._loading_since + SLOW_LOADING, False
        application = PlainPage(page) if page else None
        server = self._fork_server
        return [
            VersionSpawner(self._number, self._shared, index, application, fork_server=server)
            for index in range(len(self._shared.services))
        ]

    def _start_generation(self, reason: str, page: str = "") -> None:
        """Replace the serving generation by a new one."""
        assert self._shared is not None
        self._end_progress()
        for old, spawner in zip(self._pools, self._next_generation(reason, page), strict=True):
            self.generations.replace_pool(old, spawner)
        self._note_older(self._shared)

    # Older versions, which may hold a port or a lock that the latest one needs

    def _older(self, service: Service) -> list[WorkerPool]:
        """Return the pools of a service's older versions of which a process is left."""
        name, latest = service.settings.service, self._pools
        return [
            pool
            for pool in self.generations
            if pool.settings.service == name
            and pool not in latest
            and (pool.workers or pool.ordered)
            and not _spawner(pool).page
        ]

    def _note_older(self, shared: SharedState) -> None:
        """Tell generations that are loaded whether older versions run."""
        for which, service in enumerate(shared.services):
            older = self._older(service)
            serve = any(not pool.retiring for pool in older)
            shared.note_older(which, (SERVING if serve else RUNNING) if older else 0)

    def _waits_for_older(self, pool: WorkerPool, now: float) -> bool:
        """Load a pool's version once more when older ones have ended; `False` if that is no use."""
        assert self._shared is not None
        spawner = _spawner(pool)
        if not (pool.held or pool.failed):
            return False
        older = self._older(pool.service)
        if pool.held:
            for each in older:
                if not each.retiring:
                    # A reload, whose error page would replace it anyway.
                    each.detach("reloaded")
        elif spawner.is_last or spawner.page:
            return False
        elif not older:
            ended = self._shared.older(spawner.service_index) / 1e9
            if pool.failed_at - ended > JUST_ENDED / 1e9:
                return False
        until = pool.failed_at + OLDER_WAIT
        if older and now < until:
            self._waits_until = until
        elif older and not pool.held:
            # Its page is shown until they have ended.
            return False
        else:
            self._load_again(pool, is_last=not older)
        return True

    def _load_again(self, pool: WorkerPool, *, is_last: bool) -> None:
        """Replace a pool by another that loads the same."""
        assert self._shared is not None
        which = _spawner(pool).service_index
        self._number += 1
        self._waits_until = 0.0
        spawner = VersionSpawner(self._number, self._shared, which, fork_server=self._fork_server)
        spawner.is_last = is_last
        spawner.service.serving = True
        self.generations.replace_pool(pool, spawner)
        self._note_older(self._shared)
        if is_last:
            self._shared.forget_older(which)

    def _check_blocked(self, now: float) -> None:
        """Load versions with an error page once more when older ones have ended."""
        for pool in [each for each in self._blocked if not self._older(each.service)]:
            self._blocked.remove(pool)
            if not self._loading_since:
                self._loading_since = now
                self._check_at, self._dump_requested = now + SLOW_LOADING, False
            self._load_again(pool, is_last=False)

    def _check_loading(self, now: float) -> None:
        """Report that the latest generation has loaded, or replace it if its process has ended."""
        if not self._loading_since:
            return
        pools = self._pools
        waiting = [self._waits_for_older(pool, now) for pool in list(pools)]
        if any(waiting):
            return
        failed = next((pool for pool in pools if pool.failed), None)
        if failed is not None and (failed.failed not in REPORTED_EXIT_CODES or self._number > 1):
            # The process ended without an exception that could be shown.
            why = f"version {self._number} {failed.failure} while it was loaded"
            self._say(why, "bad")
            blocked = [index for index, pool in enumerate(pools) if self._older(pool.service)]
            self._start_generation(self._reason, f"{why[0].upper()}{why[1:]}")
            self._blocked = [self._pools[index] for index in blocked]
        elif all(pool.complete for pool in pools):
            self._end_progress()
            took = f"in {(now - self._loading_since) * 1000:.0f} ms"
            if any(map(_is_broken, pools)):
                self._say(f"an error page {took}: {self._reason or 'the application'}", "bad")
            elif self._reason:
                self._say(f"reloaded {took}: {self._reason}", "good")
            self._loading_since = 0.0
            self._check_at = float("inf")
            self._blocked += [
                pool for pool in pools if _is_broken(pool, again=True) and self._older(pool.service)
            ]
            if self._blocked:
                self._say(
                    "a version before it still runs; when that has ended, this one is loaded again",
                    "info",
                )
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
        for index, pool in enumerate(pools):
            if not pool.complete:
                shown = (
                    f"\n{trace or place}" if pool.settings.of(Development).debug != "off" else ""
                )
                page = PlainPage(text + shown, retry_after=RETRY_AFTER)
                spawner = VersionSpawner(self._number, self._shared, index, page, early=True)
                self._progress.append(self.generations.add(spawner))

    def _end_progress(self) -> None:
        for pool in self._progress:
            pool.detach("reloaded")
        self._progress.clear()


def _spawner(pool: WorkerPool) -> VersionSpawner:
    """Return the spawner of a pool: all pools of the application have one of these."""
    assert isinstance(pool.spawner, VersionSpawner)
    return pool.spawner


def _is_broken(pool: WorkerPool, *, again: bool = False) -> bool:
    """Whether a worker serves an error page; `again`: the application may be loadable later."""
    workers = [each for each in pool.workers.values() if not each.kill_at]
    return any(each.broken for each in workers) and (
        not again or any(each.again for each in workers)
    )


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
