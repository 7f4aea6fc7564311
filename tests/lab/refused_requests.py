"""Writes the malformed requests of the lab's soaks from the protocol cases, when it is run."""

from __future__ import annotations

import json

from loadtests.soak.refused import FILE
from tests.testkit.cases.blocks import REPEAT, unescape
from tests.testkit.cases.exchanges import Case, read_all


def refused_cases() -> list[Case]:
    """The cases that end with a refusal; a response to HEAD would be read as one with a body."""
    return [case for case in read_all() if case.refused and b"HEAD" not in case.send]


def text() -> str:
    """What the file has to say."""
    lines = []
    for case in refused_cases():
        matches = [(REPEAT.fullmatch(line), line) for line in case.lines]
        send = [(int(m[1]), unescape(m[2])) if m else (1, unescape(line)) for m, line in matches]
        statuses = [status for status in case.statuses if status >= 200]
        lines.append(json.dumps({"name": case.name, "send": send, "statuses": statuses}))
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="ascii")
