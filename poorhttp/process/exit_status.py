"""How child processes have ended: from waitpid(2), and in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from poorhttp.process import fork, signals
from poorhttp.process.signals import signal

#: Signals of a crash.
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)


def end_of(code: int) -> str:
    """Describe how a process ended, by its exit code."""
    return f"was killed by {signals.name(-code)}" if code < 0 else f"ended with {code}"


def changed_children(before: Callable[[], object]) -> Iterator[tuple[int, int, int | None]]:
    """Yield children that have ended, been stopped (SIGSTOP) or continued, adopted ones too.

    Args:
        before: called before what has happened to a child is handled, as long as it is a child.

    Yields:
        Process ID, exit code, and the signal that stopped it: 0 if it was continued, `None` if it
        has ended. Without an end, the exit code is 0.
    """
    while True:
        try:
            kinds = os.WEXITED | os.WSTOPPED | os.WCONTINUED
            found = os.waitid(os.P_ALL, 0, kinds | os.WNOHANG | os.WNOWAIT)
            if found is None:
                return
            before()
            # Only that one: `before` has not seen one that ends now.
            flags = os.WNOHANG | os.WUNTRACED | os.WCONTINUED
            pid, status = os.waitpid(found.si_pid, flags)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
            yield pid, 0, os.WSTOPSIG(status) if os.WIFSTOPPED(status) else 0
        else:
            fork.children.discard(pid)
            yield pid, os.waitstatus_to_exitcode(status), None
