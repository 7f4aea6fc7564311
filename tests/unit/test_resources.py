"""CPUs and memory that may be used: limits of cgroups, in trees of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from poorhttp.config import resources
from poorhttp.config.settings import Settings

V2 = "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "33 31 0:30 {} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
V1_MEMORY = "34 31 0:31 {} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def v1(folder: str, quota: int, period: int = 100_000) -> dict[str, str]:
    place = f"sys/fs/cgroup/cpu,cpuacct{folder}"
    return {f"{place}/cpu.cfs_quota_us": f"{quota}\n", f"{place}/cpu.cfs_period_us": f"{period}\n"}


def v2(folder: str, text: str) -> dict[str, str]:
    return {f"sys/fs/cgroup{folder}/cpu.max": f"{text}\n"}


@pytest.mark.parametrize(
    ("cgroup", "mountinfo", "files", "expected"),
    [
        # No limit, nothing there, nothing that can be read.
        ("0::/\n", V2, {}, 64),
        ("0::/a\n", V2, v2("/a", "max 100000"), 64),
        ("0::/a\n", "", v2("/a", "100000 100000"), 64),
        ("4:cpu:/a\n", V1.format("/"), v1("/a", -1), 64),
        ("", "", {}, 64),
        ("0::/a\n", V2, v2("/a", "nonsense"), 64),
        ("0::/a\n", V2, v2("/a", "100000 0"), 64),
        ("nonsense\n", V2, {}, 64),
        ("0::/a\n", "nonsense\n\n", {}, 64),
        # Whole and parts.
        ("0::/a\n", V2, v2("/a", "200000 100000"), 2),
        ("0::/a\n", V2, v2("/a", "150000 100000"), 2),
        ("0::/a\n", V2, v2("/a", "1000 100000"), 1),
        ("0::/a\n", V2, v2("/a", "30000 10000"), 3),
        ("0::/a\n", V2, v2("/a", "9900000 100000"), 64),
        ("4:cpuacct,cpu:/a\n", V1.format("/"), v1("/a", 250_000), 3),
        ("4:cpu:/a\n", V1.format("/"), v1("/a", 25_000, 50_000), 1),
        # The least of all above, which may be the topmost that is seen.
        ("0::/a/b/c\n", V2, v2("/a", "300000 100000") | v2("/a/b/c", "max 100000"), 3),
        ("0::/a/b\n", V2, v2("/a", "300000 100000") | v2("/a/b", "200000 100000"), 2),
        ("0::/a/b\n", V2, v2("/a", "200000 100000") | v2("/a/b", "300000 100000"), 2),
        ("0::/\n", V2, v2("", "200000 100000"), 2),
        ("4:cpu:/a/b\n", V1.format("/"), v1("/a", 200_000) | v1("/a/b", -1), 2),
        ("0::/a\n", V2, v2("/a/b", "100000 100000") | v2("/b", "100000 100000"), 64),
        # A part of the tree is mounted, as in a container without a namespace of its own.
        ("4:cpu:/docker/1\n", V1.format("/docker/1"), v1("", 200_000), 2),
        ("4:cpu:/docker/1/x\n", V1.format("/docker/1"), v1("/x", 100_000) | v1("", 200_000), 1),
        ("4:cpu:/docker/12\n", V1.format("/docker/1"), v1("", 200_000), 64),
        # Gone, or seen from outside.
        ("0::/a/b (deleted)\n", V2, v2("/a", "200000 100000"), 2),
        ("0::/x/y\n", V2, v2("", "200000 100000"), 2),
        # A namespace, and a mount from before it.
        ("0::/\n", V2.replace("/ /sys", "/.. /sys"), v2("", "200000 100000"), 2),
        ("0::/a\n", V2.replace("/ /sys", "/../.. /sys"), v2("", "200000 100000"), 2),
        ("0::/../b\n", V2.replace("/ /sys", "/.. /sys"), v2("/b", "200000 100000"), 2),
        ("0::/../b\n", V2, v2("", "200000 100000"), 64),
        # Both versions, and controllers with similar names.
        ("3:cpuset:/a\n4:cpu:/a\n0::/a\n", V1.format("/") + V2, v1("/a", 200_000), 2),
        ("4:cpu:/a\n0::/a\n", V1.format("/") + V2, v1("/a", -1) | v2("/a", "300000 100000"), 3),
        ("3:cpuacct,cpuset:/a\n", V1.format("/"), v1("/a", 100_000), 64),
        # Names with special characters.
        (
            *("0::/a b:c\\d\n", V2.replace("/sys/fs/cgroup", "/c\\040\\134g")),
            *({"c \\g/a b:c\\d/cpu.max": "200000 100000\n"}, 2),
        ),
        ("0::/p q/r\n", V2.replace("/ /sys", "/p\\040q /sys"), v2("/r", "200000 100000"), 2),
    ],
)
def test_quotas(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cgroup: str,
    mountinfo: str,
    files: dict[str, str],
    expected: int,
) -> None:
    write(tmp_path, {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mountinfo, **files})
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)))
    assert resources.usable_cpus(str(tmp_path)) == expected


@pytest.mark.parametrize(
    ("cgroup", "mountinfo", "files", "expected"),
    [
        ("0::/a\n", V2, {"/a/memory.max": "max"}, {}),
        ("0::/a\n", V2, {"/b/memory.max": "5"}, {}),
        # Groups in groups, each with a limit.
        (
            "0::/a/b/c\n",
            V2,
            {"/a/memory.max": "9", "/a/b/memory.max": "max", "/a/b/c/memory.max": "5"},
            {"/a/b/c": 5, "/a": 9},
        ),
        # Version 1, in a container that sees its own part of the tree.
        (
            "5:memory:/docker/1/x\n4:cpu:/y\n0::/\n",
            V1_MEMORY.format("/docker/1") + V1.format("/") + V2,
            {
                "/memory/memory.limit_in_bytes": "7",
                "/memory/x/memory.limit_in_bytes": f"{(1 << 63) - 4096}",
            },
            {"/memory/x": (1 << 63) - 4096, "/memory": 7},
        ),
    ],
)
def test_memory(
    tmp_path: Path, cgroup: str, mountinfo: str, files: dict[str, str], expected: dict[str, int]
) -> None:
    top = "sys/fs/cgroup"
    write(tmp_path, {f"{top}{name}": f"{text}\n" for name, text in files.items()})
    write(tmp_path, {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mountinfo})
    found = resources.memory_limits(str(tmp_path))
    assert found == [(f"{tmp_path}/{top}{name}", limit) for name, limit in expected.items()]


def test_it_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that changes while the server runs must not change what was agreed at its start."""
    settings = Settings(mode="forking")
    for count in (7, 3):
        monkeypatch.setattr(resources, "usable_cpus", lambda count=count: count)
        assert settings.worker_count == 7
    assert Settings(mode="forking").worker_count == 3
