"""Forking: what a new process gives up, and how it ends with its parent."""

from __future__ import annotations

import os
import posix
import time

from poorhttp._core import end_with_parent
from poorhttp.process.control_channel import ControlChannel
from poorhttp.process.signals import SIGNALS, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: What a child gives up first, because it is the business of the main process alone.
after_fork_in_child: list[Callable[[], object]] = []


def fork(live: Callable[[], object]) -> int:
    """Fork a child that does nothing but `live`, and return its number.

    It begins with `SIGNALS` blocked: none may reach it before it knows what to do.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        # Not `os.fork`: what gevent may have put in its place would want to watch the child.
        pid = posix.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                ControlChannel.close_all()
                for abandon in after_fork_in_child:
                    abandon()
                live()
            finally:
                os._exit(1)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return pid


def fork_twice(live: Callable[[], object]) -> int:
    """Fork a process that is not our child, but adopted by the main process; return its number.

    As `fork`, by way of a child that ends at once.

    Raises:
        OSError: there is no room for it.
    """
    read, write = os.pipe2(os.O_CLOEXEC)

    def between() -> None:
        pid = posix.fork()
        if pid == 0:
            posix.close(write)
            live()
            posix._exit(1)
        posix.write(write, str(pid).encode())
        posix._exit(0)

    # Those of `os` may be gevent's by now, which would wait for its hub.
    try:
        child = fork(between)
        posix.close(write)
        write = -1
        posix.waitpid(child, 0)
        return int(posix.read(read, 16) or b"0")
    finally:
        posix.close(read)
        if write >= 0:
            posix.close(write)


def set_parent_death_signal(parent: int) -> None:
    """See to it that this process ends with the main process."""
    # One that a template has forked belongs to the main process in a moment.
    soon = time.monotonic() + 5
    while os.getppid() != parent and time.monotonic() < soon:
        time.sleep(0.0001)
        if _is_gone(parent):
            os._exit(0)
    end_with_parent()
    if os.getppid() != parent:
        os._exit(0)


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        # We have become somebody else.
        return False
    return False
