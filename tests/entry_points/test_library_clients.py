"""The command beside the library."""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path

import poorhttp
from tests.support.development import write
from tests.testkit.client import HANG
from tests.testkit.server import Program

#: For `python -m poorhttp TARGET` in a process whose application uses the library too.
BOTH = """
import poorhttp.api

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [poorhttp.api.Server.__name__.encode()]
"""


def test_the_command_with_the_library_imported(tmp_path: Path) -> None:
    """Also before the command: `sitecustomize` is imported first."""
    write(tmp_path, {"shop.py": BOTH, "sitecustomize.py": "import poorhttp.api\n"})
    words = (sys.executable, "-m", "poorhttp", "shop:app", "--bind", "127.0.0.1:0")
    env = {"PYTHONPATH": f"{tmp_path}:{Path(poorhttp.__file__).parents[1]}"}
    with Program(*words, cwd=tmp_path, env=env) as program:
        url = program.wait_line()[2]
        with urllib.request.urlopen(url, timeout=HANG) as answer:
            assert answer.read() == b"Server"
