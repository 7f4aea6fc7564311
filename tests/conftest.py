"""Fixtures: the four modes, and servers that a whole module shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.nobody import Nobody
from tests.server import MODES, Server
from tests.versions import Versions

#: Returns a running server for an application, in the mode of the test: the same one as long as
#: the application and its options are the same.
Serve = Callable[..., Server]


@pytest.fixture(scope="session", params=list(MODES))
def mode(request: pytest.FixtureRequest) -> str:
    """Each mode in turn: a test that uses this, or `serve`, runs in all four."""
    return str(request.param)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder for a Unix socket, whose path may have some hundred octets only."""
    with TemporaryDirectory() as name:
        yield Path(name).resolve()


@pytest.fixture(scope="module")
def nobody() -> Iterator[Nobody]:
    """What can be run by the user nobody."""
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield Nobody(folder)


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    """An application of which there are versions."""
    return Versions(tmp_path)


@pytest.fixture(scope="module")
def serve(mode: str) -> Iterator[Serve]:
    """Servers shared by the tests of a module in one mode; stopped and checked at its end."""
    running: dict[tuple[object, ...], Server] = {}

    def start(app: str, *options: str, tracebacks: bool = False) -> Server:
        key = (app, options)
        if key not in running:
            running[key] = Server(app, mode, *options, tracebacks=tracebacks)
        return running[key]

    yield start
    faults = []
    for server in running.values():
        try:
            server.stop()
        except AssertionError as fault:
            faults.append(str(fault))
    assert not faults, "\n".join(faults)
