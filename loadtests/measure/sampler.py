"""Samples of a server under load, taken periodically: CPU time, memory, traffic."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from loadtests.measure.repeatedly import Repeatedly
from loadtests.measure.resources import memory, ticked


class Traffic(NamedTuple):
    """Traffic of an interface since it exists."""

    received_octets: int = 0
    received_packets: int = 0
    sent_octets: int = 0
    sent_packets: int = 0


@dataclass(frozen=True)
class Look:
    """A sample at a time: CPU seconds and traffic since the start, bytes of memory just then."""

    time: float
    user: float
    system: float
    pss: int
    rss: int
    processes: int
    traffic: Traffic


def times(processes: Sequence[int]) -> tuple[float, float]:
    """User and system seconds of these processes and of those they have started and seen end.

    To a tick; who ends meanwhile is counted with whoever waits for him.
    """
    return ticked(processes, 11, 13), ticked(processes, 12, 14)


def parse_traffic(text: str, interface: str) -> Traffic:
    """The counters of an interface in /proc/net/dev; zeros if there is none."""
    found = re.search(rf"^ *{re.escape(interface)}:(.*)", text, re.MULTILINE)
    fields = found[1].split() if found else ["0"] * 16
    return Traffic(*(int(fields[place]) for place in (0, 1, 8, 9)))


def look(processes: Sequence[int], interface: str) -> Look:
    """Looks at these processes, of which the first tells the network.

    Raises ServerFailure if all have ended.
    """
    (user, system), used = times(processes), memory(processes)
    text = ""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{processes[0]}/net/dev").read_text(encoding="ascii")
    counted = parse_traffic(text, interface)
    return Look(time.monotonic(), user, system, used.pss, used.rss, used.processes, counted)


class Sampler(Repeatedly[Look]):
    """Looks at these processes every so many seconds until the block ends."""

    def __init__(
        self, processes: Callable[[], Sequence[int]], interface: str, every: float
    ) -> None:
        super().__init__(lambda: look(processes(), interface), every)
