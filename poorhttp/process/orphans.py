"""Reaps orphans as process 1, and waits for the process that serves.

The kernel makes process 1 of a container the parent of every process whose parent has ended. A
server without a main process is a child of process 1: if it waited for all orphans itself, it would
take the exit codes of its application's children.
"""

from __future__ import annotations

import os

from poorhttp._core import fork_for_server
from poorhttp.process.signals import SIGNALS, send, signal

#: Tells of a child that has ended, and those that are passed on to the server.
WAITED = (signal.SIGCHLD, *SIGNALS, signal.SIGCONT, signal.SIGWINCH)

#: `si_code` of a signal of the kernel, such as that of Ctrl-C (sigaction(2)).
SI_KERNEL = 0x80


def serve_in_child() -> int | None:
    """Fork a child that serves, if this is process 1, and wait for its end.

    Returns:
        `None` in the process that is to serve; the exit code of that process in process 1.

    Raises:
        OSError: it cannot be forked.
    """
    if os.getpid() != 1:
        return None
    # Who has started this may have ignored it, and then nobody could wait for a child.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)
    server = fork_for_server()
    if server == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WAITED)
        return None
    code = wait_for(server)
    # As a shell reports the end by a signal.
    return code if code >= 0 else 128 - code


def wait_for(server: int) -> int:
    """Wait for the end of a child, and pass signals on, which are blocked; return its exit code."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == server:
            return os.waitstatus_to_exitcode(status)
        if pid:
            continue
        found = signal.sigwaitinfo(WAITED)
        # A terminal sends its signals to all processes in front, the server too.
        if found.si_signo != signal.SIGCHLD and found.si_code != SI_KERNEL:
            send(server, found.si_signo)
