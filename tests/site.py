r"""A published folder and what is asked of it, as data: `tests/cases/static/*.txt`.

They are written like the protocol cases (tests/case.py says how), and read here and by the tests
of the Rust core. `site.txt` is the folder: a block for each thing that is in it.

    file: name                  below the folder; `../name` is outside of it. Escapes, and 99 * a
    content: text               escapes; without it, the name and a line end
    size: 100000                so many octets instead, each its position modulo 251
    modified: 784111777         seconds since 1970; without it, these: Sun, 06 Nov 1994 08:49:37 GMT
    mode: 000                   permissions

    link: name                  a symbolic link
    to: name                    whereto; {site} is the path of the folder

    folder: name   fifo: name   socket: name

In the other files a block is a case, or the options of the server that answers those behind it.

    options:
        --static-listing on     words with escapes

    name: what-it-is            unique in all of these files
    rfc: 9110 13.1.2            where it is written, if it is
    why: one sentence
    ask: GET /name              method and target, which may go on in further lines
    field:
        If-None-Match: {etag}   escapes; {etag} is what such a request would be answered with
    expect: 200                 status, then `close` if the connection ends
    of: name                    the content is that of this file
    part: 0-4 7-7               and of it these octets only
    body: text                  or it is this
    holds:
        <a href="x">            or it holds these
        not <script>            and not those
    answer:
        Vary: Accept-Encoding   fields of the answer; `...` at the end of a value is anything
        not Content-Encoding    and fields that it does not have
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.case import FOLDER, blocks, unescape, wire

KINDS = ("file", "link", "folder", "fifo", "socket")
KEYS = (
    "options",
    "name",
    "rfc",
    "why",
    "ask",
    "field",
    "expect",
    "of",
    "part",
    "body",
    "holds",
    "answer",
)
#: Sun, 06 Nov 1994 08:49:37 GMT, the date of the RFC's examples.
MODIFIED = 784_111_777


@dataclass(frozen=True)
class Thing:
    """Something in the folder, or beside it."""

    kind: str
    name: bytes
    content: bytes
    modified: int
    mode: int | None
    to: str


@dataclass(frozen=True)
class Case:
    """A request for the folder, and its answer."""

    #: Name of its file, without the ending.
    file: str
    heading: str
    name: str
    options: tuple[str, ...]
    method: str
    target: bytes
    fields: tuple[str, ...]
    status: int
    close: bool
    #: The file that is sent, and which octets of it: first and last.
    of: bytes | None
    parts: tuple[tuple[int, int], ...]
    body: bytes | None
    holds: tuple[bytes, ...]
    lacks: tuple[bytes, ...]
    answer: tuple[tuple[str, str], ...]
    absent: tuple[str, ...]


class Site:
    """The folder, made below `place`, which is outside of it."""

    def __init__(self, place: Path) -> None:
        self.folder = place / "site"
        self.files: dict[bytes, bytes] = {}
        things = list(read_site())
        self.folder.mkdir()
        for thing in things:
            self._make(thing)
        # Last: what is in a folder changes it, and a folder that is closed stays empty.
        for thing in reversed(things):
            path = self._path(thing)
            if thing.mode is not None:
                os.chmod(path, thing.mode)
            os.utime(path, (thing.modified, thing.modified), follow_symlinks=False)

    def _path(self, thing: Thing) -> bytes:
        return os.path.join(os.fsencode(self.folder), thing.name)

    def _make(self, thing: Thing) -> None:
        path = self._path(thing)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        match thing.kind:
            case "file":
                self.files[thing.name] = thing.content
                with open(path, "xb") as file:
                    file.write(thing.content)
            case "folder":
                os.makedirs(path, exist_ok=True)
            case "link":
                os.symlink(os.fsencode(thing.to.format(site=self.folder)), path)
            case "fifo":
                os.mkfifo(path)
            case "socket":
                with socket.socket(socket.AF_UNIX) as listener:
                    listener.bind(path)


def read_site() -> Iterator[Thing]:
    """What is in the folder."""
    keys = (*KINDS, "content", "size", "modified", "mode", "to")
    for _, block in blocks((FOLDER / "static" / "site.txt").read_text("ascii"), keys):
        (kind,) = set(KINDS) & set(block)
        name = wire(block[kind][0])
        size = int(block["size"][0]) if "size" in block else 0
        content = (
            b"".join(map(wire, block.get("content", []))) if "content" in block else name + b"\n"
        )
        yield Thing(
            kind=kind,
            name=name,
            content=(bytes(range(251)) * (size // 251 + 1))[:size] if size else content,
            modified=int(block.get("modified", [MODIFIED])[0]),
            mode=int(block["mode"][0], 8) if "mode" in block else None,
            to=unescape(block.get("to", [""])[0]),
        )


def read_part(text: str) -> tuple[int, int]:
    """First and last position."""
    first, _, last = text.partition("-")
    return int(first), int(last)


def read(path: Path) -> Iterator[Case]:
    """The cases of one file."""
    options: tuple[str, ...] = ()
    for heading, block in blocks(path.read_text("ascii"), KEYS):
        if "options" in block:
            options = tuple(map(unescape, " ".join(block["options"]).split(" ")))
            continue
        assert block["why"], block["name"]
        method, _, target = block["ask"][0].partition(" ")
        targets = [target, *block["ask"][1:]]
        status, _, end = block["expect"][0].partition(" ")
        answer = block.get("answer", [])
        holds = block.get("holds", [])
        present = [line.partition(": ") for line in answer if not line.startswith("not ")]
        lacking = [line.removeprefix("not ") for line in holds if line.startswith("not ")]
        yield Case(
            file=path.stem,
            heading=heading,
            name=block["name"][0],
            options=options,
            method=method,
            target=b"".join(map(wire, targets)),
            fields=tuple(map(unescape, block.get("field", []))),
            status=int(status),
            close=end == "close",
            of=wire(block["of"][0]) if "of" in block else None,
            parts=tuple(map(read_part, " ".join(block.get("part", [])).split())),
            body=b"".join(map(wire, block["body"])) if "body" in block else None,
            holds=tuple(wire(line) for line in holds if not line.startswith("not ")),
            lacks=tuple(map(wire, lacking)),
            answer=tuple((name, unescape(value)) for name, _, value in present),
            absent=tuple(line.removeprefix("not ") for line in answer if line.startswith("not ")),
        )


def read_cases() -> list[Case]:
    """Every case of every file."""
    paths = sorted(path for path in (FOLDER / "static").glob("*.txt") if path.name != "site.txt")
    cases = [case for path in paths for case in read(path)]
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        raise ValueError(f"twice: {[name for name in names if names.count(name) > 1]}")
    return cases
