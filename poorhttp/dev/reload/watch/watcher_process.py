"""The process that watches files: what it does, from its fork to its end."""

from __future__ import annotations

import gc
import os
import select
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from poorhttp._core import Inotify, end_with_parent
from poorhttp.dev.reload.watch.filesystems import Mounts, delay, is_forced, limit
from poorhttp.dev.reload.watch.project import FOLDERS
from poorhttp.dev.reload.watch.snapshot import Snapshot
from poorhttp.process.signals import SIGNALS, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from poorhttp.dev.reload.watch.project import Project

#: More changed files than this are a burst, of a checkout or a formatter. A burst is reported after
#: `BURST_QUIET` seconds without an event, and after `MAX_BURST` seconds at the latest.
BURST = 8
BURST_QUIET = 0.1
EVENT_WAIT = 0.01
MAX_BURST = 3.0

#: Seconds in which what is saved next may belong to what was told. The first is told at once.
SAME_SAVE = 0.05

#: Seconds that somebody may take to write again what he has emptied or moved away to save it.
HALF_DONE_WAIT = 0.05

#: Seconds without a change in installed packages: pip takes its time. And the longest that it may.
INSTALL_QUIET = 1.0
MAX_INSTALL = 60.0

#: Seconds between two looks at the roots of the project: that a folder above one was exchanged the
#: system does not tell. And between two when one is away, for as long as that is likely to end.
ROOT_CHECK = 1.0
ABSENT_ROOT_CHECK = 0.02
ABSENT_ROOT_LIMIT = 5.0

#: A lock of git older than this was left behind.
STALE_LOCK = 10.0

#: Of time, how much goes into looking at all files that the system does not tell of, and the
#: seconds between two looks at least and at most. What was saved lately is looked at `MIN_POLL`.
POLL_CPU_SHARE = 0.005
MIN_POLL = 0.25
MAX_POLL = 5.0

#: Paths of a kind in one message at most: the main process counts them, and names a few.
MAX_PATHS = 5000

#: Seconds in advance of the time that setting the system's watches may take in the long run.
WATCH_CREDIT = 5.0

ORDER = ("configuration", "outside", "code", "asset")


