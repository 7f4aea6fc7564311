"""The clients of a soak, well-behaved and adverse: threads that pause together on request."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from loadtests.soak import questions
from loadtests.soak.dialogue import Dialogue, Lost
from loadtests.soak.gate import Gate
from loadtests.soak.questions import Ending, Nature, Question, Wrong
from loadtests.soak.tally import Deaths, Tally
from tests.case import Case, read_all
from tests.client import HANG, BadResponse, Closed

#: What stands behind a message that is refused must never be taken for a request.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

PIPELINED = 10


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
    """What all clients of a server share."""

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

    def make(self, *tables: dict[questions.Maker, int]) -> Question:
        """A question out of these."""
        return questions.choose(self.random, *tables)(self.token(), self.random)

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


class Keeper(Client):
    """Well-behaved: one request after another on a connection that it keeps for a while."""

    def turn(self) -> None:
        """A request, or the same one several times, whose head is then remembered."""
        chance = self.random.random()
        if chance < 0.75:
            question = self.make(questions.SOUND)
        elif chance < 0.95:
            question = self.make(questions.FAILING)
        elif chance < 0.99:
            question = self.make(questions.CUT)
        else:
            question = self.make(questions.LAST)
        times = self.random.choice((1, 1, 1, 5, 20)) if question.kind == "small" else 1
        for _ in range(times):
            if not self.ask(question):
                return
        if self.random.random() < 0.02:
            self.hang_up()
        if self.random.random() < 0.1:
            time.sleep(self.random.random() * 0.02)


class Pipeliner(Client):
    """Ten requests in one write; their answers must come in their order."""

    def turn(self) -> None:
        """A set of ten, the last of which may end the connection."""
        asked = [self.make(questions.SOUND) for _ in range(PIPELINED - 2)]
        asked.insert(self.random.randrange(len(asked)), self.make(questions.FAILING))
        ends = self.random.random() < 0.2
        tables = (questions.CUT, questions.LAST) if ends else (questions.SOUND,)
        asked.append(self.make(*tables))
        self.ask(*[questions.renamed(question, f"pipelined {question.kind}") for question in asked])
        time.sleep(self.random.random() * 0.01)


class Uploader(Client):
    """Sends large bodies."""

    def turn(self) -> None:
        """One of them."""
        self.ask(self.make(questions.UPLOADS))
        time.sleep(self.random.random() * 0.3)


class SlowReader(Client):
    """Takes a large answer in small portions, with a pause before each."""

    def turn(self) -> None:
        """One of them."""
        dialogue = self.connect()
        dialogue.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        dialogue.pause = self.random.choice((0.001, 0.005))
        dialogue.portion = self.random.choice((20_000, 60_000))
        question = questions.renamed(self.make(questions.DOWNLOADS), "slow reader")
        self.ask(question)
        self.hang_up()


class Leaver(Client):
    """Leaves in the middle of a head, a body or an answer, politely or not."""

    def turn(self) -> None:
        """Come and go."""
        where = self.random.choice(("head", "body", "answer", "endless answer", "half close"))
        how = self.random.choice(("close", "reset"))
        dialogue = self.connect()
        if where == "half close":
            self._half_close(dialogue)
            return
        self.tally.count_fault(f"left in the middle: {where}, {how}")
        try:
            if where == "head":
                request = self.make(questions.SOUND).request
                end = request.index(b"\r\n\r\n")
                dialogue.say(request[: self.random.randrange(end)])
            elif where == "body":
                question = self.make(questions.UPLOADS)
                dialogue.say(question.request[: self.random.randrange(200, len(question.request))])
            else:
                question = (
                    questions.endless(self.token())
                    if where == "endless answer"
                    else self.make(questions.LONG)
                )
                dialogue.say(question.request)
                octets = self.random.choice((0, 1, 300, 100_000, 1_000_000))
                self._look(dialogue, question, octets)
        finally:
            getattr(dialogue, how)()
            self.dialogue = None
        time.sleep(self.random.random() * 0.05)

    def _look(self, dialogue: Dialogue, question: Question, octets: int) -> None:
        try:
            received = dialogue.peek(octets)
            question.check_part(received)
            if len(received) < octets and not self.world.deaths.explain(dialogue.last):
                raise Wrong(f"the connection ended after {len(received)} octets")
        except TimeoutError:
            self.wrong(f"left: {question.kind}", "no answer comes", question.request)
        except Wrong as wrong:
            self.wrong(f"left: {question.kind}", str(wrong), question.request)

    def _half_close(self, dialogue: Dialogue) -> None:
        """A client that has said all it will say still listens."""
        asked = [
            questions.renamed(self.make(questions.SOUND), "half closed")
            for _ in range(self.random.randrange(1, 4))
        ]
        dialogue.say(b"".join(question.request for question in asked))
        with contextlib.suppress(OSError):
            dialogue.socket.shutdown(socket.SHUT_WR)
        if self.hear(*asked) and not dialogue.at_end():
            self.wrong("half closed", "the connection stays open")
        self.hang_up()


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
        """Not an octet."""
        self._ended(dialogue)

    def half_head(self, dialogue: Dialogue) -> None:
        """A head without end."""
        dialogue.say(questions.head(self.token(), "small")[: self.random.randrange(1, 60)])
        self._timed_out(dialogue)

    def half_body(self, dialogue: Dialogue) -> None:
        """A body without end."""
        dialogue.say(questions.head(self.token(), "posted", "Content-Length: 9", method="POST"))
        dialogue.say(b"half")
        self._timed_out(dialogue)

    def idle(self, dialogue: Dialogue) -> None:
        """One request, and no other."""
        if self.ask(questions.plain("small")(self.token(), self.random)):
            self._ended(dialogue)

    def takes_nothing(self, dialogue: Dialogue) -> None:
        """A large answer that is not read until the server has given up."""
        question = self._ask_for_much(dialogue)
        end = time.monotonic() + self.world.deadlines.write * 2
        while time.monotonic() < end and not self.world.gate.closing:
            time.sleep(0.1)
        self._given_up(dialogue, question)

    def sips(self, dialogue: Dialogue) -> None:
        """The same, but now and then some octets are read."""
        question = self._ask_for_much(dialogue)
        dialogue.portion, dialogue.pause = 50, 0.1
        end = time.monotonic() + self.world.deadlines.write * 3
        while time.monotonic() < end and not self.world.gate.closing and dialogue.sip():
            pass
        dialogue.portion, dialogue.pause = 65_536, 0
        self._given_up(dialogue, question)

    def _ask_for_much(self, dialogue: Dialogue) -> Question:
        dialogue.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        question = questions.much("generated", 8_000_000, 8_000_001)(self.token(), self.random)
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
        """An octet now and then, of a head that is never complete."""
        dialogue.say(b"GET / HTTP/1.1\r\nX-Drip: ")
        self._drip(dialogue, b"x" * 1_000)
        self._timed_out(dialogue)

    def drips_body(self, dialogue: Dialogue) -> None:
        """An octet now and then, of a body that becomes complete in time."""
        question = questions.post("drips body", 5, 6, chunked=False)(self.token(), self.random)
        dialogue.say(question.request[:-5])
        self._drip(dialogue, question.request[-5:], 0.05)
        if not self.world.gate.closing:
            self.hear(question)

    def drips_without_end(self, dialogue: Dialogue) -> None:
        """An octet now and then, of a body that would take hours."""
        length = "Content-Length: 100000"
        dialogue.say(questions.head(self.token(), "posted", length, method="POST"))
        self._drip(dialogue, b"x" * 1_000)
        self._timed_out(dialogue)

    def _drip(self, dialogue: Dialogue, data: bytes, pause: float = 0.2) -> None:
        """Send octets until the server answers."""
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


class Malformed(Client):
    """Sends what must be refused (`tests/cases`), and behind it a request that must never run."""

    def __init__(self, world: World, name: str, seed: int) -> None:
        super().__init__(world, name, seed)
        self.cases = [case for case in read_all() if case.refused and b"HEAD" not in case.send]

    def turn(self) -> None:
        """One case."""
        case = self.random.choice(self.cases)
        self.tally.count_fault("refused request")
        dialogue = self.connect()
        dialogue.say(case.send + SMUGGLED)
        try:
            self._compare(dialogue, case)
        except (Wrong, BadResponse, Closed, AssertionError, TimeoutError) as error:
            if not self.world.deaths.explain(dialogue.last):
                self.wrong(
                    f"refused request {case.name}", f"{type(error).__name__} {error}", case.send
                )
        self.hang_up()
        time.sleep(self.random.random() * 0.01)

    def _compare(self, dialogue: Dialogue, case: Case) -> None:
        for status in (status for status in case.statuses if status >= 200):
            dialogue.received = bytearray()
            response = dialogue.response()
            if response.status != status:
                raise Wrong(f"status {response.status} instead of {status}")
        if not dialogue.at_end():
            raise Wrong("the connection stays open")
        self.tally.count_right("refused request", Nature.REFUSED)


class Churner(Client):
    """A connection for each request, or for none."""

    def turn(self) -> None:
        """Connect, ask perhaps, and close."""
        self.connect()
        if self.random.random() < 0.8:
            question = self.make(questions.LAST, questions.FAILING)
            self.ask(questions.renamed(question, f"alone {question.kind}"))
        self.hang_up()
        time.sleep(self.random.random() * 0.01)


class Killer(Client):
    """Ends worker processes, one after another, but never the first one that it has met.

    That one lives as long as the soak: what a process keeps by mistake adds up in it.
    """

    def __init__(self, world: World, name: str, seed: int, interval: float) -> None:
        super().__init__(world, name, seed)
        self.interval = interval
        self.spared: int | None = None
        self.killed = 0
        self._next = 0.0

    def turn(self) -> None:
        """Look for a worker that may die, and kill it when its time has come."""
        time.sleep(0.05)
        dialogue = self.connect()
        if not self.ask(questions.plain("small")(self.token(), self.random)):
            return
        process = dialogue.process
        if self.spared is None:
            self.spared = process
            self._next = time.monotonic() + self.interval
        if process == self.spared or time.monotonic() < self._next:
            return
        question = self.make(questions.DYING)
        died = self.world.deaths.begin()
        try:
            self.ask(question)
        finally:
            died()
        self.killed += 1
        self._next = time.monotonic() + self.interval


#: How many there are of each kind.
COMPANY: dict[type[Client], int] = {
    Keeper: 8, Pipeliner: 3, Uploader: 2, SlowReader: 3, Leaver: 3, Dead: 21, Malformed: 1,
    Churner: 1,
}  # fmt: skip


def company(world: World, seed: int) -> list[Client]:
    """All of them, not started yet."""
    return [
        kind(world, f"{kind.__name__.lower()}{number}", seed)
        for kind, count in COMPANY.items()
        for number in range(count)
    ]
