"""Polls until a condition holds, where no event reports it."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float, pause: float = 0.02) -> bool:
    """Waits until the condition holds, at most so many seconds; whether it does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
