"""Notices changes of certificate files, also where a renewal replaces a symbolic link or a folder.

certbot replaces the links in `live/`, Kubernetes the link `..data` of a volume. So each folder with
a link on the way to a file is watched (inotify(7)). As long as nothing changes, nothing is woken.
"""

from __future__ import annotations

import os
import time
from _thread import start_new_thread
from collections.abc import Sequence

# Imported before gevent may replace it by its own, which would wait for its hub.
from select import POLLIN, poll

from poorhttp import logs
from poorhttp.plugins.native import Inotify
from poorhttp.plugins.tls._tls import advance_tickets
from poorhttp.plugins.tls.certificates import Certificates
from poorhttp.process.fork import after_fork_in_child

#: Seconds from the first change until the files are read: key and certificate are replaced one
#: after the other.
DELAY = 1.0

#: Symbolic links on the way to a file, as in path_resolution(7).
MOST_LINKS = 40


class CertificateWatcher:
    """The files of all services, and the workers that use them."""

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        self._paths: list[str] = []
        #: When the files are read; infinite: none has changed.
        self._due = float("inf")
        after_fork_in_child.append(self._close_after_fork)
        try:
            self._inotify = Inotify()
        except OSError as error:
            self._give_up(error)

    def _close_after_fork(self) -> None:
        """Close it in children: they could take the events, or make a read of it block."""
        self._inotify = None

    def close(self) -> None:
        """End the watch."""
        self._inotify = None
        after_fork_in_child.remove(self._close_after_fork)

    def filenos(self) -> list[int]:
        """Return the descriptor to wait for, none while a change waits to be read."""
        if self._inotify is None or self._due != float("inf"):
            return []
        return [self._inotify.fileno()]

    def due(self) -> float:
        """Return when `tick` has to be called, even if no descriptor is readable."""
        return self._due

    def tick(self, now: float, services: Sequence[Certificates]) -> None:
        """Read files that have changed."""
        advance_tickets()
        if self._inotify is None:
            return
        paths = [path for each in services for path in each.paths]
        if paths != self._paths:
            self._paths = paths
            self._watch()
            # What changed before it was watched.
            self._due = now + DELAY if any(each.changed for each in services) else float("inf")
        elif self._due == float("inf"):
            try:
                if self._inotify.read() != {}:
                    self._due = now + DELAY
            except OSError as error:
                self._give_up(error)
        elif self._due <= now:
            self._due = float("inf")
            # Before the files are read, so that no later change is missed.
            self._watch()
            for each in services:
                each.reload()

    def _watch(self) -> None:
        assert self._inotify is not None
        try:
            self._inotify.watch(sorted({each for path in self._paths for each in folders_of(path)}))
            self._inotify.read()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._inotify = None
        self._due = float("inf")
        logs.write(
            "warning",
            f"certificates are read again only by a reload (HUP), as their files cannot be "
            f"watched: {error.strerror}",
        )


def watch_in_thread(certificates: Certificates) -> None:
    """Read certificates of this process again when their files change, in a thread of its own.

    The reactor takes new ones from its `config`. Only for a process without a main process.
    """
    watcher = CertificateWatcher()

    def run() -> None:
        while True:
            watcher.tick(time.monotonic(), [certificates])
            poller = poll()
            for fd in watcher.filenos():
                poller.register(fd, POLLIN)
            rest = watcher.due() - time.monotonic()
            if rest == float("inf") and not watcher.filenos():
                return
            poller.poll(None if rest == float("inf") else max(0.0, rest) * 1000 + 1)

    start_new_thread(run, ())


def folders_of(path: str) -> set[str]:
    """Return the folders in which a change can replace the file of an absolute path."""
    found = set()
    here, rest = "/", path.split("/")
    links = 0
    while rest:
        name = rest.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)
            continue
        child = os.path.join(here, name)
        try:
            target = os.readlink(child)
        except OSError:
            if not rest:
                found.add(here)
            here = child
            continue
        found.add(here)
        links += 1
        if links > MOST_LINKS:
            break
        rest = [*target.split("/"), *rest]
        if target.startswith("/"):
            here = "/"
    return found
