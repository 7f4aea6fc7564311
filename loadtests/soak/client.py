"""The base class of all clients of a soak, its connection, and what all of them share."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import TypeAlias

from loadtests.clients.steady import known_requests
from loadtests.clients.steady.known_requests import Ending, Question, Wrong
from loadtests.clients.strict import BadResponse, Closed, Connection
from loadtests.measure.waiting import patience

DEADLINES = {
    name: patience(seconds)
    for name, seconds in {"header": 3.0, "body": 3.0, "write": 4.0, "keepalive": 6.0}.items()
}
"""The timeouts of the server, in seconds. A client that behaves well may not run into one."""
MOST_TOLD, SHOWN = 100, 600
"""Wrong responses that are stored in detail, and bytes of each."""
Turn: TypeAlias = Callable[["Client"], None]
"""What a client does again and again."""


class World:
    """What all clients of a server share: when to rest, counts of what came, deaths of workers.

    `counts` has numbers by kind: of right, wrong and lost responses, of their natures, of faults.
    `closing` says that all shall rest, so that whoever waits for something should give it up.
    `tell` is given the details of the first wrong responses.
    """

    def __init__(self, port: int, clients: int, tell: Callable[..., None]) -> None:
        self.port = port
        self.closing = False
        names = ("right", "natures", "lost", "wrong", "faults", "killed")
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in names}
        self.first_wrong: list[str] = []
        self._tell = tell
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(clients + 1)
        self._died = -math.inf

    def turns(self) -> Iterator[bool]:
        """Yields True for each turn that a client shall take, and False before it has to rest."""
        with suppress(threading.BrokenBarrierError):
            while True:
                closing = self.closing
                yield not closing
                if closing:
                    self._barrier.wait()
                    self._barrier.wait()

    def rest(self, seconds: float) -> bool:
        """Wait until every client rests, when they are to; False if one does not."""
        with suppress(threading.BrokenBarrierError):
            self._barrier.wait(seconds)
        return not self._barrier.broken

    def go_on(self) -> None:
        """Let all clients that rest go on."""
        self.closing = False
        self._barrier.wait()

    def end(self) -> None:
        """Nobody goes on."""
        self.closing = True
        self._barrier.abort()

    def count(self, *counted: tuple[str, str]) -> None:
        """Count one for each name and kind."""
        with self._lock:
            for name, kind in counted:
                self.counts[name][kind] += 1

    def count_wrong(self, kind: str, what: str, request: bytes, received: bytes) -> None:
        """A response was wrong, or missing."""
        self.count(("wrong", kind))
        with self._lock:
            if len(self.first_wrong) < MOST_TOLD:
                self.first_wrong.append(f"{kind}: {what}")
                shown = {"request": repr(request[:SHOWN]), "received": repr(received[:SHOWN])}
                self._tell("wrong", kind=kind, what=what, **shown)

    def total(self, name: str) -> int:
        """The sum over all kinds."""
        with self._lock:
            return self.counts[name].total()

    @contextmanager
    def death(self) -> Iterator[None]:
        """A worker may die in this block."""
        self._died = math.inf
        try:
            yield
        finally:
            self._died = time.monotonic()

    def explains(self, since: float) -> bool:
        """Whether a worker died after `since`: a connection may be lost with it, but only then."""
        return self._died >= since


class Lost(Exception):
    """The connection ended where an answer was due; what came of it was right."""


class Dialogue(Connection):
    """Reads responses strictly.

    Attributes:
        received: everything since the beginning of the present answer.
        last: when it was last known that the server's process lived: what it has answered it must
            have read, but when it wrote the answer nobody knows.
        pause: seconds before each read, to be slow.
    """

    def __init__(self, port: int) -> None:
        # Whatever kills the server's process from now on ends this connection.
        self.last = self.said = time.monotonic()
        self.received = bytearray()
        self.pause = 0.0
        super().__init__(("127.0.0.1", port))

    def say(self, data: bytes) -> None:
        """Send; whether the server has gone will be seen when its answer is read."""
        self.said = time.monotonic()
        with suppress(BrokenPipeError, ConnectionResetError):
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

    def ends_with(self, *statuses: int) -> None:
        """Read final responses with these statuses, and then the end. Raises Wrong."""
        for status in statuses:
            self.received = bytearray()
            response = self.response()
            if response.status != status:
                raise Wrong(f"status {response.status} instead of {status}")
        if not self.at_end():
            raise Wrong("the server says something more")

    @property
    def process(self) -> int:
        """The process that has made the present answer."""
        return int(self.received.partition(b"X-Process: ")[2].partition(b"\r\n")[0])

    def sip(self) -> bool:
        """Receive what comes next, without looking at it; False at the end."""
        self._read.clear()
        return self._fill()

    def _fill(self) -> bool:
        if self.pause:
            time.sleep(self.pause)
        known = len(self._read)
        goes_on = super()._fill()
        self.received += self._read[known:]
        return goes_on


class Client:
    """One thread, which takes turns and rests when it shall."""

    def __init__(self, world: World, name: str, seed: int, turn: Turn) -> None:
        self.world = world
        self.turn = turn
        self.interrupted = False
        self.random = Random(f"{name} {seed}")
        self.name = name
        self.dialogue: Dialogue | None = None
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._count = 0

    def interrupt(self) -> None:
        """End a turn that would take long, whatever was to be seen."""
        self.interrupted = True
        if (dialogue := self.dialogue) is not None:
            with suppress(OSError):
                dialogue.socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        for on in self.world.turns():
            if on:
                try:
                    self.interrupted = False
                    self.turn(self)
                except OSError as error:
                    # Everything that may happen to a client is caught where it may happen.
                    self.wrong(self.name, f"{type(error).__name__}: {error}")
                    self.hang_up()
                    time.sleep(0.1)
            else:
                self.hang_up()

    def token(self) -> str:
        """One that nobody else has."""
        self._count += 1
        return f"{self.name}-{self._count}"

    def make(self, *tables: dict[known_requests.Maker, int]) -> Question:
        """A question out of these."""
        return known_requests.choose(self.random, *tables)(self.token(), self.random)

    def pause(self, longest: float) -> None:
        """Sleep for up to so many seconds."""
        time.sleep(self.random.random() * longest)

    def connect(self) -> Dialogue:
        """A new connection."""
        self.hang_up()
        self.dialogue = Dialogue(self.world.port)
        return self.dialogue

    def hang_up(self) -> None:
        """Close the connection, if there is one."""
        if self.dialogue is not None:
            self.dialogue.close()
            self.dialogue = None

    def wrong(self, kind: str, what: str, request: bytes = b"") -> None:
        """Report what must not be, unless this client itself has ended it."""
        if not self.interrupted:
            received = bytes(self.dialogue.received) if self.dialogue else b""
            self.world.count_wrong(kind, what, request, received)

    @contextmanager
    def judging(self, dialogue: Dialogue, kind: str, request: bytes = b"") -> Iterator[None]:
        """Report what is wrong in this block, unless the death of a worker explains it."""
        try:
            yield
        except (Wrong, BadResponse, Closed, AssertionError, TimeoutError) as error:
            if not self.world.explains(dialogue.last):
                self.wrong(kind, f"{type(error).__name__} {error}", request)

    def ask(self, *asked: Question) -> bool:
        """Send these at once and read the answers; whether the connection goes on."""
        dialogue = self.dialogue
        # The server may be about to close one that has been idle.
        if not dialogue or time.monotonic() - dialogue.said >= DEADLINES["keepalive"] / 3:
            dialogue = self.connect()
        dialogue.say(b"".join(question.request for question in asked))
        return self.hear(dialogue, *asked)

    def hear(self, dialogue: Dialogue, *asked: Question) -> bool:
        """Read these answers; whether the connection goes on."""
        for question in asked:
            try:
                dialogue.answer(question)
            except (Wrong, Lost) as error:
                if isinstance(error, Lost) and self.world.explains(dialogue.last):
                    self.world.count(("lost", question.kind))
                else:
                    self.wrong(question.kind, str(error), question.request)
                self.hang_up()
                return False
            self.world.count(("right", question.kind), ("natures", question.nature.value))
        if asked[-1].ending is not Ending.KEPT:
            self.hang_up()
            return False
        return True
