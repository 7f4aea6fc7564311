"""Notes the exceptions that an application handles itself in a request, for its error page.

These are exceptions that it logs by `logging`, prints by `traceback`, writes to `wsgi.errors` or
passes to `start_response`; of ASGI, those that it logs or prints. They are shown only if the status
of the response is a server error.
"""

from __future__ import annotations

import sys

# Not `contextvars`, which is one more module.
from _contextvars import ContextVar
from collections.abc import Callable

from poorhttp import logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: Of the request that this thread, greenlet or task runs.
current: ContextVar[HandledError | None] = ContextVar("poorhttp.handled_error", default=None)

#: Modules of frameworks that log each exception before they answer it with status 500. Django and
#: Flask have a setting that raises such exceptions in development: the user has switched it off.
OWN_SWITCH = ("/django/utils/log.py", "/django/core/handlers/exception.py", "/flask/app.py")

#: Begins each traceback, for those that are written as text.
TRACEBACK = "Traceback (most recent call last)"

#: Levels of `logging`.
WARNING, ERROR = 30, 40


class HandledError:
    """What an application has noted in one request.

    Attributes:
        error: the exception; None: none was noted.
        status: that the application has passed to `start_response`; empty: it has not yet.
        in_log: the application has written the traceback to standard error itself.
        logs: a record of `logging` is being written, whose exception was judged by itself.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.status = ""
        self.in_log = False
        self.logs = False
        self._level = 0
        self._content_type = ""

    def note(self, error: BaseException, level: int, *, in_log: bool) -> None:
        """Note an exception: the latest of the highest level counts."""
        if self.logs:
            return
        if self.error is error:
            self.in_log |= in_log
        elif level >= self._level:
            self.error, self._level, self.in_log = error, level, in_log

    def note_response(self, status: Any, headers: Any) -> None:
        """Note status and type of a response, which may be malformed: the server reports that."""
        try:
            fields = {name.lower(): value for name, value in headers}
            self._content_type = fields.get("content-type", "").lower()
            self.status = status if isinstance(status, str) else ""
        except (AttributeError, TypeError, ValueError):
            self.status = ""

    @property
    def cause(self) -> BaseException | None:
        """The exception for which a server error is the response; None: there is none."""
        return self.error if self.status[:1] == "5" else None

    @property
    def is_structured(self) -> bool:
        """Whether the response is for programs (JSON, XML), rather than a text about the error."""
        return bool(self._content_type) and not self._content_type.startswith("text/")


class NotingStartResponse:
    """`start_response` that notes its arguments."""

    def __init__(self, start_response: StartResponse, handled: HandledError) -> None:
        self._start_response = start_response
        self._handled = handled

    def __call__(self, status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
        """Start the response (PEP 3333)."""
        if more and more[0]:
            error = more[0][1]
            if isinstance(error, BaseException):
                self._handled.note(error, sys.maxsize, in_log=self._handled.error is error)
        write = self._start_response(status, headers, *more)
        self._handled.note_response(status, headers)
        return write

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped `start_response`."""
        return getattr(self._start_response, name)


class NotingStream:
    """`wsgi.errors` that notes the exception whose traceback is written."""

    def __init__(self, stream: Any, handled: HandledError) -> None:
        self._stream = stream
        self._handled = handled

    def write(self, text: str) -> Any:
        """Write a text."""
        if isinstance(text, str) and TRACEBACK in text:
            error = sys.exc_info()[1]
            if error is not None:
                self._handled.note(error, ERROR, in_log=True)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the stream."""
        return getattr(self._stream, name)


def begin(environ: WSGIEnvironment) -> HandledError:
    """Note the exceptions of a request of WSGI from now on, in this thread or greenlet."""
    handled = begin_task()
    environ["wsgi.errors"] = NotingStream(environ["wsgi.errors"], handled)
    return handled


def begin_task() -> HandledError:
    """Note the exceptions of a request that are logged or printed from now on, in this context."""
    # Not before the first request: large modules, which an application may not need.
    _watch_logging()
    _watch_traceback()
    handled = HandledError()
    current.set(handled)
    return handled


def end() -> None:
    """Forget the exceptions of the request, whose frames would stay in memory."""
    current.set(None)


def _watch_logging() -> None:
    """Have each record of `logging` noted that has an exception, whichever handlers it reaches."""
    import logging

    original: Callable[[logging.Logger, logging.LogRecord], None] = logging.Logger.handle
    if getattr(original, "__module__", "") == __name__:
        return

    def handle(self: logging.Logger, record: logging.LogRecord) -> None:
        """Handle a record, after its exception was noted."""
        handled = current.get()
        error = record.exc_info[1] if record.exc_info else None
        if handled is None or error is None:
            original(self, record)
            return
        if not record.pathname.endswith(OWN_SWITCH):
            handled.note(error, record.levelno, in_log=_is_shown(self, record))
        before, handled.logs = handled.logs, True
        try:
            original(self, record)
        finally:
            handled.logs = before

    logging.Logger.handle = handle  # type: ignore[method-assign]


def _watch_traceback() -> None:
    """Have each exception noted whose traceback is printed on standard error or standard output."""
    import traceback

    original: Any = traceback.print_exception
    if getattr(original, "__module__", "") == __name__:
        return

    def print_exception(*arguments: Any, **named: Any) -> Any:
        """Print an exception, after it was noted."""
        handled = current.get()
        file = named.get("file", arguments[4] if len(arguments) > 4 else None)
        if handled is not None and (file is None or _is_standard(file)):
            error = sys.exc_info()[1]
            if error is not None:
                handled.note(error, ERROR, in_log=True)
        return original(*arguments, **named)

    traceback.print_exception = print_exception


def _is_shown(logger: logging.Logger, record: logging.LogRecord) -> bool:
    """Whether a handler writes a record to standard error or standard output."""
    each: logging.Logger | None = logger
    has_handler = False
    while each is not None:
        for handler in each.handlers:
            has_handler = True
            stream = getattr(handler, "stream", None)
            if stream is None:
                # That of the package rich.
                stream = getattr(getattr(handler, "console", None), "file", None)
            if record.levelno >= handler.level and _is_standard(stream):
                return True
        each = each.parent if each.propagate else None
    # `logging.lastResort`
    return not has_handler and record.levelno >= WARNING


def _is_standard(stream: Any) -> bool:
    if isinstance(stream, NotingStream) or stream in (sys.stderr, sys.stdout):
        return True
    if stream is logs.error_log.stream:
        return True
    try:
        return stream.fileno() in (1, 2)
    except (AttributeError, OSError, ValueError):
        return False
