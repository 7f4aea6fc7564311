"""Behaviours of the clients of a soak test, well-behaved and adverse, and how many run of each."""

from __future__ import annotations

import contextlib
import functools
import socket
import time
from collections import Counter

from loadtests.clients.steady import known_requests as known
from loadtests.clients.steady.known_requests import Nature, Question, Wrong, renamed
from loadtests.measure.waiting import HANG
from loadtests.soak.client import DEADLINES, TURNOVER, Client, Dialogue
from loadtests.soak.refused import refused

#: What stands behind a message that is refused must never be taken for a request.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

PIPELINED = 10
DRIPS = b"x" * 1_000


def keeper(client: Client) -> None:
    """Well-behaved: one request after another on a connection that it keeps for a while."""
    tables = known.SOUND, known.FAILING, known.CUT, known.LAST
    (table,) = client.random.choices(tables, (75, 20, 4, 1))
    question = client.make(table)
    # The head of a request that comes several times is remembered.
    times = client.random.choice((1, 1, 1, 5, 20)) if question.kind == "small" else 1
    for _ in range(times):
        if not client.ask(question):
            return
    if client.random.random() < 0.02:
        client.hang_up()
    if client.random.random() < 0.1:
        client.pause(0.02)


def pipeliner(client: Client) -> None:
    """Ten requests in one write, the last of which may end the connection."""
    asked = [client.make(known.SOUND) for _ in range(PIPELINED - 2)]
    asked.insert(client.random.randrange(len(asked)), client.make(known.FAILING))
    ends = client.random.random() < 0.2
    asked.append(client.make(*((known.CUT, known.LAST) if ends else (known.SOUND,))))
    client.ask(*[renamed(one, f"pipelined {one.kind}") for one in asked])
    client.pause(0.01)


def uploader(client: Client) -> None:
    """Sends large bodies."""
    client.ask(client.make(known.UPLOADS))
    client.pause(0.3)


def slow_reader(client: Client) -> None:
    """Takes a large answer in small portions, with a pause before each."""
    dialogue = client.connect()
    dialogue.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    dialogue.pause = client.random.choice((0.001, 0.005))
    dialogue.portion = client.random.choice((20_000, 60_000))
    client.ask(renamed(client.make(known.DOWNLOADS), "slow reader"))
    client.hang_up()


def _look(client: Client, dialogue: Dialogue, question: Question) -> None:
    """Ask, and look at the beginning of the answer."""
    dialogue.say(question.request)
    size = client.random.choice((0, 1, 300, 100_000, 1_000_000))
    try:
        while len(dialogue.received) < size and dialogue.sip():
            pass
        question.check_part(bytes(dialogue.received))
        if len(dialogue.received) < size and not client.world.explains(dialogue.last):
            raise Wrong(f"the connection ended after {len(dialogue.received)} bytes")
    except (TimeoutError, Wrong) as error:
        what = f"{type(error).__name__} {error}"
        client.wrong(f"left: {question.kind}", what, question.request)


def _half_close(client: Client, dialogue: Dialogue) -> None:
    """A client that has said all it will say still listens."""
    count = client.random.randrange(1, 4)
    asked = [renamed(client.make(known.SOUND), "half closed") for _ in range(count)]
    dialogue.say(b"".join(question.request for question in asked))
    with contextlib.suppress(OSError):
        dialogue.socket.shutdown(socket.SHUT_WR)
    if client.hear(dialogue, *asked) and not dialogue.at_end():
        client.wrong("half closed", "the connection stays open")
    client.hang_up()


def leaver(client: Client) -> None:
    """Leaves in the middle of a head, a body or an answer, politely or not."""
    where = client.random.choice(("head", "body", "answer", "endless answer", "half close"))
    how = client.random.choice(("close", "reset"))
    dialogue = client.connect()
    if where == "half close":
        _half_close(client, dialogue)
        return
    client.world.count(("faults", f"left in the middle: {where}, {how}"))
    try:
        if where == "head":
            request = client.make(known.SOUND).request
            dialogue.say(request[: client.random.randrange(request.index(b"\r\n\r\n"))])
        elif where == "body":
            request = client.make(known.UPLOADS).request
            dialogue.say(request[: client.random.randrange(200, len(request))])
        elif where == "answer":
            _look(client, dialogue, client.make(known.LONG))
        else:
            _look(client, dialogue, known.endless(client.token()))
    finally:
        getattr(dialogue, how)()
        client.dialogue = None
    client.pause(0.05)


