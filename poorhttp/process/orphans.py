"""Reaps orphans as process 1, in a process of its own, for a server without a main process.

The kernel makes process 1 of a container the parent of every process whose parent has ended. A
server that waited for all of them would take the exit codes of its application's children.
"""

from __future__ import annotations

import os
from types import FrameType

from poorhttp._core import fork_for_server
from poorhttp.process.signals import SIGNALS, send, signal

#: Passed on to the server.
FORWARDED = (*SIGNALS, signal.SIGCONT, signal.SIGWINCH)


def serve_in_child() -> int | None:
    """Fork a child that serves, if this is process 1, and wait for its end.

    Returns:
        `None` in the process that is to serve; the exit code of that process in process 1.

    Raises:
        OSError: it cannot be forked.
    """
    if os.getpid() != 1:
        return None
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    server = fork_for_server()
    if server == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        return None

    def pass_on(number: int, frame: FrameType | None) -> None:
        send(server, number)

    for number in FORWARDED:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == server:
            code = os.waitstatus_to_exitcode(status)
            # As a shell reports the end by a signal.
            return code if code >= 0 else 128 - code
