"""`make programs`: what is pinned, what counts as a failure, and what is printed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.programs.running.application import Application
from tests.programs.running.report import judge, line
from tests.programs.running.visit import Place, Visit


def test_what_is_a_failure() -> None:
    seen = {"a": 1, "b": [2]}
    reference = Visit("gunicorn", seen)

    def said(visit: Visit) -> str:
        return judge([reference], visit)

    assert said(reference) == said(Visit("forking", seen)) == ""
    assert "b:\n    gunicorn: [2]\n    forking: None" in said(Visit("forking", {"a": 1}))
    assert said(Visit("forking", {**seen, "c": 3})) == "c: only under forking"
    assert said(Visit("forking", seen, fault="ended")) == "ended"
    assert "traceback" in said(Visit("forking", seen, log="Traceback"))
    # Nothing is compared with a reference that has failed.
    reference.fault = "ended"
    assert said(Visit("forking", {"a": 2})) == ""


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
