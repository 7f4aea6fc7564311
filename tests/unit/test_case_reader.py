"""The reader of protocol cases, and the page made from them (docs/reference/refusals.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests import refusals
from tests.support.check_each import check_each
from tests.testkit.cases.exchanges import Case, read

CASE = """\
## Things
# A comment.

name: thing
rfc: 9112 5
why: It goes on
    and on.
expect: HEAD:200 404 close
body: 2 * a\\x00
environ:
    PATH_INFO: /\\xe9
    not HTTP_X
send:
    GET\\t\\\\
     3 * \\r\\n
    3 * \\r\\n
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "case.txt"
    path.write_text(text, "utf-8")
    return path


def test_case(tmp_path: Path) -> None:
    (case,) = read(write(tmp_path, CASE))
    assert (case.heading, case.name, case.rfc) == ("Things", "thing", "9112 5")
    assert case.why == "It goes on and on."
    assert (case.statuses, set(case.heads), case.end) == ((200, 404), {0}, "close")
    assert case.body == b"a\0a\0"
    assert case.environ == {"PATH_INFO": "/\xe9", "HTTP_X": None}
    assert case.send == b"GET\t\\ 3 * \r\n\r\n\r\n\r\n"
    assert case.refused


def test_case_of_an_answer(tmp_path: Path) -> None:
    text = CASE + "answer: 200 \\u20ac\nheader:\n    X: a: b\npieces:\n    a\n    \\e\nby: list\n"
    (case,) = read(write(tmp_path, text))
    assert case.answer
    assert (case.answer.status, case.answer.fields) == ("200 \u20ac", (("X", "a: b"),))
    assert (case.answer.pieces, case.answer.ways) == ((b"a", b""), ("list",))
    assert not case.refused


def test_every_case_is_checked_and_each_that_fails_is_named(tmp_path: Path) -> None:
    (model,) = read(write(tmp_path, CASE))
    cases = [replace(model, name=name) for name in ("one", "two", "three")]
    seen = []

    def check(case: Case) -> None:
        seen.append(case.name)
        if case.name != "two":
            raise ValueError("no good")

    named = r"(?s)2 of 3 .*: one three\none: .*no good\nthree: .*no good"
    with pytest.raises(AssertionError, match=named):
        check_each(cases, check)
    assert seen == ["one", "two", "three"]
    with pytest.raises(AssertionError, match="there is no case"):
        check_each([], check)


def test_the_page_is_up_to_date() -> None:
    _, _, made = refusals.PAGE.read_text("utf-8").partition(refusals.MARK)
    assert made == refusals.page(), "run: python -m tests.refusals"
