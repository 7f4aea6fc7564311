"""Questions of the admin process to the main process, and their answers.

A question is a datagram on a socket pair: its kind, a number, and words. The main process puts the
answer into shared memory, and then repeats kind and number, so that the admin process ignores
answers to the process before it. No client can reach the main process, which reads nothing but
these words.
"""

from __future__ import annotations

import os

# Not `json`, which would take memory in every process that is forked from then on.
from _json import encode_basestring_ascii
from _thread import allocate_lock
from collections.abc import Callable
from contextlib import suppress

from poorhttp.process import fork
from poorhttp.process.c_socket import socket

#: Kinds: why the server is not ready (a line, empty if it is); the status document; a command;
#: the result of a command that takes long. Answers but the first are JSON.
READY = b"r"
STATUS = b"s"
COMMAND = b"c"
JOB = b"j"

#: Bytes of a kind with its number, and of a whole question.
HEAD_SIZE = 9
QUESTION_SIZE = 1024

#: Questions that the main process answers at once.
AT_ONCE = 16

#: Seconds for an answer of the main process.
TIMEOUT = 5.0

#: Part of the name of the memory, before the address, by which `poorhttp ctl` finds a server in
#: /proc/PID/fd.
MEMORY_NAME = "poorhttp-admin"

#: Bytes of such a name, at most (memfd_create(2)).
LONGEST_NAME = 249


class Questions:
    """The socket pair and the memory: both ends, of which each process uses one."""

    def __init__(self, address: str) -> None:
        """Make them for the process that answers at `address`."""
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self._theirs.settimeout(TIMEOUT)
        name = os.fsdecode(os.fsencode(f"{MEMORY_NAME} {address}")[:LONGEST_NAME])
        self._memory = os.memfd_create(name)
        self._asked = 0
        self._lock = allocate_lock()
        #: The process that asks is being forked: it keeps its end.
        self.forking = False
        fork.after_fork_in_child.append(self._close_after_fork)

    # In the main process

    def fileno(self) -> int:
        """Return the descriptor that is readable when something was asked."""
        return self._ours.fileno()

    def answer(self, respond: Callable[[bytes, str], str]) -> None:
        """Answer all questions; `respond` returns the answer to a kind and words."""
        for _ in range(AT_ONCE):
            try:
                question = self._ours.recv(QUESTION_SIZE)
            except OSError:
                return
            head, words = question[:HEAD_SIZE], question[HEAD_SIZE:].decode("utf-8", "replace")
            answer = respond(head[:1], words).encode("utf-8", "backslashreplace")
            os.ftruncate(self._memory, 0)
            os.pwrite(self._memory, answer, 0)
            # The buffer is full only if the process does not read its answers.
            with suppress(OSError):
                self._ours.send(head)

    def close(self) -> None:
        """Close everything."""
        self._close_after_fork()
        fork.after_fork_in_child.remove(self._close_after_fork)

    def _close_after_fork(self) -> None:
        """Close the main process's end, and in other children than the asking one its end too."""
        self._ours.close()
        if not self.forking and self._memory >= 0:
            self._theirs.close()
            os.close(self._memory)
            self._memory = -1

    # In the admin process

    def ask(self, kind: bytes, words: str = "") -> bytes:
        """Ask the main process; any thread may.

        Raises:
            OSError: it does not answer.
        """
        with self._lock:
            self._asked += 1
            head = kind + (os.getpid() << 32 | self._asked & 0xFFFFFFFF).to_bytes(8, "big")
            self._theirs.send(head + words.encode())
            while (received := self._theirs.recv(HEAD_SIZE)) != head:
                if not received:
                    raise OSError("the main process has ended")
            return os.pread(self._memory, os.fstat(self._memory).st_size, 0)


def to_json(value: object) -> str:
    """Return JSON, in ASCII. Numbers that JSON does not have are null."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, (int, float)):
        is_finite = value - value == 0
        return repr(value) if is_finite else "null"
    if isinstance(value, dict):
        items = (f"{to_json(str(key))}:{to_json(each)}" for key, each in value.items())
        return f"{{{','.join(items)}}}"
    if isinstance(value, list) and set(map(type, value)) == {int}:
        # Histograms are most of the document.
        return str(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(to_json, value))}]"
    raise TypeError(f"{type(value).__name__} is not a type of JSON")
