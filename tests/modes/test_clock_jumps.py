"""Jumps of the wall clock change no timeout."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.support.load import Load
from tests.testkit.server import ROOT
from tests.testkit.versions import Versions

JUMPING = """
import itertools, time
real, jumps = time.time, itertools.cycle([0, 86400, -86400, 3.2e9])
time.time = lambda: real() + next(jumps)
time.time_ns = lambda: int(time.time() * 1e9)
"""
"""For Python; the core asks for the time of day to write dates, and for nothing else."""


def test_a_clock_that_jumps(mode: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(JUMPING)
    versions = Versions(tmp_path)
    options = ("--max-lifetime", "3600", "--request-timeout", "30", "--graceful-timeout", "20")
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with versions.serve(mode, *options, env=env) as server:
        with Load(server.port) as load:
            load.wait_more(50)
            versions.set("2")
            server.process.send_signal(signal.SIGHUP)
            load.wait_version("2")
            load.wait_more(50)
        load.check()
        assert "max_lifetime" not in server.log()
