"""Time limits of the lab's waiting, and polling for conditions that no event reports."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

#: What limits of time are multiplied by. They end what hangs: where other programs use the machine,
#: more time is right. Periods that are measured or judged are not multiplied.
FACTOR = float(os.environ.get("LAB_PATIENCE", "1"))


def patience(seconds: float) -> float:
    """A limit of so many seconds, on this machine."""
    return seconds * FACTOR


#: Longest wait for anything that must happen, in seconds. Only a hang is as slow as this: a second
#: of CPU time takes ten where eight tests and eight other programs share two cores.
HANG = patience(240.0)


def longer(seconds: float) -> Iterator[float]:
    """`seconds` of load, and longer ones for what a busy machine does not come to in them."""
    yield seconds
    while seconds < patience(5.0):
        seconds *= 4
        yield seconds


def wait_until(condition: Callable[[], object], seconds: float, pause: float = 0.02) -> bool:
    """Waits until the condition holds, at most so many seconds; whether it does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
