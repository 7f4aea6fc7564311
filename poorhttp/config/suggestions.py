"""Suggestions for misspelt words in error messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from poorhttp.config.registry import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.options.option import Option

#: If no word is similar, up to this many valid words are listed.
LISTED = 6


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


def option_suggestion(
    word: str, spellings: Mapping[str, str], options: Mapping[str, Option[object]]
) -> str:
    """Return `; did you mean "X"?` for an unknown option, or an empty text.

    For a name of another server, what to write or to do instead.

    Args:
        word: the unknown name, without a prefix.
        spellings: the name of each option in the same source, by its name in `OPTIONS`.
        options: these, `OPTIONS`.
    """
    from poorhttp.config.other_servers.advice import advice  # needed only after an error

    plain = _plain(word)
    for name, option in options.items():
        if any(_plain(other) == plain for other in (*option.aliases, *option.fixed)):
            return f'; here it is "{spellings.get(name, name)}"'
    if instead := advice(word):
        return f"; {instead}"
    near = nearest(word, spellings)
    meant = f'; did you mean "{spellings[near]}"?' if near else ""
    left_out = [name for name, entry in registry.entries["options"].items() if entry.failure]
    if left_out:
        meant += f"; this installation has no plug-in {', '.join(left_out)}"
    unnamed = registry.unnamed_options()
    return f"{meant}; {unnamed}" if unnamed else meant


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").strip("_")
