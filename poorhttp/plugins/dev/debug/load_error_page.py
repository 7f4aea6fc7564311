"""Error page of an application that cannot be loaded."""

from __future__ import annotations

from collections.abc import Iterable

from poorhttp.plugins.dev.debug import responses
from poorhttp.plugins.dev.debug.plain_page import PlainPage
from poorhttp.plugins.dev.escape import for_html
from poorhttp.plugins.dev.frames import format_traceback
from poorhttp.plugins.dev.options import Development

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.config.settings import Settings


def load_error_page(error: BaseException, settings: Settings) -> WSGIApplication:
    """Return an application that answers every request with the traceback of a load error.

    The status is 500, since clients may wait and retry after a 503, which would not help. Without
    `debug` the page shows nothing of the application, since anybody may see it.
    """
    if settings.of(Development).debug == "off":
        return PlainPage("The application cannot be loaded\nThe log says why.")
    return LoadErrorPage(error, settings)


class LoadErrorPage:
    """Application that answers every request with a traceback.

    Attributes:
        reloads: the page reloads itself when there is a new generation, even without `live`.
    """

    reloads = True

    def __init__(self, error: BaseException, settings: Settings) -> None:
        self.error = error
        self.settings = settings

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        marked = responses.MARK in environ["QUERY_STRING"]
        html = responses.wants_html(environ)
        debugger = responses.debugger_of(self) if marked or html else None
        if debugger is None:
            return self._plain(environ, start_response, html=html)
        if marked:
            return debugger(environ, start_response)
        words = f"The application cannot be loaded. {responses.note(environ)}"
        extra = f'<p class="note">{words}</p>'
        page = debugger.page(self.error, environ, [], extra)
        return responses.send(environ, start_response, page, html=True)

    def _plain(
        self, environ: WSGIEnvironment, start_response: StartResponse, *, html: bool
    ) -> Iterable[bytes]:
        """Answer with the traceback alone: as text, or without Werkzeug as HTML."""
        text = format_traceback(self.error)
        if html:
            text = f"<!doctype html>\n<head></head>\n<pre>{for_html(text)}</pre>"
        return responses.send(environ, start_response, text, html=html)
