"""Answers exceptions of the application with an error page.

A request without an exception costs next to nothing here, and Werkzeug is imported with the first
exception.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator

from poorhttp import logs
from poorhttp.errors import NoResponse
from poorhttp.plugins.dev import template_errors
from poorhttp.plugins.dev.debug import handled_errors, responses
from poorhttp.plugins.dev.debug.handled_errors import HandledError, NotingStartResponse
from poorhttp.plugins.dev.debug.responses import ANSWERED_EXCEPTION, DEBUG, FRAMEWORK_DETAILS
from poorhttp.plugins.dev.frames import format_traceback
from poorhttp.worker import wsgi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.config.settings import Settings


def prepare() -> None:
    """Have frameworks raise exceptions; to be called before the application is imported."""
    os.environ.setdefault("FLASK_DEBUG", "1")


def with_error_pages(application: WSGIApplication, settings: Settings) -> WSGIApplication:
    """Return the application, with pages for its exceptions (`docs/guides/development.md`)."""
    if "django.core.handlers.exception" in sys.modules:
        from poorhttp.plugins.dev.debug.django_errors import pass_exceptions_on

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
        handled = handled_errors.begin(environ)
        noting = NotingStartResponse(start_response, handled)

        def fail(error: BaseException) -> Iterable[bytes]:
            return self.fail(error, environ, start_response, contexts, handled)

        body: Iterable[bytes] = []
        streams = False
        try:
            body = self.application(environ, noting)
            if ANSWERED_EXCEPTION in environ:
                raise environ.pop(ANSWERED_EXCEPTION)
            cause = handled.cause
            if cause is not None and self.replaces(handled, environ, start_response):
                return Closed(fail(cause), body)
            streams = type(body) not in (list, tuple, wsgi.FileWrapper)
        except BaseException as error:
            return fail(error)
        finally:
            if not streams:
                handled_errors.end()
        if not streams:
            return body
        return Body(body, fail, lambda: self.replaces(handled, environ, start_response), handled)

    def replaces(
        self, handled: HandledError, environ: WSGIEnvironment, start_response: StartResponse
    ) -> bool:
        """Whether a page takes the place of a response; if not, the log has its exception.

        Browsers get a page. Other clients get the traceback, unless the response is one that they
        may understand, such as JSON.
        """
        error = handled.cause
        if error is None:
            return False
        is_open = not getattr(start_response, "committed", False)
        if is_open and (responses.wants_html(environ) or not handled.is_structured):
            return True
        self.log(error, environ, start_response, handled)
        return False

    def fail(
        self,
        error: BaseException,
        environ: WSGIEnvironment,
        start_response: StartResponse,
        contexts: list[Any],
        handled: HandledError,
    ) -> Iterable[bytes]:
        """Answer with the page of an exception, or raise it again if no answer can be sent."""
        if isinstance(error, NoResponse) or getattr(start_response, "disconnected", False):
            raise error
        debugger = responses.debugger_of(self) if responses.wants_html(environ) else None
        html = debugger is not None
        more = environ.pop(FRAMEWORK_DETAILS, None)
        template = template_errors.excerpt(error)
        if debugger is not None:
            extra = template.html if template else ""
            page = debugger.page(error, environ, contexts, extra, more)
        else:
            page = format_traceback(error) + (template.text if template else "")
        status = handled.status if error is handled.cause else responses.STATUS
        # Raises the exception if the head was sent, or in a process forked by the application.
        sent = responses.send(environ, start_response, page, html=html, error=error, status=status)
        self.log(error, environ, start_response, handled)
        return sent

    def log(
        self,
        error: BaseException,
        environ: WSGIEnvironment,
        start_response: StartResponse,
        handled: HandledError,
    ) -> None:
        """Log an exception, unless the application has done so where the log is."""
        if error is handled.error and handled.in_log and self.settings.error_log == "-":
            return
        # A response has one exception, and it is logged once.
        handled.error, handled.in_log = error, True
        name = getattr(start_response, "name", None)
        what = request_line(environ, start_response)
        logs.exception(f"{what}: the application failed", error, name)
        template = template_errors.excerpt(error) if logs.error_log.show is None else None
        if template is not None:
            # Otherwise the terminal shows it with the traceback.
            text = f"{what}: failed in the template {template.place}"
            logs.write("error", text, name, traceback=template.text)


class Body:
    """Wraps a body whose iteration may raise, or make a response with an exception that is handled.

    Args:
        body: of the application.
        fail: makes the page of an exception.
        replaces: whether that takes the place of the response.
        handled: the exception that the application has handled.
    """

    def __init__(
        self,
        body: Iterable[bytes],
        fail: Callable[[BaseException], Iterable[bytes]],
        replaces: Callable[[], bool],
        handled: HandledError,
    ) -> None:
        self._body = body
        self._fail = fail
        self._replaces = replaces
        self._handled = handled
        if hasattr(body, "close"):
            self.close = body.close

    def __iter__(self) -> Iterator[bytes]:
        try:
            pieces = wsgi.iterate_body(self._body)
            for piece in pieces:
                if piece:
                    # The head is sent with the first piece.
                    if self._replaces() and self._handled.cause is not None:
                        yield from self._fail(self._handled.cause)
                        return
                    yield piece
                    break
                yield piece
            else:
                if self._replaces() and self._handled.cause is not None:
                    yield from self._fail(self._handled.cause)
                return
            # `yield from` passes items on without running Python code here.
            yield from pieces
        except GeneratorExit:
            raise
        except BaseException as error:
            yield from self._fail(error)
        finally:
            handled_errors.end()


class Closed:
    """A page in place of a body, which is closed with it."""

    def __init__(self, page: Iterable[bytes], body: Any) -> None:
        self._page = page
        if hasattr(body, "close"):
            self.close = body.close

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._page)


def request_line(environ: WSGIEnvironment, start_response: StartResponse) -> str:
    """Return the text that names a request in the log."""
    number = getattr(start_response, "number", None)
    line = f"{environ['REQUEST_METHOD']} {environ.get('RAW_URI', environ['PATH_INFO'])}"
    line = line if line.isprintable() else ascii(line)
    return f"request {number} {line}" if number is not None else line
