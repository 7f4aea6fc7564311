"""How a page includes a part."""

from __future__ import annotations

from mako import runtime
from mako.exceptions import TopLevelLookupException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def include(context: Any, uri: str, calling_uri: str, **names: Any) -> None:
    """Render a part where `<%include>` stands, as Mako does.

    One that stands alone is given the scope of the page as it is: it does not ask for what Mako
    would put there and take away first.
    """
    # A function of a page passes the page's own arguments on.
    if not names and "pageargs" not in context._data:
        folder = context._with_template.lookup
        try:
            part = folder.get_template(folder.adjust_uri(uri, calling_uri))
        except TopLevelLookupException:
            # Mako tells it in its own words.
            pass
        else:
            if part.plain:
                part.callable_(context)
                return
    runtime._include_file(context, uri, calling_uri, **names)
