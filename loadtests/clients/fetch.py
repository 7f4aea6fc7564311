"""A client in C: for answers so large that wrk would be the limit, and for a number of requests."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from loadtests import compiled
from loadtests.clients.load import Load
from loadtests.clients.program import run
from loadtests.pin import pinned

SOURCE = Path(__file__).with_name("fetch.c")


def drive(
    port: int,
    seconds: float,
    connections: int,
    visits: Sequence[Sequence[str]],
    *,
    requests: int = 0,
    keep: bool = True,
    every: float = 0,
    core: int | None = None,
) -> Load:
    """Makes visits, each of targets that are asked for one after the other, from the first on.

    It ends after so many `requests` (0: any number) or `seconds`. With `keep` the next visit is
    made on the same connection. With `every` it begins `connections` visits whenever so many
    seconds have passed. Runs on `core`, or anywhere if that is None.
    """
    pace = f"{every * 1000:.0f}" if every else "keep" if keep else "close"
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
        file.writelines(" ".join(visit) + "\n" for visit in visits)
        file.flush()
        command = [
            *pinned(core),
            str(compiled.program(SOURCE)),
            *(str(port), str(connections), str(requests), f"{seconds:g}"),
            *(pace, file.name),
        ]
        return run(command, seconds)
