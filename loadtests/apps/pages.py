"""The five pages of the Uniserve study from memory, for servers that serve applications only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apps.site import make_site

_NAMES = list(make_site.IMAGES)
PAGES = {
    f"/index{number}.html": make_site.page(f"Page {number}", _NAMES[:number], make_site.PAGE)
    for number in make_site.PAGES
}


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A page, by its path."""
    page = PAGES[environ["PATH_INFO"]]
    start_response(
        "200 OK",
        [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(page)))],
    )
    return [page]
