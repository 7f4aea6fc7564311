"""A client of HTTP/2 that sends an attack in large writes, and reads what comes meanwhile.

As a process, `python -m loadtests.clients.http2_attacker PORT`, it answers each line of JSON:

- `{"attack": NAME, "seconds": S}` repeats an attack on one connection after the other.
- `{"hold": NAME, "count": N}` makes connections that stop in time, and keeps them until the next
  line.
- `{"requests": S}` sends requests of HTTP/1.1 without waiting.
"""

from __future__ import annotations

import functools
import json
import socket
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from loadtests.clients.http2_attacks import ATTACKS, BLOCK_BYTES, BLOCK_FRAMES, Attack
from loadtests.clients.http2_connection import Http2Connection
from loadtests.clients.http2_frames import HEAD, request
from loadtests.measure.waiting import HANG

AT_ONCE = 100
"""Steps at once of an attack whose client waits for answers."""
_CHECKED = 2_000_001
"""The stream of a request that shows whether the connection lasts."""


@functools.lru_cache(1_000)
def _steps(attack: Attack, first: int, count: int) -> bytes:
    """The bytes of some steps; each connection begins with the same."""
    return b"".join(map(attack.unit, range(first, first + count)))


class Attacker(Http2Connection):
    """A connection that attacks."""

    def open(self, attack: Attack) -> None:
        """Sends what stands before the steps."""
        self.exchange(attack.opening)

    def take(self, attack: Attack, first: int, count: int) -> None:
        """Takes steps of an attack, until the server ends the connection."""
        at_once = AT_ONCE if attack.waits else count
        for start in range(first, first + count, at_once):
            some = min(at_once, first + count - start)
            self.finish(_steps(attack, start, some), some if attack.waits else 0)
            if self.closed:
                return

    def is_served(self) -> bool:
        """Whether a request is answered on this connection."""
        self.exchange(request(_CHECKED, HEAD), lambda: _CHECKED in self.over)
        return _CHECKED in self.over and self.error is None

    def until_closed(self) -> None:
        """Waits until the server closes the connection."""
        self.exchange(b"", lambda: False)


@dataclass
class Sent:
    """What an attack came to."""

    octets: int = 0
    steps: int = 0
    connections: int = 0


def repeat(port: int, attack: Attack, seconds: float) -> Sent:
    """Repeats an attack, on a new connection whenever the server has ended one."""
    done, end = Sent(), time.monotonic() + seconds
    while time.monotonic() < end:
        with Attacker(port) as client:
            client.open(attack)
            first, count = 0, 500 if attack.borne > 500 else 100
            while not client.closed and client.error is None and time.monotonic() < end:
                client.take(attack, first, count)
                first += count
            if client.error is None:
                # What is sent counts when it is handled.
                client.flush()
            done.octets += client.sent
            done.steps += first
            done.connections += 1
    return done


def hold(port: int, attack: Attack, count: int, held: ExitStack) -> Sent:
    """Makes connections that stop when nothing more is borne."""
    done = Sent(connections=count)
    for _ in range(count):
        client = held.enter_context(Attacker(port))
        client.open(attack)
        client.take(attack, 0, attack.borne)
        if attack.limit not in (BLOCK_BYTES, BLOCK_FRAMES):
            client.flush()
        done.octets += client.sent
        done.steps += attack.borne
    with Attacker(port) as last:
        # No frame may stand within a header block, so another connection waits.
        last.flush()
    return done


def ask(port: int, seconds: float) -> Sent:
    """Sends requests of HTTP/1.1 in large writes; answers are only counted."""
    line, answer = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\n"
    block, received = 200 * line, b""
    done, end, answered = Sent(connections=1), time.monotonic() + seconds, 0
    with socket.create_connection(("127.0.0.1", port), HANG) as connection:
        while time.monotonic() < end:
            connection.sendall(block)
            done.steps += 200
            while answered < done.steps - 200:
                received = received[-len(answer) + 1 :] + connection.recv(1 << 18)
                answered += received.count(answer)
    done.octets = done.steps * len(line)
    return done


def main() -> None:
    """Answers the lines of the lab."""
    port, known = int(sys.argv[1]), {attack.name: attack for attack in ATTACKS}
    print("ready", flush=True)
    with ExitStack() as held:
        for line in sys.stdin:
            order = json.loads(line)
            held.close()
            if "attack" in order:
                done = repeat(port, known[order["attack"]], order["seconds"])
            elif "hold" in order:
                done = hold(port, known[order["hold"]], order["count"], held)
            else:
                done = ask(port, order["requests"])
            print(json.dumps(asdict(done)), flush=True)


if __name__ == "__main__":
    main()
