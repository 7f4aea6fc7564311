"""A dispatch table as a WSGI application."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from poorhttp.config.suggestions import nearest
from poorhttp.errors import ApplicationError

from . import levels
from .methods import METHOD_GET, accepted, allow, methods
from .pages import error_page
from .request import MAX_MEMORY, Request
from .server_return import SERVER_RETURN
from .status import (
    DECLINED,
    DONE,
    HTTP_INTERNAL_SERVER_ERROR,
    HTTP_METHOD_NOT_ALLOWED,
    HTTP_NO_CONTENT,
    HTTP_NOT_FOUND,
    HTTP_NOT_IMPLEMENTED,
    HTTP_OK,
    OK,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    Handler: TypeAlias = Callable[[Request], object]


# Results that leave the answer as it is.
_DONE = (DONE, OK, HTTP_OK)


class Application:
    """A WSGI application made of a dispatch table.

    Args:
        table: a module, or any object, with

            - `handlers = {path: (method mask, function)}`; several functions may share a path as
              `{path: {method mask: function}}`. The dictionary alone will do as a table.
            - optionally `setreq` and `pre_process`, called before each request, `post_process`,
              called after each, and `default_handler`, for paths that are not in the table.
            - optionally `errors = {status: function}` or `{status: {method mask: function}}`.
            - optionally `log_level`, a `LOG_*` number, `LOG_INFO` unless given.
            - optionally `max_memory`, bytes of a request's body that `Request.body` and
              `Request.json` hold in memory, `MAX_MEMORY` (8 MiB) unless given.

            `handlers` and `errors` may change later.
        options: defaults of `Request.get_options`; environment variables override them.

    Raises:
        ApplicationError: the table is malformed; the message says where, and what is right.
    """

    def __init__(self, table: object, options: Mapping[str, str] | None = None) -> None:
        file = getattr(table, "__file__", None) or ""
        where = file or "the dispatch table"
        self.folder = os.path.dirname(os.path.abspath(file)) if file else ""
        self.options: Mapping[str, str] = options or {}
        self.log_level: int = getattr(table, "log_level", levels.LOG_INFO)
        self.max_memory = _max_memory(table, where)

        handlers = table if isinstance(table, dict) else getattr(table, "handlers", None)
        if handlers is None:
            near = nearest("handlers", [n for n in dir(table) if n != "handlers" and n[0] != "_"])
            raise ApplicationError(
                f"{where} has no handlers: a dispatch table says "
                "handlers = {'/path': (http.METHOD_GET, function)}"
                + (f'; did you mean "{near}"?' if near else "")
            )
        _check_handlers(handlers, where)
        self.handlers: dict[str, tuple[int, Handler] | dict[int, Handler]] = handlers
        errors = getattr(table, "errors", {})
        _check_errors(errors, where)
        self.errors: dict[int, Handler | dict[int, Handler]] = errors

        before = [_hook(table, name, where) for name in ("setreq", "pre_process")]
        self._before = [hook for hook in before if hook is not None]
        self._after = _hook(table, "post_process", where)
        self._default = _hook(table, "default_handler", where)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request (PEP 3333)."""
        request = Request(environ, start_response, self)
        self._run(request, self._dispatch)
        if self._after is not None:
            self._run(request, self._after)
        try:
            return request.finish()
        except Exception as error:
            # An unknown charset or status raises only here.
            self._fail(request, error)
            return request.finish()
        finally:
            # Its traceback refers to the request: a cycle, for the garbage collector.
            request.error = None

    def _run(self, request: Request, step: Handler) -> None:
        """Call one step, and apply its result to the answer."""
        try:
            try:
                self._apply(request, step(request))
            except SERVER_RETURN as leaving:
                self._apply(request, leaving.code, leaving)
        except Exception as error:
            self._fail(request, error)

    def _dispatch(self, request: Request) -> object:
        """Call the hooks and the handler of the path."""
        for hook in self._before:
            hook(request)
        entry = self.handlers.get(request.uri)
        if entry is None:
            return self._decline(request)
        bits = accepted.get(request.method, 0)
        if isinstance(entry, tuple):
            mask, handler = entry
            if not mask & bits:
                return self._refuse(request, mask)
        else:
            shared = next((call for mask, call in entry.items() if mask & bits), None)
            if shared is None:
                return self._refuse(request, _methods_of(entry))
            handler = shared
        result = handler(request)
        return self._decline(request) if result == DECLINED else result

    def _decline(self, request: Request) -> object:
        """Answer for a path that is not in the table, or that its handler declines."""
        result = DECLINED if self._default is None else self._default(request)
        return HTTP_NOT_FOUND if result == DECLINED else result

    def _refuse(self, request: Request, mask: int) -> int:
        """Answer to a method that the path does not take (RFC 9110 sections 9.3.7 and 15.5.6)."""
        if request.method not in methods:
            return HTTP_NOT_IMPLEMENTED
        if request.method == "OPTIONS":
            request.headers_out["Allow"] = allow(mask)
            return HTTP_NO_CONTENT
        request.err_headers_out["Allow"] = allow(mask)
        return HTTP_METHOD_NOT_ALLOWED

    def _apply(
        self, request: Request, result: object, leaving: SERVER_RETURN | None = None
    ) -> None:
        """Apply the result of a handler or hook to the answer.

        Raises:
            TypeError: a function may not return such an object.
            RuntimeError: it is an error status, and a part of the answer has been sent.
        """
        if result is None or result in _DONE:
            return
        if isinstance(result, int):
            if result == DECLINED:
                result = HTTP_NOT_FOUND
            if result >= 400:
                self._error(request, result, leaving.message if leaving else "", leaving)
            elif result >= 200:
                request.status = result
            else:
                raise TypeError(
                    f"the handler of {request.uri} returned {result}, "
                    "which is neither a result code nor an HTTP status"
                )
        elif isinstance(result, str | bytes):
            request.write(result)
        elif isinstance(result, list | tuple):
            for chunk in result:
                request.write(chunk)
        elif hasattr(result, "__iter__") and not isinstance(result, dict):
            request.stream(result)
        else:
            raise TypeError(
                f"the handler of {request.uri} returned {result!r}: it may return http.DONE, "
                "http.DECLINED, an http.HTTP_* status, None, text, bytes or an iterable of bytes"
            )

    def _fail(self, request: Request, error: Exception) -> None:
        """Log an exception of the application; answer 500 without any detail."""
        if request.headers_sent or "poorhttp.debug" in request.environ:
            # Too late for a page: the server logs the error and closes the connection, so that the
            # answer does not look complete. Under the development server, it makes the page.
            raise error
        request.log_exception(error)
        self._error(request, HTTP_INTERNAL_SERVER_ERROR, "", error)

    def _error(
        self, request: Request, code: int, message: str, error: BaseException | None
    ) -> None:
        """Answer with the page of an error status: the application's, or the default."""
        request.discard()
        request.headers_out = request.err_headers_out
        request.content_type = "text/html; charset=utf-8"
        request.status = code
        request.error = error
        page = self._page(code, request.method)
        if page is not None:
            try:
                result = _outcome(page, request)
                if result is None or result in _DONE:
                    return
                if not isinstance(result, int):
                    request.write(result)
                    return
                code = result if 400 <= result <= 599 else code
            except Exception as failure:
                if request.headers_sent:
                    raise
                request.log_exception(failure)
                code = HTTP_INTERNAL_SERVER_ERROR
            # No error page for an error page: that could go on without end.
            request.discard()
            request.status = code
        request.write(error_page(code, request.method, request.uri, message))

    def _page(self, code: int, method: str) -> Handler | None:
        entry = self.errors.get(code)
        if not isinstance(entry, dict):
            return entry
        bits = accepted.get(method, METHOD_GET)
        return next((page for mask, page in entry.items() if mask & bits), None)


