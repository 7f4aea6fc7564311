"""A folder of pages as a WSGI application."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from functools import cached_property

from mako.runtime import Context

from poorhttp import logs
from poorhttp.plugins.apps.dispatch.form import Field, Fields, FieldStorage
from poorhttp.plugins.apps.dispatch.pages import error_page
from poorhttp.plugins.apps.dispatch.request import Request
from poorhttp.plugins.apps.dispatch.server_return import SERVER_RETURN
from poorhttp.plugins.apps.dispatch.status import status_line, without_content

from .compiler import PageError
from .cookies import Cookies
from .response import Response
from .session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment
    from mako.template import ModuleTemplate

    from .folder import Folder
    from .session import Sessions

METHODS = ("GET", "HEAD", "POST")


class Pages:
    """Answers requests with the pages of a folder (PEP 3333)."""

    def __init__(self, folder: Folder, sessions: Sessions) -> None:
        self.folder = folder
        self.sessions = sessions

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        path: str = environ.get("PATH_INFO", "")
        if not path.isascii():
            # Names of files are decoded in the same way.
            path = path.encode("latin-1").decode("utf-8", "surrogateescape")
        if environ["REQUEST_METHOD"] not in METHODS:
            return _refuse(environ, start_response, 405, "", [("Allow", ", ".join(METHODS))])
        try:
            template = self.folder.page(path)
            if template is not None:
                return self._render(template, environ, start_response)
        except Exception as error:
            self._log_line(error)
            raise
        if not path or self.folder.is_folder(path):
            return _add_slash(environ, start_response)
        return _refuse(environ, start_response, 404)

    def _render(
        self, template: ModuleTemplate, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        request = Request(environ, start_response)
        response = Response(environ)
        cookies = Cookies(environ.get("HTTP_COOKIE", ""))
        session = Session(self.sessions, cookies, environ)
        text = Text()
        context = Context(
            text,
            request=request,
            response=response,
            form=Form(request),
            cookies=cookies,
            session=session,
        )
        try:
            template.render_context(context)
            body = text.encoded()
        except SERVER_RETURN as leaving:
            if isinstance(leaving.code, int) and leaving.code >= 400:
                return _refuse(environ, start_response, leaving.code, leaving.message)
            # A redirect.
            body = b""
        finally:
            # A cycle: it would keep all that was written until the garbage collector runs.
            context._data.clear()
        fields = response.fields()
        if session.touched:
            fields.append(("Vary", "Cookie"))
            cookie = session.cookie()
            if cookie is not None:
                fields.append(("Set-Cookie", cookie))
        return _answer(
            environ, start_response, response.status, response.content_type, fields, body
        )

    def _log_line(self, error: Exception) -> None:
        """Log the line of the page that failed; the server logs the traceback, and answers 500."""
        if isinstance(error, PageError):
            place: tuple[str, int] | None = (error.file, error.line)
        else:
            place = None
            traceback = error.__traceback__
            while traceback is not None:
                file = traceback.tb_frame.f_code.co_filename
                if file.startswith(self.folder.path + "/"):
                    place = (file, traceback.tb_lineno)
                traceback = traceback.tb_next
        if place is not None:
            file, line = place
            linecache.checkcache(file)
            source = linecache.getline(file, line).strip()
            logs.write("error", f"{file.removeprefix(self.folder.path + '/')}:{line}: {source}")


class Form(Fields):
    """The fields of body and query, read at first use; the same as `request.form`."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @cached_property
    def list(self) -> list[Field]:  # type: ignore[override]
        """The fields, in the order in which they were sent."""
        return FieldStorage(self._request).list


class Text:
    """The text that a page has written."""

    __slots__ = ("_pieces", "write")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.write = self._pieces.append

    def encoded(self) -> bytes:
        """Return all of it, in UTF-8."""
        try:
            return "".join(self._pieces).encode()
        except TypeError:
            # `${x | n}` writes x as it is, which may be no text.
            return "".join(map(str, self._pieces)).encode()


def _answer(
    environ: WSGIEnvironment,
    start_response: StartResponse,
    status: int,
    content_type: str,
    fields: list[tuple[str, str]],
    body: bytes,
) -> Iterable[bytes]:
    if status in without_content:
        start_response(status_line(status), fields)
        return []
    fields.append(("Content-Type", content_type))
    fields.append(("Content-Length", str(len(body))))
    start_response(status_line(status), fields)
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def _refuse(
    environ: WSGIEnvironment,
    start_response: StartResponse,
    status: int,
    message: str = "",
    fields: list[tuple[str, str]] | None = None,
) -> Iterable[bytes]:
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    path = path.encode("latin-1").decode("utf-8", "replace")
    page = error_page(status, environ["REQUEST_METHOD"], path, message).encode()
    return _answer(environ, start_response, status, "text/html; charset=utf-8", fields or [], page)


def _add_slash(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Redirect to the folder's own address, from which relative links of its page count."""
    from urllib.parse import quote

    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    query = environ.get("QUERY_STRING", "")
    location = quote(path.encode("latin-1")) + "/" + (f"?{query}" if query else "")
    # 308: the browser repeats the method, and sends a form again.
    fields = [("Location", location)]
    return _answer(environ, start_response, 308, "text/html; charset=utf-8", fields, b"")
