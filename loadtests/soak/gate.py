"""A barrier at which clients pause while the server has to be idle."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator


class Gate:
    """Open for `clients` threads until it is closed, for a while or for good."""

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._resting = 0
        self._open = True
        self._over = False
        self._changed = threading.Condition()

    @property
    def closing(self) -> bool:
        """Whether whoever still waits for something should give it up."""
        return not self._open

    def turns(self) -> Iterator[bool]:
        """Yields True for each turn that a client shall take, and False before it has to rest."""
        while True:
            if self._open:
                yield True
                continue
            yield False
            with self._changed:
                self._resting += 1
                self._changed.notify_all()
                while not self._open and not self._over:
                    self._changed.wait()
                self._resting -= 1
                if self._over:
                    return

    def close(self) -> None:
        """Let nobody begin another turn."""
        self._open = False

    def wait(self, patience: float) -> bool:
        """Wait until every client rests; False if one does not."""
        end = time.monotonic() + patience
        with self._changed:
            while self._resting < self._clients:
                if not self._changed.wait(max(0.0, end - time.monotonic())):
                    return False
        return True

    def open(self) -> None:
        """Let everybody go on."""
        with self._changed:
            self._open = True
            self._changed.notify_all()

    def end(self) -> None:
        """Nobody goes on."""
        with self._changed:
            self._open = False
            self._over = True
            self._changed.notify_all()
