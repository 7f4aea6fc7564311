"""How child processes have ended: from waitpid(2), and in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain, repeat

from poorhttp.process import fork, signals
from poorhttp.process.signals import signal

#: Signals of a crash.
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)

#: Changes of children that are handled at once, before other tasks.
MOST = 100


def end_of(code: int) -> str:
    """Describe how a process ended, by its exit code."""
    return f"was killed by {signals.name(-code)}" if code < 0 else f"ended with {code}"


def changed_children(before: Callable[[], object]) -> Iterator[tuple[int, int, int | None]]:
    """Yield children that have ended, been stopped (SIGSTOP) or continued, adopted ones too.

    Processes of the application can be stopped and continued faster than this is handled, and the
    kernel tells of those first: after `MOST` there are only this process's own children.

    Args:
        before: called before what has happened to a child is handled, as long as it is a child.

    Yields:
        Process ID, exit code, and the signal that stopped it: 0 if it was continued, `None` if it
        has ended. Without an end, the exit code is 0.
    """
    kinds = os.WEXITED | os.WSTOPPED | os.WCONTINUED
    for which in chain(repeat(-1, MOST), list(fork.children)):
        kind = os.P_ALL if which < 0 else os.P_PID
        try:
            found = os.waitid(kind, max(which, 0), kinds | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                before()
                # Only that one: `before` has not seen one that ends now.
                pid, status = os.waitpid(found.si_pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        except ChildProcessError:
            found = None
        if found is None and which < 0:
            return
        if found is None or pid == 0:
            continue
        if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
            yield pid, 0, os.WSTOPSIG(status) if os.WIFSTOPPED(status) else 0
        else:
            fork.children.discard(pid)
            yield pid, os.waitstatus_to_exitcode(status), None
