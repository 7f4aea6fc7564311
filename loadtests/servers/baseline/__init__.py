"""The baseline of every comparison: a bare epoll loop in C."""

from __future__ import annotations

from pathlib import Path

from loadtests.clients.native import compiled

SOURCE = Path(__file__).with_name("floor.c")


def build() -> Path:
    """The compiled program. Raises LabError without a C compiler."""
    return compiled.program(SOURCE)
