"""The signals that processes act upon, and the C module `_signal` in place of `signal`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # Without the enumerations, which every process would pay for (docs/design.md).
    import _signal as signal

__all__ = ["MAIN_PROCESS_SIGNALS", "SIGNALS", "STOP_SIGNALS", "signal"]

#: The signals that mean something to the main process.
SIGNALS = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTTIN,
    signal.SIGTTOU,
)

#: Those by which a process is told to stop.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)

#: What the main process acts upon; a worker, which a terminal may tell as well, does not.
MAIN_PROCESS_SIGNALS = (signal.SIGHUP, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU)
