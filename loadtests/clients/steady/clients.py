"""Steady load: `python -m loadtests.clients.steady.clients PORT KIND=N ...`.

It says `ready` when it has begun, and answers each line on its standard input with what has
happened so far, as JSON: `state` only tells it, `stopping` says that the server will stop, after
which nobody minds to be refused, and `end` lets all finish what they have begun. It ends with its
input.

What a request must not meet with stands in `line.KINDS`. A client that sees its idle connection
ended, or is told `Connection: close`, connects anew, and nothing is lost; so do requests that were
pipelined behind one whose answer closed the connection.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from random import Random

from loadtests.apps.content import content, pieces
from loadtests.apps.mixed import PIECES
from loadtests.clients.client_process import answer_lines, counts
from loadtests.clients.steady import known_requests
from loadtests.clients.steady.connection import SILENCE, Fault, Line
from loadtests.clients.steady.known_requests import Question
from loadtests.clients.steady.tally import Tally
from loadtests.measure.machine import allow_files

PIPELINED = 3
SOON = 0.1
"""Pause after a fault, so that a server that has gone is not run down."""


class World:
    """State that all clients share."""

    def __init__(self, port: int, every: int, host: str = "127.0.0.1") -> None:
        self.port = port
        self.host = host
        self.every = every
        self.tally = Tally()
        self.over = threading.Event()
        self.stopping = threading.Event()


class Refused(Exception):
    """The server has stopped, as was announced."""


class Client:
    """One thread with one connection; kinds differ in `turn`.

    `pause` is the longest think time, and `distance` the longest time that a request is on its way:
    a client far away cannot know that its connection is being closed just then.
    """

    pause = 0.0
    distance = 0.0

    def __init__(self, world: World, name: str, seed: int) -> None:
        self.world = world
        self.random = Random(f"{name} {seed}")
        self.line: Line | None = None
        self.opened = 0.0
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._name = name
        self._count = 0

    def turn(self) -> None:
        """Ask once. Raises Fault."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Do what has to be done before the load begins."""

    def make(self, maker: known_requests.Maker) -> Question:
        """A question with a token that nobody else has."""
        self._count += 1
        return maker(f"{os.getpid()}-{self._name}-{self._count}", self.random)

    def _run(self) -> None:
        while not self.world.over.wait(self.random.random() * self.pause):
            try:
                self.turn()
            except Refused:
                return
            except Fault as fault:
                self.world.tally.failed(fault, self._name, self.line, self.opened)
                self.hang_up()
                time.sleep(SOON)
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connection, if there is one."""
        if self.line is not None:
            self.line.close()
            self.line = None

    def connected(self) -> Line:
        """The present connection if it lives, or a new one."""
        if self.line is not None:
            how = self.line.ended()
            if not how:
                return self.line
            self.world.tally.count(f"idle connection {how}")
            self.hang_up()
        self.opened = time.monotonic()
        try:
            self.line = Line(self.world.port, self.world.host)
        except Fault as fault:
            if fault.kind == "refused" and self.world.stopping.is_set():
                raise Refused from None
            raise
        return self.line

    def ask(self, *asked: Question, halves: bool = False, quick: bool = False) -> None:
        """Ask these at once, as often as it takes until each has its answer."""
        left = list(asked)
        while left:
            line = self.connected()
            if self.distance and line.answers:
                time.sleep(self.random.random() * self.distance)
            began = time.monotonic()
            whole = b"".join(question.request for question in left)
            if halves:
                half = len(whole) - len(whole) // 3
                line.say(whole[:half])
                time.sleep(self.random.uniform(0.02, 0.2))
                whole = whole[half:]
            line.say(whole)
            while left:
                try:
                    goes_on = line.answer(left[0])
                except Fault as fault:
                    fault.requests = len(left)
                    fault.began = began
                    fault.asked = left[0].request.partition(b"\r\n")[0].decode("ascii")
                    raise
                self.world.tally.answered(line, time.monotonic() - began, quick=quick)
                del left[0]
                if not goes_on:
                    self.hang_up()
                    break
            if left:
                # RFC 9112 section 9.3.2: what is behind an answer that closes was not looked at.
                self.world.tally.count("pipelined behind an answer that closed the connection")


SMALL = known_requests.plain("small")


class Thinking(Client):
    """Request after request on a connection that it keeps, from afar and with time to think."""

    pause = 0.3
    distance = 0.02

    def turn(self) -> None:
        """One of them."""
        self.ask(self.make(SMALL), quick=True)


class Busy(Client):
    """The same with hardly any pause; now and then on a new connection."""

    pause = 0.03

    def turn(self) -> None:
        """One of them."""
        self.ask(self.make(SMALL), quick=True)
        if self.random.random() < 0.02:
            self.hang_up()


class Keeping(Client):
    """Busy from the first moment on one connection, which was opened together with all others."""

    pause = 0.01

    def prepare(self) -> None:
        """Connect."""
        self.connected()

    def turn(self) -> None:
        """One request."""
        self.ask(self.make(SMALL), quick=True)


class Once(Client):
    """A connection for each request: `Connection: close`, or HTTP/1.0."""

    pause = 0.06

    def turn(self) -> None:
        """One of them."""
        self.ask(self.make(self.random.choice((known_requests.last, known_requests.old))))
        self.hang_up()


class Posting(Client):
    """Bodies small and large, from afar, whose digest must come back; some in two parts."""

    pause = 0.15
    distance = 0.02
    sizes = (
        known_requests.post("posted", 10, 2_000, chunked=False),
        known_requests.post("posted", 2_000, 300 << 10, chunked=False),
    )

    def turn(self) -> None:
        """One of them."""
        self.ask(self.make(self.random.choice(self.sizes)), halves=self.random.random() < 0.3)


def _sleeping(token: str, random: Random) -> Question:
    request = known_requests.head(token, f"sleeps?seconds={random.uniform(0.05, 0.4):.3f}")
    return Question("sleeps", token, request, content(token, 100))


def _trickling(token: str, random: Random) -> Question:
    body = b"".join(pieces(token, PIECES))
    return Question("trickles", token, known_requests.head(token, "trickles?seconds=0.2"), body)


class Patient(Client):
    """Asks for answers that take their time."""

    pause = 0.5

    def turn(self) -> None:
        """One of them."""
        self.ask(self.make(self.random.choice((_sleeping, _trickling))))


class Pipelining(Client):
    """Three requests in one write."""

    pause = 0.2

    def turn(self) -> None:
        """One such write."""
        self.ask(*(self.make(SMALL) for _ in range(PIPELINED)))


class Hanging(Client):
    """Waits until so many requests were answered, and then asks for what never comes."""

    pause = 0.01

    def prepare(self) -> None:
        """Nothing is due yet."""
        self._due = self.world.every

    def turn(self) -> None:
        """Perhaps ask. What becomes of it is counted apart: it must end, and not by an answer."""
        if self.world.tally.requests < self._due:
            return
        self._due += self.world.every
        path = "hangs" if (self._due // self.world.every) % 2 else "spins"
        question = self.make(
            lambda token, _: Question(
                path, token, known_requests.head(token, path), content(token, 100)
            )
        )
        tally = self.world.tally
        line = self.connected()
        line.say(question.request)
        try:
            line.answer(question)
        except Fault as fault:
            outcome = fault.what[:3] if fault.kind == "5xx" else fault.kind
        else:
            outcome = "answered"
        with tally.lock:
            tally.hung[f"{path} {outcome}"] += 1
        self.hang_up()


KINDS: dict[str, Callable[[World, str, int], Client]] = {
    kind.__name__.lower(): kind
    for kind in (Thinking, Busy, Keeping, Once, Posting, Patient, Pipelining, Hanging)
}


def begin(world: World, mix: Mapping[str, int], seed: int) -> list[Client]:
    """Start so many clients of each kind."""
    clients = [
        KINDS[kind](world, f"{kind}{number}", seed)
        for kind, count in mix.items()
        for number in range(count)
    ]
    for client in clients:
        try:
            client.prepare()
        except Fault as fault:
            world.tally.failed(fault, client.thread.name, None, client.opened)
    for client in clients:
        client.thread.start()
    return clients


def main() -> None:
    """The command line; only the lab uses it."""
    parser = argparse.ArgumentParser(
        prog="python -m loadtests.clients.steady.clients", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("port", type=int)
    parser.add_argument("clients", nargs="+", metavar="KIND=N", help=f"of: {' '.join(KINDS)}")
    parser.add_argument("--every", type=int, default=1_000, help="requests to one that hangs")
    parser.add_argument("--host", default="127.0.0.1", help="its address")
    options = parser.parse_args()
    mix = counts(options.clients)
    allow_files(sum(mix.values()) + 100)
    world = World(options.port, options.every, options.host)
    clients = begin(world, mix, Random().randrange(1 << 32))

    def answer(line: str) -> object:
        word = line.strip()
        if word == "stopping":
            world.stopping.set()
        elif word == "end":
            world.over.set()
            deadline = time.monotonic() + 2 * SILENCE
            for client in clients:
                client.thread.join(max(0.0, deadline - time.monotonic()))
        return world.tally.state(faults=word == "end")

    answer_lines(answer)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
