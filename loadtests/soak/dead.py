"""Clients of a soak that do too little, or nothing: the server has to end their connections."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Sequence

from loadtests.clients.steady import known_requests
from loadtests.clients.steady.known_requests import Question, Wrong
from loadtests.soak.client import Client
from loadtests.soak.dialogue import Dialogue
from tests.testkit.client import HANG, BadResponse, Closed


class Dead(Client):
    """Connects and then does too little, or nothing: the server has to end it."""

    interrupted = False

    def interrupt(self) -> None:
        """Wait no longer, whatever was to be seen."""
        self.interrupted = True
        dialogue = self.dialogue
        if dialogue is not None:
            with contextlib.suppress(OSError):
                dialogue.socket.shutdown(socket.SHUT_RDWR)

    def wrong(self, kind: str, what: str, request: bytes = b"") -> None:
        """Report what must not be, unless this client itself has ended it."""
        if not self.interrupted:
            super().wrong(kind, what, request)

    def turn(self) -> None:
        """Be dead in one of the ways."""
        ways: Sequence[Callable[[Dialogue], None]] = (
            self.silent, self.half_head, self.half_body, self.idle, self.takes_nothing, self.sips,
            self.drips_head, self.drips_body, self.drips_without_end,
        )  # fmt: skip
        way = self.random.choice(ways)
        self.interrupted = False
        dialogue = self.connect()
        kind = way.__name__.replace("_", " ")
        self.tally.count_fault(f"dead: {kind}")
        try:
            way(dialogue)
        except Wrong as wrong:
            self._judge(dialogue, kind, str(wrong))
        except TimeoutError:
            self._judge(dialogue, kind, "the connection stays open")
        except (BadResponse, Closed) as error:
            self._judge(dialogue, kind, f"{type(error).__name__} {error}")
        self.hang_up()

    def _judge(self, dialogue: Dialogue, kind: str, what: str) -> None:
        if not self.world.deaths.explain(dialogue.last):
            self.wrong(f"dead: {kind}", what)

    def _ended(self, dialogue: Dialogue) -> None:
        """The server closes without a word."""
        if not dialogue.at_end():
            raise Wrong("the server says something")

    def _timed_out(self, dialogue: Dialogue) -> None:
        """The server says why it closes."""
        status = dialogue.response().status
        if status != 408:
            raise Wrong(f"status {status} instead of 408")
        if not dialogue.at_end():
            raise Wrong("the connection stays open")

    def silent(self, dialogue: Dialogue) -> None:
        """Not a byte."""
        self._ended(dialogue)

    def half_head(self, dialogue: Dialogue) -> None:
        """A head without end."""
        dialogue.say(known_requests.head(self.token(), "small")[: self.random.randrange(1, 60)])
        self._timed_out(dialogue)

    def half_body(self, dialogue: Dialogue) -> None:
        """A body without end."""
        dialogue.say(
            known_requests.head(self.token(), "posted", "Content-Length: 9", method="POST")
        )
        dialogue.say(b"half")
        self._timed_out(dialogue)

    def idle(self, dialogue: Dialogue) -> None:
        """One request, and no other."""
        if self.ask(known_requests.plain("small")(self.token(), self.random)):
            self._ended(dialogue)

    def takes_nothing(self, dialogue: Dialogue) -> None:
        """A large answer that is not read until the server has given up."""
        question = self._ask_for_much(dialogue)
        end = time.monotonic() + self.world.deadlines.write * 2
        while time.monotonic() < end and not self.world.gate.closing:
            time.sleep(0.1)
        self._given_up(dialogue, question)

    def sips(self, dialogue: Dialogue) -> None:
        """The same, but now and then some bytes are read."""
        question = self._ask_for_much(dialogue)
        dialogue.portion, dialogue.pause = 50, 0.1
        end = time.monotonic() + self.world.deadlines.write * 3
        while time.monotonic() < end and not self.world.gate.closing and dialogue.sip():
            pass
        dialogue.portion, dialogue.pause = 65_536, 0
        self._given_up(dialogue, question)

    def _ask_for_much(self, dialogue: Dialogue) -> Question:
        dialogue.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        question = known_requests.much("generated", 8_000_000, 8_000_001)(self.token(), self.random)
        dialogue.say(question.request)
        return question

    def _given_up(self, dialogue: Dialogue, question: Question) -> None:
        """The end of the answer does not come any more."""
        if self.world.gate.closing:
            return
        while dialogue.sip():
            pass
        question.check_part(bytes(dialogue.received))
        if len(dialogue.received) > len(question.body):
            raise Wrong("the connection stayed open although nothing was read")

    def drips_head(self, dialogue: Dialogue) -> None:
        """A byte now and then, of a head that is never complete."""
        dialogue.say(b"GET / HTTP/1.1\r\nX-Drip: ")
        self._drip(dialogue, b"x" * 1_000)
        self._timed_out(dialogue)

    def drips_body(self, dialogue: Dialogue) -> None:
        """A byte now and then, of a body that becomes complete in time."""
        question = known_requests.post("drips body", 5, 6, chunked=False)(self.token(), self.random)
        dialogue.say(question.request[:-5])
        self._drip(dialogue, question.request[-5:], 0.05)
        if not self.world.gate.closing:
            self.hear(question)

    def drips_without_end(self, dialogue: Dialogue) -> None:
        """A byte now and then, of a body that would take hours."""
        length = "Content-Length: 100000"
        dialogue.say(known_requests.head(self.token(), "posted", length, method="POST"))
        self._drip(dialogue, b"x" * 1_000)
        self._timed_out(dialogue)

    def _drip(self, dialogue: Dialogue, data: bytes, pause: float = 0.2) -> None:
        """Send bytes until the server answers."""
        dialogue.socket.settimeout(pause)
        try:
            for index in range(len(data)):
                dialogue.say(data[index : index + 1])
                try:
                    dialogue.socket.recv(1, socket.MSG_PEEK)
                    break
                except TimeoutError:
                    if self.world.gate.closing:
                        break
                except ConnectionResetError:
                    break
        finally:
            dialogue.socket.settimeout(HANG)
