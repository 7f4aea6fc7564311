"""The base class of all clients of a soak, its connection, and what all of them share."""

from __future__ import annotations

import math
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import TypeAlias

from loadtests.clients.steady import known_requests
from loadtests.clients.steady.known_requests import Ending, Nature, Question, Wrong
from loadtests.clients.strict import BadResponse, Closed, Connection
from loadtests.measure.waiting import patience

DEADLINES = {
    name: patience(seconds)
    for name, seconds in {"header": 3.0, "body": 3.0, "write": 4.0, "keepalive": 6.0}.items()
}
"""The timeouts of the server, in seconds. A client that behaves well may not run into one."""
MOST_TOLD, SHOWN = 100, 600
"""Wrong responses that are stored in detail, and bytes of each."""
DEATH, TURNOVER, FULL = "death", "turnover", "full disk"
"""What may explain that an answer is not the usual one: a worker died, all workers were replaced,
or nothing could be written.
"""
SETTLING = 2.0
"""Seconds in which workers that were replaced still take connections, which they then close."""
NO_ROOM = 507
"""The status of an answer to a body for which there is no room."""
Turn: TypeAlias = Callable[["Client"], None]
"""What a client does again and again."""


class World:
    """What all clients of a server share: when to rest, counts of what came, deaths of workers.

    `counts` has numbers by kind: of right, wrong and lost responses, of their natures, of faults.
    `closing` says that all shall rest, so that whoever waits for something should give it up;
    `always` names what may happen at any time.
    `tell` is given the details of the first wrong responses.
    """

    def __init__(
        self,
        ports: Mapping[str, int],
        clients: int,
        tell: Callable[..., None],
        always: Collection[str] = (),
    ) -> None:
        self.ports = ports
        self._always = always
        self.closing = False
        names = "right", "natures", "lost", "wrong", "faults", "killed", "incidents", "retried"
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in names}
        self.first_wrong: list[str] = []
        self._tell = tell
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(clients + 1)
        self._over: dict[str, float] = {}

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
        with self._lock:
            return self.counts[name].total()

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Something happens to the server in this block, one of `incidents`."""
        self._over[what] = math.inf
        try:
            yield
        finally:
            self._over[what] = time.monotonic() + (SETTLING if what == TURNOVER else 0.0)

    def explains(self, since: float, *what: str) -> bool:
        """Whether one of these happened after `since`; without any, whether a worker died."""
        over = {**self._over, **dict.fromkeys(self._always, math.inf)}
        return any(over.get(one, -math.inf) >= since for one in what or (DEATH,))


class Lost(Exception):
    """The connection ended where an answer was due; what came of it was right."""


class NoRoom(Exception):
    """The answer was 507: the server could not store the body."""


class Dialogue(Connection):
    """Reads responses strictly.

    Attributes:
        received: everything since the beginning of the present answer.
        last: when it was last known that the server's process lived: what it has answered it must
            have read, but when it wrote the answer nobody knows.
        opened: when it connected.
        pause: seconds before each read, to be slow.
    """

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        # Whatever kills the server's process from now on ends this connection.
        self.last = self.said = self.opened = time.monotonic()
        self.received = bytearray()
        self.pause = 0.0
        super().__init__(("127.0.0.1", port))
        if context is not None:
            try:
                self.socket = context.wrap_socket(self.socket)
            except BaseException:
                self.close()
                raise

    def say(self, data: bytes) -> None:
        """Send; whether the server has gone will be seen when its answer is read."""
        self.said = time.monotonic()
        # The last two are the same for TLS.
        with suppress(
            BrokenPipeError, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError
        ):
            self.send(data)

    def answer(self, question: Question, closes: Callable[[], bool] = lambda: False) -> bool:
        """Read the next answer, which must be that of `question`; whether the connection goes on.

        `closes` says, once it is there, whether the server may close any connection. Raises Wrong,
        Lost or NoRoom.
        """
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
            if response.status == NO_ROOM:
                raise NoRoom
            if question.ending in (Ending.CUT, Ending.DIED):
                raise Wrong("a complete answer, although the application failed")
            is_last = response.get("Connection") == "close"
            if is_last and question.ending is Ending.KEPT and closes():
                question = replace(question, ending=Ending.CLOSED)
            question.check(response)
            if question.ending is Ending.CLOSED and not self.at_end():
                raise Wrong("the connection stays open")
            self.last = self.said
        return question.ending is Ending.KEPT

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

    def take(self, count: int) -> bytes:
        return self._take(count)

    def _fill(self) -> bool:
        if self.pause:
            time.sleep(self.pause)
        known = len(self._read)
        goes_on = super()._fill()
        self.received += self._read[known:]
        return goes_on


class Client:
    """One thread, which takes turns and rests when it shall.

    Attributes:
        context: that of TLS, for a client that speaks it.
    """

    context: ssl.SSLContext | None = None

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
                begun = time.monotonic()
                try:
                    self.interrupted = False
                    self.turn(self)
                except OSError as error:
                    # Everything else that may happen to a client is caught where it may happen.
                    if self.world.explains(begun):
                        self.world.count(("lost", self.name.rstrip("0123456789")))
                    else:
                        self.wrong(self.name, f"{type(error).__name__}: {error}")
                    self.hang_up()
                    time.sleep(0.1)
            else:
                self.hang_up()

    def token(self) -> str:
        self._count += 1
        return f"{self.name}-{self._count}"

    def make(self, *tables: dict[known_requests.Maker, int]) -> Question:
        return known_requests.choose(self.random, *tables)(self.token(), self.random)

    def pause(self, longest: float) -> None:
        time.sleep(self.random.random() * longest)

    def connect(self) -> Dialogue:
        self.hang_up()
        context, ports = self.context, self.world.ports
        self.dialogue = Dialogue(ports["https" if context else "http"], context)
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
    def judging(
        self, dialogue: Dialogue, kind: str, request: bytes = b"", *explained: str
    ) -> Iterator[None]:
        """Report what is wrong in this block, unless one of these or a death explains it."""
        try:
            yield
        except (Wrong, BadResponse, Closed, AssertionError, TimeoutError) as error:
            if not self.world.explains(dialogue.last, DEATH, *explained):
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
        goes_on = True
        for question in asked:
            try:
                closes = partial(self.world.explains, dialogue.opened, TURNOVER)
                goes_on = dialogue.answer(question, closes)
            except (Wrong, Lost, NoRoom) as error:
                self._failed(dialogue, question, error)
                self.hang_up()
                return False
            self.world.count(("right", question.kind), ("natures", question.nature.value))
            if not goes_on:
                # What was sent behind an answer that closes the connection, its client repeats.
                self.hang_up()
                return False
        return True

    def _failed(self, dialogue: Dialogue, question: Question, error: Exception) -> None:
        """An answer did not come as it should: count why that may be, or that it is wrong."""
        explains = self.world.explains
        # A server that is replaced may close an idle connection just as a request is sent.
        idle = dialogue.last > dialogue.opened and not dialogue.received
        if isinstance(error, NoRoom) and explains(dialogue.said, FULL):
            self.world.count(("right", "no room"), ("natures", Nature.NO_ROOM.value))
        elif isinstance(error, Lost) and explains(dialogue.last):
            self.world.count(("lost", question.kind))
        elif isinstance(error, Lost) and idle and explains(dialogue.opened, TURNOVER):
            self.world.count(("retried", question.kind))
        else:
            what = str(error) or f"status {NO_ROOM}"
            self.wrong(question.kind, what, question.request)
