"""Closes the server's descriptors and resets ignored signals for CGI programs."""

from __future__ import annotations

import os
from contextlib import suppress

from poorhttp.process.signals import signal


def prevent_inheritance() -> None:
    """Make programs inherit neither descriptors above 2 nor ignored signals.

    Python and Rust open everything close-on-exec, but the parent of the server may have left
    something open. A program starts with a signal ignored if its parent ignores it, and with the
    default action if its parent handles it.
    """
    for name in os.listdir("/proc/self/fd"):
        # One of them is that of the listing itself, closed by now.
        with suppress(OSError):
            if int(name) > 2:
                os.set_inheritable(int(name), False)
    for number in range(1, signal.NSIG):
        # ValueError: this is not the main thread, OSError: a signal that cannot be handled.
        with suppress(OSError, ValueError):
            # The core resets SIGPIPE for programs; libraries of this process need it ignored.
            if signal.getsignal(number) == signal.SIG_IGN and number != signal.SIGPIPE:
                signal.signal(number, lambda number, frame: None)
