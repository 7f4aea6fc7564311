"""CPUs and memory that this process may use: its affinity, and the limits of its cgroups.

A container or a systemd unit with limits (`docker run --cpus 2 --memory 1g`, `CPUQuota=200%`,
limits of Kubernetes) sees all cores and all memory of its machine. The kernel enforces the limits
of the cgroup and of each cgroup above it (cgroups(7)); that of CPUs is time in each period.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress


def usable_cpus(root: str = "") -> int:
    """Return how many CPUs this process can keep busy; a part of one counts as a whole one.

    Args:
        root: folder in which `/proc` and the cgroups are, for tests.
    """
    return max(1, min([len(os.sched_getaffinity(0)), *_quotas(root)]))


def memory_limits(root: str = "") -> list[tuple[str, int]]:
    """Return the cgroups that limit the memory of this process: the folder of each, and bytes."""
    limits = []
    for folder, kind in _cgroups(root, "memory"):
        name = "memory.max" if kind == "cgroup2" else "memory.limit_in_bytes"
        # Without a limit, version 2 says `max`, and version 1 a huge number.
        with suppress(OSError, ValueError):
            limits.append((folder, int(_text(f"{folder}/{name}"))))
    return limits


def _quotas(root: str) -> Iterator[int]:
    """Yield the CPUs that each cgroup of this process allows, rounded up."""
    for folder, kind in _cgroups(root, "cpu"):
        names = ["cpu.max"] if kind == "cgroup2" else ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        # Without a limit, version 2 says `max`, and version 1 a negative number.
        with suppress(OSError, ValueError):
            quota, period = map(int, " ".join(_text(f"{folder}/{name}") for name in names).split())
            if quota > 0 and period > 0:
                yield -(-quota // period)


def _cgroups(root: str, controller: str) -> Iterator[tuple[str, str]]:
    """Yield the folders of the cgroups of this process, and the types of their file systems."""
    try:
        groups = _text(f"{root}/proc/self/cgroup").split("\n")
        mounts = _text(f"{root}/proc/self/mountinfo").split("\n")
    except OSError:
        return
    for group in groups:
        number, _, rest = group.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            kind, option = "cgroup2", ""
        elif controller in controllers.split(","):
            kind, option = "cgroup", controller
        else:
            continue
        for mount in mounts:
            for folder in _folders(mount, kind, option, path):
                yield f"{root}{folder}", kind


def _text(path: str) -> str:
    # Names of cgroups and mount points are bytes.
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _folders(mount: str, kind: str, controller: str, path: str) -> Iterator[str]:
    """Yield the folders of a cgroup and of those above it that are below a mount.

    Args:
        mount: a line of `/proc/self/mountinfo` (proc(5)).
        kind: type of the file system.
        controller: what the mount must have among its options; empty for any.
        path: of the cgroup, from the root of this process's cgroup namespace.
    """
    words = mount.split(" ")
    if "-" not in words[6:]:
        return
    found, _, options = words[words.index("-", 6) + 1 :][:3]
    if found != kind or controller not in ["", *options.split(",")]:
        return
    # The cgroup that is mounted; `/..` is above the namespace.
    top, group = (list(filter(None, each.split("/"))) for each in (_unescaped(words[3]), path))
    if group[: len(top)] == top:
        below = group[len(top) :]
    elif set(top) == {".."}:
        # How the folder of the namespace's root is called is not known.
        below = []
    else:
        return
    if ".." in below:
        return
    folder = _unescaped(words[4]).rstrip("/")
    for length in range(len(below), -1, -1):
        yield "/".join([folder, *below[:length]])


def _unescaped(path: str) -> str:
    """Decode a path of mountinfo, in which some characters are octal, such as `\\040`."""
    first, *rest = path.split("\\")
    return first + "".join(chr(int(part[:3], 8)) + part[3:] for part in rest)
