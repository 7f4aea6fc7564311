"""The clients of a soak, well-behaved and adverse: threads that pause together on request."""

from __future__ import annotations

import contextlib
import socket
import time

from loadtests.clients.steady import known_requests
from loadtests.clients.steady.known_requests import Nature, Question, Wrong
from loadtests.soak.client import Client, World
from loadtests.soak.dead import Dead
from loadtests.soak.dialogue import Dialogue
from tests.testkit.cases.exchanges import Case, read_all
from tests.testkit.client import BadResponse, Closed

#: What stands behind a message that is refused must never be taken for a request.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

PIPELINED = 10


class Keeper(Client):
    """Well-behaved: one request after another on a connection that it keeps for a while."""

    def turn(self) -> None:
        """A request, or the same one several times, whose head is then remembered."""
        chance = self.random.random()
        if chance < 0.75:
            question = self.make(known_requests.SOUND)
        elif chance < 0.95:
            question = self.make(known_requests.FAILING)
        elif chance < 0.99:
            question = self.make(known_requests.CUT)
        else:
            question = self.make(known_requests.LAST)
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
        asked = [self.make(known_requests.SOUND) for _ in range(PIPELINED - 2)]
        asked.insert(self.random.randrange(len(asked)), self.make(known_requests.FAILING))
        ends = self.random.random() < 0.2
        tables = (known_requests.CUT, known_requests.LAST) if ends else (known_requests.SOUND,)
        asked.append(self.make(*tables))
        self.ask(
            *[known_requests.renamed(question, f"pipelined {question.kind}") for question in asked]
        )
        time.sleep(self.random.random() * 0.01)


class Uploader(Client):
    """Sends large bodies."""

    def turn(self) -> None:
        """One of them."""
        self.ask(self.make(known_requests.UPLOADS))
        time.sleep(self.random.random() * 0.3)


class SlowReader(Client):
    """Takes a large answer in small portions, with a pause before each."""

    def turn(self) -> None:
        """One of them."""
        dialogue = self.connect()
        dialogue.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        dialogue.pause = self.random.choice((0.001, 0.005))
        dialogue.portion = self.random.choice((20_000, 60_000))
        question = known_requests.renamed(self.make(known_requests.DOWNLOADS), "slow reader")
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
                request = self.make(known_requests.SOUND).request
                end = request.index(b"\r\n\r\n")
                dialogue.say(request[: self.random.randrange(end)])
            elif where == "body":
                question = self.make(known_requests.UPLOADS)
                dialogue.say(question.request[: self.random.randrange(200, len(question.request))])
            else:
                question = (
                    known_requests.endless(self.token())
                    if where == "endless answer"
                    else self.make(known_requests.LONG)
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
            known_requests.renamed(self.make(known_requests.SOUND), "half closed")
            for _ in range(self.random.randrange(1, 4))
        ]
        dialogue.say(b"".join(question.request for question in asked))
        with contextlib.suppress(OSError):
            dialogue.socket.shutdown(socket.SHUT_WR)
        if self.hear(*asked) and not dialogue.at_end():
            self.wrong("half closed", "the connection stays open")
        self.hang_up()


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
            question = self.make(known_requests.LAST, known_requests.FAILING)
            self.ask(known_requests.renamed(question, f"alone {question.kind}"))
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
        if not self.ask(known_requests.plain("small")(self.token(), self.random)):
            return
        process = dialogue.process
        if self.spared is None:
            self.spared = process
            self._next = time.monotonic() + self.interval
        if process == self.spared or time.monotonic() < self._next:
            return
        question = self.make(known_requests.DYING)
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
