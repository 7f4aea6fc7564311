"""Number of CPUs that this process may use: its affinity, and the CPU quotas of its cgroups.

A container or a systemd unit with a limit of two CPUs (`docker run --cpus 2`, `CPUQuota=200%`, a
limit of Kubernetes) sees all cores of its machine. The kernel enforces the limit as time in each
period: the quota of a cgroup and of each cgroup above it (cgroups(7)).
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


def _quotas(root: str) -> Iterator[int]:
    """Yield the CPUs that each cgroup of this process allows, rounded up."""
    try:
        groups = _lines(f"{root}/proc/self/cgroup")
        mounts = _lines(f"{root}/proc/self/mountinfo")
    except OSError:
        return
    for group in groups:
        number, _, rest = group.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            kind, controller = "cgroup2", ""
        elif "cpu" in controllers.split(","):
            kind, controller = "cgroup", "cpu"
        else:
            continue
        for mount in mounts:
            for folder in _folders(mount, kind, controller, path):
                with suppress(OSError, ValueError):
                    quota, period = _read_quota(f"{root}{folder}", kind)
                    if quota > 0 and period > 0:
                        yield -(-quota // period)


def _lines(path: str) -> list[str]:
    # Names of cgroups and mount points are bytes.
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().split("\n")


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
    top = _segments(_unescaped(words[3]))
    group = _segments(path)
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


def _read_quota(folder: str, kind: str) -> tuple[int, int]:
    """Return quota and period of a cgroup in microseconds; the quota is not positive for none.

    Raises:
        OSError: the cgroup has none, such as the topmost one.
        ValueError: there is no limit, `max`.
    """
    if kind == "cgroup2":
        with open(f"{folder}/cpu.max") as file:
            quota, period = file.read().split()
    else:
        with open(f"{folder}/cpu.cfs_quota_us") as file:
            quota = file.read()
        with open(f"{folder}/cpu.cfs_period_us") as file:
            period = file.read()
    return int(quota), int(period)


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def _unescaped(path: str) -> str:
    """Decode a path of mountinfo, in which some characters are octal, such as `\\040`."""
    first, *rest = path.split("\\")
    return first + "".join(chr(int(part[:3], 8)) + part[3:] for part in rest)
