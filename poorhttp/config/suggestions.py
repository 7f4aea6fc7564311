"""Suggestions for misspelt words in error messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: If no word is similar, up to this many valid words are listed.
LISTED = 6


_NO_TLS = "there is no TLS here, the proxy in front of the server has it (docs/proxies.md)"

#: Options of other servers whose names are similar to options with another meaning here: the
#: options to suggest, and the message.
_FOREIGN: dict[str, tuple[tuple[str, ...], str]] = {
    "reload": (("autoreload",), "it is {}, and poorhttp dev has it on"),
    "timeout": (
        ("request_timeout", "graceful_timeout"),
        "{} is for an application that works on a request, {} is for the end of the server",
    ),
    "certfile": ((), _NO_TLS),
    "keyfile": ((), _NO_TLS),
}


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the most similar of `words`, or None; ignores case, and `-` is `_`."""
    import difflib  # needed only after an error

    plain = {_plain(right): right for right in words}
    found = difflib.get_close_matches(_plain(word), plain, n=1)
    return plain[found[0]] if found else None


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


def option_suggestion(word: str, spellings: Mapping[str, str]) -> str:
    """Return `; did you mean "X"?` for an unknown option, or an empty text.

    Args:
        word: the unknown name, without a prefix.
        spellings: the name of each option in the same source, by its name in `OPTIONS`.
    """
    if foreign := _FOREIGN.get(_plain(word)):
        names, text = foreign
        return "; " + text.format(*(spellings[name] for name in names))
    near = nearest(word, spellings)
    return f'; did you mean "{spellings[near]}"?' if near else ""


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").strip("_")
