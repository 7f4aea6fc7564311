"""Checks every case of a group within one test, and names all that fail."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Protocol, TypeVar

from tests.testkit.client import Connection
from tests.testkit.server import Server

FOLDER = str(Path(__file__).parents[1])
#: Failures of one test that are described.
MOST = 20


class Named(Protocol):
    """A case of a file."""

    @property
    def file(self) -> str:
        """Name of the file, without the ending."""

    @property
    def name(self) -> str:
        """Unique among the cases of its kind."""


AnyCase = TypeVar("AnyCase", bound=Named)


def by_file(cases: Iterable[AnyCase]) -> dict[str, list[AnyCase]]:
    """Cases by the names of their files."""
    return {file: list(group) for file, group in groupby(cases, key=lambda case: case.file)}


def check_each(cases: Iterable[AnyCase], check: Callable[[AnyCase], None]) -> None:
    """Call `check` with every case, whether or not others fail.

    An AssertionError at the end names all that failed, with place and message of the first ones.
    The names are printed at once as well: pytest shows them if the time limit ends the test.
    """
    tried = 0
    failures: dict[str, str] = {}
    for case in cases:
        tried += 1
        try:
            check(case)
        except Exception as error:
            failures[case.name] = described(error)
            print(f"failed: {case.name}")
    assert tried, "there is no case"
    if failures:
        first = "\n".join(f"{name}: {text}" for name, text in [*failures.items()][:MOST])
        names = " ".join(failures)
        raise AssertionError(f"{len(failures)} of {tried} cases failed: {names}\n{first}")


def described(error: Exception) -> str:
    """The lines of the tests in which an exception was raised, and its message."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    lines = [f"{Path(at.filename).name}:{at.lineno}" for at in frames if FOLDER in at.filename]
    return f"{' > '.join(lines)}: {type(error).__name__}: {error}"


class KeptConnection:
    """A connection for one case after the other, replaced when a case closes it or fails on it."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._open: Connection | None = None

    def __enter__(self) -> KeptConnection:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()

    @contextmanager
    def use(self, *, keep: bool = True) -> Iterator[Connection]:
        """The connection that the last case has left open, or a new one; kept open if `keep`."""
        connection, self._open = self._open or self._connect(), None
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if keep:
            self._open = connection
        else:
            connection.close()


def log_since(server: Server, start: int, other: KeptConnection) -> str:
    """The log from byte `start` on, with all that was logged before a request on `other`."""
    with other.use() as connection:
        assert connection.request("GET", "/done").status == 200
    return server.log(start)
