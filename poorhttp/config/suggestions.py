"""The nearest right spelling of a word that was not understood."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: With no near word, up to this many right ones are listed instead.
LISTED = 6


_NO_TLS = "there is no TLS here, the proxy in front of the server has it (docs/proxies.md)"

#: Options of other servers that are near to one of ours and mean something else: our options for
#: it, and what to say of them.
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


def option_suggestion(word: str, spellings: Mapping[str, str]) -> str:
    """Return `; did you mean "X"?` for an option, or what there is instead, or nothing.

    Args:
        word: what was written, without a prefix.
        spellings: how each option is written there, by its name.
    """
    foreign = _FOREIGN.get(_plain(word))
    if foreign is not None:
        names, text = foreign
        return "; " + text.format(*(spellings[name] for name in names))
    near = nearest(word, spellings)
    return f'; did you mean "{spellings[near]}"?' if near else ""


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").strip("_")