class WatcherProcess:
    """Watches the files of a project until the main process ends."""

    def __init__(self, project: Project, channel: int, parent: int, since: int) -> None:
        """Take what is needed; nothing is done yet.

        Args:
            project: says what matters.
            channel: descriptor of the line to the main process.
            parent: the main process.
            since: what was written later than this time in nanoseconds is told.
        """
        self._project = project
        self._channel = channel
        self._parent = parent
        self._snapshot = Snapshot(project, since)
        self._locks = _git_locks(project.roots)
        self._notify: Inotify | None = None
        # Folders that are looked at, and when: those where something was saved, and all.
        self._polled: list[str] = []
        self._poll_at = self._poll_all_at = 0.0
        self._recent_folders: list[str] = []
        self._polls_all = True
        # The system's watches are to be set anew, and not before.
        self._watches_outdated = True
        self._folders: set[str] = set()
        self._watch_again_at = 0.0
        self._spent_until = 0.0
        self._check_roots_at = 0.0
        self._away_since = 0.0
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
            os._exit(0)  # The main process is gone, or has had enough of us.
        except BaseException as error:
            with suppress(OSError):
                self._send([("notice", f"watching files failed: {type(error).__name__}: {error}")])
            raise

    def _begin(self) -> None:
        # The main process stops us; Ctrl-C is for it.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        # Nobody shall find a port in use because of us.
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) != self._channel:
                with suppress(OSError):
                    os.close(int(name))
        os.set_blocking(self._channel, True)
        # What the main process has made stays shared with it.
        gc.freeze()
        gc.disable()

    def _round(self) -> None:
        """Wait for something to happen, and tell the main process what matters of it."""
        paths = self._wait(self._pause(), orders=True)
        now = time.monotonic()
        if now >= self._check_roots_at:
            self._check_roots_at = now + ROOT_CHECK
            if self._snapshot.has_moved():
                self._watches_outdated = True
        changed: dict[str, str] = {}
        looks = bool(self._polled) and now >= self._poll_at
        if looks:
            self._polls_all = now >= self._poll_all_at
            changed.update(self._poll())
        if paths or changed or (self._watches_outdated and now >= self._watch_again_at):
            self._gather(changed, paths, looks=looks)
        self._report(changed)

    def _pause(self) -> float:
        """Return the seconds until there is something to do, if nothing happens."""
        now = time.monotonic()
        if self._snapshot.absent and now - self._away_since < ABSENT_ROOT_LIMIT:
            # Whatever has taken it away is about to put it back.
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
        """Wait for the system to tell something, or for orders if that `orders` them.

        Returns:
            The paths that it is about, and what has happened to each as in `Inotify.read`.
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
            # More than it keeps: everything is looked at.
            self._watches_outdated = True
            return {}
        return events

    def _gather(self, changed: dict[str, str], paths: Mapping[str, str], *, looks: bool) -> None:
        """Add to what has changed whatever belongs to the same burst.

        Args:
            changed: what is known, and what is found.
            paths: something has happened to them.
            looks: the system does not tell everything: look again.
        """
        began = grown = time.monotonic()
        seen = bool(changed) or began - self._reported_at < SAME_SAVE
        # Files that somebody is writing to.
        written: set[str] = set()
        known = -1
        while True:
            for path, happening in paths.items():
                if self._note(path, happening, changed) and happening == "written":
                    written.add(path)
                else:
                    written.discard(path)
            # Not every event is of another file: most of a burst come in threes.
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
                # What we have seen ourselves we are told of too, and then it is no other save.
                quiet = EVENT_WAIT
            elif now - began < HALF_DONE_WAIT and (written or any(map(_is_half_done, changed))):
                quiet = EVENT_WAIT
            else:
                break
            paths = self._wait(quiet)
            more = self._poll() if looks else {}
            changed.update(more)
            if quiet == BURST_QUIET and not paths and not more and not locked:
                break

    def _note(self, path: str, happening: str, changed: dict[str, str]) -> bool:
        """Add a file to what has changed, or find that there are other folders; tell if it is."""
        if self._snapshot.concerns_folders(path):
            self._watches_outdated = True
            return False
        found = self._snapshot.changed(path, certain=happening != "touched")
        changed.update(found)
        return bool(found)

    def _compare_all(self) -> dict[str, str]:
        """Look at everything."""
        absent = self._snapshot.absent
        changed = self._snapshot.look()
        if self._snapshot.absent != absent:
            self._away_since = time.monotonic()
        self._watches_outdated = (
            self._watches_outdated or set(self._snapshot.watched()) != self._folders
        )
        return changed

    def _poll(self) -> dict[str, str]:
        """Look at the files that the system does not tell of: at all, or where some were saved."""
        began = time.monotonic()
        folders = self._polled if self._polls_all else self._recent_folders
        changed, other = self._snapshot.look_at(self._snapshot.differing(folders))
        self._watches_outdated = self._watches_outdated or other
        now = time.monotonic()
        wanted = delay(os.environ)
        if self._polls_all:
            rest = min(max((now - began) / POLL_CPU_SHARE, MIN_POLL), MAX_POLL)
            self._poll_all_at = now + (wanted or rest)
        self._poll_at = now + (wanted or MIN_POLL)
        # Who has saved a file will save it again.
        fresh = dict.fromkeys(os.path.dirname(path) for path in changed)
        if fresh:
            self._recent_folders = [
                *fresh,
                *(folder for folder in self._recent_folders if folder not in fresh),
            ][:BURST]
        return changed

    def _watch_again(self) -> dict[str, str]:
        """Have the system watch the folders as they are now, and return what has changed."""
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
        # Of what makes folders all the time, at most a tenth of a core; but not at once. What
        # others take of a busy core counts for nothing.
        spent = time.process_time() - began
        self._spent_until = max(time.monotonic(), self._spent_until) + 10 * spent
        self._watch_again_at = self._spent_until - WATCH_CREDIT
        if self._project.cut:
            self._notice(
                f"there are too many folders to watch them all: the {FOLDERS} nearest are; start "
                "in the project's own folder, or leave folders out with reload_exclude"
            )
        return changed

    def _set_watches(self, folders: list[str]) -> bool:
        """Have the system watch folders; `False` if one of them is gone meanwhile."""
        remote = Mounts.now().all_remote(folders)
        self._polled = list(remote)
        for kind in sorted(set(remote.values())):
            first = next(folder for folder in remote if remote[folder] == kind)
            self._notice(
                f"{first} is on {kind}, where the system does not tell what others write: files "
                "there are looked at again and again"
            )
        if is_forced(os.environ) or _is_first_wsl():
            self._polled = folders
            return True
        own = [folder for folder in folders if self._snapshot.is_project(folder)]
        for some in (folders, own):
            try:
                if self._notify is None:
                    self._notify = Inotify()
                return self._notify.watch(some)
            except OSError as error:
                # What it watches now is not known. And without it there is more room.
                self._notify = None
                self._polled = list(dict.fromkeys([*self._polled, *(set(folders) - set(own))]))
                self._notice(
                    f"{limit(error)}; until then, files are looked at again and again to find "
                    "what was saved"
                )
        self._polled = folders
        return True

    def _is_locked(self) -> bool:
        """Tell whether git is at work on the files."""
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
        """Tell a person something, once."""
        if text not in self._notices:
            self._notices.add(text)
            self._send([("notice", text)])

    def _report(self, changed: dict[str, str]) -> None:
        """Tell the main process, but of installed packages only when pip has done its work."""
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
    """Return the files that git has while it works on the folders."""
    locks: dict[str, None] = {}
    for root in roots:
        folder = root
        while not os.path.exists(os.path.join(folder, ".git")) and folder != "/":
            folder = os.path.dirname(folder)
        git = os.path.join(folder, ".git")
        try:
            # A file in a work tree of its own, which says where the folder is.
            with open(git, encoding="utf-8", errors="surrogateescape") as file:
                git = os.path.join(folder, file.readline().removeprefix("gitdir:").strip())
        except IsADirectoryError:
            pass
        except OSError:
            continue
        locks[os.path.join(git, "index.lock")] = None
    return list(locks)


def _is_half_done(path: str) -> bool:
    """Tell whether a file is empty or away: many save in two steps."""
    try:
        return os.stat(path).st_size == 0
    except OSError:
        return True


def _is_first_wsl() -> bool:
    """Tell whether this is no Linux, but a Windows that does as if: it tells of few changes."""
    return os.uname().release.endswith("-Microsoft")
