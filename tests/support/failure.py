"""Runs commands that must fail, and checks exit code and message."""

from __future__ import annotations

from pathlib import Path

from tests.support.forked_command import run_command
from tests.testkit.server import ROOT


def fails(*arguments: str, cwd: Path = ROOT) -> tuple[int, str]:
    """The exit code and the standard error of a command that must not go on."""
    done = run_command(*arguments, cwd=cwd)
    assert done.stdout == ""
    return done.returncode, done.stderr


def says(code: int, *arguments: str, cwd: Path = ROOT) -> str:
    """The one message of a command that fails with `code`, and without a traceback."""
    returned, text = fails(*arguments, cwd=cwd)
    assert returned == code, text
    assert text.startswith("poorhttp: ")
    assert "Traceback" not in text
    assert "listening" not in text
    assert text.count("poorhttp: ") == 1, text
    return text
