"""`make programs`: what is pinned, what counts as a failure, and what is printed."""

from __future__ import annotations

import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.programs.running.application import Application
from tests.programs.running.report import judge, line
from tests.programs.running.visit import Place, Visit
from tests.testkit.client import HANG
from tests.testkit.process import children, lives
from tests.testkit.server import Program, wait_for


def test_what_is_a_failure() -> None:
    reference = Visit("gunicorn", {"a": 1, "b": [2]})
    assert judge([reference], reference) == ""
    assert judge([reference], Visit("forking", {"a": 1, "b": [2]})) == ""
    assert "b:\n    gunicorn: [2]\n    forking: None" in judge(
        [reference], Visit("forking", {"a": 1})
    )
    assert (
        judge([reference], Visit("forking", {**reference.seen, "c": 3})) == "c: only under forking"
    )
    assert judge([reference], Visit("forking", dict(reference.seen), fault="ended")) == "ended"
    assert "traceback" in judge(
        [reference], Visit("forking", dict(reference.seen), log="Traceback")
    )
    # Nothing is compared with a reference that has failed.
    reference.fault = "ended"
    assert judge([reference], Visit("forking", {"a": 2})) == ""


INTERRUPTED = """
import sys
from tests.programs import __main__ as programs
from tests.programs.running.application import Application
from tests.programs.running.visit import Place

class Silent(Application):
    target = "none"
    def command(self):
        return ["sh", "-c", "sleep 1000; true"]

def prepare(place):
    place.folder.mkdir()
    place._prepared.mkdir()

programs.load = lambda name: Silent
programs.environment.is_made = lambda *_: True
Place.prepare = prepare
sys.exit(programs.command(["zope"]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_outlives_a_run(number: signal.Signals, tmp_path: Path) -> None:
    with Program(sys.executable, "-c", INTERRUPTED, env={"TMPDIR": str(tmp_path)}) as program:
        wait_for(lambda: children(program.process.pid), "a server")
        (server,) = children(program.process.pid)
        wait_for(lambda: children(server), "its child")
        started = [server, *children(server)]
        program.process.send_signal(number)
        assert program.process.wait(HANG) == 128 + number
        wait_for(lambda: not any(map(lives, started)), "their end")
        assert program.log() == ""
        assert program.output().endswith(
            "interrupted: servers and folders go, complete environments are kept\n"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_ends_before_it_answers(tmp_path: Path) -> None:
    class Ended(Application):
        def command(self) -> list[str]:
            return ["sh", "-c", "echo no such application; exit 4"]

    for folder in ("site", "prepared"):
        (tmp_path / folder).mkdir()
    with closing(Place("ended", Ended, tmp_path)) as place:
        visit = place.visit("forking")
    # pytest adds a line to the assertion.
    assert visit.fault.splitlines()[0] == "the server does not answer: exit code 4"
    assert visit.log == "no such application\n"
    assert "FAILED, 0 steps" in line(visit, judge([Visit("gunicorn"), visit], visit))
