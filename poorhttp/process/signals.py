"""The signals that the main process and workers handle, by the C module `_signal`."""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # Without the enumerations, which cost every process memory
    # (docs/internals/design/dependencies.md).
    import _signal as signal

__all__ = [
    "MAIN_PROCESS_SIGNALS",
    "SIGNALS",
    "STOP_SIGNALS",
    "Disposition",
    "name",
    "send",
    "send_if_handled",
    "signal",
]

#: The signals that stop a process.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)

#: Handled by the main process, and ignored by workers, which get those of a terminal as well.
MAIN_PROCESS_SIGNALS = (signal.SIGHUP, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU)

#: The signals that the main process handles.
SIGNALS = (*STOP_SIGNALS, signal.SIGUSR1, *MAIN_PROCESS_SIGNALS)


#: The names of these signals; the module without enumerations has none.
NAMES = {
    getattr(signal, name): name
    for name in (
        "SIGTERM",
        "SIGINT",
        "SIGQUIT",
        "SIGHUP",
        "SIGUSR1",
        "SIGUSR2",
        "SIGTTIN",
        "SIGTTOU",
    )
}


def name(number: int) -> str:
    """Return the name of a signal."""
    return NAMES.get(number, f"signal {number}")


class Disposition:
    """What a process, or one of its threads, does with signals, from its file in `/proc`.

    Attributes:
        known: the file could be read.
    """

    def __init__(self, process: str) -> None:
        """Read `/proc/{process}/status`."""
        self.known = False
        self._masks = dict.fromkeys((b"SigBlk", b"SigIgn", b"SigCgt"), 0)
        with suppress(OSError, ValueError), open(f"/proc/{process}/status", "rb") as file:
            for line in file:
                field, _, value = line.partition(b":")
                if field in self._masks:
                    self._masks[field] = int(value, 16)
            self.known = True

    def _has(self, field: bytes, number: int) -> bool:
        return bool(self._masks[field] >> (number - 1) & 1)

    def handles(self, number: int) -> bool:
        """Whether a signal has a handler; otherwise it is ignored, or has its default action."""
        return self._has(b"SigCgt", number)

    def withheld(self, number: int) -> str:
        """Return why a signal does not reach a handler, as a verb; empty: it does."""
        if self._has(b"SigIgn", number):
            return "ignores"
        return "blocks" if self._has(b"SigBlk", number) else ""


def send_if_handled(pid: int, number: int) -> None:
    """Send a signal to a process, unless the application there has removed the handler.

    The default action of most signals would end the process.
    """
    process = Disposition(str(pid))
    if process.handles(number) or not process.known:
        send(pid, number)


def send(pid: int, number: int) -> None:
    """Send a signal to a process, which may have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
