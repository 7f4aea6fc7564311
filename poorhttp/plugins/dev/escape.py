"""Escapes text for error pages and for the terminal."""

from __future__ import annotations

from poorhttp._core import escape


def for_html(text: str) -> str:
    """Return text as HTML; lone surrogates are shown as escapes."""
    return escape(text.encode("utf-8", "backslashreplace").decode())


def for_terminal(text: str, keep: str = "") -> str:
    """Return text with characters escaped that control a terminal or cannot be encoded.

    Those of `keep` are left as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in keep else ascii(each)[1:-1] for each in text
    )
