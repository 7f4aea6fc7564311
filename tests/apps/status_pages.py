"""Status pages of made-up documents, below `/NAME/`: rendered as the admin process does it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from poorhttp.plugins.monitor import page
from poorhttp.plugins.monitor.page import stream
from tests.apps.basics import Environ, Pieces, StartResponse
from tests.support.status_documents import DOCUMENTS

if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Status

# Each stream has one event, as this process has no thread that sends more.
stream.MOST_STREAMS = 0


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer a request for a page, or for what belongs to it."""
    _, name, rest = environ["PATH_INFO"].split("/", 2)
    environ["PATH_INFO"] = f"/{rest}"
    view = {"/": page.page, "/-/events": page.events}.get(environ["PATH_INFO"], page.file)
    return view(lambda: document(name), environ, start_response)


@cache
def document(name: str) -> Status:
    """A document; it takes long to make one up."""
    made = DOCUMENTS[name.replace("-", " ")]()
    for service in made["services"][2:]:
        # Charts have no texts, and a browser draws hundreds of them for a long time.
        service["history"] = []
    return made
