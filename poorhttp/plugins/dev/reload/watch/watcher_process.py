"""The process that watches files: inotify, polling, and reports to the main process."""

from __future__ import annotations

import gc
import os
import select
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from poorhttp._core import end_with_parent
from poorhttp.plugins.dev.reload.watch.filesystems import Mounts, delay, is_forced, limit_message
from poorhttp.plugins.dev.reload.watch.project import FOLDERS
from poorhttp.plugins.dev.reload.watch.snapshot import Snapshot
from poorhttp.plugins.native import Inotify
from poorhttp.process.signals import SIGNALS, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from poorhttp.plugins.dev.reload.watch.project import WatchedProject

#: More changed files than this are a burst, of a checkout or a formatter. A burst is reported after
#: `BURST_QUIET` seconds without an event, and after `MAX_BURST` seconds at the latest.
BURST = 8
BURST_QUIET = 0.1
EVENT_WAIT = 0.01
MAX_BURST = 3.0

#: Seconds after a report within which changes may belong to the same save, and are gathered. The
#: first change is reported at once.
SAME_SAVE = 0.05

#: Seconds in which an editor may write a file again that it has emptied or moved away to save it.
HALF_DONE_WAIT = 0.05

#: Seconds without a change in installed packages after which an installation counts as finished,
#: and the longest that it may take.
INSTALL_QUIET = 1.0
MAX_INSTALL = 60.0

#: Seconds between checks of the project's roots, since inotify does not report that a folder above
#: one was replaced: as long as nothing has changed, within limits. Shorter while a root is missing,
#: for as long as its return is likely.
ROOT_CHECK = 1.0
MAX_ROOT_CHECK = 10.0
ABSENT_ROOT_CHECK = 0.02
ABSENT_ROOT_LIMIT = 5.0

#: Seconds after which a lock file of git counts as left behind.
STALE_LOCK = 10.0

#: Share of time that goes into polling files that inotify does not cover, and the shortest and the
#: longest interval in seconds. Folders with a recent save are polled every `MIN_POLL` seconds.
POLL_CPU_SHARE = 0.005
MIN_POLL = 0.25
MAX_POLL = 5.0

#: Paths of a kind in one report at most: the main process counts them, and names a few.
MAX_PATHS = 5000

#: Seconds by which setting inotify watches may exceed its share of time for a while.
WATCH_CREDIT = 5.0

ORDER = ("configuration", "outside", "code", "asset")


