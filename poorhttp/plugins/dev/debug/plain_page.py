"""Error page for a process that was killed or loads slowly: text only.

A fork of the main process serves it, so it needs neither Werkzeug nor the application.
"""

from __future__ import annotations

from collections.abc import Iterable

from poorhttp.plugins.dev.debug.responses import STYLE, note, send, wants_html
from poorhttp.plugins.dev.escape import for_html

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class PlainPage:
    """Application that answers every request with a text; its first line is the heading.

    Attributes:
        reloads: the page reloads itself when there is a new generation, even without `live`.
        retry_after: seconds after which the request may be repeated; 0 if that would not help.
    """

    reloads = True

    def __init__(self, text: str, *, retry_after: int = 0) -> None:
        self.text = text.strip()
        self.retry_after = retry_after

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        if not wants_html(environ):
            text = f"{self.text}\n"
            return send(environ, start_response, text, html=False, retry_after=self.retry_after)
        heading, _, rest = self.text.partition("\n")
        more = f"<pre>{for_html(rest)}</pre>\n" if rest.strip() else ""
        page = (
            '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
            f"<title>{for_html(heading)}</title>\n<style>{STYLE}</style>\n"
            f"<h1>{for_html(heading)}</h1>\n{more}<p>{note(environ)}</p>\n"
        )
        return send(environ, start_response, page, html=True, retry_after=self.retry_after)
