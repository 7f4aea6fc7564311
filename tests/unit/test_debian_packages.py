"""Debian packages needed by tests: messages about missing ones, and skipped tests."""

from __future__ import annotations

import sys

import pytest

from tests import packages
from tests.testkit.server import ROOT, run

SCRIPT = str(ROOT / "tests" / "packages.py")


def test_what_cannot_be_installed_is_told() -> None:
    """Without a path there is no apt-get either."""
    done = run(sys.executable, SCRIPT, env={"PATH": "/nowhere"})
    assert (done.returncode, done.stdout) == (1, "")
    first, *listed, how, command = done.stderr.splitlines()
    assert "left out without them" in first
    assert "    wrk                     wrk, the load lab's client" in listed
    assert how == "To install them, as root:"
    words = command.split()
    assert words[:3] == ["apt-get", "install", "--no-install-recommends"]
    assert words[3:] == [line.split()[0] for line in listed]


def test_a_test_without_its_program_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "is_present", lambda name: name in ("nginx", "lighttpd"))
    packages.need("nginx")
    for names, missing in (
        (("nginx", "wrk"), "wrk is not installed (Debian: apt install wrk)"),
        (("lighttpd",), "apt install lighttpd-mod-openssl"),
    ):
        with pytest.raises(pytest.skip.Exception) as skipped:
            packages.need(*names)
        assert missing in str(skipped.value)
