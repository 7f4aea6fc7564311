r"""Protocol cases as data: `tests/cases/*.txt`, read here and by the tests of the Rust core.

A case is a block of lines; an empty line ends it. Lines that begin with `#` are comments.

    name: what-it-is            unique in all files
    rfc: 9112 5.1               where it is written
    why: one sentence           may go on in lines indented by four spaces
    expect: 400 close           statuses of the answers in order, 1xx too, then `close` or `keep`
    body: text                  content of the last request (escapes as below)
    send:
        GET / HTTP/1.1\r\n      each line indented by four spaces; its own line end is not sent
        Host : a\r\n
        9000 * a\r\n            the escaped text behind `*`, so many times; only where a line begins
        \r\n                    so

Escapes: `\r` `\n` `\t` `\\` and `\xNN`; everything else is ASCII and stands for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"

ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.|$)")
REPEAT = re.compile(r"(\d+) \* (.*)")
SIMPLE = {"r": b"\r", "n": b"\n", "t": b"\t", "\\": b"\\"}


@dataclass(frozen=True)
class Case:
    """One exchange: `send` goes to the server, `statuses` come back, then it stays open or not."""

    name: str
    rfc: str
    why: str
    send: bytes
    statuses: tuple[int, ...]
    close: bool
    body: bytes | None

    @property
    def refused(self) -> bool:
        """Whether the last message is refused: an error answer and the end of the connection."""
        return self.close and self.statuses[-1] >= 400


def unescape(text: str) -> bytes:
    r"""The octets that `text` stands for; ValueError for an unknown escape or no ASCII."""
    parts = []
    at = 0
    for match in ESCAPE.finditer(text):
        parts.append(text[at : match.start()].encode("ascii"))
        name = match[1]
        if name in SIMPLE:
            parts.append(SIMPLE[name])
        elif len(name) == 3:
            parts.append(bytes([int(name[1:], 16)]))
        else:
            raise ValueError(f"unknown escape \\{name} in {text!r}")
        at = match.end()
    parts.append(text[at:].encode("ascii"))
    return b"".join(parts)


def wire(line: str) -> bytes:
    """The octets of one line of a `send:` block."""
    if match := REPEAT.fullmatch(line):
        return unescape(match[2]) * int(match[1])
    return unescape(line)


def blocks(text: str) -> Iterator[dict[str, list[str]]]:
    """The blocks of a file: for each key the text behind it and the indented lines below it."""
    block: dict[str, list[str]] = {}
    key = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line:
            if block:
                yield block
            block, key = {}, ""
        elif line.startswith("    ") and key:
            block[key].append(line[4:])
        else:
            key, colon, rest = line.partition(":")
            if not colon or key in block or key not in (
                "name", "rfc", "why", "expect", "body", "send",
            ):  # fmt: skip
                raise ValueError(f"not a line of a case: {line!r}")
            block[key] = [rest.strip()] if rest.strip() else []


def read(path: Path) -> Iterator[Case]:
    """The cases of one file. ValueError or KeyError for one that is not written as it should be."""
    for block in blocks(path.read_text("ascii")):
        *statuses, end = block["expect"][0].split()
        if end not in ("close", "keep") or not statuses:
            raise ValueError(f"{block['name'][0]}: expect needs statuses, then close or keep")
        yield Case(
            name=block["name"][0],
            rfc=block["rfc"][0],
            why=" ".join(block["why"]),
            send=b"".join(map(wire, block["send"])),
            statuses=tuple(map(int, statuses)),
            close=end == "close",
            body=unescape("".join(block["body"])) if "body" in block else None,
        )


def read_all() -> list[Case]:
    """Every case of every file."""
    cases = [case for path in sorted(FOLDER.glob("*.txt")) for case in read(path)]
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        raise ValueError("two cases have the same name")
    return cases
