"""Clients that ask again soon after each answer, until they are told to end: a program.

`python -m loadtests.clients.steady.polling PORT MIX`.

It says `ready` when it has begun, and answers each line on its standard input: `await MAIN SUB
SECONDS` with the time of the first answer that had these versions (or `null` if none came within so
many seconds), and `end` with all that was asked, as JSON, when what is in flight has been answered.
It ends with its input. MIX are the numbers of clients by kind, as JSON.

Each client asks again PAUSE after its last answer: often enough that some request is always on its
way or waiting when a file is saved, so seldom that all of them together leave the server nine
tenths of its core.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from random import Random

from loadtests.clients.client_process import answer_lines
from loadtests.clients.connection import request_bytes
from loadtests.clients.steady.connection import Fault, Line
from loadtests.clients.steady.known_requests import Question
from loadtests.clients.strict import Response
from loadtests.measure.waiting import patience

PATIENCE = patience(10.0)
"""Seconds after which a client gives up."""
PAUSE = 0.005
BODY = b"x" * 40_000

_ANSWER = re.compile(rb"main ([0-9]{6}) sub ([0-9]{6}) read ([0-9]+)\n")

Versions = tuple[str, str]
Record = tuple[str, float, float, str, str, str]
"""Client, when it began and ended, the kind of fault and its details or the versions."""
Turn = Callable[["Client"], object]


class Asking(Line):
    """A connection whose answers tell versions."""

    def __init__(self, port: int) -> None:
        super().__init__(port, timeout=PATIENCE)
        self._versions: Versions = ("", "")

    def _check(self, response: Response, question: Question) -> None:
        match = _ANSWER.fullmatch(response.body)
        if response.status != 200 or match is None or int(match[3]) != len(question.body):
            raise Fault("wrong", f"status {response.status}: {response.body[:200]!r}")
        self._versions = (match[1].decode("ascii"), match[2].decode("ascii"))

    def told(self, body: bytes = b"") -> Versions:
        """The versions that an answer tells; this was the body that was sent. Raises Fault."""
        self.answer(Question("", "", b"", body))
        return self._versions


class World:
    """State that all clients share: the answers, and the threads that wait for a version."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.over = threading.Event()
        self.asked: list[Record] = []
        self.counts: Counter[str] = Counter()
        self._first: dict[Versions, float] = {}
        self._news = threading.Condition()

    def note(self, client: str, began: float, fault: str, what: str, more: str = "") -> None:
        """A request was answered with two versions, or there was a fault, as `what` it showed."""
        now = time.monotonic()
        with self._news:
            self.asked.append((client, began, now, fault, what, more))
            if not fault and self._first.setdefault((what, more), now) == now:
                self._news.notify_all()

    def count(self, what: str) -> None:
        """Something happened: a page was loaded or not, an idle connection was ended."""
        with self._news:
            self.counts[what] += 1

    def wait_for(self, main: str, sub: str, seconds: str) -> float | None:
        """When these versions were first told."""
        with self._news:
            self._news.wait_for(lambda: (main, sub) in self._first, float(seconds))
            return self._first.get((main, sub))


class Client:
    """A thread that takes `turn` after turn, one at least, with this pause, until it is over."""

    def __init__(self, world: World, name: str, pause: float, turn: Turn) -> None:
        self.world = world
        self.random = Random(name)
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._pause = pause
        self._turn = turn
        self._lines: dict[int, Asking] = {}

    def noted(self, ask: Callable[[], Versions], began: float = 0.0) -> bool:
        """Notes what came of a request; whether it was answered."""
        began = began or time.monotonic()
        try:
            versions = ask()
        except Fault as fault:
            self.world.note(self.thread.name, began, fault.kind, fault.what)
            return False
        self.world.note(self.thread.name, began, "", *versions)
        return True

    def once(self, *parts: bytes, body: bytes = b"") -> bool:
        """Ask on a connection of its own, in parts with pauses in between."""

        def ask() -> Versions:
            with Asking(self.world.port) as line:
                for number, part in enumerate(parts):
                    if number:
                        time.sleep(self.random.uniform(0, 0.03))
                    line.say(part)
                return line.told(body)

        return self.noted(ask)

    def kept(self, number: int) -> Asking:
        """The kept connection of this number if it lives, or a new one. Raises Fault."""
        line = self._lines.pop(number, None)
        if line is not None and (how := line.ended() if line.goes_on else "closed"):
            if line.goes_on:
                self.world.count(f"idle connection {how}")
            line.close()
            line = None
        self._lines[number] = line or Asking(self.world.port)
        return self._lines[number]

    def hang_up(self) -> None:
        for line in self._lines.values():
            line.close()
        self._lines.clear()

    def load(self, *targets: str) -> bool:
        """Ask for all on kept connections before the first answer is read; whether all came."""
        sent: list[tuple[float, Asking]] = []
        for number, target in enumerate(targets):
            began = time.monotonic()
            try:
                line = self.kept(number)
                line.say(request_bytes(target))
            except Fault as fault:
                self.world.note(self.thread.name, began, fault.kind, fault.what)
                return False
            sent.append((began, line))
        # All are read, whatever becomes of the first.
        answered = [self.noted(line.told, began) for began, line in sent]
        return all(answered)

    def _run(self) -> None:
        self._turn(self)
        while not self.world.over.wait(self._pause):
            self._turn(self)
        self.hang_up()


def posting(client: Client) -> None:
    """A body in two parts, so that a file is saved in between."""
    sent = request_bytes("/", body=BODY)
    half = len(sent) // 2
    client.once(sent[:half], sent[half:], body=BODY)


def kept(client: Client) -> None:
    """One connection for all, as long as the server keeps it; looks at it before it asks."""
    if not client.load("/"):
        client.hang_up()


def page(client: Client) -> None:
    """A page as a browser loads it: then its parts on three connections at once."""
    parts = [f"/?part={number}" for number in range(6)]
    whole = client.load("/") and client.load(*parts[:3]) and client.load(*parts[3:])
    client.world.count("pages" if whole else "pages lost")
    client.hang_up()


CLIENTS: dict[str, tuple[float, Turn]] = {
    # A connection for each request.
    "once": (PAUSE, lambda client: client.once(request_bytes("/"))),
    "kept": (PAUSE, kept),
    # What takes a while, so that it is in flight when a file is saved.
    "slow": (PAUSE, lambda client: client.once(request_bytes("/slow"))),
    "posting": (0.02, posting),
    "page": (0.02, page),
}
"""Pause and turn of each kind."""


def main(port: str, mix: str) -> None:
    world = World(int(port))
    clients = [
        Client(world, f"{kind} {number + 1}", *CLIENTS[kind])
        for kind, count in json.loads(mix).items()
        for number in range(count)
    ]
    for client in clients:
        client.thread.start()

    def answer(line: str) -> object:
        word, *versions = line.split()
        if word == "await":
            return world.wait_for(*versions)
        world.over.set()
        for client in clients:
            client.thread.join(2 * PATIENCE)
        return {"asked": world.asked, "counts": world.counts}

    answer_lines(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
