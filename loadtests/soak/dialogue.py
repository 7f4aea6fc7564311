"""A keep-alive connection of the soak: it buffers received bytes and checks each response."""

from __future__ import annotations

import contextlib
import time

from loadtests.clients.steady.known_requests import Ending, Question, Wrong
from tests.testkit.client import BadResponse, Closed, Connection


class Lost(Exception):
    """The connection ended where an answer was due; what came of it was right."""


class Dialogue(Connection):
    """Reads as strictly as the tests do (`tests/testkit/client.py`).

    Attributes:
        received: everything since the beginning of the present answer.
        last: when it was last known that the server's process lived: what it has answered it must
            have read, but when it wrote the answer nobody knows.
        pause: seconds before each read, to be slow.
        portion: most octets taken by one read.
    """

    def __init__(self, port: int) -> None:
        # Whatever kills the server's process from now on ends this connection.
        self.last = self.said = time.monotonic()
        self.received = bytearray()
        self.pause = 0.0
        self.portion = 65_536
        super().__init__(("127.0.0.1", port))

    def say(self, data: bytes) -> None:
        """Send; whether the server has gone will be seen when its answer is read."""
        self.said = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send(data)

    def answer(self, question: Question) -> None:
        """Read the next answer, which must be that of `question`. Raises Wrong or Lost."""
        self.received = bytearray(self._read)
        try:
            response = self.response(question.method)
        except Closed:
            if question.ending is not Ending.DIED:
                raise Lost("the connection was closed instead of an answer") from None
        except BadResponse as error:
            if not self._ended:
                raise Wrong(str(error)) from None
            question.check_part(bytes(self.received))
            if question.ending is not Ending.CUT:
                raise Lost(str(error)) from None
        except AssertionError as error:
            raise Wrong(str(error)) from None
        except TimeoutError:
            raise Wrong("no answer comes") from None
        else:
            if question.ending in (Ending.CUT, Ending.DIED):
                raise Wrong("a complete answer, although the application failed")
            question.check(response)
            if question.ending is Ending.CLOSED and not self.at_end():
                raise Wrong("the connection stays open")
            self.last = self.said

    @property
    def process(self) -> int:
        """The process that has made the present answer."""
        return int(self.received.partition(b"X-Process: ")[2].partition(b"\r\n")[0])

    def peek(self, octets: int) -> bytes:
        """Receive up to so many bytes of an answer, without looking at them."""
        while len(self.received) < octets and self.sip():
            pass
        return bytes(self.received)

    def sip(self) -> bool:
        """Receive what comes next, without looking at it; False at the end."""
        self._read.clear()
        return self._fill()

    def _fill(self) -> bool:
        if self._ended:
            return False
        if self.pause:
            time.sleep(self.pause)
        try:
            data = self.socket.recv(self.portion)
        except ConnectionResetError:
            data = b""
        self._ended = not data
        self._read += data
        self.received += data
        return not self._ended
