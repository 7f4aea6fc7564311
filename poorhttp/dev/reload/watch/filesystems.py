"""How far what the system tells of files reaches, and what to say where it does not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from errno import EMFILE, ENOSPC

#: File systems that others write to behind our back: of networks, of a host below a virtual machine
#: or a container. What is written through our own mount is told there too.
REMOTE = frozenset(
    [
        *("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afs", "coda", "ncpfs"),
        *("ceph", "beegfs", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ocfs2", "acfs"),
        *("9p", "drvfs", "fakeowner", "fuse", "prl_fs", "vboxsf", "virtiofs", "vmhgfs"),
    ]
)

#: Of FUSE, those that nobody else writes to.
_LOCAL = ("fuse.fuse-overlayfs", "fuse.gocryptfs", "fuse.encfs", "fuse.ntfs", "fuse.portal")

#: Whether to look at files instead of waiting to be told, and how often. The names are those of a
#: package, watchfiles, which other servers use: who needs it has them set already.
FORCE = "WATCHFILES_FORCE_POLLING"
DELAY = "WATCHFILES_POLL_DELAY_MS"


def is_forced(environ: Mapping[str, str]) -> bool:
    """Tell whether somebody wants files to be looked at."""
    return environ.get(FORCE, "").lower() not in ("", "0", "false", "disable", "disabled")


def delay(environ: Mapping[str, str]) -> float:
    """Return the seconds between two looks that somebody wants; 0 if nobody does."""
    text = environ.get(DELAY, "")
    return int(text) / 1000 if text.isascii() and text.isdigit() else 0.0


class Mounts:
    """Which file systems are mounted where."""

    def __init__(self, table: str) -> None:
        """Read a table as that of `/proc/self/mountinfo` (proc_pid_mountinfo(5))."""
        self._types: dict[str, str] = {}
        for line in table.splitlines():
            before, _, after = line.partition(" - ")
            words = before.split(" ")
            if len(words) > 4 and after:
                # The last one on a place hides the others.
                self._types[_unescaped(words[4])] = after.split(" ", 1)[0]

    @classmethod
    def now(cls) -> Mounts:
        """Read what is mounted for this process."""
        try:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
                return cls(file.read())
        except OSError:
            return cls("")

    def remote(self, folder: str) -> str:
        """Return the type of the file system of a folder if it is a remote one; or empty."""
        path = os.path.realpath(folder)
        while path not in self._types and path != "/":
            path = os.path.dirname(path)
        kind = self._types.get(path, "")
        is_remote = kind in REMOTE or (kind.startswith("fuse.") and kind not in _LOCAL)
        return kind if is_remote else ""

    def all_remote(self, folders: Iterable[str]) -> dict[str, str]:
        """Return those of the folders that are on remote file systems, and their types."""
        if not any(kind in REMOTE or kind.startswith("fuse.") for kind in self._types.values()):
            return {}
        found = {folder: self.remote(folder) for folder in folders}
        return {folder: kind for folder, kind in found.items() if kind}


def _unescaped(text: str) -> str:
    for code, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, letter)
    return text


def limit(error: OSError) -> str:
    """Say which limit of inotify is full, and how it is raised; or else what does not work."""
    if error.errno == ENOSPC:
        full, enough = "watches", 524_288
    elif error.errno == EMFILE:
        full, enough = "instances", 1024
    else:
        return f"the system does not tell what was saved: {error.strerror}"
    name = f"fs.inotify.max_user_{full}"
    now = _value(full)
    return (
        f"{name} ({now}) is used up, by this and other programs; raise it: "
        f"sudo sysctl {name}={max(2 * now, enough)}"
    )


def _value(what: str) -> int:
    """Return a limit: the lowest of the system's and of a user namespace's."""
    values = []
    for path in (f"/proc/sys/fs/inotify/max_user_{what}", f"/proc/sys/user/max_inotify_{what}"):
        try:
            with open(path, encoding="ascii") as file:
                values.append(int(file.read()))
        except (OSError, ValueError):
            continue
    return min(values, default=0)
