"""Calls a function in a child process, and returns its answer: JSON, with limits of time and size.

Code of a project may run in the child, so nothing that comes from it is trusted: what it writes is
only parsed, and whatever else it does, the wait for it has an end.
"""

from __future__ import annotations

import os
import time

# Not `json`, which takes memory that every process forked from this one would have.
from _json import make_scanner
from collections.abc import Callable
from select import POLLIN, poll

from poorhttp.process import fork, signals
from poorhttp.process.signals import signal

#: Bytes of an answer, at most, and of the number before it that tells how many follow. Variables of
#: an environment may be 2 MiB (execve(2)).
LONGEST = 1 << 22
SIZE = 4

#: Seconds between two looks whether the child has ended: a process that it has forked may keep its
#: end of the pipe open.
INTERVAL = 0.1


class _Context:
    """How JSON is read."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = parse_constant = int


class NoAnswer(Exception):
    """There is no answer: the sentence says why."""


def ask(function: Callable[[], object], seconds: float) -> object:
    """Return what `function` returns in a child that is forked for it.

    The function is called with `SIGNALS` blocked. If it raises an exception, there is no answer.

    Raises:
        NoAnswer: there is none in time, or it is no JSON of at most `LONGEST` bytes.
        OSError: the process cannot be forked.
    """
    read, write = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()

    def run() -> None:
        os.close(read)
        # Killed, as TERM is blocked.
        fork.set_parent_death_signal(parent, 0.0)
        import json  # takes memory, here only in the child

        text = json.dumps(function()).encode()
        with open(write, "wb") as pipe:
            pipe.write(len(text).to_bytes(SIZE, "big") + text)
        os._exit(0)

    try:
        pid = fork.fork(run)
    except OSError:
        os.close(read)
        raise
    finally:
        os.close(write)
    try:
        os.set_blocking(read, False)
        answer = _receive(read, pid, time.monotonic() + seconds)
    finally:
        os.close(read)
        # It has nothing more to do.
        signals.send(pid, signal.SIGKILL)
        fork.wait(pid)
    if answer is None:
        raise NoAnswer(f"did not answer within {seconds:.0f} s")
    try:
        value, end = make_scanner(_Context)(answer.decode("ascii"), 0)  # type: ignore[arg-type]
    except (ValueError, RecursionError, StopIteration):
        end = -1
    if end != len(answer):
        raise NoAnswer("gave no answer that can be read")
    return value


def _receive(pipe: int, pid: int, until: float) -> bytes | None:
    """Return what has arrived when it is complete, or nothing more can come; `None`: too late."""
    poller = poll()
    poller.register(pipe, POLLIN)
    received = b""
    while True:
        has_ended = not signals.is_running(pid)
        while poller.poll(0):
            more = os.read(pipe, 1 << 16)
            received += more
            size = int.from_bytes(received[:SIZE], "big")
            is_too_long = len(received) >= SIZE and size > LONGEST
            if is_too_long:
                raise NoAnswer(f"gave no answer that can be read: it has more than {LONGEST} bytes")
            if not more or len(received) >= SIZE + size > SIZE:
                return received[SIZE : SIZE + size]
        if has_ended:
            return b""
        rest = until - time.monotonic()
        if rest <= 0:
            return None
        poller.poll(min(rest, INTERVAL) * 1000)
