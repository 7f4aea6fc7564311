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

__all__ = ["MAIN_PROCESS_SIGNALS", "SIGNALS", "STOP_SIGNALS", "send", "signal"]

#: The signals that stop a process.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)

#: Handled by the main process, and ignored by workers, which get those of a terminal as well.
MAIN_PROCESS_SIGNALS = (signal.SIGHUP, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU)

#: The signals that the main process handles.
SIGNALS = (*STOP_SIGNALS, signal.SIGUSR1, *MAIN_PROCESS_SIGNALS)


def send(pid: int, number: int) -> None:
    """Send a signal to a process, which may have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
