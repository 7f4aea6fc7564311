"""The page of a version that cannot be loaded."""

from __future__ import annotations

from collections.abc import Iterable

from poorhttp.dev.debug import responses
from poorhttp.dev.debug.plain_page import PlainPage
from poorhttp.logs.frames import format_traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.config.settings import Settings
    from poorhttp.dev.debug.debugger import Debugger


def load_error_page(error: BaseException, settings: Settings) -> WSGIApplication:
    """Return what answers every request with the traceback of what went wrong.

    Its status is 500: with a 503 tools may
    wait, and ask again, where a person has to do something first.

    Without `debug` it shows nothing of the application: anybody may see it then.
    """
    if settings.debug == "off":
        return PlainPage("The application cannot be loaded\nThe log says why.")
    return LoadErrorPage(error, settings)


class LoadErrorPage:
    """Answers in the place of the application (PEP 3333).

    Attributes:
        reloads: its page shall load itself again when there is a new version, `live` or not.
    """

    reloads = True

    def __init__(self, error: BaseException, settings: Settings) -> None:
        self.error = error
        self.settings = settings
        self._debugger: Debugger | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        marked = responses.MARK in environ["QUERY_STRING"]
        html = responses.wants_html(environ)
        if (marked or html) and self._debugger is None:
            # Not before somebody looks: a version that nobody looks at need not hold it.
            try:
                from poorhttp.dev.debug.debugger import Debugger
            except ImportError:
                return self._plain(environ, start_response, html=html)
            # In one step: two may look at the same time, and each page has its frames here.
            self._debugger = vars(self).setdefault("_only", Debugger(self.settings))
        if not (marked or html):
            return self._plain(environ, start_response, html=False)
        assert self._debugger is not None
        if marked:
            return self._debugger(environ, start_response)
        words = f"The application cannot be loaded. {responses.note(environ)}"
        extra = f'<p class="note">{words}</p>'
        page = self._debugger.page(self.error, environ, [], extra)
        return responses.send(environ, start_response, page, html=True)

    def _plain(
        self, environ: WSGIEnvironment, start_response: StartResponse, *, html: bool
    ) -> Iterable[bytes]:
        """Answer with the traceback alone; as HTML that loads itself again, without Werkzeug."""
        text = format_traceback(self.error)
        if html:
            text = f"<!doctype html>\n<head></head>\n<pre>{responses.escaped(text)}</pre>"
        return responses.send(environ, start_response, text, html=html)
