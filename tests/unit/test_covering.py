"""Which tests cover a change: every room has a folder, and a test that names a file is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.covering import ALWAYS, covering, names, parts
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


@pytest.mark.parametrize(
    ("text", "path", "is_named"),
    [
        ("from poorhttp.net import listener, sockets", "poorhttp/net/sockets.py", True),
        ("from poorhttp.net import (\n    sockets,\n)", "poorhttp/net/sockets.py", True),
        ("from poorhttp.net.sockets import bind", "poorhttp/net/sockets.py", True),
        ("import poorhttp.net.sockets", "poorhttp/net/sockets.py", True),
        ('monkeypatch.setattr("poorhttp.net.sockets.bind", 1)', "poorhttp/net/sockets.py", True),
        ("from poorhttp.net import listener", "poorhttp/net/sockets.py", False),
        ("from poorhttp.net import sockets_of", "poorhttp/net/sockets.py", False),
        ("from poorhttp.config import address", "poorhttp/config/address.py", True),
        ('ROOT / "conf/service.ini"', "conf/service.ini", True),
        ('read("conf/service.ini.bak")', "conf/service.in", False),
        ("# core/http/src/parser/mod.rs", "core/http/src/mod.rs", False),
    ],
)
def test_whether_a_text_names_a_file(text: str, path: str, is_named: bool) -> None:
    assert names(text, Path(path)) is is_named
