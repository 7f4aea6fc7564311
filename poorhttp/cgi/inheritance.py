"""What programs shall not have of the process that starts them."""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _signal as signal


def keep_to_ourselves() -> None:
    """See to it that programs inherit neither descriptors nor ignored signals.

    Python and Rust open everything close-on-exec, but whoever started us may have left something
    open. What is ignored stays ignored in programs, what is handled does not.
    """
    for name in os.listdir("/proc/self/fd"):
        # The one of this very list is closed by now.
        with suppress(OSError):
            if int(name) > 2:
                os.set_inheritable(int(name), False)
    for number in range(1, signal.NSIG):
        # ValueError: this is not the main thread, OSError: a signal that cannot be handled.
        with suppress(OSError, ValueError):
            # Of SIGPIPE the core takes care, and libraries count on its being ignored.
            if signal.getsignal(number) == signal.SIG_IGN and number != signal.SIGPIPE:
                signal.signal(number, _do_nothing)


def _do_nothing(number: int, frame: object) -> None:
    """Handle a signal that was ignored."""
