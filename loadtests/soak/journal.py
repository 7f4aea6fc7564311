"""Check of the server's error log: each line must be an expected one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ENTRY = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \[\d+(?: \w+(?: \d+)?)?\] (debug|info|warning|error): (.*)"
)

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
EXCEPTIONS = {f"/{path}": name for name, paths in RAISED.items() for path in paths.split()}

# close() is called when the request is over; then its line is not known any more.
FAILED = re.compile(
    r"request \d+(?: (?:(?:GET|POST|HEAD) (/\w+)\?\S*)?)?: the application failed(?:: .*)?"
)

#: What else is said, by the name under which it is counted.
EXPECTED = {
    "the client left": r"request \d+ (?:GET|POST|HEAD) /\w+\?\S*: the client left before it was "
    r"answered",
    "left in the middle of a request": r"request \d+ of 127\.0\.0\.1:\d+: the client left in the "
    r"middle of it",
    "not run": r"request \d+ (?:GET|POST|HEAD) /\w+\?\S* of 127\.0\.0\.1:\d+: not run with 499: "
    r"the client has reset the connection",
    "does not take its answer": r"request \d+ (?:of 127\.0\.0\.1:\d+|(?:GET|POST|HEAD) /\w+\?\S*): "
    r"the client does not take its answer",
    "all threads are busy": r"worker \d+: (?:all \d+ threads have|the thread that runs requests "
    r"has) been busy for .*",
    "a thread is free again": r"worker \d+: a thread is free again after \d+\.\d s",
    "refused": r"request \d+ of 127\.0\.0\.1:\d+: refused with [45]\d\d \(.*\)",
    "more than its Content-Length": r"request \d+ GET /too_much\S*: the application produced \d+ "
    r"bytes more than its Content-Length; they were not sent",
    "less than its Content-Length": r"request \d+ GET /too_little\S*: the application produced 1 "
    r"bytes less than its Content-Length; the connection was closed",
    "worker replaced": r"worker \d+ (?:was killed by SIGABRT|ended with 3)\b.* is replaced\b.*",
}


#: What faulthandler writes for a worker that aborts; nobody else writes to standard error.
LAST_WORDS = re.compile(
    r"|Fatal Python error: Aborted|(?:Current t|T)hread 0x\w+ .*|  File \".*\", line \d+ in .+"
    r"|Extension modules: .*"
)


def unexpected_words(text: str) -> list[str]:
    """Lines of standard error besides the ready line and the last words of workers."""
    ready, *lines = text.splitlines()
    found = [] if " listening on " in ready else [ready]
    return found + [line for line in lines if not LAST_WORDS.fullmatch(line)]


class Journal:
    """Reads a log while it grows.

    Attributes:
        counts: how often each kind of line came.
        unexpected: the entries that nobody has expected, at most a hundred.
    """

    def __init__(self, path: Path) -> None:
        self.counts: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self._path = path
        self._at = 0
        self._entry: list[str] = []
        self._expected = [(name, re.compile(text)) for name, text in EXPECTED.items()]

    def read(self, *, end: bool = False) -> None:
        """Judge what was added; with `end` also the last entry, behind which nothing will come."""
        for line in self._lines():
            if ENTRY.fullmatch(line):
                self._judge()
                self._entry = []
            self._entry.append(line)
        if end:
            self._judge()
            self._entry = []

    def _lines(self) -> Iterator[str]:
        """Complete lines that were added since the last time."""
        with self._path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._at += len(line)
                yield line[:-1].decode("utf-8", "backslashreplace")

    def _judge(self) -> None:
        if not self._entry:
            return
        kind = self._kind()
        if kind is not None:
            self.counts[kind] += 1
        elif len(self.unexpected) < 100:
            self.unexpected.append("\n".join(self._entry))

    def _kind(self) -> str | None:
        """Kind of an entry, None if it is not expected."""
        first, *more = self._entry
        match = ENTRY.fullmatch(first)
        if match is None:
            return None
        message = match[2]
        if failed := FAILED.fullmatch(message):
            name = EXCEPTIONS.get(failed[1] or "/close_raises")
            # A traceback is all that may follow, once.
            right = (
                name is not None
                and len(more) > 1
                and more[0] == "    Traceback (most recent call last):"
                and re.match(rf"    (\w+\.)*{name}\b", more[-1])
                and not any(word in line for line in more for word in ("panicked", "ignored"))
            )
            return f"failed: {name}" if right else None
        if more:
            return None
        return next((name for name, text in self._expected if text.fullmatch(message)), None)
