"""Reaps orphans as process 1, in a process of its own, for a server without a main process.

The kernel makes process 1 of a container the parent of every process whose parent has ended. A
server that waited for all of them would take the exit codes of its application's children.
"""

from __future__ import annotations

import os

from poorhttp._core import fork_for_server
from poorhttp.process.signals import SIGNALS, send, signal

#: Passed on to the server.
FORWARDED = (*SIGNALS, signal.SIGCONT, signal.SIGWINCH)

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
    waited = (*FORWARDED, signal.SIGCHLD)
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    server = fork_for_server()
    if server == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, waited)
        return None
    while True:
        found = signal.sigwaitinfo(waited)
        if found.si_signo == signal.SIGCHLD:
            code = _reap(server)
            if code is not None:
                return code
        elif found.si_code != SI_KERNEL:
            # A terminal sends its signals to all processes in front, the server too.
            send(server, found.si_signo)


def _reap(server: int) -> int | None:
    """Wait for all processes that have ended; return the exit code if the server is among them."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return None
        if pid == server:
            code = os.waitstatus_to_exitcode(status)
            # As a shell reports the end by a signal.
            return code if code >= 0 else 128 - code
