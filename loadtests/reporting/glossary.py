"""Explanations of the short names of columns."""

from __future__ import annotations

import re

WORDS = {
    "ans t": "time from the beginning of a request to the first 15 bytes of its answer",
    "res t": "time from the beginning of a request to the end of its answer",
    "req t": "time from when a request should have been sent to the end of its answer",
    "ans/s": "how many times of an answer fit into a second",
    "res/s": "how many times of a whole page fit into a second",
    "real/s": "answers per second, with what the client does between them",
    "req/s": "answers per second",
    "preq/s": "answers per second in the time of the test",
    "p50": "half of all requests took at most this long",
    "p90": "90 % of all requests took at most this long",
    "p99": "99 % of all requests took at most this long",
    "client busy": "share of its core that the client used; near 100 % the client is the limit",
    "server CPU": "processor time of all processes of the server",
    "CPU per request": "processor time of all processes of the server",
    "PSS": "memory, with each shared page divided among the processes that map it",
    "USS": "memory that only this process has: what its end would free",
    "RSS": "memory in use, with each shared page counted whole",
    "vsize": "address space, also of what is not in memory",
    "repeated SYN": "connections that had to ask again, a second or more later",
    "F at 95 %": "an F above this one is chance in 5 % of all experiments only",
}
"""By the words with which a heading names them."""

_KNOWN = re.compile(
    rf"(?<![\w/])(?:{'|'.join(map(re.escape, sorted(WORDS, key=len, reverse=True)))})(?!\w)",
    re.IGNORECASE,
)
_FOLDED = {word.casefold(): word for word in WORDS}


def explained(heading: str) -> dict[str, str]:
    """The short names in a heading with their explanations."""
    words = (_FOLDED[found.casefold()] for found in _KNOWN.findall(heading))
    return {word: WORDS[word] for word in words}
