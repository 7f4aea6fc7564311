"""The level of the error log of all processes, which `poorhttp ctl log-level` sets."""

from __future__ import annotations

from poorhttp.plugins.native import set_log_level, share_log_level

_shared: list[memoryview] = []


def share() -> None:
    """Prepare `set_level` in this process and those that it forks from now on; may be repeated."""
    if not _shared:
        from mmap import mmap

        _shared.append(memoryview(mmap(-1, 1)))
        share_log_level(_shared[0])


def set_level(level: str) -> None:
    """Set the lowest level of all processes, after `share`; empty: that of their settings."""
    if _shared:
        set_log_level(level)
