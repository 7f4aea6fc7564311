"""Which tests cover a change: every room has a folder, and a test that names a file is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.covering import ALWAYS, covering, parts
from tests.testkit.server import ROOT


@pytest.mark.parametrize("pattern", ["poorhttp/*/", "poorhttp/plugins/*/", "core/*/Cargo.toml"])
def test_every_room_has_a_folder_of_tests(pattern: str) -> None:
    for path in map(str, ROOT.glob(pattern)):
        room = Path(path.removesuffix("/Cargo.toml")).relative_to(ROOT)
        if room.name not in ("__pycache__", "plugins"):
            assert [each for each in parts() if each == str(room)] != [], room


@pytest.mark.parametrize(
    ("path", "tests", "crates"),
    [
        ("poorhttp/net/sockets.py", {"tests/supervisor", "tests/tls"}, []),
        ("poorhttp/supervisor/hooks/__init__.py", {"tests/hooks"}, []),
        ("core/http/src/parser/head.rs", {"tests/protocol"}, ["http"]),
        ("core/http/src/parser/gateway/scgi.rs", {"tests/proxies"}, ["http"]),
        ("tests/cases/fields.txt", {"tests/protocol"}, ["files", "http"]),
        ("tests/tls/test_connections.py", {"tests/tls/test_connections.py"}, []),
        ("tests/support/fuse.py", {"tests/logs/test_log_files.py"}, []),
        ("docs/reference/limits.md", {"tests/manual"}, []),
    ],
)
def test_what_covers_a_path(path: str, tests: set[str], crates: list[str]) -> None:
    found, found_crates = covering([path])
    assert {*tests, *ALWAYS} <= set(found)
    assert found_crates == crates
