"""Forks child processes, and ends a child when the main process ends."""

from __future__ import annotations

import os
import posix
import time
from collections.abc import Callable

from poorhttp._core import end_with_parent
from poorhttp.process.control_channel import close_all
from poorhttp.process.signals import SIGNALS, signal

#: Called first in each child, to close descriptors that are only for the main process.
after_fork_in_child: list[Callable[[], object]] = []


def fork(run: Callable[[], object]) -> int:
    """Fork a child that does nothing but `run`; return its process ID.

    It begins with `SIGNALS` blocked, so that none arrives before its handlers are installed.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        # Not `os.fork`, which gevent may have replaced by one that waits for the child.
        pid = posix.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                close_all()
                for callback in after_fork_in_child:
                    callback()
                run()
            finally:
                os._exit(1)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return pid


def fork_twice(run: Callable[[], object]) -> int:
    """Fork a process by way of a child that ends at once; return its process ID.

    The main process, a subreaper, becomes its parent.

    Raises:
        OSError: it cannot be forked.
    """
    read, write = os.pipe2(os.O_CLOEXEC)

    def fork_again() -> None:
        pid = posix.fork()
        if pid == 0:
            posix.close(write)
            run()
            posix._exit(1)
        posix.write(write, str(pid).encode())
        posix._exit(0)

    # Not the functions of `os`, which gevent may have replaced by ones that wait for its hub.
    try:
        child = fork(fork_again)
        posix.close(write)
        write = -1
        posix.waitpid(child, 0)
        return int(posix.read(read, 16) or b"0")
    finally:
        posix.close(read)
        if write >= 0:
            posix.close(write)


def set_parent_death_signal(parent: int) -> None:
    """Have the kernel end this process with the main process, whose process ID is `parent`."""
    # The kernel is about to make the main process the parent of one that a preloader has forked.
    deadline = time.monotonic() + 5
    while os.getppid() != parent and time.monotonic() < deadline:
        time.sleep(0.0001)
        try:
            os.kill(parent, 0)
        except PermissionError:
            pass  # it exists; this process has changed its user
        except ProcessLookupError:
            os._exit(0)
    end_with_parent()
    if os.getppid() != parent:
        os._exit(0)
