"""Calls the WSGI application for each request, and sends its response (PEP 3333)."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from stat import S_ISREG

from poorhttp import logs
from poorhttp._core import (
    Request,
    advise_huge_pages,
    client_disconnected,
    early_hints,
    set_body_inputs,
)
from poorhttp.config.version import VERSION
from poorhttp.errors import BodyRefused, NoResponse, RequestTimeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from _typeshed import WriteableBuffer
    from _typeshed.wsgi import WSGIApplication


#: Ends the connection of a request whose application has got it, since one was offered:
#: `WorkerHooks.end_upgraded`.
end_upgraded: Callable[[Request, BaseException], object] | None = None


class ThreadReplaced(BaseException):
    """Raised at the end of a request if another thread serves in the place of this one."""


def serve(application: WSGIApplication, requests: Iterable[Request]) -> None:
    """Call the application for one request after another, until the reactor has no more.

    No exception of the application ends the loop; but it ends behind a request that has got its
    connection, if another thread has begun to serve.
    """
    body: Any
    requests = iter(requests)
    while True:
        try:
            for request in requests:
                try:
                    body = application(request.take_environ(), request)
                    if not request.finish(body):
                        send_body(request, body)
                except BaseException as error:
                    # Disarm the request timeout before handling the exception.
                    request.disarm_timeout()
                    report_failure(request, error)
                # Otherwise they would stay alive while the reactor waits for the next request.
                body = None
                del request
            return
        except RequestTimeout:
            # It was raised after the application had returned: nothing is lost.
            pass
        except ThreadReplaced:
            return


def send_body(request: Request, body: Iterable[bytes]) -> None:
    """Send a body that is not a plain list, piece by piece, and close it."""
    try:
        part = None
        if type(body) is FileWrapper and not request.committed:
            part = body.remaining()
            body.block_size = max(body.block_size, 64 * 1024)
        if part and request.send_file(*part):
            pass
        elif isinstance(body, (list, tuple)):
            request.finish(list(body))
        else:
            for chunk in iterate_body(body):
                if not request.write(chunk):
                    # A HEAD request, for example: an endless body must not be iterated.
                    break
            request.end()
    finally:
        # No other call before `close`: a RequestTimeout may be raised after each call.
        try:
            close = body.close  # type: ignore[attr-defined]
        except AttributeError:
            close = None
        if close is not None:
            close()
    request.done()


def iterate_body(body: Any) -> Iterator[bytes]:
    """Return an iterator over a body; a TypeError names the mistake of the application."""
    try:
        # The items of these are no bytes, but the error would not name the cause.
        if not (isinstance(body, (str, bytes, bytearray, memoryview, dict)) and body):
            return iter(body)
    except TypeError:
        if hasattr(body, "__iter__"):
            raise
    name = type(body).__name__
    what = "None" if body is None else f"an {name}" if name[:1] in "aeiou" else f"a {name}"
    raise TypeError(
        f"the application returned {what}; an iterable of bytes was expected (PEP 3333)"
    )


def report_failure(request: Request, error: BaseException) -> None:
    """Answer 500, 502 or 504, if nothing was sent yet, and log the error.

    Raises:
        ThreadReplaced: this thread is not to serve any more. Nothing else is raised.
    """
    if request.foreign:
        exit_forked_process(error)
    if request.upgraded:
        assert end_upgraded is not None
        end_upgraded(request, error)
        return
    try:
        what = request.name
        if request.timed_out:
            request.abort()
            text = f"{what}: the application ended, too late ({type(error).__name__})"
            logs.write("info", text, what)
            return
        if request.disconnected and isinstance(error, ConnectionResetError):
            # If the server has cut the connection, the reason has been logged.
            was_cut = request.cut
            request.abort()
            if not was_cut:
                logs.write("info", f"{what}: the client left before the end of the response", what)
            return
        status = error.status if isinstance(error, NoResponse) else "500 Internal Server Error"
        failed = not isinstance(error, NoResponse)
        if failed and logs.error_log.errors_first:
            # Before the response, so that the line of the request is below.
            logs.exception(f"{what}: the application failed", error, what)
            failed = False
        if answered := request.restart():
            request(status, [("Content-Type", "text/plain; charset=utf-8")])
            text = f"{status}: {error}" if isinstance(error, BodyRefused) else status
            request.finish([f"{text}\n".encode()])
        request.abort()
        if failed:
            logs.exception(f"{what}: the application failed", error, what)
        elif isinstance(error, NoResponse):
            # The cause has been logged.
            cause = "was interrupted" if isinstance(error, RequestTimeout) else "has no answer"
            end = f"its client got {error.status[:3]}" if answered else "its response was cut short"
            logs.write("info", f"{what}: the application {cause}, {end}", what)
    except BaseException as another:
        # No descriptors are left, or the exception itself is broken. The server goes on.
        request.abort()
        log_unreported(request.number, error, another)


def log_unreported(number: int, error: BaseException, another: BaseException) -> None:
    names = f"{type(error).__name__}, and then {type(another).__name__}"
    logs.write("error", f"request {number}: {names} while it was reported")


def exit_forked_process(error: BaseException) -> NoReturn:
    """Exit a process that the application has forked, and that returned to the serve loop.

    It must not serve: the connections belong to its parent.
    """
    code = error.code if isinstance(error, SystemExit) else 1
    if not isinstance(error, SystemExit):
        logs.exception("a process forked by the application came back to the server", error)
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


class FileWrapper:
    """`wsgi.file_wrapper`: an iterable over a file; the kernel sends regular files (sendfile)."""

    def __init__(self, file: Any, block_size: int = 64 * 1024) -> None:
        self.file = file
        self.block_size = block_size
        if hasattr(file, "close"):
            self.close = file.close

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: self.file.read(self.block_size), b"")

    def remaining(self) -> tuple[int, int, int] | None:
        """Return descriptor, offset and length of the rest of a regular file.

        `None` for anything else: a subclass or a wrapper (gzip) may read other bytes.
        """
        if type(self.file) not in (io.BufferedReader, io.FileIO):
            return None
        if type(self.file) is io.BufferedReader and type(self.file.raw) is not io.FileIO:
            return None
        fd = self.file.fileno()
        stat = os.fstat(fd)
        if not S_ISREG(stat.st_mode):
            return None
        offset = self.file.tell()
        return (fd, offset, stat.st_size - offset) if stat.st_size > offset else None


class EmptyInput(io.BytesIO):
    """`wsgi.input` of requests without a body; shared, so it cannot be closed or written."""

    def close(self) -> None:
        """Do nothing."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"wsgi.input has no attribute {name}, and takes none")

    def write(self, data: object, /) -> NoReturn:
        """Refuse."""
        raise io.UnsupportedOperation("wsgi.input is for reading")

    writelines = write


