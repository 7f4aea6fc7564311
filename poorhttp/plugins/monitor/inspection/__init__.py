"""Inspects live workers for an operator: stacks, profile, memory.

Everything is done in a process that is forked for it, with the rights of the main process. The main
process only waits for the result.

collect.py        the process: asks the workers, and makes the result
signalling.py     signals workers to inspect themselves, and waits for their answers
py_spy.py         asks py-spy, if Python does not come to run in a worker and it is installed
fault_dump.py     asks `faulthandler` otherwise
stack_lists.py    the stacks of a worker, with its requests
flame_graph.py    a profile as SVG
speedscope.py     a profile for speedscope.app
text.py           results as text for a terminal
worker/           the side of the worker that is looked into
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress

from poorhttp.process import fork, signals
from poorhttp.process.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

#: What can be asked.
KINDS = ("stacks", "profile", "heap")

#: Formats of a profile.
FORMATS = ("svg", "collapsed", "speedscope")

#: Seconds of a profile: by default, and at most.
SECONDS = 10.0
MOST_SECONDS = 300.0

#: Seconds that an inspection may take, beside those of the profile.
TIMEOUT = 60.0

#: Most bytes of a result.
MOST_BYTES = 32 << 20


class Busy(Exception):
    """Another inspection is under way."""


class Inspection:
    """An inspection that is under way: one at a time.

    Attributes:
        fd: readable when `tick` is to be called.
        deadline: when `tick` is to be called at the latest, monotonic.
    """

    _current: Inspection | None = None

    def __init__(
        self, kind: str, targets: Sequence[tuple[WorkerPool, WorkerHandle]], arguments: Any
    ) -> None:
        """Begin it.

        Args:
            kind: one of `KINDS`.
            targets: the workers, each with its pool.
            arguments: of a profile, `seconds` and `format`.

        Raises:
            Busy: another one is under way.
            ValueError: an argument is wrong.
            OSError: the process cannot be forked.
        """
        if kind not in KINDS:
            raise ValueError(f"there is no {kind}; ask for {', '.join(KINDS)}")
        if not targets:
            raise ValueError("there is no such worker")
        seconds, form = 0.0, FORMATS[0]
        if kind == "profile":
            seconds = _seconds(arguments.get("seconds", SECONDS))
            form = arguments.get("format", form)
            if form not in FORMATS:
                raise ValueError(f"a profile is {', '.join(FORMATS)}")
        if Inspection._current is not None:
            raise Busy("another inspection is under way; wait until it has ended")
        self._received = bytearray()
        self.deadline = time.monotonic() + seconds + TIMEOUT
        self.fd, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

        def run() -> None:
            from poorhttp.plugins.monitor.inspection import collect

            os.close(self.fd)
            collect.run(kind, targets, seconds, form, write)

        try:
            self._pid = fork.fork(run)
        except BaseException:
            os.close(self.fd)
            raise
        finally:
            os.close(write)
        # Other children could read the result.
        fork.keep_from_children(self.fd)
        Inspection._current = self

    def tick(self, now: float) -> bytes | None:
        """Return the result, JSON text, if it is complete; `error` in it says what has failed."""
        with suppress(BlockingIOError):
            while received := os.read(self.fd, 1 << 16):
                self._received += received
                if len(self._received) > MOST_BYTES:
                    return self._end(b'{"error": "the result is too large"}')
            return self._end(bytes(self._received) or b'{"error": "the inspection has failed"}')
        if now >= self.deadline:
            return self._end(b'{"error": "the inspection took too long"}')
        return None

    def _end(self, result: bytes) -> bytes:
        self.close()
        return result

    def close(self) -> None:
        """End it, if it is still under way."""
        if self.fd < 0:
            return
        fork.close_own(self.fd)
        self.fd = -1
        Inspection._current = None
        signals.send(self._pid, signal.SIGKILL)


def begin(
    kind: str, targets: Sequence[tuple[WorkerPool, WorkerHandle]], arguments: Any
) -> Inspection:
    """Begin an inspection; see `Inspection`."""
    return Inspection(kind, targets, arguments)


def _seconds(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
        if 0.1 <= seconds <= MOST_SECONDS:
            return seconds
    raise ValueError(f"a profile takes from 0.1 to {MOST_SECONDS:.0f} seconds")
