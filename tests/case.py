r"""Protocol cases as data: `tests/cases/*.txt`, read here and by the tests of the Rust core.

A case is a block of lines; an empty line ends it. Lines that begin with `#` are comments, and a
comment that begins with `##` is the heading of the cases behind it (docs/security.md has it too).

    name: what-it-is            unique in all files
    rfc: 9112 5.1               where it is written
    why: one sentence           may go on in lines indented by four spaces
    expect: 400 close           statuses of the answers in order, 1xx too, then how it ends
    body: text                  content of the last request (escapes as below)
    environ:
        HTTP_X_A: b             what the application finds in its environ, escapes as well
        not HTTP_X_B            and what it does not
    send:
        GET / HTTP/1.1\r\n      each line indented by four spaces; its own line end is not sent
        Host : a\r\n
        9000 * a\r\n            the escaped text behind `*`, so many times; only where a line begins
        \r\n                    so

It ends with `keep`, the connection stays open, with `close`, or with `cut`: it is closed before the
last answer is complete. `HEAD:200` is an answer without content, whatever its header says.

Escapes: `\r` `\n` `\t` `\\` and `\xNN`; everything else is ASCII and stands for itself.

With `answer` a case is about what an application answers; its target is `/` and its name, and
`body` is the content of the last answer instead.

    answer: 200 OK              the status that the application says (escapes, and `\uNNNN`)
    header:
        Content-Length: 5       its fields, split at the first colon and space
    pieces:
        hel                     what it produces, piece by piece; `\e` is an empty one
        lo
    by: list generator write    how it hands that over; without this line, each way in turn
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"

KEYS = (
    "name",
    "rfc",
    "why",
    "expect",
    "body",
    "environ",
    "send",
    "answer",
    "header",
    "pieces",
    "by",
)
#: How an application may hand over the pieces of an answer.
WAYS = ("list", "generator", "write")

ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.|$)")
REPEAT = re.compile(r"(\d+) \* (.*)")
SIMPLE = {"r": "\r", "n": "\n", "t": "\t", "\\": "\\", "e": ""}


@dataclass(frozen=True)
class Answer:
    """What an application answers, as it would hand it to the server."""

    status: str
    fields: tuple[tuple[str, str], ...]
    pieces: tuple[bytes, ...]
    ways: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One exchange: `send` goes to the server, `statuses` come back, then it stays open or not."""

    #: Name of its file, without the ending.
    file: str
    heading: str
    name: str
    rfc: str
    why: str
    lines: tuple[str, ...]
    send: bytes
    statuses: tuple[int, ...]
    #: Those of the answers that are to HEAD, by number.
    heads: frozenset[int]
    end: str
    body: bytes | None
    #: What must stand in the environ; `None`: the key must not.
    environ: dict[str, str | None]
    answer: Answer | None

    @property
    def close(self) -> bool:
        """Whether the connection ends."""
        return self.end != "keep"

    @property
    def refused(self) -> bool:
        """Whether the last message is refused: an error answer and the end of the connection."""
        return self.answer is None and self.close and self.statuses[-1] >= 400


def unescape(text: str) -> str:
    r"""The characters that `text` stands for; ValueError for an unknown escape or no ASCII."""

    def character(match: re.Match[str]) -> str:
        name = match[1]
        if name in SIMPLE:
            return SIMPLE[name]
        if len(name) in (3, 5):
            return chr(int(name[1:], 16))
        raise ValueError(f"unknown escape \\{name} in {text!r}")

    if not text.isascii():
        raise ValueError(f"not ASCII: {text!r}")
    return ESCAPE.sub(character, text)


def wire(line: str) -> bytes:
    """The octets of one line of a `send:` or `pieces:` block."""
    if match := REPEAT.fullmatch(line):
        return unescape(match[2]).encode("latin-1") * int(match[1])
    return unescape(line).encode("latin-1")


def blocks(text: str, keys: tuple[str, ...] = KEYS) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """The blocks of a file under their headings: for each key the text behind it and below it."""
    heading = key = ""
    block: dict[str, list[str]] = {}
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            heading = line[3:] if line.startswith("## ") else heading
        elif not line:
            if block:
                yield heading, block
            block, key = {}, ""
        elif line.startswith("    ") and key:
            block[key].append(line[4:])
        else:
            key, colon, rest = line.partition(":")
            if not colon or key in block or key not in keys:
                raise ValueError(f"not a line of a case: {line!r}")
            block[key] = [rest.strip()] if rest.strip() else []


def read_variable(line: str) -> tuple[str, str | None]:
    """A key of the environ and its value, `None` if the key must not be there."""
    if line.startswith("not "):
        return line.removeprefix("not "), None
    key, _, value = line.partition(": ")
    return key, unescape(value)


def read_answer(block: dict[str, list[str]]) -> Answer | None:
    """What the application answers in a case, if it is about that."""
    if "answer" not in block:
        return None
    fields = [line.partition(": ") for line in block.get("header", [])]
    ways = tuple(" ".join(block.get("by", WAYS)).split())
    if not set(ways) <= set(WAYS):
        raise ValueError(f"{block['name'][0]}: an application cannot answer by {ways}")
    return Answer(
        status=unescape("".join(block["answer"])),
        fields=tuple((unescape(name), unescape(value)) for name, _, value in fields),
        pieces=tuple(map(wire, block.get("pieces", []))),
        ways=ways,
    )


def read(path: Path) -> Iterator[Case]:
    """The cases of one file. ValueError or KeyError for one that is not written as it should be."""
    for heading, block in blocks(path.read_text("ascii")):
        *statuses, end = block["expect"][0].split()
        if end not in ("close", "keep", "cut") or not statuses:
            raise ValueError(f"{block['name'][0]}: expect needs statuses, then close, keep or cut")
        bare = [status.removeprefix("HEAD:") for status in statuses]
        yield Case(
            file=path.stem,
            heading=heading,
            name=block["name"][0],
            rfc=block["rfc"][0],
            why=" ".join(block["why"]),
            lines=tuple(block["send"]),
            send=b"".join(map(wire, block["send"])),
            statuses=tuple(map(int, bare)),
            heads=frozenset(at for at, status in enumerate(statuses) if status != bare[at]),
            end=end,
            body=b"".join(map(wire, block["body"])) if "body" in block else None,
            environ=dict(map(read_variable, block.get("environ", []))),
            answer=read_answer(block),
        )


def read_all() -> list[Case]:
    """Every case of every file."""
    cases = [case for path in sorted(FOLDER.glob("*.txt")) for case in read(path)]
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        raise ValueError("two cases have the same name")
    return cases
