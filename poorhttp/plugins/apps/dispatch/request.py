"""A request and its response, the argument of each handler of a dispatch table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from poorhttp._core import escape

from . import levels
from .headers import Headers
from .methods import methods
from .server_return import SERVER_RETURN, encoded_url
from .status import (
    DONE,
    HTTP_BAD_REQUEST,
    HTTP_MOVED_PERMANENTLY,
    HTTP_MOVED_TEMPORARILY,
    HTTP_OK,
    HTTP_REQUEST_ENTITY_TOO_LARGE,
    status_line,
    without_content,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.cookies import SimpleCookie
    from typing import Any, BinaryIO, NoReturn

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from .application import Application
    from .form import Field, Fields, FieldStorage

#: Most bytes of a body in memory, unless the table has `max_memory`: 8 MiB of JSON become up to
#: 200 MiB of objects.
MAX_MEMORY = 8 * 1024**2

# Text that is encoded here gets its charset in the header.
_TEXTS = {
    kind: f"{kind}; charset=utf-8"
    for kind in ("text/html", "text/plain", "text/css", "text/csv", "text/javascript", "text/xml")
}

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), 127)}
# Further lines of a message are indented, so that they do not look like messages.
_CONTROL[10] = "\n  "


class Request:
    """A request and its response.

    Everything you write is kept and sent when the handler returns, so you can still set a status or
    a header, or send an error page instead. You may set attributes of your own.

    Attributes:
        environ: the WSGI environ (PEP 3333), also called `subprocess_env`.
        method: as it was sent, such as "GET".
        uri: the path as text, decoded, relative to where the application is mounted; also `path`.
        status: of the response, 200 unless set.
        content_type: of the response, `text/html; charset=utf-8` unless set. `text/html` and other
            common types of text get a charset if only text was written.
        error: in an error page, the exception that caused it, if there is one.
    """

    status: int = HTTP_OK
    content_type: str | None = "text/html; charset=utf-8"
    error: BaseException | None = None
    sent_fields: list[Field] | None = None

    _binary = False
    _write: Callable[[bytes], object] | None = None
    _stream: Iterable[bytes] | None = None
    _stream_length: int | None = None

    def __init__(
        self,
        environ: WSGIEnvironment,
        start_response: StartResponse,
        application: Application | None = None,
    ) -> None:
        self.environ = environ
        self.method: str = environ["REQUEST_METHOD"]
        path: str = environ.get("PATH_INFO") or "/"
        if not path.isascii():
            path = path.encode("latin-1").decode("utf-8", "replace")
        self.uri = path
        self._start_response = start_response
        self._application = application
        self._chunks: list[str | bytes] = []

    if TYPE_CHECKING:
        # Attributes of the application may have any type.
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    # The response

    def write(self, data: object, flush: bool | int = False) -> None:
        """Add to the response. Bytes are sent as they are, anything else as its `str()`.

        Args:
            data: encoded in the charset of `content_type`, UTF-8 unless it names another.
            flush: call `flush` afterwards.
        """
        if isinstance(data, str):
            self._chunks.append(data)
        elif isinstance(data, bytes | bytearray | memoryview):
            self._binary = True
            self._chunks.append(bytes(data))
        else:
            self._chunks.append(str(data))
        if flush:
            self.flush()

    def flush(self) -> None:
        """Send everything written so far. Status and headers cannot change after that."""
        headers = [] if self._write else self._headers()
        body = self._written()
        if self._write is None:
            self._write = self._start_response(status_line(self.status), headers)
        if body and self.method != "HEAD":
            self._write(body)

    def sendfile(self, path: str) -> int:
        """Answer with a file, behind everything written. Return its size in bytes.

        The media type follows the name, unless `content_type` was set.

        Raises:
            OSError: the file cannot be read.
        """
        file = open(path, "rb")  # noqa: SIM115 - the server closes it
        size = os.fstat(file.fileno()).st_size
        self.stream(self.environ.get("wsgi.file_wrapper", _Pieces)(file))
        self._stream_length = size
        if "content_type" not in vars(self):
            from mimetypes import guess_type

            self.content_type = guess_type(path)[0] or "application/octet-stream"
        return size

    def stream(self, body: Iterable[bytes]) -> None:
        """Answer with an iterable of bytes, behind everything written. The server closes it."""
        self._close_stream()
        self._stream = body

    @cached_property
    def headers_out(self) -> Headers:
        """Headers of the response, unless it is an error page."""
        return Headers()

    @cached_property
    def err_headers_out(self) -> Headers:
        """Headers of an error page, instead of `headers_out`; also sent with a redirect."""
        return Headers()

    @property
    def headers_sent(self) -> bool:
        """Whether a part of the response has been sent."""
        return self._write is not None

    def discard(self) -> None:
        """Drop everything written.

        Raises:
            RuntimeError: a part of it has been sent.
        """
        if self._write:
            raise RuntimeError("the answer has already begun and cannot be dropped")
        self._chunks.clear()
        self._binary = False
        self._close_stream()

    def finish(self) -> Iterable[bytes]:
        """Start the response and return its body, as a WSGI application does. Called once."""
        body = self._written()
        if self._write is None:
            headers = self._headers()
            if (
                self.method == "HEAD"
                or self.status in without_content
                or self._stream_length is not None
            ):
                body = self._counted(headers, body)
            self._start_response(status_line(self.status), headers)
        elif self.method == "HEAD":
            body = self._counted([], body)
        if self._stream is not None:
            return _after(body, self._stream) if body else self._stream
        return [body] if body else []

    def _headers(self) -> list[tuple[str, str]]:
        # Most answers set no header; the property is not computed for them.
        headers_out: Headers | None = self.__dict__.get("headers_out")
        headers = headers_out.items() if headers_out else []
        if self.status in without_content:
            return [field for field in headers if field[0].lower() != "content-type"]
        content_type = self.content_type
        if content_type and not (headers_out and "Content-Type" in headers_out):
            if not self._binary and self._stream is None:
                content_type = _TEXTS.get(content_type, content_type)
            headers.append(("Content-Type", content_type))
        return headers

    def _counted(self, headers: list[tuple[str, str]], body: bytes) -> bytes:
        """Add a Content-Length that the server cannot know; return the part of the body to send."""
        length = len(body)
        if self._stream is not None:
            length = -1 if self._stream_length is None else length + self._stream_length
        bodiless = self.status in without_content
        if length >= 0 and not bodiless and "content-length" not in [n.lower() for n, _ in headers]:
            headers.append(("Content-Length", str(length)))
        if bodiless or self.method == "HEAD":
            self._close_stream()
            return b""
        return body

    def _written(self) -> bytes:
        chunks = self._chunks
        self._chunks = []
        charset = _charset(self.content_type)
        if not self._binary:
            return "".join(chunks).encode(charset)  # type: ignore[arg-type]
        return b"".join(
            chunk.encode(charset) if isinstance(chunk, str) else chunk for chunk in chunks
        )

    def _close_stream(self) -> None:
        stream, self._stream, self._stream_length = self._stream, None, None
        close = getattr(stream, "close", None)
        if close is not None:
            close()

    # The request

    @property
    def path(self) -> str:
        """The same as `uri`."""
        return self.uri

    @property
    def subprocess_env(self) -> WSGIEnvironment:
        """The same as `environ`."""
        return self.environ

    @property
    def method_number(self) -> int:
        """The method as a `METHOD_*` bit, 0 for one that has none."""
        return methods.get(self.method, 0)

    @cached_property
    def headers_in(self) -> Headers:
        """The request's headers, named as `Accept-Language`."""
        fields = []
        for key, value in self.environ.items():
            if key.startswith("HTTP_"):
                fields.append((key[5:].replace("_", "-").title(), value))
            elif key in ("CONTENT_TYPE", "CONTENT_LENGTH") and value:
                fields.append((key.replace("_", "-").title(), value))
        return Headers(fields)

    @property
    def query(self) -> str:
        """The query of the address, still encoded."""
        text: str = self.environ.get("QUERY_STRING", "")
        return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")

    @cached_property
    def args(self) -> Fields:
        """The fields of the query, blank ones too. Raises `FormError` beyond 1,000 of them."""
        from .form import Fields, query

        return Fields(query(self.query))

    @cached_property
    def form(self) -> FieldStorage:
        """The fields of body and query, a `FieldStorage(req)` that is made at first use."""
        from .form import FieldStorage

        return FieldStorage(self)

    @property
    def content_length(self) -> int:
        """Length of the request's body in bytes, 0 if it is not known."""
        length: str = self.environ.get("CONTENT_LENGTH") or "0"
        return int(length) if length.isascii() and length.isdigit() else 0

    @cached_property
    def _unread(self) -> int:
        return self.content_length

    def read(self, length: int = -1) -> bytes:
        """Read the rest of the request's body, or up to `length` bytes of it."""
        source = self.environ["wsgi.input"]
        if self.environ.get("wsgi.input_terminated"):
            ended: bytes = source.read(length)
            return ended
        # A server that does not promise this may wait for ever at the end of the body.
        wanted = self._unread if length < 0 else min(length, self._unread)
        data: bytes = source.read(wanted) if wanted else b""
        self._unread -= len(data)
        return data

    @cached_property
    def max_memory(self) -> int:
        """Most bytes of a body for `body` and `json`; may be set before they are used.

        By default the table's `max_memory`, or `MAX_MEMORY`.
        """
        return self._application.max_memory if self._application else MAX_MEMORY

    @cached_property
    def body(self) -> bytes:
        """The request's whole body. One larger than `max_memory` is answered with 413."""
        most = self.max_memory
        body = self.read(most + 1) if self.content_length <= most else None
        if body is None or len(body) > most:
            raise SERVER_RETURN(
                HTTP_REQUEST_ENTITY_TOO_LARGE, f"The body is larger than {most} bytes."
            )
        return body

    @cached_property
    def json(self) -> Any:
        """The request's body as JSON (RFC 8259). A malformed one is answered with 400."""
        from json import loads

        try:
            return loads(self.body)
        except (ValueError, RecursionError) as error:
            raise SERVER_RETURN(
                HTTP_BAD_REQUEST, f"The body is not valid JSON: {error}."
            ) from error

    @cached_property
    def cookies(self) -> SimpleCookie:
        """The request's cookies, without malformed ones."""
        from .cookies import simple_cookie

        return simple_cookie(self.environ.get("HTTP_COOKIE", ""))

    @property
    def hostname(self) -> str | None:
        """The `Host` header. The client chooses it, so do not trust it."""
        return self.environ.get("HTTP_HOST")

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return str(self.environ["wsgi.url_scheme"])

    @property
    def protocol(self) -> str:
        """`HTTP/1.1`."""
        return str(self.environ.get("SERVER_PROTOCOL", "HTTP/1.0"))

    @property
    def server_hostname(self) -> str:
        """The server's own name or address."""
        return str(self.environ["SERVER_NAME"])

    @property
    def port(self) -> int:
        """The server's port; 0 on a Unix socket."""
        port = str(self.environ.get("SERVER_PORT", ""))
        return int(port) if port.isdigit() else 0

    @property
    def server_software(self) -> str:
        """The server's name and version, if it sets them."""
        return str(self.environ.get("SERVER_SOFTWARE", "Unknown"))

    @property
    def remote_addr(self) -> str | None:
        """The client's address."""
        return self.environ.get("REMOTE_ADDR")

    @property
    def remote_host(self) -> str | None:
        """The client's name, if the server has looked it up."""
        return self.environ.get("REMOTE_HOST")

    def get_remote_host(self) -> str | None:
        """The client's name, or its address."""
        return self.remote_host or self.remote_addr

    @property
    def user_agent(self) -> str | None:
        """The `User-Agent` header."""
        return self.environ.get("HTTP_USER_AGENT")

    @property
    def referer(self) -> str | None:
        """The `Referer` header."""
        return self.environ.get("HTTP_REFERER")

    @property
    def is_xhr(self) -> bool:
        """Whether a script sent the request, by its `X-Requested-With` header."""
        return str(self.environ.get("HTTP_X_REQUESTED_WITH", "")).lower() == "xmlhttprequest"

    def construct_url(self, uri: str) -> str:
        """The absolute address of a path on this server, from the `Host` header."""
        if uri.startswith(("http://", "https://")):
            return uri
        host = self.hostname or f"{self.server_hostname}:{self.port}"
        return f"{self.scheme}://{host}{uri}"

    # The application and the server

    def get_options(self) -> dict[str, str]:
        """The application's own settings, by lower-case name.

        They are environment variables whose names begin with `app_` in either case, and over these,
        entries of the WSGI environ.
        """
        options = dict(self._application.options) if self._application else {}
        for source in (os.environ, self.environ):
            for key, value in source.items():
                if key[:4].lower() == "app_":
                    options[key[4:].lower()] = value
        return options

    def document_root(self) -> str:
        """`DOCUMENT_ROOT` of the environ, or else the folder of the dispatch table."""
        return self.environ.get("DOCUMENT_ROOT") or (
            self._application.folder if self._application else ""
        )

    def add_common_vars(self) -> None:
        """Put `REQUEST_URI` into the environ where the server has not."""
        self.environ.setdefault("REQUEST_URI", self.environ.get("PATH_INFO", ""))

    def log_error(
        self, message: object, level: int = levels.LOG_NOTICE, server: object = None
    ) -> None:
        """Write a message to the server's error log.

        Args:
            message: control characters are shown as `\\x1b`, further lines are indented.
            level: a `LOG_*` number; a message beyond the application's `log_level` is not written.
            server: not used; mod_python had it.
        """
        if level > (self._application.log_level if self._application else levels.LOG_INFO):
            return
        text = str(message).rstrip("\n").translate(_CONTROL)
        self.environ["wsgi.errors"].write(f"[{levels.names.get(level, level)}] {text}\n")

    def log_exception(self, error: BaseException | None = None) -> None:
        """Write the traceback of an exception, by default the current one, to the error log."""
        import sys
        import traceback

        from poorhttp.logs.frames import with_sources

        error = error or sys.exc_info()[1]
        if error is not None:
            lines = with_sources(lambda: traceback.format_exception(error))
            request = f"{self.method} {self.uri}"
            self.log_error(f"{request}\n{''.join(lines)}", levels.LOG_ERR)


