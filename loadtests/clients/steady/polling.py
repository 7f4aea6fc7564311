"""Polling clients: `python -m loadtests.clients.steady.polling PORT KIND=N ...`.

It says `ready` when it has begun, and answers each line on its standard input: `await MAIN SUB
SECONDS` with the time of the first answer that had these versions (or `null` if none came within so
many seconds), and `end` with all that was asked, as JSON, when what is in hand has been answered.
It ends with its input.

Each client asks again PAUSE after its last answer: often enough that some request is always on its
way or waiting when a file is saved, so seldom that all of them together leave the server nine
tenths of its core.
"""

from __future__ import annotations

import argparse
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from loadtests.clients.client_process import answer_lines, counts
from loadtests.clients.steady.connection import Fault, Line
from loadtests.clients.steady.known_requests import Question
from tests.testkit.client import Response

PATIENCE = 10.0
"""Seconds after which a client gives up."""
PAUSE = 0.005
BODY = b"x" * 40_000

_ANSWER = re.compile(rb"main ([0-9]{6}) sub ([0-9]{6}) read ([0-9]+)\n")

Versions = tuple[str, str]
Record = tuple[str, float, float, str, str, str]
"""Client, when it began and ended, the kind of fault and its details or the versions."""


class Asking(Line):
    """A connection whose answers tell versions."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.socket.settimeout(PATIENCE)
        self.goes_on = True
        self._versions: Versions = ("", "")
        self._read_by_it = 0

    def _check(self, response: Response, question: Question) -> None:
        if response.status >= 500:
            raise Fault("5xx", f"{response.status} {response.reason}: {response.body[:200]!r}")
        match = _ANSWER.fullmatch(response.body)
        if response.status != 200 or match is None or int(match[3]) != self._read_by_it:
            raise Fault("wrong", f"status {response.status}: {response.body[:200]!r}")
        self._versions = (match[1].decode("ascii"), match[2].decode("ascii"))

    def told(self, body: bytes = b"") -> Versions:
        """The versions that an answer tells; this was the body that was sent. Raises Fault."""
        self._read_by_it = len(body)
        self.goes_on = self.answer(QUESTION)
        return self._versions


QUESTION = Question("", "", b"")


def request(target: str, body: bytes = b"") -> bytes:
    """The bytes of a request."""
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    head = f"{'POST' if body else 'GET'} {target} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n"
    return head.encode("ascii") + body


class World:
    """State that all clients share: the answers, and the threads that wait for a version."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.over = threading.Event()
        self._asked: list[Record] = []
        self._counts: Counter[str] = Counter()
        self._first: dict[Versions, float] = {}
        self._news = threading.Condition()

    def answered(self, client: str, began: float, versions: Versions) -> None:
        """A request was answered."""
        now = time.monotonic()
        with self._news:
            self._asked.append((client, began, now, "", *versions))
            if versions not in self._first:
                self._first[versions] = now
                self._news.notify_all()

    def failed(self, client: str, began: float, fault: Fault) -> None:
        """A request was not answered as it must be."""
        with self._news:
            self._asked.append((client, began, time.monotonic(), fault.kind, fault.what, ""))

    def ended(self, how: str) -> None:
        """A kept connection was ended while it was idle, which costs nobody anything."""
        with self._news:
            self._counts[f"idle connection {how}"] += 1

    def loaded(self, *, whole: bool) -> None:
        """A page was loaded, with or without all that belongs to it."""
        with self._news:
            self._counts["pages" if whole else "pages lost"] += 1

    def wait_for(self, versions: Versions, seconds: float) -> float | None:
        """When these versions were first told."""
        with self._news:
            self._news.wait_for(lambda: versions in self._first, seconds)
            return self._first.get(versions)

    def told(self) -> dict[str, Any]:
        """All of it."""
        with self._news:
            return {"asked": self._asked, "counts": self._counts}


