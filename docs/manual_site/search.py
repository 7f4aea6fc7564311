"""The site's search: finds status codes, and shows tutorial and guides before other pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sphinx.search.en import SearchEnglish

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class Language(SearchEnglish):
    """English, with numbers of three digits, such as 504. search.js looks for them."""

    def word_filter(self, word: str) -> bool:
        """Tell whether the index has a word."""
        return (word.isdigit() and len(word) == 3) or super().word_filter(word)


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace Sphinx's English."""
    app.add_search_language(Language)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
