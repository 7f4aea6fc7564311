"""The nearest right spelling of a word that was not understood."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: With no near word, up to this many right ones are listed instead.
LISTED = 6


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the one of `words` most like `word`, or None where none is near.

    Upper and lower case, `-` and `_` count as the same.
    """
    import difflib  # only an error needs it

    plain = {_plain(right): right for right in words}
    found = difflib.get_close_matches(_plain(word), plain, n=1)
    return plain[found[0]] if found else None


def suggestion(word: str, words: Iterable[str]) -> str:
    """Return `; did you mean "X"?`, or the right words where they are few, or nothing.

    Made to be put behind `unknown thing "word"`.
    """
    right = list(words)
    near = nearest(word, right)
    if near is not None:
        return f'; did you mean "{near}"?'
    if len(right) == 1:
        return f'; the only one is "{right[0]}"'
    if 1 < len(right) <= LISTED:
        return f"; it is one of {', '.join(right)}"
    return ""


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").strip("_")
