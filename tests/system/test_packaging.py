"""The name of the distribution: `poorhttp` on PyPI is another project, ours is `poorhttpd`."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from poorhttp import __version__
from tests.testkit.client import HANG
from tests.testkit.server import ROOT, environment

#: A command that installs the other project: its name behind a command of an installer in the same
#: line, or at the beginning of the next one.
WRONG_COMMAND = re.compile(
    r"""\b(?:pip3?|pipx|uv)\b[^\n`;|&]*?\b(?:install|add|download|wheel)\b
        (?:[^\n`;|&]*?(?<![\w./@-])|[\ \t]*\n\W*)
        poorhttp(?![\w/-]|\.\w)""",
    re.VERBOSE,
)
#: The other project with an extra of ours.
WRONG_EXTRA = re.compile(r"\bpoorhttp\[(?:dev|forms|gevent|lab|lint|pages|test)\b")

#: Folders that hold nothing of ours.
SKIPPED = {"target", "build", "dist", "node_modules", "results", "__pycache__"}


def texts(folder: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """All text files of the source, but this one."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        hidden = entry.name.startswith(".") and entry.name not in (".ci", ".dockerignore")
        if entry.is_symlink() or hidden or entry.name in SKIPPED:
            continue
        path = Path(entry.path)
        if entry.is_dir():
            yield from texts(path)
        elif path != Path(__file__).resolve():
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def wrong(text: str) -> list[str]:
    """What in a text installs the other project."""
    return [match[0] for rule in (WRONG_COMMAND, WRONG_EXTRA) for match in rule.finditer(text)]


@pytest.mark.parametrize(
    "text",
    [
        "pip install poorhttp",
        "pip install 'poorhttp[dev]'",
        'python3 -m pip install --quiet "poorhttp==1.0.0"',
        "Install it by pip install poorhttp.",
        "run(['pip', 'install', 'flask', 'poorhttp'])",
        "uv add poorhttp>=1",
        "pipx install --python 3.12 poorhttp",
        "# so pip install\n# poorhttp does it",
        "needs `poorhttp[gevent]`",
        "pip install --find-links /wheels poorhttp\n",
    ],
)
def test_what_is_wrong(text: str) -> None:
    assert wrong(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install poorhttpd",
        "pip install 'poorhttpd[dev]'",
        "pip install .\npoorhttp serve hello:application",
        "pip install . && poorhttp serve hello:application",
        "`pip install .`, then `poorhttp dev`",
        "/opt/poorhttp/bin/pip install .",
        "pip install -r /srv/poorhttp/requirements.txt",
        "<30>Jan 1 00:00:00 poorhttp[17]: text",
    ],
)
def test_what_is_right(text: str) -> None:
    assert wrong(text) == []


def test_no_text_says_to_install_the_other_project() -> None:
    found = [f"{path.relative_to(ROOT)}: {line}" for path, text in texts() for line in wrong(text)]
    assert found == []
    read = {path.relative_to(ROOT).as_posix() for path, _ in texts()}
    assert {"README.md", "conf/poorhttp.service", "conf/container/Containerfile"} <= read


def test_an_installation_under_the_name_before_does_no_harm(tmp_path: Path) -> None:
    """All that is declared is there twice then, and means the same."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["metadata"]["name"] == "poorhttpd"
    points = "\n".join(
        f"[{group}]{named}" for group, named in setup["options.entry_points"].items()
    )
    for name in ("poorhttp", "poorhttpd"):
        folder = tmp_path / f"{name}-{__version__}.dist-info"
        folder.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {__version__}\n"
        (folder / "METADATA").write_text(metadata)
        (folder / "entry_points.txt").write_text(points)
    (tmp_path / "site").mkdir()
    (tmp_path / "site/dispatch_table.py").write_text(
        "from poorhttp import dispatch as http\nhandlers = {}\n"
    )
    for command, said in (
        (("poorhttp", "check", "dispatch:site"), "dispatch:site"),
        (("poorhttp", "serve", "--mode", "singel"), 'did you mean "single"?'),
        (("flask", "--help"), "dev "),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            env=environment({**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG,
        )
        output = done.stdout + done.stderr
        assert said in output, output
        assert "Traceback" not in output
        assert output.count(" dev ") <= 1