class Client:
    """A thread that asks until it is over; kinds differ in `turn`."""

    pause = PAUSE

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.random = Random(name)
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._lines: dict[int, Asking] = {}
        self._name = name

    def turn(self) -> None:
        """Ask once, or for a page."""
        raise NotImplementedError

    def noted(self, ask: Callable[[], Versions], began: float = 0.0) -> bool:
        """Notes what came of a request; whether it was answered."""
        began = began or time.monotonic()
        try:
            versions = ask()
        except Fault as fault:
            self.world.failed(self._name, began, fault)
            return False
        self.world.answered(self._name, began, versions)
        return True

    def once(self, *parts: bytes, body: bytes = b"") -> Versions:
        """Ask on a connection of its own, in parts with pauses in between. Raises Fault."""
        line = Asking(self.world.port)
        with line:
            for number, part in enumerate(parts):
                if number:
                    time.sleep(self.random.uniform(0, 0.03))
                line.say(part)
            return line.told(body)

    def kept(self, number: int = 0) -> Asking:
        """The kept connection of this number if it lives, or a new one. Raises Fault."""
        line = self._lines.pop(number, None)
        if line is not None and (how := line.ended() if line.goes_on else "closed"):
            if line.goes_on:
                self.world.ended(how)
            line.close()
            line = None
        self._lines[number] = line or Asking(self.world.port)
        return self._lines[number]

    def hang_up(self) -> None:
        """Close what is kept."""
        for line in self._lines.values():
            line.close()
        self._lines.clear()

    def _run(self) -> None:
        while not self.world.over.wait(self.pause):
            self.turn()
        self.hang_up()


class Once(Client):
    """A connection for each request."""

    def turn(self) -> None:
        """A request on its connection."""
        self.noted(lambda: self.once(request("/")))


class Slow(Client):
    """Asks for what takes a while, so that it is in hand when a file is saved."""

    def turn(self) -> None:
        """A request that takes its time."""
        self.noted(lambda: self.once(request("/slow")))


class Posting(Client):
    """Sends a body in two parts, so that a file is saved in between."""

    pause = 0.02

    def turn(self) -> None:
        """A body on its connection."""
        sent = request("/", BODY)
        half = len(sent) // 2
        self.noted(lambda: self.once(sent[:half], sent[half:], body=BODY))


class Kept(Client):
    """One connection for all, as long as the server keeps it; looks at it before it asks."""

    def turn(self) -> None:
        """A request on the connection, or a new one."""

        def ask() -> Versions:
            line = self.kept()
            line.say(request("/"))
            return line.told()

        if not self.noted(ask):
            self.hang_up()


class Page(Client):
    """Loads a page as a browser does: the page, then its parts on three connections at once."""

    pause = 0.02

    def turn(self) -> None:
        """A page with its parts."""
        whole = self._load([["/"]]) and self._load(
            [[f"/?part={number}" for number in range(first, first + 3)] for first in (0, 3)]
        )
        self.world.loaded(whole=whole)
        self.hang_up()

    def _load(self, groups: list[list[str]]) -> bool:
        """Each group is sent before its first answer is read."""
        for targets in groups:
            sent: list[tuple[float, Asking]] = []
            for number, target in enumerate(targets):
                began = time.monotonic()
                try:
                    line = self.kept(number)
                    line.say(request(target))
                except Fault as fault:
                    self.world.failed(self._name, began, fault)
                    return False
                sent.append((began, line))
            # All are read, whatever becomes of the first.
            answered = [self.noted(line.told, began) for began, line in sent]
            if not all(answered):
                return False
        return True


CLIENTS = {kind.__name__.lower(): kind for kind in (Once, Kept, Slow, Posting, Page)}


def _answer(world: World, line: str, clients: Sequence[Client]) -> object:
    word, *rest = line.split()
    if word == "await":
        main, sub, seconds = rest
        return world.wait_for((main, sub), float(seconds))
    world.over.set()
    for client in clients:
        client.thread.join(2 * PATIENCE)
    return world.told()


def main(arguments: list[str] | None = None) -> None:
    """Asks until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m loadtests.clients.steady.polling")
    parser.add_argument("port", type=int)
    parser.add_argument("clients", nargs="+", metavar="KIND=N")
    options = parser.parse_args(arguments)
    world = World(options.port)
    clients = [
        CLIENTS[kind](world, f"{kind} {number + 1}")
        for kind, count in counts(options.clients).items()
        for number in range(count)
    ]
    for client in clients:
        client.thread.start()
    answer_lines(lambda line: _answer(world, line, clients))


if __name__ == "__main__":
    main()
