"""Shared memory with questions of the main process to workers, and their answers.

Two files in memory that all processes inherit. The first one begins with the question, JSON text;
behind it is room for the answer of each worker that is asked: number of the question, length, JSON
text. The second one gets what `faulthandler` writes where Python does not come to run.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Bytes of the question.
QUESTION = 16 << 10

#: Bytes of an answer, with its header.
ROOM = 8 << 20

#: Bytes of its header: the number of the question, and the length of the text.
HEADER = 16

#: Most bytes that are read of what `faulthandler` has written.
MOST_DUMPED = 4 << 20


class Area:
    """The two files.

    Attributes:
        answers: descriptor of the file with question and answers; -1 as long as it is not open.
        dump: descriptor of the file for `faulthandler`, whose position all processes share.
    """

    def __init__(self) -> None:
        self.answers = -1
        self.dump = -1

    def open(self) -> None:
        """Open the files, unless they are open; before workers are forked."""
        if self.answers < 0:
            self.answers = os.memfd_create("poorhttp-inspection")
            self.dump = os.memfd_create("poorhttp-dump")

    # In the process that asks

    def ask(self, question: dict[str, Any]) -> None:
        """Write a question; its `number` is the time, and its `places` has a number by PID.

        Raises:
            ValueError: there are too many workers.
        """
        import json

        text = json.dumps(question).encode()
        if len(text) > QUESTION:
            raise ValueError("too many workers are asked at once; name one")
        os.ftruncate(self.answers, 0)
        os.pwrite(self.answers, text.ljust(QUESTION, b"\0"), 0)

    def answer(self, number: int, place: int) -> bytes | None:
        """Return an answer; empty if the worker has only begun, and `None` if not even that."""
        at = QUESTION + place * ROOM
        header = os.pread(self.answers, HEADER, at)
        if len(header) < HEADER or int.from_bytes(header[:8], "little") != number:
            return None
        length = min(int.from_bytes(header[8:], "little"), ROOM - HEADER)
        return os.pread(self.answers, length, at + HEADER)

    def start_dump(self) -> None:
        """Empty the file for `faulthandler`."""
        os.ftruncate(self.dump, 0)
        os.lseek(self.dump, 0, os.SEEK_SET)

    def dumped(self) -> str:
        """Return what `faulthandler` has written."""
        return os.pread(self.dump, MOST_DUMPED, 0).decode("utf-8", "replace")

    def clear(self) -> None:
        """Release the memory."""
        os.ftruncate(self.answers, 0)
        self.start_dump()

    # In a worker

    def question(self) -> dict[str, Any] | None:
        """Return the question, if there is one to this process."""
        import json

        text = os.pread(self.answers, QUESTION, 0).rstrip(b"\0")
        question: dict[str, Any] = json.loads(text) if text else {}
        return question if str(os.getpid()) in question.get("places", ()) else None

    def begin_answer(self, question: dict[str, Any]) -> None:
        """Tell that an answer will come."""
        self._write(question, b"")

    def write_answer(self, question: dict[str, Any], answer: dict[str, Any]) -> None:
        """Write the answer, or that it is too long."""
        import json

        text = json.dumps(answer).encode()
        if len(text) > ROOM - HEADER:
            text = json.dumps({"error": f"an answer of {len(text)} bytes is too long"}).encode()
        self._write(question, text)

    def _write(self, question: dict[str, Any], text: bytes) -> None:
        at = QUESTION + int(question["places"][str(os.getpid())]) * ROOM
        rest, to = memoryview(text), at + HEADER
        while rest:
            written = os.pwrite(self.answers, rest, to)
            rest, to = rest[written:], to + written
        # Last, so that the text is complete.
        numbers = int(question["number"]), len(text)
        os.pwrite(self.answers, b"".join(each.to_bytes(8, "little") for each in numbers), at)


#: The area of this server.
area = Area()
