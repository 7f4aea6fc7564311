"""Where the time of slow requests went: a page for each, made by pyinstrument."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from poorhttp import logs
from poorhttp.config.options.development import PREFIX
from poorhttp.dev.debug.responses import MARK
from poorhttp.worker.wsgi import FileWrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from pyinstrument import Profiler
    from pyinstrument.session import Session

    from poorhttp.config.settings import Settings
    from poorhttp.dev.debug.debugger import Debugger

#: Seconds after which a request is slow where `slow_request` does not say so.
DEFAULT_SLOW = 0.1

#: Below it are the pages.
PATH = f"{PREFIX}/profile/"

#: Pages that are kept.
MAX_PROFILES = 100

#: Bodies that are not made while they are sent, and what the server will complain about. So is a
#: file, which the kernel sends.
COMPLETE_BODIES = (list, tuple, str, bytes, bytearray, memoryview, dict)

#: Seconds of a body that goes on and on after which its profile is written: what is known of it
#: grows with every millisecond.
MAX_DURATION = 30.0


class Profiles:
    """The folder with the pages, as the main process sees it; all versions write to the same.

    Attributes:
        folder: its path.
        url: of the server that answers who asks for one; if there is none they are told as files.
    """

    def __init__(self, owner: tuple[int, int] | None = None) -> None:
        """Make it; for another user and group than ours, if workers are those.

        Raises:
            OSError: it cannot be made.
        """
        # Not `tempfile`, which takes `random` and `shutil`, and is for those who lack a name.
        name = f"poorhttp-profiles-{os.getpid()}-{os.urandom(8).hex()}"
        self.folder = os.path.join(os.environ.get("TMPDIR") or "/tmp", name)
        self.url = ""
        os.mkdir(self.folder, 0o700)
        # Kept open: the owner may put a link into its place.
        self._fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if owner is not None:
            os.fchown(self._fd, *owner)

    def address(self, process: str, number: str) -> str:
        """Return where the profile of a request is, by process and number; empty: it has none."""
        name = f"{process}-{number}.html"
        file = os.path.join(self.folder, name)
        if not os.path.exists(file):
            return ""
        return f"{self.url}{PATH}{name}" if self.url else file

    def close(self) -> None:
        """Remove it with all pages."""
        if self._fd < 0:
            return
        with suppress(OSError):
            for name in os.listdir(self._fd):
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._fd)
            # Of a link it removes nothing.
            os.rmdir(self.folder)
        os.close(self._fd)
        self._fd = -1


#: Those of this server, if there are any; made before its workers are forked.
profiles: Profiles | None = None


class ProfiledApplication:
    """An application whose slow requests are profiled.

    In threads each request has a profile of its own. So it has in greenlets; what other greenlets
    did while it waited is one entry, `[out-of-context]`.
    """

    def __init__(self, application: WSGIApplication, settings: Settings, folder: str) -> None:
        """Take what is profiled, and the folder of `Profiles`; in a process that serves.

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
            # Not our server's: nobody would find the page.
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
            # Who looks for it finds the whole of it.
            part = os.path.join(self._folder, f".{name}")
            with open(part, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(page)
            os.rename(part, os.path.join(self._folder, name))
            self._remove_oldest()
        except Exception as error:
            logs.write("error", f"request {number}: its profile cannot be written: {error}")

    def _remove_oldest(self) -> None:
        """Remove the oldest pages. Others may do so at the same time."""
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
    """The profile of one request, which runs."""

    def __init__(self, profiled: ProfiledApplication, number: int, title: str) -> None:
        """Begin."""
        self._profiled = profiled
        self._number = number
        self._began = self._resumed = time.perf_counter()
        #: Seconds in the application, as far as they are over.
        self._spent = 0.0
        self._profiler: Profiler | None = profiled.profiler()
        self._profiler.start(target_description=title)

    def pause(self) -> None:
        """Stop the clock: what follows is the time of server and client."""
        now = time.perf_counter()
        self._spent += now - self._resumed
        self._resumed = now
        if now - self._began > MAX_DURATION:
            self.end()

    def resume(self) -> None:
        """Go on."""
        self._resumed = time.perf_counter()

    def end(self) -> None:
        """Keep it if it was slow; the first time. Never raises."""
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
    """A body that is profiled too, because it is made while it is sent."""

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
            # Its end, too: the line of the request must find the page.
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
    """An application beside which those who have entered the PIN of the debugger get profiles."""

    def __init__(self, application: WSGIApplication, settings: Settings, folder: str) -> None:
        """Take what answers all other requests, and the folder of `Profiles`."""
        self._application = application
        self._settings = settings
        self._folder = folder
        self._debugger: Debugger | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        if not environ["PATH_INFO"].startswith(PATH):
            return self._application(environ, start_response)
        if self._debugger is None:
            from poorhttp.dev.debug.debugger import Debugger

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
    """Answer who asks for a page of `folder`: an application for what is below `PATH`."""
    name = environ["PATH_INFO"][len(PATH) :]
    page: bytes | None = None
    process, _, number = name.removesuffix(".html").partition("-")
    # None of these leads out of the folder.
    ours = name.isascii() and name.endswith(".html") and process.isdecimal() and number.isdecimal()
    if ours:
        with suppress(OSError), open(os.path.join(folder, name), "rb") as file:
            page = file.read()
    status, kind = "200 OK", "text/html; charset=utf-8"
    if page is None:
        status, kind = "404 Not Found", "text/plain; charset=utf-8"
        page = f"there is no such profile; the latest {MAX_PROFILES} are kept\n".encode()
    start_response(status, [("Content-Type", kind), ("Cache-Control", "no-store")])
    return [page]


def _title(environ: WSGIEnvironment) -> str:
    """Return what the page is about, without anything that could end the script it stands in."""
    target = environ.get("REQUEST_URI") or environ.get("PATH_INFO", "")
    text = f"{environ.get('REQUEST_METHOD', '')} {target}"
    return text.translate({ord(character): f"%{ord(character):02X}" for character in "<>&\"'"})


def _share_sampler() -> None:
    """Let the greenlets of a thread share what looks at it.

    Python calls one function a thread, and pyinstrument keeps it in a `threading.local`; patched by
    gevent, that is one for each greenlet, and each would put an end to those of the others.
    """
    from gevent import monkey
    from pyinstrument import stack_sampler

    stack_sampler.thread_locals = monkey.get_original("threading", "local")()


def _gather_waits(session: Session) -> None:
    """Make one entry of what others did while a greenlet waited."""
    from pyinstrument.frame import OUT_OF_CONTEXT_FRAME_IDENTIFIER

    thread = session.start_call_stack[:1]
    session.frame_records = [
        ([*thread, OUT_OF_CONTEXT_FRAME_IDENTIFIER], seconds)
        if stack and stack[-1] == OUT_OF_CONTEXT_FRAME_IDENTIFIER
        else (stack, seconds)
        for stack, seconds in session.frame_records
    ]