class SpooledInput(io.BufferedReader):
    """`wsgi.input` of a body in a temporary file."""

    def __init__(self, fd: int, length: int, body: object) -> None:
        super().__init__(SpooledFile(fd, closefd=False))
        self._length = length
        # Closes the file on another thread when nothing refers to it any more.
        self._body = body

    def read(self, size: int | None = -1, /) -> bytes:
        """Read so many bytes, or all that are left; their number must be known for `readinto`."""
        return super().read(self._length - self.tell() if size is None or size < 0 else size)


class SpooledFile(io.FileIO):
    """File of which large reads cost few page faults."""

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        advise_huge_pages(buffer)
        return super().readinto(buffer)


class StreamedInput(io.BufferedReader):
    """`wsgi.input` of a body that the application receives while it runs."""

    def __init__(self, request: Request) -> None:
        super().__init__(StreamedBody(request), 64 * 1024)


class StreamedBody(io.RawIOBase):
    """Receives the body of a request; waits for its client."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Receive a piece, at most as long as the buffer; 0 at the end of the body."""
        if self._ended:
            return 0
        # After each wait an exception may be raised here (request_timeout).
        while (length := self._request.receive_body(buffer)) is None:
            pass
        self._ended = length == 0
        return length

    def readall(self) -> bytes:
        """Receive the rest. Memory grows with what has come, whatever length was announced."""
        rest = io.BytesIO()
        piece = memoryview(bytearray(256 * 1024))
        while length := self.readinto(piece):
            rest.write(piece[:length])
        return rest.getvalue()


def base_environ(
    server: tuple[str, str],
    *,
    multithread: bool,
    multiprocess: bool,
    secure: bool = False,
    client_disconnected: Callable[[], bool] | None = client_disconnected,
) -> dict[str, Any]:
    """Return the environ of a request `GET / HTTP/1.1` to a listener.

    The reactor copies it for each request, and sets the keys that differ. `server`: SERVER_NAME and
    SERVER_PORT; `secure`: its URLs begin with `https`; `client_disconnected`: returns whether the
    client of the request that the calling thread or greenlet runs has left.
    """
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/",
        "QUERY_STRING": "",
        "REQUEST_URI": "/",
        "RAW_URI": "/",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": server[0],
        "SERVER_PORT": server[1],
        "SERVER_SOFTWARE": f"poorhttp/{VERSION}",
        # Empty for Unix sockets.
        "REMOTE_ADDR": "",
        "REMOTE_PORT": "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https" if secure else "http",
        "wsgi.input": EmptyInput(),
        "wsgi.input_terminated": True,
        "wsgi.errors": logs.error_log.stream,
        "wsgi.file_wrapper": FileWrapper,
        # Mode gevent has another one for each request.
        "wsgi.early_hints": early_hints,
        "wsgi.multithread": multithread,
        "wsgi.multiprocess": multiprocess,
        "wsgi.run_once": False,
    }
    if secure:
        environ["HTTPS"] = "on"
    if client_disconnected is not None:
        environ["poorhttp.client_disconnected"] = client_disconnected
        environ["waitress.client_disconnected"] = client_disconnected
    # Leave room for a browser's headers, so that copies need not grow: a dict that once held more
    # keys keeps its size when it is copied, as long as it is well filled.
    spare = [f"spare.{number}" for number in range(3)]
    environ.update(dict.fromkeys(spare))
    for key in spare:
        del environ[key]
    return environ


set_body_inputs(SpooledInput, StreamedInput)
