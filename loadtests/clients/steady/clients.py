"""Clients of all kinds that send requests all the time, until they are told to end: a program.

`python -m loadtests.clients.steady.clients HOST PORT EVERY MIX PROTOCOL`.

It says `ready` when it has begun, and answers each line on its standard input with what has
happened so far, as JSON: `state` only tells it, `stopping` says that the server will stop, after
which nobody minds to be refused, and `end` lets all finish what they have begun. It ends with its
input. After EVERY so many requests one that hangs is made, by a client of that kind; MIX are the
numbers of clients by kind, as JSON. PROTOCOL is `http/1.1`, or HTTP/2 as `h2` (over TLS) or `h2c`;
what would be pipelined is then on streams of its own.

What a request must not meet with stands in `connection.KINDS`. A client that sees its idle
connection ended, or is told `Connection: close`, connects anew, and nothing is lost; so do requests
that were pipelined behind one whose answer closed the connection.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from loadtests.apps.content import content
from loadtests.clients.client_process import answer_lines
from loadtests.clients.steady import known_requests
from loadtests.clients.steady.connection import SILENCE, Fault, Line, NotProcessed
from loadtests.clients.steady.http2_line import Http2Line
from loadtests.clients.steady.known_requests import Maker, Question, get
from loadtests.clients.steady.tally import Tally
from loadtests.measure.machine import allow_files

SOON = 0.1
"""Pause after a fault, so that a server that has gone is not run down."""


@dataclass
class World:
    """State that all clients share."""

    port: int
    every: int
    host: str = "127.0.0.1"
    protocol: str = "http/1.1"
    tally: Tally = field(default_factory=Tally)
    over: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)

    def connect(self) -> Line:
        """A new connection. Raises Fault."""
        if self.protocol == "http/1.1":
            return Line(self.port, self.host)
        return Http2Line(self.port, self.host, tls=self.protocol == "h2")


class Refused(Exception):
    """The server has stopped, as was announced."""


def _sleeping(token: str, random: Random) -> Question:
    return get(token, f"sleeps?seconds={random.uniform(0.05, 0.4):.3f}", content(token, 100))


def _trickling(token: str, random: Random) -> Question:
    return get(token, "trickles?seconds=0.2", content(token, known_requests.PIECED))


@dataclass(frozen=True)
class Kind:
    """What clients of a kind do: they ask for one of `makers` after the other.

    `pause` is the longest think time, and `distance` the longest time that a request is on its way:
    a client far away cannot know that its connection is being closed just then. So many requests
    are made `at_once`; `halves` is the share of those that are sent in two parts, and `leaves` of
    those behind which the connection is closed. `early` ones connect before the load begins.
    """

    pause: float
    makers: Sequence[Maker] = (known_requests.plain("small"),)
    distance: float = 0.0
    at_once: int = 1
    halves: float = 0.0
    leaves: float = 0.0
    early: bool = False


SMALL_AND_LARGE = [
    known_requests.post("posted", 10, 2_000, chunked=False),
    known_requests.post("posted", 2_000, 300 << 10, chunked=False),
]
KINDS = {
    # Request after request on a connection that it keeps, from afar and with time to think.
    "thinking": Kind(0.3, distance=0.02),
    # The same with hardly any pause; now and then on a new connection.
    "busy": Kind(0.03, leaves=0.02),
    # Busy from the first moment on one connection, which was opened together with all others.
    "keeping": Kind(0.01, early=True),
    # A connection for each request: `Connection: close`, or HTTP/1.0.
    "once": Kind(0.06, [known_requests.last, known_requests.old], leaves=1.0),
    # Bodies small and large, from afar, whose digest must come back; some in two parts.
    "posting": Kind(0.15, SMALL_AND_LARGE, distance=0.02, halves=0.3),
    # Answers that take their time.
    "patient": Kind(0.5, [_sleeping, _trickling]),
    # Three requests in one write.
    "pipelining": Kind(0.2, at_once=3),
    # What never comes, whenever so many requests were answered.
    "hanging": Kind(0.01),
}


class Client:
    """One thread with one connection."""

    def __init__(self, world: World, kind: str, number: int, seed: int) -> None:
        name = f"{kind}{number}"
        self.world = world
        self.kind = KINDS[kind]
        self.random = Random(f"{name} {seed}")
        self.line: Line | None = None
        self.opened = 0.0
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._count = 0

    def turn(self) -> None:
        """Ask once. Raises Fault."""
        kind = self.kind
        self.ask([self.make(self.random.choice(kind.makers)) for _ in range(kind.at_once)])
        if self.random.random() < kind.leaves:
            self.hang_up()

    def make(self, maker: Maker) -> Question:
        """A question with a token that nobody else has."""
        self._count += 1
        return maker(f"{os.getpid()}-{self.thread.name}-{self._count}", self.random)

    def _run(self) -> None:
        while not self.world.over.wait(self.random.random() * self.kind.pause):
            try:
                self.turn()
            except Refused:
                return
            except Fault as fault:
                self.world.tally.lost(fault, self.thread.name, self.line, self.opened)
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
            self.line = self.world.connect()
        except Fault as fault:
            if fault.kind == "refused" and self.world.stopping.is_set():
                raise Refused from None
            raise
        return self.line

    def ask(self, asked: list[Question]) -> None:
        """Ask these at once, as often as it takes until each has its answer."""
        quick = [question.kind for question in asked] == ["small"]
        halves = self.random.random() < self.kind.halves
        while asked:
            line = self.connected()
            if line.answers:
                time.sleep(self.random.random() * self.kind.distance)
            began = time.monotonic()
            whole = b"".join(question.request for question in asked)
            if halves:
                half = len(whole) - len(whole) // 3
                line.say(whole[:half])
                time.sleep(self.random.uniform(0.02, 0.2))
                whole = whole[half:]
            line.say(whole)
            again: list[Question] = []
            while asked:
                try:
                    line.answer(asked[0])
                except NotProcessed:
                    self.world.tally.count("not processed, and sent again")
                    again.append(asked.pop(0))
                    continue
                except Fault as fault:
                    fault.requests = len(asked)
                    fault.began = began
                    fault.asked = asked[0].request.partition(b"\r\n")[0].decode("ascii")
                    raise
                self.world.tally.answered(line, time.monotonic() - began, quick=quick)
                del asked[0]
                if not line.goes_on:
                    self.hang_up()
                    break
            if asked:
                # RFC 9112 section 9.3.2: what is behind an answer that closes was not looked at.
                self.world.tally.count("pipelined behind an answer that closed the connection")
            asked += again


class Hanging(Client):
    """Waits until so many requests were answered, and then asks for what never comes."""

    _asked = 0

    def turn(self) -> None:
        """Perhaps ask. What becomes of it is counted apart: it must end, and not by an answer."""
        tally = self.world.tally
        if tally.requests < (self._asked + 1) * self.world.every:
            return
        self._asked += 1
        path = "spins" if self._asked % 2 else "hangs"
        question = self.make(lambda token, _: get(token, path, content(token, 100)))
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


def begin(world: World, mix: Mapping[str, int], seed: int) -> list[Client]:
    """Start so many clients of each kind."""
    clients = [
        (Hanging if kind == "hanging" else Client)(world, kind, number, seed)
        for kind, count in mix.items()
        for number in range(count)
    ]
    for client in clients:
        if client.kind.early:
            try:
                client.connected()
            except Fault as fault:
                world.tally.lost(fault, client.thread.name, None, client.opened)
    for client in clients:
        client.thread.start()
    return clients


def main(host: str, port: str, every: str, mix: str, protocol: str) -> None:
    """The command line; only the lab uses it."""
    kinds = json.loads(mix)
    allow_files(sum(kinds.values()) + 100)
    world = World(int(port), int(every), host, protocol)
    clients = begin(world, kinds, Random().randrange(1 << 32))

    def answer(word: str) -> object:
        if word == "stopping":
            world.stopping.set()
        elif word == "end":
            world.over.set()
            deadline = time.monotonic() + 2 * SILENCE
            for client in clients:
                client.thread.join(max(0.0, deadline - time.monotonic()))
        return world.tally.told(faults=word == "end")

    answer_lines(answer)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
