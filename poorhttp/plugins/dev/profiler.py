"""Profiles slow requests with pyinstrument and keeps a page for each."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from poorhttp import logs
from poorhttp.plugins.dev.debug.responses import MARK
from poorhttp.plugins.dev.options import PREFIX
from poorhttp.worker.wsgi import FileWrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from pyinstrument import Profiler
    from pyinstrument.session import Session

    from poorhttp.config.settings import Settings
    from poorhttp.plugins.dev.debug.debugger import Debugger

#: Seconds after which a request is slow if `slow_request` is not set.
DEFAULT_SLOW = 0.1

#: Prefix of the pages' paths.
PATH = f"{PREFIX}/profile/"

#: Pages that are kept.
MAX_PROFILES = 100

#: Types of bodies that are complete before they are sent, and types that the server refuses.
COMPLETE_BODIES = (list, tuple, str, bytes, bytearray, memoryview, dict)

#: Seconds after which the profile of an endless body is written, since its size grows with time.
MAX_DURATION = 30.0


class Profiles:
    """The folder of the pages, seen from the main process; workers of all generations write to it.

    Attributes:
        folder: its path.
        url: of the server that serves the pages; if empty, messages name them as files.
    """

    def __init__(self, owner: tuple[int, int] | None = None) -> None:
        """Make the folder, with the workers' user and group as its `owner`.

        Raises:
            OSError: it cannot be made.
        """
        # Not `tempfile`, which imports `random` and `shutil`.
        name = f"poorhttp-profiles-{os.getpid()}-{os.urandom(8).hex()}"
        self.folder = os.path.join(os.environ.get("TMPDIR") or "/tmp", name)
        self.url = ""
        os.mkdir(self.folder, 0o700)
        # Kept open, since the owner may replace the folder by a link.
        self._fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if owner is not None:
            os.fchown(self._fd, *owner)

    def address(self, process: str, number: str) -> str:
        """Return the address of a request's profile, by process and number; or empty."""
        name = f"{process}-{number}.html"
        file = os.path.join(self.folder, name)
        if not os.path.exists(file):
            return ""
        return f"{self.url}{PATH}{name}" if self.url else file

    def close(self) -> None:
        """Remove the folder with all pages."""
        if self._fd < 0:
            return
        with suppress(OSError):
            for name in os.listdir(self._fd):
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._fd)
            # Fails if the folder was replaced by a link.
            os.rmdir(self.folder)
        os.close(self._fd)
        self._fd = -1


#: Profiles of this server, if there are any; made before its workers are forked.
profiles: Profiles | None = None


class ProfiledApplication:
    """Wraps an application and profiles its slow requests.

    Each request of a thread or a greenlet has its own profile. The time that other greenlets ran
    while it waited is one entry, `[out-of-context]`.
    """

    def __init__(self, application: WSGIApplication, settings: Settings, folder: str) -> None:
        """Take the application and the folder of `Profiles`; in a worker.

        Raises:
            ImportError: pyinstrument is not installed.
        """
        from pyinstrument import Profiler

        self._profiler_class = Profiler
        self._application = application
        self._folder = folder
        self._slow = settings.slow_request or DEFAULT_SLOW
        self._in_greenlets = settings.mode == "gevent"
        if self._in_greenlets:
            _share_sampler()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer as the application does (PEP 3333)."""
        number: int | None = getattr(start_response, "number", None)
        if number is None:
            # A request of another server: no message would name the page.
            return self._application(environ, start_response)
        profile = Profile(self, number, _title(environ))
        try:
            body = self._application(environ, start_response)
        except BaseException:
            profile.end()
            raise
        if (
            isinstance(body, COMPLETE_BODIES)
            or type(body) is FileWrapper
            or not hasattr(body, "__iter__")
        ):
            profile.end()
            return body
        return ProfiledBody(body, profile)

    def profiler(self) -> Profiler:
        """Return a new one."""
        return self._profiler_class(async_mode="strict" if self._in_greenlets else "disabled")

    def save(self, number: int, session: Session, seconds: float) -> None:
        """Write the page of a request, if it was slow. Never raises."""
        if seconds < self._slow:
            return
        try:
            from pyinstrument.renderers import HTMLRenderer

            if self._in_greenlets:
                _gather_waits(session)
            name = f"{os.getpid()}-{number}.html"
            page = HTMLRenderer().render(session)
            # Renamed when it is complete.
            part = os.path.join(self._folder, f".{name}")
            with open(part, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(page)
            os.rename(part, os.path.join(self._folder, name))
            self._remove_oldest()
        except Exception as error:
            logs.write("error", f"request {number}: its profile cannot be written: {error}")

    def _remove_oldest(self) -> None:
        """Remove the oldest pages. Other workers may do so at the same time."""
        names = os.listdir(self._folder)
        if len(names) <= MAX_PROFILES:
            return
        ages = []
        for name in names:
            with suppress(OSError):
                path = os.path.join(self._folder, name)
                ages.append((os.stat(path).st_mtime_ns, path))
        for _, path in sorted(ages)[:-MAX_PROFILES]:
            with suppress(OSError):
                os.unlink(path)


class Profile:
    """The running profile of one request."""

    def __init__(self, profiled: ProfiledApplication, number: int, title: str) -> None:
        """Begin."""
        self._profiled = profiled
        self._number = number
        self._began = self._resumed = time.perf_counter()
        #: Seconds in the application, up to the last pause.
        self._spent = 0.0
        self._profiler: Profiler | None = profiled.profiler()
        self._profiler.start(target_description=title)

    def pause(self) -> None:
        """Stop the clock while the server sends and the client receives."""
        now = time.perf_counter()
        self._spent += now - self._resumed
        self._resumed = now
        if now - self._began > MAX_DURATION:
            self.end()

    def resume(self) -> None:
        """Start the clock again."""
        self._resumed = time.perf_counter()

    def end(self) -> None:
        """Save the profile if the request was slow; only the first time. Never raises."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        self._spent += time.perf_counter() - self._resumed
        try:
            session = profiler.stop()
        except RuntimeError as error:
            logs.write("warning", f"request {self._number} has no profile: {error}")
        else:
            self._profiled.save(self._number, session, self._spent)


