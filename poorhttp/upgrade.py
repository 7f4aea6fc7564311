"""A new main process takes over from an old one, sockets and all (USR2).

It is the same command, started again: with another Python, say, or with another version of this
package. It gets the listening sockets, and tells the old one when everything accepts. Then the old
one finishes what it has in hand, and ends. If the new one fails the old one goes on.
"""

from __future__ import annotations

import os
import sys

from poorhttp import birth, inherited

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from poorhttp.listener import Listener
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _signal as signal

#: Tells a new main process what it takes over, and which descriptor to tell that it serves.
VARIABLE = "_POORHTTP_TAKES_OVER"


class Upgrade:
    """The new main process, as the old one sees it.

    Attributes:
        pid: its process.
        fd: readable when it serves.
    """

    def __init__(
        self, listeners: Sequence[Listener], folder: str, environ: Mapping[str, str]
    ) -> None:
        """Start it in `folder`, where this one was started, with further variables.

        OSError if that does not work.
        """
        self.fd, ready = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        taken = {VARIABLE: f"{ready} {inherited.hand_over(listeners)}"}
        variables = {**os.environ, **environ, **taken}

        def live() -> NoReturn:
            os.chdir(folder)
            for fd in (ready, *(listener.fileno() for listener in listeners)):
                os.set_inheritable(fd, True)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, birth.SIGNALS)
            os.execve(sys.executable, sys.orig_argv, variables)

        self.pid = birth.fork(live)
        os.close(ready)

    def serves(self) -> bool:
        """Whether it has said that it serves."""
        try:
            return os.read(self.fd, 1) == b"+"
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Forget it."""
        os.close(self.fd)


class Takeover:
    """What the new main process takes over.

    Attributes:
        listeners: sockets that are open already.
    """

    def __init__(self, ready: int, listeners: list[Listener]) -> None:
        self._ready = ready
        self.listeners = listeners

    def done(self) -> None:
        """Tell the old main process that everything accepts."""
        for listener in self.listeners:
            listener.ours = True
        os.write(self._ready, b"+")
        os.close(self._ready)


def takeover() -> Takeover | None:
    """Return what this process takes over; `None`: it was started by somebody else."""
    text = os.environ.pop(VARIABLE, "")
    if not text:
        return None
    ready, _, listeners = text.partition(" ")
    os.set_inheritable(int(ready), False)
    return Takeover(int(ready), inherited.take_over(listeners))
