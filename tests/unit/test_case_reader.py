"""Protocol cases: each that fails is named, and the page made from them is up to date."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import refusals
from tests.support.check_each import check_each
from tests.testkit.cases.exchanges import Case, read_all


def test_every_case_is_checked_and_each_that_fails_is_named() -> None:
    cases = [replace(read_all()[0], name=name) for name in ("one", "two", "three")]
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
