"""Renders a part that a page includes."""

from __future__ import annotations

from typing import Any

from mako import runtime
from mako.exceptions import TopLevelLookupException


def include(context: Any, uri: str, calling_uri: str, **names: Any) -> None:
    """Render a part where `<%include>` stands, as Mako does.

    A part that stands alone gets the scope of the page itself: it uses none of the names that Mako
    would replace in a copy.
    """
    # Inside a function of a page, Mako passes the page's arguments to the part.
    if not names and "pageargs" not in context._data:
        folder = context._with_template.lookup
        try:
            part = folder.get_template(folder.adjust_uri(uri, calling_uri))
        except TopLevelLookupException:
            # Mako raises its own error below.
            pass
        else:
            if part.plain:
                part.callable_(context)
                return
    runtime._include_file(context, uri, calling_uri, **names)
