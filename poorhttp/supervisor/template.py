"""A process that has loaded the application, and is forked whenever a worker is needed.

That is `preload`. The main process itself never loads an application, so that it can load another
one when it is told to reload, and so that no fault of an application is a fault of the supervisor.
Where workers are replaced all the time it stays, otherwise it ends when the last has begun: its own
copies of what all of them have written to would be the largest part of a small server. A worker is
forked twice: the first child ends at once, and the main process adopts the second.
"""

from __future__ import annotations

import gc
import os
import select
import sys

from poorhttp import birth, log
from poorhttp.channel import SERVES, Channel
from poorhttp.passing import receive
from poorhttp.post import Post

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from poorhttp.service import Service
    from poorhttp.supervisor.places import Places
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _socket as socket

#: Seconds that it may take to fork a worker.
PATIENCE = 10.0


class Template:
    """The process, as the main process sees it.

    Attributes:
        pid: its process.
        ready: it has loaded the application.
        dismissed: nobody needs it for the time being, and it has been told to end.
        until: when it is killed, told to end; 0: it was not told.
    """

    def __init__(self, service: Service, places: Places) -> None:
        """Fork it; `places` are those of the workers to come."""
        self.channel = Channel()
        self.ready = False
        self.dismissed = False
        self.until = 0.0
        self._service = service
        parent, theirs = os.getpid(), self.channel.theirs
        try:
            self.pid = birth.fork(
                lambda: birth.begin(
                    lambda signals: _live(service, places, theirs, parent),
                    parent,
                    "template",
                    service,
                )
            )
        except OSError:
            self.channel.close()
            raise
        finally:
            self.channel.hand_over()

    def hear(self) -> None:
        """Hear whether the application is loaded by now."""
        if SERVES in self.channel.hear():
            self.ready = True

    def dismiss(self) -> None:
        """End it, because nobody needs it for the time being."""
        self.dismissed = True
        self.channel.close()

    def fork(self, post: Post) -> int:
        """Have a worker forked; return its process, or 0 if that does not work."""
        hushed = int(self._service.hushed)
        shared = int(post.shares is not None)
        words = f"{post.seat} {post.place} {shared} {post.recycle_after} {hushed}"
        if not self.channel.order(words, post.channel):
            return 0
        answer = b""
        poller = select.poll()
        poller.register(self.channel.fileno(), select.POLLIN)
        while not answer.endswith(b"\n"):
            if not poller.poll(PATIENCE * 1000):
                return 0
            heard = self.channel.hear()
            if not heard:
                return 0
            answer += heard
        return int(answer)


def _live(service: Service, places: Places, channel: int, parent: int) -> None:
    """Load the application, then fork workers as they are ordered; end with the main process.

    Told by a signal it ends by Python's whole shutdown, as a worker does. Dismissed it ends
    without: the application goes on in the workers, and needs what its exit handlers remove.
    """
    service.load()
    # What exists by now is shared with the workers; the collector shall not write to it. It is not
    # run before either: in the holes that it leaves, workers would write to what is shared.
    gc.freeze()
    line = socket.socket(fileno=channel)
    line.setblocking(True)
    line.send(SERVES)
    while True:
        words, fds = receive(line, 64)
        if not words:
            log.close()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        seat, place, shared, recycle_after, hushed = map(int, words.split())
        service.hushed = bool(hushed)
        ledger = places.open(place)
        post = Post(seat, place, fds[0], places.shares if shared else None, ledger, recycle_after)
        line.send(f"{_fork(service, post, line, parent)}\n".encode())
        os.close(fds[0])


def _fork(service: Service, post: Post, line: socket.socket, parent: int) -> int:
    """Fork a worker; return its process, or 0 if that does not work."""

    def live() -> None:
        line.close()
        birth.be_worker(service, post, parent)

    try:
        return birth.fork_twice(live)
    except OSError as error:
        log.write("error", f"a worker cannot be forked: {error}")
        return 0