def _drip(client: Client, dialogue: Dialogue, data: bytes, pause: float) -> None:
    """Send bytes until the server answers."""
    dialogue.socket.settimeout(pause)
    try:
        for index in range(len(data)):
            dialogue.say(data[index : index + 1])
            try:
                dialogue.socket.recv(1, socket.MSG_PEEK)
                break
            except TimeoutError:
                if client.world.closing:
                    break
            except ConnectionResetError:
                break
    finally:
        dialogue.socket.settimeout(HANG)


def _ask_for_much(client: Client, dialogue: Dialogue, *, sips: bool) -> None:
    """A large answer of which nothing or little is read until the server has given up."""
    dialogue.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    question = known.much("generated", 8_000_000, 8_000_001)(client.token(), client.random)
    dialogue.say(question.request)
    dialogue.portion, dialogue.pause = 50, 0.1
    end = time.monotonic() + DEADLINES["write"] * (3 if sips else 2)
    while time.monotonic() < end and not client.world.closing:
        if not sips:
            time.sleep(dialogue.pause)
        elif not dialogue.sip():
            break
    if client.world.closing:
        return
    dialogue.portion, dialogue.pause = 65_536, 0
    while dialogue.sip():
        pass
    question.check_part(bytes(dialogue.received))
    if len(dialogue.received) > len(question.body):
        raise Wrong("the connection stayed open although nothing was read")


def dead(client: Client) -> None:
    """Connects and then does too little, or nothing: the server has to end it."""
    head = functools.partial(known.head, client.token())
    # What is sent at once, and what then, a byte now and then.
    unfinished = {
        "half head": (head("small")[: client.random.randrange(1, 60)], b""),
        "half body": (head("posted", "Content-Length: 9", method="POST") + b"half", b""),
        "drips head": (b"GET / HTTP/1.1\r\nX-Drip: ", DRIPS),
        "drips without end": (head("posted", "Content-Length: 100000", method="POST"), DRIPS),
    }
    others = "silent", "idle", "takes nothing", "sips", "drips body"
    way = client.random.choice((*unfinished, *others))
    dialogue = client.connect()
    client.world.count(("faults", f"dead: {way}"))
    with client.judging(dialogue, f"dead: {way}", b"", TURNOVER):
        if way in unfinished:
            begin, rest = unfinished[way]
            dialogue.say(begin)
            _drip(client, dialogue, rest, 0.2)
            dialogue.ends_with(408)
        elif way == "silent":
            dialogue.ends_with()
        elif way == "idle":
            if client.ask(known.plain("small")(client.token(), client.random)):
                dialogue.ends_with()
        elif way == "drips body":
            # Which becomes complete in time.
            question = known.post(way, 5, 6, chunked=False)(client.token(), client.random)
            begun = time.monotonic()
            dialogue.say(question.request[:-5])
            _drip(client, dialogue, question.request[-5:], 0.05)
            # A client that a busy machine has kept from sending in time is rightly refused.
            is_late = time.monotonic() - begun > DEADLINES["body"] / 2
            if not client.world.closing and not is_late:
                client.hear(dialogue, question)
        else:
            _ask_for_much(client, dialogue, sips=way == "sips")
    client.hang_up()


def malformed(client: Client) -> None:
    """Sends what must be refused, and behind it a request that must never run."""
    # A server of HTTP/2 understands the beginning of that.
    case = client.random.choice([one for one in refused() if not one.send.startswith(b"PRI ")])
    client.world.count(("faults", "refused request"))
    dialogue = client.connect()
    dialogue.say(case.send + SMUGGLED)
    with client.judging(dialogue, f"refused request {case.name}", case.send):
        dialogue.ends_with(*case.statuses)
        client.world.count(("right", "refused request"), ("natures", Nature.REFUSED.value))
    client.hang_up()
    client.pause(0.01)


def churner(client: Client) -> None:
    """A connection for each request, or for none."""
    client.connect()
    if client.random.random() < 0.8:
        question = client.make(known.LAST, known.FAILING)
        client.ask(renamed(question, f"alone {question.kind}"))
    client.hang_up()
    client.pause(0.01)


#: How many there are of each kind.
COMPANY = Counter({
    keeper: 8, pipeliner: 3, uploader: 2, slow_reader: 3, leaver: 3, dead: 21, malformed: 1,
    churner: 1,
})  # fmt: skip
