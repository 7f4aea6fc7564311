"""Defers SIGINT and SIGTERM during an operation that must not be interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def postponed() -> Iterator[None]:
    """An interrupt that comes within the block takes effect at its end.

    A process that is started there is known afterwards, so that it can be stopped. It does not
    inherit this, as it would a mask of signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for got in came[:1]:
            signal.raise_signal(signal.Signals(got))
