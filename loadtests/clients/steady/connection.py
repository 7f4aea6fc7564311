"""A connection of a well-behaved client that checks every response."""

from __future__ import annotations

import re
import select
import socket
from dataclasses import dataclass

from loadtests.clients import connection
from loadtests.clients.steady.known_requests import Question, Wrong
from loadtests.clients.strict import BadResponse, Closed, Response
from loadtests.measure.waiting import patience

SILENCE = patience(30.0)
"""Seconds after which a client gives up."""


@dataclass(eq=False)
class Fault(Exception):
    """A failure of a request: a kind of KINDS, as `what` it showed, and what it has cost.

    `requests` is how many were lost: behind one that fails there may be others in the pipeline.
    `sent` is the client, and `asked` the line of the first of them, which `began` then, or never
    (0). `port` was the client's end of a connection `opened` at that time, on which `process` had
    made the last of so many `answers`.
    """

    kind: str
    what: str
    sent: str = ""
    asked: str = ""
    requests: int = 1
    at: float = 0.0
    opened: float = 0.0
    port: int = 0
    process: int = 0
    answers: int = 0
    began: float = 0.0


class NotProcessed(Exception):
    """The server has not processed a request, says so, and leaves it to be sent again."""


KINDS = {
    "refused": "the connection was refused",
    "reset": "the connection was reset",
    "closed": "the connection was closed instead of an answer",
    "short": "the connection was closed within an answer",
    "malformed": "the answer is not HTTP",
    "crossed": "the answer is another request's",
    "wrong": "status or content is not what the application gave",
    "5xx": "the server failed",
    "silent": f"no answer in {SILENCE:.0f} seconds",
    "unasked": "something came although nothing was asked",
}


class Line(connection.Connection):
    """One connection.

    Attributes:
        port: ours, by which the lab finds the worker that holds the other end.
        process: the process that has made the last answer; 0 before the first.
        served: the version of the application that made it.
        answers: how many there were.
        goes_on: whether there may be another one.
    """

    def __init__(self, port: int, host: str = "127.0.0.1", timeout: float | None = None) -> None:
        self.process, self.served, self.answers = 0, "", 0
        self.goes_on = True
        try:
            super().__init__(port, timeout or SILENCE, address=host)
        except ConnectionRefusedError:
            raise Fault("refused", "connect") from None
        except TimeoutError:
            raise Fault("silent", "connect") from None
        except OSError as error:
            raise Fault("reset", f"connect: {error.strerror}") from None
        self.port: int = self.socket.getsockname()[1]

    def ended(self) -> str:
        """The way the server ended an idle connection: `closed`, `reset`, or empty if it lives.

        Who looks before it asks, as good clients do, loses nothing by it. Raises Fault if something
        was said that nobody asked for.
        """
        if not self._read and not select.select([self.socket], [], [], 0)[0]:
            return ""
        try:
            said = self._read or self.socket.recv(1000, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except ConnectionResetError:
            return "reset"
        if said:
            raise Fault("unasked", repr(said[:200]))
        return "closed"

    def say(self, data: bytes) -> None:
        """Send. What has become of the connection is seen when the answer is read."""
        try:
            self.send(data)
        except TimeoutError:
            raise Fault("silent", "the request is not taken") from None
        except OSError:
            # The answer may have come all the same, before the connection was ended.
            self.was_reset = True

    def answer(self, question: Question) -> None:
        """Read the answer to this question. Raises Fault."""
        try:
            response = self.response(question.method)
        except Closed:
            raise self._cut("closed", "before the answer") from None
        except BadResponse as error:
            if self._ended:
                raise self._cut("short", str(error)) from None
            raise Fault("malformed", str(error)) from None
        except AssertionError as error:
            raise Fault("malformed", str(error)) from None
        except TimeoutError:
            raise Fault("silent", f"{len(self._read)} octets have come") from None
        except OSError as error:
            raise Fault("reset", str(error.strerror)) from None
        if response.status >= 500:
            raise Fault("5xx", f"{response.status} {response.reason}: {response.body[:200]!r}")
        self._check(response, question)
        self.answers += 1
        self.process = int(response.get("X-Process") or 0)
        self.served = response.get("X-Version") or ""
        options = re.split(r"[\s,]+", ",".join(response.get_all("Connection")).lower())
        stays = "close" not in options if self.version == b"1" else "keep-alive" in options
        self.goes_on = stays and response.framing != "close"

    def _cut(self, kind: str, what: str) -> Fault:
        return Fault("reset" if self.was_reset else kind, what)

    def _check(self, response: Response, question: Question) -> None:
        if response.status != question.status:
            raise Fault("wrong", f"status {response.status}: {response.body[:200]!r}")
        try:
            question.check_tokens(response.get_all)
        except Wrong as wrong:
            raise Fault("crossed", str(wrong)) from None
        body = response.body
        if response.framing == "close" and len(body) < len(question.body):
            raise self._cut("short", f"{len(body)} octets of {len(question.body)}")
        try:
            question.check_content(body)
        except Wrong as wrong:
            raise Fault("wrong", str(wrong)) from None
