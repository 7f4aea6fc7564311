"""A connection of a well-behaved client that checks every response."""

from __future__ import annotations

import re
import select
import socket

from loadtests.clients.steady.known_requests import Question, Wrong
from tests.testkit.client import BadResponse, Closed, Connection, Response

SILENCE = 30.0
"""Seconds after which a client gives up."""

# Answers to HTTP/1.0 may say so themselves.
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?")


class Fault(Exception):
    """A failure of a request: a kind of KINDS, and the details.

    `requests` is how many it has cost: behind one that fails there may be others in the pipeline.
    `asked` is the line of the first of them, and it `began` then.
    """

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind
        self.what = what
        self.requests = 1
        self.asked = ""
        self.began = 0.0


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


class Line(Connection):
    """One connection.

    Attributes:
        port: ours, by which the lab finds the worker that holds the other end.
        process: the process that has made the last answer; 0 before the first.
        served: the version of the application that made it.
        answers: how many there were.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._reset = False
        self._version = b"1"
        self.process = 0
        self.served = ""
        self.answers = 0
        try:
            super().__init__((host, port))
        except ConnectionRefusedError:
            raise Fault("refused", "connect") from None
        except TimeoutError:
            raise Fault("silent", "connect") from None
        except OSError as error:
            raise Fault("reset", f"connect: {error.strerror}") from None
        self.socket.settimeout(SILENCE)
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
            self._reset = True

    def answer(self, question: Question) -> bool:
        """Read the answer to this question; whether the connection goes on. Raises Fault."""
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
        self._check(response, question)
        self.answers += 1
        self.process = int(response.get("X-Process") or 0)
        self.served = response.get("X-Version") or ""
        return self._goes_on(response)

    def _cut(self, kind: str, what: str) -> Fault:
        return Fault("reset" if self._reset else kind, what)

    def _check(self, response: Response, question: Question) -> None:
        if response.status >= 500:
            raise Fault("5xx", f"{response.status} {response.reason}: {response.body[:200]!r}")
        if response.status != question.status:
            raise Fault("wrong", f"status {response.status}: {response.body[:200]!r}")
        try:
            tokens = [response.get_all(name) for name in ("X-Token", "X-Token-Header")]
            question.check_tokens(*tokens)
        except Wrong as wrong:
            raise Fault("crossed", str(wrong)) from None
        body = response.body
        if response.framing == "close" and len(body) < len(question.body):
            raise self._cut("short", f"{len(body)} octets of {len(question.body)}")
        try:
            question.check_content(body)
        except Wrong as wrong:
            raise Fault("wrong", str(wrong)) from None

    def _goes_on(self, response: Response) -> bool:
        options = {
            option.strip().lower()
            for value in response.get_all("Connection")
            for option in value.split(",")
        }
        if response.framing == "close" or "close" in options:
            return False
        return self._version == b"1" or "keep-alive" in options

    def _fill(self) -> bool:
        # As inherited, but to be reset is not the same as to be closed.
        if self._ended:
            return False
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            self._reset = True
            data = b""
        self._ended = not data
        self._read += data
        return not self._ended

    def _head(self) -> Response:
        if self.at_end():
            raise Closed
        line = self._line()
        match = _STATUS_LINE.fullmatch(line)
        if match is None:
            raise BadResponse(f"a malformed status line: {line[:200]!r}")
        self._version = match[1]
        return Response(int(match[2]), (match[3] or b"").decode("latin-1"), self._fields())
