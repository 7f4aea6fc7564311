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

__all__ = ["MAIN_PROCESS_SIGNALS", "SIGNALS", "STOP_SIGNALS", "is_child", "send", "signal"]

#: The signals that stop a process.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)

#: Handled by the main process, and ignored by workers, which get those of a terminal as well.
MAIN_PROCESS_SIGNALS = (signal.SIGHUP, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU)

#: The signals that the main process handles.
SIGNALS = (*STOP_SIGNALS, signal.SIGUSR1, *MAIN_PROCESS_SIGNALS)


def is_child(pid: int) -> bool:
    """Whether a process is a child of this one that has not been waited for.

    Until then, also after its end, the kernel gives its ID to no other process.
    """
    with suppress(OSError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False


def send(pid: int, number: int) -> None:
    """Send a signal to a child of this process; nothing happens if it is none (any more)."""
    if is_child(pid):
        # It may have executed a program that gives it the rights of another user.
        with suppress(PermissionError):
            os.kill(pid, number)
