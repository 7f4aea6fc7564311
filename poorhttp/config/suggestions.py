"""Suggestions for misspelt words in error messages."""

from __future__ import annotations

from collections.abc import Iterable

#: If no word is similar, up to this many valid words are listed.
LISTED = 6


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the most similar of `words`, or None; ignores case, and `-` is `_`."""
    import difflib  # needed only after an error

    spellings = {plain(right): right for right in words}
    found = difflib.get_close_matches(plain(word), spellings, n=1)
    return spellings[found[0]] if found else None


def suggestion(word: str, words: Iterable[str]) -> str:
    """Return `; did you mean "X"?`, or the valid words if they are few, or an empty text."""
    right = list(words)
    near = nearest(word, right)
    if near is not None:
        return f'; did you mean "{near}"?'
    if len(right) == 1:
        return f'; the only one is "{right[0]}"'
    if 1 < len(right) <= LISTED:
        return f"; it is one of {', '.join(right)}"
    return ""


def plain(word: str) -> str:
    """Return a word as all its spellings are the same: in lower case, with `_` for `-`."""
    return word.lower().replace("-", "_").strip("_")
