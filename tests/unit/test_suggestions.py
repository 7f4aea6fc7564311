"""Spelling suggestions for unknown names."""

from __future__ import annotations

import pytest

from poorhttp.config.suggestions import nearest, suggestion


@pytest.mark.parametrize(
    ("word", "right"),
    [
        ("thread", "threads"),
        ("THREADS", "threads"),
        ("max-body", "max_body"),
        ("--max_boddy", "max_body"),
        ("zebra", None),
        ("", None),
    ],
)
def test_nearest(word: str, right: str | None) -> None:
    assert nearest(word, ["threads", "max_body", "bind"]) == right


def test_the_suggestion_keeps_the_spelling_it_was_given() -> None:
    assert suggestion("--max_body", ["--max-body"]) == '; did you mean "--max-body"?'


def test_few_words_are_listed_where_none_is_near() -> None:
    assert suggestion("zebra", ["debug", "info"]) == "; it is one of debug, info"


def test_many_words_are_not() -> None:
    assert suggestion("zebra", ["one", "two", "three", "four", "five", "six", "seven"]) == ""
