"""The five pages of the Uniserve study from memory, for servers that serve applications only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from loadtests.apps import study_sites

_NAMES = list(study_sites.IMAGES)
PAGES = {
    f"/index{number}.html": study_sites.page(f"Page {number}", _NAMES[:number], study_sites.PAGE)
    for number in study_sites.PAGES
}


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    page = PAGES[environ["PATH_INFO"]]
    start_response(
        "200 OK", [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(page)))]
    )
    return [page]