class WatcherProcess:
    """Watches the files of a project until the main process ends."""

    def __init__(self, project: WatchedProject, channel: int, parent: int, since: int) -> None:
        """Do nothing yet.

        Args:
            project: decides which files matter.
            channel: descriptor of the control channel to the main process.
            parent: pid of the main process.
            since: files written later than this time in nanoseconds are reported.
        """
        self._project = project
        self._channel = channel
        self._parent = parent
        self._snapshot = Snapshot(project, since)
        self._locks = _git_locks(project.roots)
        self._notify: Inotify | None = None
        # Folders that are polled, and when: those with a recent save, and all.
        self._polled: list[str] = []
        self._poll_at = self._poll_all_at = 0.0
        self._recent_folders: list[str] = []
        self._polls_all = True
        # The inotify watches must be set again, but not before `_watch_again_at`.
        self._watches_outdated = True
        self._folders: set[str] = set()
        self._watch_again_at = 0.0
        self._spent_until = 0.0
        self._check_roots_at = 0.0
        self._changed_at = time.monotonic()
        self._absent_since = 0.0
        self._reported_at = -SAME_SAVE
        self._outside: dict[str, str] = {}
        self._outside_since = self._outside_last = 0.0
        self._notices: set[str] = set()
        self._partial_order = b""

    def run(self) -> NoReturn:
        """Watch, as a process that has just been forked."""
        end_with_parent()
        if os.getppid() != self._parent:
            os._exit(0)
        try:
            self._begin()
            while True:
                self._round()
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)  # The main process has ended or has closed the channel.
        except BaseException as error:
            with suppress(OSError):
                self._send([("notice", f"watching files failed: {type(error).__name__}: {error}")])
            raise

    def _begin(self) -> None:
        # The main process handles Ctrl-C, and stops this process.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        # An inherited listening socket would keep its port in use.
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) != self._channel:
                with suppress(OSError):
                    os.close(int(name))
        os.set_blocking(self._channel, True)
        # Objects of the main process stay shared with it.
        gc.freeze()
        gc.disable()

    def _round(self) -> None:
        """Wait for events, gather the changes that belong together, and report them."""
        paths = self._wait(self._pause(), orders=True)
        now = time.monotonic()
        if paths:
            self._changed_at = now
            self._check_roots_at = min(self._check_roots_at, now + ROOT_CHECK)
        if now >= self._check_roots_at:
            quiet = 0.0 if self._snapshot.absent else now - self._changed_at
            self._check_roots_at = now + max(ROOT_CHECK, min(quiet, MAX_ROOT_CHECK))
            if self._snapshot.has_moved():
                self._watches_outdated = True
                self._changed_at = now
        changed: dict[str, str] = {}
        polls = bool(self._polled) and now >= self._poll_at
        if polls:
            self._polls_all = now >= self._poll_all_at
            changed.update(self._poll())
        if paths or changed or (self._watches_outdated and now >= self._watch_again_at):
            self._gather(changed, paths, polls=polls)
        self._report(changed)

    def _pause(self) -> float:
        """Return the seconds until the next task that is due without an event."""
        now = time.monotonic()
        if self._snapshot.absent and now - self._absent_since < ABSENT_ROOT_LIMIT:
            # A program that has moved a root away is about to put it back.
            self._check_roots_at = min(self._check_roots_at, now + ABSENT_ROOT_CHECK)
        until = self._check_roots_at
        if self._watches_outdated:
            until = min(until, self._watch_again_at)
        if self._polled:
            until = min(until, self._poll_at)
        if self._outside:
            until = min(until, self._outside_last + INSTALL_QUIET)
        return max(0.0, until - now)

    def _wait(self, seconds: float, *, orders: bool = False) -> Mapping[str, str]:
        """Wait for events of inotify, and for orders of the main process if `orders` is set.

        Returns:
            Paths, and what has happened to each as in `Inotify.read`.
        """
        sources: list[Inotify | int] = [] if self._notify is None else [self._notify]
        if orders:
            sources.append(self._channel)
        ready = select.select(sources, [], [], seconds)[0]
        if self._channel in ready:
            self._receive_orders()
        if self._notify is None or self._notify not in ready:
            return {}
        events = self._notify.read()
        if events is None:
            # The kernel's queue has overflowed: everything is compared.
            self._watches_outdated = True
            return {}
        return events

    def _gather(self, changed: dict[str, str], paths: Mapping[str, str], *, polls: bool) -> None:
        """Add changes that belong to the same burst.

        Args:
            changed: the changes so far; further ones are added.
            paths: paths with events.
            polls: poll as well.
        """
        began = grown = time.monotonic()
        seen = bool(changed) or began - self._reported_at < SAME_SAVE
        # Files that are being written to.
        written: set[str] = set()
        known = -1
        while True:
            for path, event in paths.items():
                if self._note(path, event, changed) and event == "written":
                    written.add(path)
                else:
                    written.discard(path)
            # An event may be of a known file: most files of a burst have three.
            if len(changed) != known:
                known, grown = len(changed), time.monotonic()
            elif time.monotonic() - grown >= EVENT_WAIT:
                seen = False
            locked = bool(changed or self._watches_outdated) and self._is_locked()
            if self._watches_outdated and not locked and time.monotonic() >= self._watch_again_at:
                changed.update(self._watch_again())
                seen, grown = True, time.monotonic()
            now = time.monotonic()
            if now - began > MAX_BURST:
                break
            if len(changed) > BURST:
                quiet = BURST_QUIET
            elif locked or (changed and seen):
                # A change found by comparison has an event too, which is not another save.
                quiet = EVENT_WAIT
            elif now - began < HALF_DONE_WAIT and (written or any(map(_is_half_done, changed))):
                quiet = EVENT_WAIT
            else:
                break
            paths = self._wait(quiet)
            more = self._poll() if polls else {}
            changed.update(more)
            if quiet == BURST_QUIET and not paths and not more and not locked:
                break

    def _note(self, path: str, event: str, changed: dict[str, str]) -> bool:
        """Add a file to the changes, or note that folders have changed; `True` if it was added."""
        if self._snapshot.concerns_folders(path):
            self._watches_outdated = True
            return False
        found = self._snapshot.changed(path, certain=event != "touched")
        changed.update(found)
        return bool(found)

    def _compare_all(self) -> dict[str, str]:
        """Compare all files with the snapshot."""
        absent = self._snapshot.absent
        changed = self._snapshot.compare_all()
        if self._snapshot.absent != absent:
            self._absent_since = time.monotonic()
        self._watches_outdated = (
            self._watches_outdated or set(self._snapshot.watched()) != self._folders
        )
        return changed

    def _poll(self) -> dict[str, str]:
        """Compare files that inotify does not cover: all, or those near a recent save."""
        began = time.monotonic()
        folders = self._polled if self._polls_all else self._recent_folders
        changed, other = self._snapshot.compare(self._snapshot.differing(folders))
        self._watches_outdated = self._watches_outdated or other
        now = time.monotonic()
        wanted = delay(os.environ)
        if self._polls_all:
            rest = min(max((now - began) / POLL_CPU_SHARE, MIN_POLL), MAX_POLL)
            self._poll_all_at = now + (wanted or rest)
        self._poll_at = now + (wanted or MIN_POLL)
        # A file that was saved is likely to be saved again.
        fresh = dict.fromkeys(os.path.dirname(path) for path in changed)
        if fresh:
            self._recent_folders = [
                *fresh,
                *(folder for folder in self._recent_folders if folder not in fresh),
            ][:BURST]
        return changed

    def _watch_again(self) -> dict[str, str]:
        """Set inotify watches on the present folders, and return what has changed meanwhile."""
        began = time.process_time()
        changed: dict[str, str] = {}
        for _ in range(10):
            folders = self._snapshot.folders()
            self._watches_outdated = False
            self._folders = set(folders)
            if not self._set_watches(folders):
                self._watches_outdated = True
                continue
            changed.update(self._compare_all())
            if not self._watches_outdated:
                break
        # A program that makes folders all the time costs at most a tenth of a core in the long run,
        # measured in CPU time of this process.
        spent = time.process_time() - began
        self._spent_until = max(time.monotonic(), self._spent_until) + 10 * spent
        self._watch_again_at = self._spent_until - WATCH_CREDIT
        if self._project.is_truncated:
            self._notice(
                f"there are too many folders to watch them all: the {FOLDERS} nearest are; start "
                "in the project's own folder, or leave folders out with reload_exclude"
            )
        return changed

    def _set_watches(self, folders: list[str]) -> bool:
        """Set inotify watches on folders; `False` if one of them is gone meanwhile."""
        remote = Mounts.now().all_remote(folders)
        self._polled = list(remote)
        for kind in sorted(set(remote.values())):
            first = next(folder for folder in remote if remote[folder] == kind)
            self._notice(
                f"{first} is on {kind}, where the system does not tell what others write: files "
                "there are looked at again and again"
            )
        # In WSL 1, inotify reports only some changes.
        if is_forced(os.environ) or os.uname().release.endswith("-Microsoft"):
            self._polled = folders
            return True
        own = [folder for folder in folders if self._snapshot.is_project(folder)]
        for some in (folders, own):
            try:
                if self._notify is None:
                    self._notify = Inotify()
                return self._notify.watch(some)
            except OSError as error:
                # Its state is unknown now; closing it frees watches.
                self._notify = None
                self._polled = list(dict.fromkeys([*self._polled, *(set(folders) - set(own))]))
                self._notice(
                    f"{limit_message(error)}; until then, files are looked at again and again to "
                    "find what was saved"
                )
        self._polled = folders
        return True

    def _is_locked(self) -> bool:
        """Whether git is changing the files."""
        for lock in self._locks:
            try:
                if abs(time.time() - os.stat(lock).st_mtime) < STALE_LOCK:
                    return True
            except OSError:
                continue
        return False

    def _receive_orders(self) -> None:
        more = os.read(self._channel, 65536)
        if not more:
            raise BrokenPipeError
        *folders, self._partial_order = (self._partial_order + more).split(b"\0")
        if folders and self._snapshot.add(os.fsdecode(folder) for folder in folders):
            self._watches_outdated = True

    def _notice(self, text: str) -> None:
        """Send a message for the user, once."""
        if text not in self._notices:
            self._notices.add(text)
            self._send([("notice", text)])

    def _report(self, changed: dict[str, str]) -> None:
        """Report changes; those of installed packages only when the installation has finished."""
        now = time.monotonic()
        installed = {path: kind for path, kind in changed.items() if kind == "outside"}
        if installed:
            if not self._outside:
                self._outside_since = now
            self._outside_last = now
            self._outside.update(installed)
        pairs = [(kind, path) for path, kind in changed.items() if kind != "outside"]
        if self._outside and (
            now - self._outside_last >= INSTALL_QUIET or now - self._outside_since >= MAX_INSTALL
        ):
            pairs += [(kind, path) for path, kind in self._outside.items()]
            self._outside.clear()
        if pairs:
            self._reported_at = now
            self._send(
                pair
                for kind in ORDER
                for pair in sorted(pair for pair in pairs if pair[0] == kind)[:MAX_PATHS]
            )

    def _send(self, pairs: Iterable[tuple[str, str]]) -> None:
        data = b"".join(os.fsencode(word) + b"\0" for pair in pairs for word in pair) + b"\0"
        while data:
            data = data[os.write(self._channel, data) :]


def _git_locks(roots: Iterable[str]) -> list[str]:
    """Return the lock files that exist while git changes the folders."""
    locks: dict[str, None] = {}
    for root in roots:
        folder = root
        while not os.path.exists(os.path.join(folder, ".git")) and folder != "/":
            folder = os.path.dirname(folder)
        git = os.path.join(folder, ".git")
        try:
            # In a linked work tree, `.git` is a file that names the folder.
            with open(git, encoding="utf-8", errors="surrogateescape") as file:
                git = os.path.join(folder, file.readline().removeprefix("gitdir:").strip())
        except IsADirectoryError:
            pass
        except OSError:
            continue
        locks[os.path.join(git, "index.lock")] = None
    return list(locks)


def _is_half_done(path: str) -> bool:
    """Whether a file is empty or missing: many editors save in two steps."""
    try:
        return os.stat(path).st_size == 0
    except OSError:
        return True
