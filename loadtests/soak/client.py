"""The base class of all clients of a soak: a thread that asks, and pauses on request."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from random import Random

from loadtests.clients.steady import known_requests
from loadtests.clients.steady.known_requests import Ending, Question, Wrong
from loadtests.soak.dialogue import Dialogue, Lost
from loadtests.soak.gate import Gate
from loadtests.soak.tally import Deaths, Tally


@dataclass(frozen=True)
class Deadlines:
    """The server's, in seconds."""

    header: float = 3
    body: float = 3
    write: float = 4
    keepalive: float = 6

    def options(self) -> list[str]:
        """As the server is given them."""
        return [
            f"--header-timeout={self.header}",
            f"--body-timeout={self.body}",
            f"--write-timeout={self.write}",
            f"--keepalive-timeout={self.keepalive}",
        ]


@dataclass(frozen=True)
class World:
    """State that all clients of a server share."""

    port: int
    tally: Tally
    deaths: Deaths
    gate: Gate
    deadlines: Deadlines


class Client:
    """One thread. Kinds differ in `turn`."""

    def __init__(self, world: World, name: str, seed: int) -> None:
        self.world = world
        self.tally = world.tally
        self.random = Random(f"{name} {seed}")
        self.name = name
        self.dialogue: Dialogue | None = None
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._count = 0

    def turn(self) -> None:
        """Do once what this client does."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """Have a turn end that would take long."""

    def _run(self) -> None:
        for on in self.world.gate.turns():
            if on:
                try:
                    self.turn()
                except OSError as error:
                    # Everything that may happen to a client is caught where it may happen.
                    self.wrong(self.name, f"{type(error).__name__}: {error}")
                    self.hang_up()
                    time.sleep(0.1)
            else:
                self.hang_up()

    # What clients are made of

    def token(self) -> str:
        """One that nobody else has."""
        self._count += 1
        return f"{self.name}-{self._count}"

    def make(self, *tables: dict[known_requests.Maker, int]) -> Question:
        """A question out of these."""
        return known_requests.choose(self.random, *tables)(self.token(), self.random)

    def connect(self) -> Dialogue:
        """A new connection."""
        self.hang_up()
        self.dialogue = Dialogue(self.world.port)
        return self.dialogue

    def connected(self) -> Dialogue:
        """The present connection, or a new one if the server may be about to close it."""
        dialogue = self.dialogue
        if dialogue and time.monotonic() - dialogue.said < self.world.deadlines.keepalive / 3:
            return dialogue
        return self.connect()

    def hang_up(self) -> None:
        """Close the connection, if there is one."""
        if self.dialogue is not None:
            self.dialogue.close()
            self.dialogue = None

    def wrong(self, kind: str, what: str, request: bytes = b"") -> None:
        """Report what must not be."""
        received = bytes(self.dialogue.received) if self.dialogue else b""
        self.tally.count_wrong(kind, what, request, received)

    def ask(self, *asked: Question) -> bool:
        """Send these at once and read the answers; whether the connection goes on."""
        dialogue = self.connected()
        dialogue.say(b"".join(question.request for question in asked))
        return self.hear(*asked)

    def hear(self, *asked: Question) -> bool:
        """Read these answers; whether the connection goes on."""
        dialogue = self.dialogue
        assert dialogue is not None
        for question in asked:
            try:
                dialogue.answer(question)
            except Wrong as wrong:
                self.wrong(question.kind, str(wrong), question.request)
                self.hang_up()
                return False
            except Lost as lost:
                if self.world.deaths.explain(dialogue.last):
                    self.tally.count_lost(question.kind)
                else:
                    self.wrong(question.kind, str(lost), question.request)
                self.hang_up()
                return False
            self.tally.count_right(question.kind, question.nature)
        if asked[-1].ending is not Ending.KEPT:
            self.hang_up()
            return False
        return True
