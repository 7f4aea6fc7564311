"""The CPUs that the lab may keep busy, by affinity and quotas of cgroups: made-up and real."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadtests.measure.cpu_affinity import usable_cpus
from poorhttp.config import resources


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("", {}, 64),
        ("0::/a\n", {"a/cpu.max": "max 100000"}, 64),
        ("0::/a\n", {"a/cpu.max": "150000 100000"}, 2),
        ("0::/a/b\n", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "200000 100000"}, 2),
        ("0::/docker/1\n", {"cpu.max": "200000 100000"}, 2),
        ("0::/a\n", {"b/cpu.max": "100000 100000"}, 64),
        (
            "3:memory:/a\n4:cpu,cpuacct:/a\n",
            {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"},
            3,
        ),
    ],
)
def test_quotas(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cgroup: str,
    files: dict[str, str],
    expected: int,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    for name, text in {**files, "../cgroup": cgroup}.items():
        path = tmp_path / "cgroups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert usable_cpus(tmp_path / "cgroups", tmp_path / "cgroup") == expected


def test_here_it_is_what_the_server_says() -> None:
    assert usable_cpus() == resources.usable_cpus()
    assert usable_cpus(Path("/no/such"), Path("/no/such")) == len(os.sched_getaffinity(0))
