"""File systems whose changes inotify does not report, and messages about inotify's limits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from errno import EMFILE, ENOSPC

#: File systems on which inotify misses writes of other machines: network file systems, and those of
#: a host seen from a virtual machine or a container.
REMOTE = frozenset(
    [
        *("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afs", "coda", "ncpfs"),
        *("ceph", "beegfs", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ocfs2", "acfs"),
        *("9p", "drvfs", "fakeowner", "fuse", "prl_fs", "vboxsf", "virtiofs", "vmhgfs"),
    ]
)

#: FUSE file systems that no other machine writes to.
_LOCAL = ("fuse.fuse-overlayfs", "fuse.gocryptfs", "fuse.encfs", "fuse.ntfs", "fuse.portal")

#: Environment variables: poll files instead of using inotify, and the interval in milliseconds. The
#: names are those of the package watchfiles, which other servers use.
FORCE = "WATCHFILES_FORCE_POLLING"
DELAY = "WATCHFILES_POLL_DELAY_MS"


def is_forced(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for polling."""
    return environ.get(FORCE, "").lower() not in ("", "0", "false", "disable", "disabled")


def delay(environ: Mapping[str, str]) -> float:
    """Return the polling interval of the environment in seconds; 0 if there is none."""
    text = environ.get(DELAY, "")
    return int(text) / 1000 if text.isascii() and text.isdigit() else 0.0


class Mounts:
    """The mounted file systems."""

    def __init__(self, table: str) -> None:
        """Read a table in the format of `/proc/self/mountinfo` (proc_pid_mountinfo(5))."""
        self._types: dict[str, str] = {}
        for line in table.splitlines():
            before, _, after = line.partition(" - ")
            words = before.split(" ")
            if len(words) > 4 and after:
                # The latest mount on a folder hides the earlier ones.
                self._types[_unescaped(words[4])] = after.split(" ", 1)[0]

    @classmethod
    def now(cls) -> Mounts:
        """Read the mounts of this process."""
        try:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
                return cls(file.read())
        except OSError:
            return cls("")

    def remote(self, folder: str) -> str:
        """Return the type of a folder's file system if that is remote; or empty."""
        path = os.path.realpath(folder)
        while path not in self._types and path != "/":
            path = os.path.dirname(path)
        kind = self._types.get(path, "")
        is_remote = kind in REMOTE or (kind.startswith("fuse.") and kind not in _LOCAL)
        return kind if is_remote else ""

    def all_remote(self, folders: Iterable[str]) -> dict[str, str]:
        """Return the folders that are on remote file systems, and the types of these."""
        if not any(kind in REMOTE or kind.startswith("fuse.") for kind in self._types.values()):
            return {}
        found = {folder: self.remote(folder) for folder in folders}
        return {folder: kind for folder, kind in found.items() if kind}


def _unescaped(text: str) -> str:
    for code, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, letter)
    return text


def limit_message(error: OSError) -> str:
    """Return a message about an error of inotify: which limit is used up, and how to raise it."""
    if error.errno == ENOSPC:
        full, enough = "watches", 524_288
    elif error.errno == EMFILE:
        full, enough = "instances", 1024
    else:
        return f"the system does not tell what was saved: {error.strerror}"
    name = f"fs.inotify.max_user_{full}"
    now = _limit(full)
    return (
        f"{name} ({now}) is used up, by this and other programs; raise it: "
        f"sudo sysctl {name}={max(2 * now, enough)}"
    )


def _limit(what: str) -> int:
    """Return a limit: the lower of the system's and the user namespace's."""
    values = []
    for path in (f"/proc/sys/fs/inotify/max_user_{what}", f"/proc/sys/user/max_inotify_{what}"):
        try:
            with open(path, encoding="ascii") as file:
                values.append(int(file.read()))
        except (OSError, ValueError):
            continue
    return min(values, default=0)