def _methods_of(entry: dict[int, Handler]) -> int:
    mask = 0
    for bits in entry:
        mask |= bits
    return mask


def _outcome(page: Handler, request: Request) -> int | str | bytes | None:
    try:
        result = page(request)
    except SERVER_RETURN as leaving:
        result = leaving.code
    if result is None or isinstance(result, int | str | bytes):
        return result
    raise TypeError(
        f"the error page of {request.status} returned {result!r}: "
        "it may return http.DONE, an http.HTTP_* status, None, text or bytes"
    )


def _hook(table: object, name: str, where: str) -> Handler | None:
    hook: Handler | None = getattr(table, name, None)
    if hook is not None and not callable(hook):
        raise ApplicationError(f"{where}: {name} is {hook!r}, it should be a function")
    return hook


def _max_memory(table: object, where: str) -> int:
    most: object = getattr(table, "max_memory", MAX_MEMORY)
    if not isinstance(most, int) or most < 0:
        raise ApplicationError(f"{where}: max_memory is {most!r}, it should be a number of bytes")
    return most


def _check_handlers(handlers: object, where: str) -> None:
    if not isinstance(handlers, dict):
        raise ApplicationError(
            f"{where}: handlers is a {type(handlers).__name__}, "
            "it should be a dictionary {'/path': (http.METHOD_GET, function)}"
        )
    for path, entry in handlers.items():
        place = f"{where}: handlers[{path!r}]"
        if not isinstance(path, str) or not path.startswith("/"):
            raise ApplicationError(f"{place}: a path is text that begins with '/'")
        pairs = list(entry.items()) if isinstance(entry, dict) else [entry]
        for pair in pairs:
            if (
                not isinstance(pair, tuple)
                or len(pair) != 2
                or not _is_mask(pair[0])
                or not callable(pair[1])
            ):
                raise ApplicationError(
                    f"{place} is {entry!r}, it should be (http.METHOD_GET, function) "
                    "or {http.METHOD_GET: function, http.METHOD_POST: another}"
                )


def _check_errors(errors: object, where: str) -> None:
    if not isinstance(errors, dict):
        raise ApplicationError(
            f"{where}: errors is a {type(errors).__name__}, "
            "it should be a dictionary {http.HTTP_NOT_FOUND: function}"
        )
    for code, entry in errors.items():
        if not isinstance(code, int) or not 400 <= code <= 599:
            raise ApplicationError(
                f"{where}: errors[{code!r}]: the key must be a status from 400 to 599"
            )
        pages = entry if isinstance(entry, dict) else {METHOD_GET: entry}
        if not all(_is_mask(mask) and callable(page) for mask, page in pages.items()):
            raise ApplicationError(
                f"{where}: errors[{code}] is {entry!r}, it should be a function "
                "or {http.METHOD_GET: function}"
            )


def _is_mask(mask: object) -> bool:
    return isinstance(mask, int) and 0 < mask < 512