def _charset(content_type: str | None) -> str:
    if not content_type or content_type.endswith("charset=utf-8") or "charset=" not in content_type:
        return "utf-8"
    return content_type.partition("charset=")[2].partition(";")[0].strip(" \"'") or "utf-8"


class _Pieces:
    """A file in pieces, for servers without `wsgi.file_wrapper`."""

    def __init__(self, file: BinaryIO) -> None:
        self._read = file.read
        self.close = file.close

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._read(65536):
            yield piece


def _after(body: bytes, stream: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield body
        yield from stream
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()


def redirect(
    req: Request, url: str, permanent: bool | int = False, text: str | None = None
) -> NoReturn:
    """Redirect the browser to another address, and end the handler.

    Headers set so far are sent along, cookies too; everything written is dropped.

    Args:
        req: the current request.
        url: absolute, or relative to the present one (RFC 9110 section 10.2.2). Characters that
            cannot stand in an address are percent-encoded, line breaks too.
        permanent: 301, and browsers remember it, instead of 302.
        text: plain text instead of the short page with a link.

    Raises:
        SERVER_RETURN: always, with `DONE`.
        RuntimeError: a part of the response has been sent.
    """
    location = encoded_url(url)
    req.discard()
    req.status = HTTP_MOVED_PERMANENTLY if permanent else HTTP_MOVED_TEMPORARILY
    for name, value in req.err_headers_out.items():
        req.headers_out.add(name, value)
    req.headers_out["Location"] = location
    if text is None:
        req.content_type = "text/html; charset=utf-8"
        req.write(f'<p>The page is at <a href="{escape(location)}">{escape(url)}</a>.</p>\n')
    else:
        req.content_type = "text/plain; charset=utf-8"
        req.write(text)
    raise SERVER_RETURN(DONE)
