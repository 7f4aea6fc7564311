"""An exception of the application becomes a page; what makes the page is loaded when it is needed.

A request that goes well passes through two lines here, and Werkzeug is not imported before
something fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator

from poorhttp import logs
from poorhttp.dev.debug import responses
from poorhttp.errors import NoResponse
from poorhttp.logs.frames import format_traceback
from poorhttp.worker import wsgi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.config.settings import Settings
    from poorhttp.dev.debug.debugger import Debugger

#: In the environ: whoever would answer an exception himself shall let it go.
DEBUG = "poorhttp.debug"

#: In the environ: the exception that a framework has answered, and we shall.
ANSWERED_EXCEPTION = "poorhttp.debug.answered"

#: In the environ: what a framework would show besides. HTML for everybody, and a title and what
#: makes HTML for those who have entered the PIN.
FRAMEWORK_DETAILS = "poorhttp.debug.more"


def prepare(settings: Settings) -> None:
    """Have frameworks let exceptions go; before the application is imported."""
    if settings.debug != "off":
        os.environ.setdefault("FLASK_DEBUG", "1")


def with_error_pages(application: WSGIApplication, settings: Settings) -> WSGIApplication:
    """Return the application with pages for what it raises; see `docs/development.md`."""
    if "django.core.handlers.exception" in sys.modules:
        from poorhttp.dev.debug.django_errors import pass_exceptions_on

        pass_exceptions_on()
    return ErrorPages(application, settings)


class ErrorPages:
    """An application whose exceptions become pages.

    Not those that have an answer (`NoResponse`), and not where the head is on its way: those are
    the server's (`poorhttp.worker.wsgi.report_failure`).
    """

    def __init__(self, application: WSGIApplication, settings: Settings) -> None:
        self.application = application
        self.settings = settings
        self._debugger: Debugger | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        if responses.MARK in environ["QUERY_STRING"] and (debugger := self.debugger()) is not None:
            return debugger(environ, start_response)
        contexts: list[Any] = []
        environ[DEBUG] = True
        # What a console needs beside its frame: Flask gives us the contexts of its request.
        environ["werkzeug.debug.preserve_context"] = contexts.append
        try:
            body = self.application(environ, start_response)
            if ANSWERED_EXCEPTION in environ:
                raise environ.pop(ANSWERED_EXCEPTION)
        except BaseException as error:
            return self.fail(error, environ, start_response, contexts)
        if type(body) in (list, tuple, wsgi.FileWrapper):
            return body
        return Body(self, body, environ, start_response, contexts)

    def debugger(self) -> Debugger | None:
        """Return what makes the pages, and answers their consoles; none without Werkzeug."""
        if self._debugger is None:
            try:
                from poorhttp.dev.debug.debugger import Debugger
            except ImportError:
                return None
            # In one step: two requests may fail at once, and each page has its frames here.
            self._debugger = vars(self).setdefault("_only", Debugger(self.settings))
        return self._debugger

    def fail(
        self,
        error: BaseException,
        environ: WSGIEnvironment,
        start_response: StartResponse,
        contexts: list[Any],
    ) -> Iterable[bytes]:
        """Answer with the page of an exception; raise it again if there is no answer to be had."""
        if isinstance(error, NoResponse) or getattr(start_response, "disconnected", False):
            raise error
        debugger = self.debugger() if responses.wants_html(environ) else None
        html = debugger is not None
        extra, *more = environ.pop(FRAMEWORK_DETAILS, ("",))
        if debugger is not None:
            page = debugger.page(error, environ, contexts, extra, tuple(more) or None)
        else:
            page = format_traceback(error)
        # It is raised here if the head is on its way, or in a process that was forked meanwhile.
        sent = responses.send(environ, start_response, page, html=html, error=error)
        logs.exception(f"{request_line(environ, start_response)}: the application failed", error)
        return sent


class Body:
    """A body that may fail while it is sent."""

    def __init__(
        self,
        pages: ErrorPages,
        body: Iterable[bytes],
        environ: WSGIEnvironment,
        start_response: StartResponse,
        contexts: list[Any],
    ) -> None:
        self._body = body
        self._fail: Callable[[BaseException], Iterable[bytes]] = lambda error: pages.fail(
            error, environ, start_response, contexts
        )
        if hasattr(body, "close"):
            self.close = body.close

    def __iter__(self) -> Iterator[bytes]:
        try:
            # What it yields does not pass through Python here.
            yield from wsgi.iterate_body(self._body)
        except GeneratorExit:
            raise
        except BaseException as error:
            yield from self._fail(error)


def request_line(environ: WSGIEnvironment, start_response: StartResponse) -> str:
    """Return how a request is named in the log."""
    number = getattr(start_response, "number", None)
    line = f"{environ['REQUEST_METHOD']} {environ.get('RAW_URI', environ['PATH_INFO'])}"
    line = line if line.isprintable() else ascii(line)
    return f"request {number} {line}" if number is not None else line
