"""Checks the server's error log during a soak: each entry must be an expected one."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

STAMP = r"\d{4}-\d\d-\d\dT[\d:]{8}Z \[\d+(?: \w+(?: \d+)?)?\] (?:debug|info|warning|error): "
BEGINNING = re.compile(rf"^(?={STAMP})".encode(), re.MULTILINE)
PEER = r"of 127\.0\.0\.1:\d+"
NO_SPACE = r"No space left on device \(os error 28\)"
ASKED = r"request \d+ (?:GET|POST|HEAD) /\w+\?\S*"
LOST = r"\d+ lines of the access log could not be written, and are lost"
LISTENED = r"request \d+ GET /events/events\S*"

#: The exception that each path of `loadtests/apps/mixed.py` ends in.
RAISED = {
    "Deliberate": "raises_before raises_started raises_first raises_between raises_after "
    "restarts_late close_raises",
    "TypeError": "returns_none returns_text returns_number yields_text",
    "RuntimeError": "starts_twice",
    "ValueError": "never_starts starts_late splits_value splits_name splits_status frames "
    "two_lengths",
    "SystemExit": "exits",
    "KeyboardInterrupt": "interrupts",
    "MemoryError": "exhausts_memory",
    "RecursionError": "recurses",
}


def _failed(name: str, paths: str) -> str:
    """The entry about an exception: after its first line a traceback, once, and nothing else."""
    path = rf" (?:GET|POST|HEAD) /(?:{paths.replace(' ', '|')})\?\S*"
    if "close_raises" in paths:
        # close() is called when the request is over; then its line is not known any more.
        path = f"(?:{path}| )?"
    return (
        rf"request \d+{path}: the application failed(?:: .*)?\n(?!(?s:.*)(?:panicked|ignored))"
        rf"    Traceback \(most recent call last\):\n(?s:.*\n)?    (?:\w+\.)*{name}\b.*"
    )


#: What is said, by the name under which it is counted.
EXPECTED = {
    **{f"failed: {name}": _failed(name, paths) for name, paths in RAISED.items()},
    "the client left": rf"(?:{ASKED}|{LISTENED}): the client left before the end of the response",
    "left in the middle of a request": rf"request \d+ {PEER}: the client left in the middle of it",
    "not run": rf"{ASKED} {PEER}: not run, logged with 499: the client has reset the connection",
    "does not read its response": rf"(?:request \d+ {PEER}|{ASKED}): the client does not read its "
    r"response",
    "all threads are busy": r"worker \d+: (?:all \d+ threads have|the thread that runs requests "
    r"has) been busy for .*",
    "a thread is free again": r"worker \d+: a thread is free again after \d+\.\d s",
    "refused": rf"request \d+ {PEER}: refused with [45]\d\d \(.*\)",
    "more than its Content-Length": r"request \d+ GET /too_much\S*: the application produced \d+ "
    r"bytes more than its Content-Length; they were not sent",
    "less than its Content-Length": r"request \d+ GET /too_little\S*: the application produced 1 "
    r"bytes less than its Content-Length; the connection was closed",
    "worker replaced": r"worker \d+ (?:was killed by SIGABRT|ended with 3)\b.* is replaced\b.*",
    # On a busy machine a client may kill a worker that has just begun.
    "upgrade": r"a new main process is started|process \d+ has taken over",
    "reload": r"reloading.*|reloaded: .*",
    "refork": r"worker \d+ has begun \d+ requests, and finishes: .*|reforked \d+ workers: .*"
    r"|worker \d+ is replaced: it is forked anew from .*",
    "not reforked yet": r"not reforked, because .*",
    "no room for a body": rf"request \d+ {PEER}: refused with 507, a request body cannot be "
    rf"stored: {NO_SPACE}",
    "no room for a response": rf"a response cannot be spooled: \S+ \(temp_dir\): {NO_SPACE}; its "
    r"application waits for the client instead",
    "no room for the access log": rf"the access log cannot be written: {NO_SPACE}(?:; {LOST})?",
    "lines of the access log lost": LOST,
    # After a jump of the clock.
    "certificate of another time": r"\S+: the certificate (?:is not valid yet|has expired).*",
    # Its library does not expect that the server closes a WebSocket while it sends.
    "message after the end": r"request \d+ GET /sockets/: the application failed: "
    r"LocalProtocolError: (?s:.*)",
    "stop": r"the server stops \(SIGTERM\)",
    "workers serve again": r"all workers serve again; \d+ had died early",
}
ENTRIES = {name: re.compile(f"{STAMP}(?:{text})") for name, text in EXPECTED.items()}

#: The ready line, and what faulthandler writes for a worker that aborts; nobody else writes to
#: standard error.
WORDS = re.compile(
    r"|poorhttp \S+ listening on .*|Fatal Python error: Aborted"
    r"|(?:Current t|T)hread 0x\w+ .*|  File \".*\", line \d+ in .+|  <no Python frame>"
    r"|Extension modules: .*"
)


def unexpected_words(text: str) -> list[str]:
    """Lines of standard error besides the ready line and the last words of workers."""
    return [line for line in text.splitlines() if not WORDS.fullmatch(line)]


class ErrorLogCheck:
    """Reads a log while it grows.

    Attributes:
        counts: how often each kind of entry came.
        unexpected: the entries that nobody has expected, at most a hundred.
    """

    def __init__(self, path: Path) -> None:
        self.counts: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self._path = path
        self._at = 0

    def read(self, *, end: bool = False) -> None:
        """Judge what was added; with `end` also the last entry, behind which nothing will come."""
        with self._path.open("rb") as file:
            file.seek(self._at)
            entries = BEGINNING.split(file.read())
        for entry in entries if end else entries[:-1]:
            self._at += len(entry)
            text = entry.decode("utf-8", "backslashreplace").removesuffix("\n")
            kinds = [name for name, expected in ENTRIES.items() if expected.fullmatch(text)]
            if kinds:
                self.counts[kinds[0]] += 1
            elif text and len(self.unexpected) < 100:
                self.unexpected.append(text)
