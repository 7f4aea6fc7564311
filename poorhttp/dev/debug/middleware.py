"""Answers exceptions of the application with an error page.

A request without an exception costs next to nothing here, and Werkzeug is imported with the first
exception.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator

from poorhttp import logs
from poorhttp.dev.debug import responses
from poorhttp.dev.debug.responses import ANSWERED_EXCEPTION, DEBUG, FRAMEWORK_DETAILS
from poorhttp.errors import NoResponse
from poorhttp.logs.frames import format_traceback
from poorhttp.worker import wsgi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.config.settings import Settings


def prepare(settings: Settings) -> None:
    """Have frameworks raise exceptions; to be called before the application is imported."""
    if settings.debug != "off":
        os.environ.setdefault("FLASK_DEBUG", "1")


def with_error_pages(application: WSGIApplication, settings: Settings) -> WSGIApplication:
    """Return the application, with pages for its exceptions (`docs/guides/development.md`)."""
    if "django.core.handlers.exception" in sys.modules:
        from poorhttp.dev.debug.django_errors import pass_exceptions_on

        pass_exceptions_on()
    return ErrorPages(application, settings)


class ErrorPages:
    """Wraps an application and answers its exceptions with a page.

    The server handles those of the type `NoResponse`, and those raised after the response head was
    sent (`poorhttp.worker.wsgi.report_failure`).
    """

    def __init__(self, application: WSGIApplication, settings: Settings) -> None:
        self.application = application
        self.settings = settings

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        marked = responses.MARK in environ["QUERY_STRING"]
        if marked and (debugger := responses.debugger_of(self)) is not None:
            return debugger(environ, start_response)
        contexts: list[Any] = []
        environ[DEBUG] = True
        # Flask passes the contexts of its request, which a console needs.
        environ["werkzeug.debug.preserve_context"] = contexts.append
        try:
            body = self.application(environ, start_response)
            if ANSWERED_EXCEPTION in environ:
                raise environ.pop(ANSWERED_EXCEPTION)
        except BaseException as error:
            return self.fail(error, environ, start_response, contexts)
        if type(body) in (list, tuple, wsgi.FileWrapper):
            return body
        return Body(body, lambda error: self.fail(error, environ, start_response, contexts))

    def fail(
        self,
        error: BaseException,
        environ: WSGIEnvironment,
        start_response: StartResponse,
        contexts: list[Any],
    ) -> Iterable[bytes]:
        """Answer with the page of an exception, or raise it again if no answer can be sent."""
        if isinstance(error, NoResponse) or getattr(start_response, "disconnected", False):
            raise error
        debugger = responses.debugger_of(self) if responses.wants_html(environ) else None
        html = debugger is not None
        extra, *more = environ.pop(FRAMEWORK_DETAILS, ("",))
        if debugger is not None:
            page = debugger.page(error, environ, contexts, extra, tuple(more) or None)
        else:
            page = format_traceback(error)
        # Raises the exception if the head was sent, or in a process forked by the application.
        sent = responses.send(environ, start_response, page, html=html, error=error)
        name = getattr(start_response, "name", None)
        what = request_line(environ, start_response)
        logs.exception(f"{what}: the application failed", error, name)
        return sent


class Body:
    """Wraps a body whose iteration may raise."""

    def __init__(
        self, body: Iterable[bytes], fail: Callable[[BaseException], Iterable[bytes]]
    ) -> None:
        self._body = body
        self._fail = fail
        if hasattr(body, "close"):
            self.close = body.close

    def __iter__(self) -> Iterator[bytes]:
        try:
            # `yield from` passes items on without running Python code here.
            yield from wsgi.iterate_body(self._body)
        except GeneratorExit:
            raise
        except BaseException as error:
            yield from self._fail(error)


def request_line(environ: WSGIEnvironment, start_response: StartResponse) -> str:
    """Return the text that names a request in the log."""
    number = getattr(start_response, "number", None)
    line = f"{environ['REQUEST_METHOD']} {environ.get('RAW_URI', environ['PATH_INFO'])}"
    line = line if line.isprintable() else ascii(line)
    return f"request {number} {line}" if number is not None else line