class ProfiledBody:
    """A body whose making is profiled too, since it is made while it is sent."""

    def __init__(self, body: Iterable[bytes], profile: Profile) -> None:
        self._body = body
        self._profile = profile
        self._pieces: Iterator[bytes] | None = None
        profile.pause()

    def __iter__(self) -> ProfiledBody:
        return self

    def __next__(self) -> bytes:
        self._profile.resume()
        try:
            if self._pieces is None:
                self._pieces = iter(self._body)
            piece = next(self._pieces)
        except BaseException:
            # At `StopIteration` too: the page must exist before the request is logged.
            self._profile.end()
            raise
        self._profile.pause()
        return piece

    def close(self) -> None:
        """Close the body."""
        self._profile.resume()
        try:
            if hasattr(self._body, "close"):
                self._body.close()
        finally:
            self._profile.end()


class ProfilePages:
    """Wraps an application and serves profiles to clients that have entered the debugger's PIN."""

    def __init__(self, application: WSGIApplication, settings: Settings, folder: str) -> None:
        """Take the application and the folder of `Profiles`."""
        self._application = application
        self._settings = settings
        self._folder = folder
        self._debugger: Debugger | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        if not environ["PATH_INFO"].startswith(PATH):
            return self._application(environ, start_response)
        if self._debugger is None:
            from poorhttp.plugins.dev.debug.debugger import Debugger

            self._debugger = Debugger(self._settings)
        if MARK in environ["QUERY_STRING"]:
            return self._debugger(environ, start_response)
        if self._debugger.is_trusted(environ):
            return send_profile(environ, start_response, self._folder)
        page = self._debugger.prompt(environ).encode()
        fields = [("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store")]
        start_response("403 Forbidden", fields)
        return [page]


def send_profile(
    environ: WSGIEnvironment, start_response: StartResponse, folder: str
) -> Iterable[bytes]:
    """Answer a request for a page of `folder`, below `PATH`."""
    name = environ["PATH_INFO"][len(PATH) :]
    page: bytes | None = None
    process, _, number = name.removesuffix(".html").partition("-")
    # Such a name cannot lead out of the folder.
    if name.isascii() and name.endswith(".html") and process.isdecimal() and number.isdecimal():
        with suppress(OSError), open(os.path.join(folder, name), "rb") as file:
            page = file.read()
    status, kind = "200 OK", "text/html; charset=utf-8"
    if page is None:
        status, kind = "404 Not Found", "text/plain; charset=utf-8"
        page = f"there is no such profile; the latest {MAX_PROFILES} are kept\n".encode()
    start_response(status, [("Content-Type", kind), ("Cache-Control", "no-store")])
    return [page]


def _title(environ: WSGIEnvironment) -> str:
    """Return the page's title, escaped for the script that contains it."""
    target = environ.get("REQUEST_URI") or environ.get("PATH_INFO", "")
    text = f"{environ.get('REQUEST_METHOD', '')} {target}"
    return text.translate({ord(character): f"%{ord(character):02X}" for character in "<>&\"'"})


def _share_sampler() -> None:
    """Have the greenlets of a thread share pyinstrument's sampler.

    Python calls one profile function for each thread, and pyinstrument keeps it in a
    `threading.local`. Patched by gevent, each greenlet has its own and would stop the others'.
    """
    from gevent import monkey
    from pyinstrument import stack_sampler

    stack_sampler.thread_locals = monkey.get_original("threading", "local")()


def _gather_waits(session: Session) -> None:
    """Join the time that other greenlets ran into one entry."""
    from pyinstrument.frame import OUT_OF_CONTEXT_FRAME_IDENTIFIER

    thread = session.start_call_stack[:1]
    session.frame_records = [
        ([*thread, OUT_OF_CONTEXT_FRAME_IDENTIFIER], seconds)
        if stack and stack[-1] == OUT_OF_CONTEXT_FRAME_IDENTIFIER
        else (stack, seconds)
        for stack, seconds in session.frame_records
    ]
