"""Reader of static-file cases (`tests/cases/static`, described in `tests/cases/schema`)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.testkit.cases.blocks import FOLDER, blocks

KINDS = ("file", "link", "folder", "fifo", "socket")
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
        # Last: what is in a folder changes it. It may be closed, so what is in it comes first.
        for thing in sorted(things, key=lambda one: one.name.count(b"/"), reverse=True):
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
    for block in blocks([FOLDER / "static" / "site.txt"], *KINDS):
        name = block[block.kind]
        size = block.get("size", 0)
        content = block.get("content", name + b"\n")
        yield Thing(
            kind=block.kind,
            name=name,
            content=(bytes(range(251)) * (size // 251 + 1))[:size] if size else content,
            modified=block.get("modified", MODIFIED),
            mode=block.get("mode"),
            to=block.get("to", ""),
        )


def read(*paths: Path) -> Iterator[Case]:
    file = ""
    options: tuple[str, ...] = ()
    for block in blocks(paths, "options", "static"):
        # The options of a file are not those of the next one.
        file, options = block.file, options if block.file == file else ()
        if block.kind == "options":
            options = tuple(block["options"])
            continue
        method, _, target = block["ask"].partition(b" ")
        status, *end = block["expect"]
        answer = block.get("answer", ())
        parts = [part.partition("-") for part in block.get("part", ())]
        holds = [line.encode("latin-1") for line in block.get("holds", ())]
        yield Case(
            file=file,
            name=block["name"],
            options=options,
            method=method.decode(),
            target=target,
            fields=tuple(block.get("field", ())),
            status=int(status),
            close=end == ["close"],
            of=block.get("of"),
            parts=tuple((int(first), int(last)) for first, _, last in parts),
            body=block.get("body"),
            holds=tuple(line for line in holds if not line.startswith(b"not ")),
            lacks=tuple(line[4:] for line in holds if line.startswith(b"not ")),
            answer=tuple((name, value) for name, value in answer if value is not None),
            absent=tuple(name for name, value in answer if value is None),
        )


def read_cases() -> list[Case]:
    """Every case of every file."""
    paths = sorted((FOLDER / "static").glob("*.txt"))
    return list(read(*(path for path in paths if path.name != "site.txt")))
