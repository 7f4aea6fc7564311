"""The glue between the reactor and an application (PEP 3333)."""

from __future__ import annotations

import io
import os
import sys
from stat import S_ISREG

from poorhttp import logs
from poorhttp._core import note_child, note_fork
from poorhttp.errors import NoResponse, RequestTimeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, NoReturn

    from _typeshed.wsgi import WSGIApplication

    from poorhttp._core import Request


def serve(application: WSGIApplication, requests: Iterable[Request]) -> None:
    """Answer requests, one after another: all that a reactor has for this thread, or a single one.

    Nothing that an application does ends the loop.
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
                    # First of all: nothing shall strike where it is not expected.
                    request.leave_alone()
                    report_failure(request, error)
                # Otherwise the last ones would live on while the reactor waits for the next.
                body = None
                del request
            return
        except RequestTimeout:
            # It came when the application was through: nothing is lost.
            pass


def send_body(request: Request, body: Iterable[bytes]) -> None:
    """Send a body that is not simply a list, piece by piece, and close it."""
    try:
        if type(body) is FileWrapper and not request.committed and (part := body.remaining()):
            request.send_file(*part)
        elif isinstance(body, (list, tuple)):
            request.finish(list(body))
        else:
            for chunk in iterate_body(body):
                if not request.write(chunk):
                    # To a HEAD, say: there may be no end to what nobody gets.
                    break
            request.end()
    finally:
        # No call before that of `close`: where one ends, a RequestTimeout may strike.
        try:
            close = body.close  # type: ignore[attr-defined]
        except AttributeError:
            close = None
        if close is not None:
            close()
    request.done()


def iterate_body(body: Any) -> Iterator[bytes]:
    """Return an iterator over a body; TypeError, in words for the author of what returned it."""
    try:
        # Of these every item would be wrong, but none would say why.
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
    """Answer 500, 502 or 504, if nothing was sent yet, and log what went wrong. Never raises."""
    if request.foreign:
        exit_forked_process(error)
    try:
        what = f"request {request.number} {request.line}".rstrip()
        if request.forfeited:
            request.abort()
            logs.write("info", f"{what}: the application ended, too late ({type(error).__name__})")
            return
        if request.disconnected and isinstance(error, ConnectionResetError):
            # If it was us who ended the connection, the reason has been logged.
            was_cut = request.cut
            request.abort()
            if not was_cut:
                logs.write("info", f"{what}: the client left before it was answered")
            return
        status = error.status if isinstance(error, NoResponse) else "500 Internal Server Error"
        failed = not isinstance(error, NoResponse)
        if failed and logs.error_log.shares_terminal:
            # The line about the request, which comes with the answer, shall stand below.
            logs.exception(f"{what}: the application failed", error)
            failed = False
        if answered := request.restart():
            request(status, [("Content-Type", "text/plain; charset=utf-8")])
            request.finish([f"{status}\n".encode()])
        request.abort()
        if failed:
            logs.exception(f"{what}: the application failed", error)
        elif isinstance(error, NoResponse):
            # Where it was, or what was wrong, has been logged.
            cause = "was interrupted" if isinstance(error, RequestTimeout) else "has no answer"
            end = f"its client got {error.status[:3]}" if answered else "its answer was cut short"
            logs.write("info", f"{what}: the application {cause}, {end}")
    except BaseException as another:
        # Descriptors may have run out, or the exception itself may be broken. The server goes on.
        request.abort()
        logs.write(
            "error",
            f"request {request.number}: {type(error).__name__}, and then"
            f" {type(another).__name__} while it was reported",
        )


def exit_forked_process(error: BaseException) -> NoReturn:
    """End a process that the application has forked and not ended itself.

    It is no server, though everything of the server is in it: the connections are its parent's.
    """
    code = error.code if isinstance(error, SystemExit) else 1
    if not isinstance(error, SystemExit):
        logs.exception("a process forked by the application came back to the server", error)
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


os.register_at_fork(before=note_child, after_in_child=note_fork)


class FileWrapper:
    """`wsgi.file_wrapper`: an iterable over a file, which the kernel sends if it really is one."""

    def __init__(self, file: Any, block_size: int = 64 * 1024) -> None:
        self.file = file
        self.block_size = block_size
        if hasattr(file, "close"):
            self.close = file.close

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: self.file.read(self.block_size), b"")

    def remaining(self) -> tuple[int, int, int] | None:
        """Return descriptor, offset and length of what is left of a regular file.

        `None` for anything else: a subclass or a wrapper (gzip) may mean other bytes.
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
    """`wsgi.input` of every request without a body: shared, so it cannot be closed or filled."""

    def close(self) -> None:
        """Do nothing."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"wsgi.input has no attribute {name}, and takes none")

    def write(self, data: object, /) -> int:
        """Refuse."""
        raise io.UnsupportedOperation("wsgi.input is for reading")

    def writelines(self, lines: object, /) -> None:
        """Refuse."""
        raise io.UnsupportedOperation("wsgi.input is for reading")


def base_environ(
    server: tuple[str, str], *, multithread: bool, multiprocess: bool, software: str
) -> dict[str, Any]:
    """Return what the environs of a listener's requests have in common.

    The reactor copies it and sets what differs from a `GET / HTTP/1.1`.

    Args:
        server: SERVER_NAME and SERVER_PORT.
        multithread: the application may be called by several threads (or greenlets) at once.
        multiprocess: it may run in several processes.
        software: SERVER_SOFTWARE.
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
        "SERVER_SOFTWARE": software,
        # Of a Unix socket nothing is known.
        "REMOTE_ADDR": "",
        "REMOTE_PORT": "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": EmptyInput(),
        "wsgi.input_terminated": True,
        "wsgi.errors": logs.error_log.stream,
        "wsgi.file_wrapper": FileWrapper,
        "wsgi.multithread": multithread,
        "wsgi.multiprocess": multiprocess,
        "wsgi.run_once": False,
    }
    # The copies shall have room for a browser's headers without growing: a dict that once held more
    # keeps its size when it is copied, as long as it is well filled.
    spare = [f"spare.{number}" for number in range(3)]
    environ.update(dict.fromkeys(spare))
    for key in spare:
        del environ[key]
    return environ
