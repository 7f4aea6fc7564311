"""Reader of protocol cases (`tests/cases/*.txt`, described in `tests/cases/schema`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.testkit.cases.blocks import FOLDER, Block, blocks

#: How an application may hand over the pieces of an answer.
WAYS = ("list", "generator", "write")


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
        return self.end != "keep"

    @property
    def refused(self) -> bool:
        """Whether the last message is refused: an error answer and the end of the connection."""
        return self.answer is None and self.close and self.statuses[-1] >= 400


def read_answer(block: Block) -> Answer | None:
    """What the application answers in a case, if it is about that."""
    if "answer" not in block:
        return None
    ways = tuple(block.get("by", WAYS))
    if not set(ways) <= set(WAYS):
        raise block.error(f"an application cannot answer by {ways}")
    return Answer(
        status="".join(block["answer"]),
        fields=tuple(block.get("header", ())),
        pieces=tuple(piece.encode("latin-1") for piece in block.get("pieces", ())),
        ways=ways,
    )


def read(*paths: Path) -> Iterator[Case]:
    """The cases of files. ValueError for one that is not written as it should be."""
    for block in blocks(paths, "exchange"):
        *statuses, end = block["expect"] or [""]
        if end not in ("close", "keep", "cut") or not statuses:
            raise block.error("expect needs statuses, then close, keep or cut")
        bare = [status.removeprefix("HEAD:") for status in statuses]
        yield Case(
            file=block.file,
            heading=block.heading,
            name=block["name"],
            rfc=block["rfc"],
            why=block["why"],
            lines=tuple(block.lines["send"]),
            send=block["send"],
            statuses=tuple(map(int, bare)),
            heads=frozenset(at for at, status in enumerate(statuses) if status != bare[at]),
            end=end,
            body=block.get("body"),
            environ=dict(block.get("environ", ())),
            answer=read_answer(block),
        )


def read_all() -> list[Case]:
    """Every case of every file."""
    return list(read(*sorted(FOLDER.glob("*.txt"))))
