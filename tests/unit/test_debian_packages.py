"""Debian packages needed by tests: messages about missing ones, and skipped tests."""

from __future__ import annotations

import shutil
import sys

import pytest

from loadtests.programs import PROGRAMS
from proxy.programs import PROGRAMS as PROXIES
from tests import packages
from tests.testkit.server import ROOT, run

SCRIPT = str(ROOT / "tests" / "packages.py")


def test_nothing_is_said_if_nothing_is_missing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packages, "BUILD", {"sh": ("dash", "the build"), "/dev": ("udev", "it")})
    assert packages.main(["build"]) == 0
    assert tuple(capfd.readouterr()) == ("", "")


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


def test_packages_are_those_that_others_name() -> None:
    known = {name: package for name, (package, _) in {**packages.BUILD, **packages.TESTS}.items()}
    for program in PROGRAMS.values():
        for name in program.names:
            assert known.get(name, program.package) == program.package
    for proxy in PROXIES.values():
        assert known[proxy.name] == proxy.package


def test_programs_are_found_as_a_shell_finds_them() -> None:
    assert packages.is_present("sh") == (shutil.which("sh") is not None)
    assert packages.is_present("/dev/null")
    assert not packages.is_present("no-such")
