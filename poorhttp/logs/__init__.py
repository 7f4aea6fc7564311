"""The error log and the access log of this process.

destination.py     where a log goes: file, syslog, journald, sink of a plug-in
sink.py            the class `LogSink`: a destination that a plug-in adds
text_stream.py     `wsgi.errors`
frames.py          frames of the application in a traceback
source_errors.py   names the file of a source that cannot be compiled
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from poorhttp import _core
from poorhttp._core import LogWriter, Reactor, RequestName, Sink
from poorhttp.config.registry import registry
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError, printable
from poorhttp.logs import destination
from poorhttp.logs.frames import application_traceback, with_sources
from poorhttp.logs.sink import open_relay, sink_of
from poorhttp.logs.text_stream import LineStream, LogFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from poorhttp._core import WorkerStatus
    from poorhttp.logs.sink import Relay

# For `poorhttp.logs.json_formatter`, which users have in files for `log_config`.
__path__.append(f"{__path__[0]}/../plugins/aliases/logs")


class ErrorLog:
    """The error log of this process.

    Attributes:
        writer: writes lines; Rust and Python share it.
        stream: the text stream `wsgi.errors`, which writes to the same log.
        settings: the settings with which it was opened.
        folder: the folder of relative paths, even if the application changes directory later.
        relay: handles both logs in Python; None if no plug-in does.
        show: prints an exception in place of its traceback in the log.
        errors_first: an exception is logged before its request is.
        lost: counts lines of the main process that are lost.
    """

    show: Callable[[str, BaseException], None] | None = None
    writer: LogWriter | None = None
    stream: TextIO = sys.stderr
    settings: Settings | None = None
    folder = "."
    relay: Relay | None = None
    errors_first = False
    lost: WorkerStatus | None = None

    def open(self, settings: Settings, owner: tuple[int, int] | None = None) -> LogWriter:
        """Open the log as in `settings`.

        Args:
            settings: their `chdir` was applied before.
            owner: user and group of a new file. Only their processes have a relay, so this
                process writes to `error_log` if it is not None.

        Raises:
            ConfigError: it cannot be opened.
        """
        self.folder = os.getcwd()
        self.relay = None
        if owner is None:
            self.relay = open_relay(settings, self.folder, "", configure=True)
        if self.relay is not None:
            self.use_writer(make_writer(self.relay.sink(), settings))
        elif (sink := destination.by_name(settings, "error_log")) is not None:
            self.use_writer(make_writer(sink, settings))
        elif settings.error_log == "-":
            self.stream = sys.stderr
            # Not `sys.stderr.fileno()`: pytest and notebooks replace `sys.stderr`.
            fd = _standard_error()
            lines = Sink.lines(fd, marked=destination.is_journal(2))
            self.writer = make_writer(lines, settings)
            if settings.error_log_format == "json" or (fd == 2 and sys.stderr is sys.__stderr__):
                # A copy: the application may close standard error, and another file get its number.
                self._use_file(os.dup(fd), settings)
        else:
            fd = destination.open_file(settings, "error_log", self.folder, owner)
            self.writer = make_writer(Sink.lines(fd), settings)
            self._use_file(fd, settings)
        self.settings = settings
        return self.opened

    def matches(self, settings: Settings) -> bool:
        """Tell whether it was opened as in `settings`, which a reload may have changed."""
        options = ("error_log", "error_log_format", "log_level", *registry.entries["log_sinks"])
        before = self.settings
        return before is not None and all(
            settings.value(name) == before.value(name) for name in options
        )

    def use_writer(self, writer: LogWriter) -> None:
        """Use a log that is no file; the text stream writes to it line by line."""
        self.writer = writer
        self.stream = LineStream(write_lines)  # type: ignore[assignment]

    def _use_file(self, fd: int, settings: Settings) -> None:
        """Write the text stream to a file, as it is or as JSON."""
        file = LogFile(fd, self.opened.write)
        write = write_lines if settings.error_log_format == "json" else file.write_lines
        self.stream = LineStream(write, file)  # type: ignore[assignment]

    @property
    def opened(self) -> LogWriter:
        """The writer of the log, which is open."""
        assert self.writer is not None
        return self.writer

    @contextmanager
    def tracing_crashes(self) -> Iterator[None]:
        """Write Python's traceback here if this process, or one forked from it, crashes.

        If the log is no file, the traceback goes to standard error. A program that has enabled
        `faulthandler` itself keeps its own setting.
        """
        import faulthandler

        if faulthandler.is_enabled():
            yield
            return
        for stream in (self.stream, sys.stderr):
            # The stream may have no descriptor: standard error may be missing or replaced.
            with suppress(Exception):
                faulthandler.enable(stream, all_threads=False)
                break
        try:
            yield
        finally:
            faulthandler.disable()


#: The error log of this process.
error_log = ErrorLog()


def begin_process(settings: Settings, label: str, *, configure: bool = True) -> None:
    """Open the logs of a new process: after the fork, before the application is loaded.

    Args:
        settings: of its service.
        label: name of this process in each line, such as `worker 2`.
        configure: this process loads an application, which the relay may prepare for.

    Raises:
        ConfigError: the logs cannot be opened.
    """
    if not error_log.matches(settings):
        error_log.open(settings)
    error_log.opened.set_label(label)
    relay = open_relay(settings, error_log.folder, label, configure=configure)
    if relay is None:
        return
    before, error_log.relay = error_log.relay, relay
    error_log.opened.reopen(relay.sink())
    if before is not None:
        # It has a thread if this process was a worker, and forks workers now.
        before.close()
        before.close_inherited()
    else:
        error_log.use_writer(error_log.opened)


def adopt_settings(settings: Settings, owner: tuple[int, int] | None) -> None:
    """Reopen the error log of the main process after a reload with a new configuration."""
    if error_log.matches(settings):
        return
    try:
        error_log.open(settings, owner)
        if error_log.lost is not None:
            begin_main(error_log.lost)
    except ConfigError as failure:
        write("error", f"the main process keeps its previous error log: {failure}")


def begin_main(lost: WorkerStatus) -> None:
    """Name the main process in each line, and count its lines that are lost in `lost`."""
    error_log.lost = lost
    error_log.opened.set_label("main")
    error_log.opened.count_lost(lost)


def make_access_log(settings: Settings, owner: tuple[int, int] | None) -> None:
    """Create the access log, for workers of another user; a ConfigError if that fails."""
    if destination.is_file(settings, "access_log"):
        os.close(destination.open_file(settings, "access_log", os.getcwd(), owner))


def open_access_log(settings: Settings) -> tuple[Sink, str] | None:
    """Open the access log in a worker; return its destination and format, or None if it is off.

    Raises:
        ConfigError: it cannot be opened.
    """
    sink = _access_sink(settings)
    if sink is None:
        return None
    added = sink_of(settings, "access_log")
    error_log.errors_first = added is not None and added.errors_first
    return sink, (added and added.format) or settings.access_log_format


def _access_sink(settings: Settings) -> Sink | None:
    if error_log.relay is not None:
        error_log.relay.start(in_greenlet=settings.mode == "gevent")
        return None if settings.access_log is None else error_log.relay.access_sink()
    if settings.access_log is None:
        return None
    if (sink := destination.by_name(settings, "access_log")) is not None:
        return sink
    if settings.access_log == "-":
        return Sink.lines(1)
    return destination.file_lines(settings, "access_log", error_log.folder)


def reopen(
    settings: Settings, reactor: Reactor | None, owner: tuple[int, int] | None = None
) -> None:
    """Reopen the log files, which have been renamed. Never raises.

    Each descriptor of an old file is replaced by one of the new file, also for `wsgi.errors` and
    `faulthandler`. A log that cannot be opened is left as it is.

    Args:
        settings: with which the logs were opened.
        reactor: of this process; None in a main process, which only creates the access log.
        owner: user and group of new files.
    """
    try:
        if error_log.relay is not None:
            error_log.relay.reopen()
            return
        if destination.is_file(settings, "error_log") and error_log.matches(settings):
            _reopen_error_log(settings, owner)
        if destination.is_file(settings, "access_log"):
            fd = destination.open_file(settings, "access_log", error_log.folder, owner)
            try:
                if reactor is not None:
                    reactor.reopen_log(Sink.lines(fd))
            finally:
                os.close(fd)
    except Exception as error:
        write("error", f"a log cannot be reopened, and continues in the old file: {error}")


def _reopen_error_log(settings: Settings, owner: tuple[int, int] | None) -> None:
    fd = destination.open_file(settings, "error_log", error_log.folder, owner)
    try:
        # This signal handler may have interrupted a write of the same stream.
        with suppress(Exception):
            error_log.stream.flush()
        os.dup2(fd, error_log.stream.fileno(), inheritable=False)
        error_log.opened.reopen(Sink.lines(fd))
    finally:
        os.close(fd)


def close() -> None:
    """Write all pending messages, before this process exits."""
    # The stream may be closed, or replaced by the application.
    with suppress(Exception):
        stream = error_log.stream
        stream.flush_all() if isinstance(stream, LineStream) else stream.flush()
    if error_log.writer is not None:
        error_log.writer.close()
    if error_log.relay is not None:
        error_log.relay.close()


#: Returns the name of the request that this thread or greenlet runs, with `request_id`.
current_request: Callable[[], RequestName | None] = _core.current_request


def write(
    level: str, message: str, request: RequestName | None = None, *, traceback: str | None = None
) -> None:
    """Write a line of the level debug, info, warning or error.

    A message about a request begins with the name of that. A traceback follows below the message.
    """
    if error_log.writer is not None:
        error_log.writer.write(level, message, request, traceback=traceback)
        if error_log.relay is not None:
            error_log.relay.forward()


def write_last(message: str) -> None:
    """Write why this process ends: to standard error, if somebody has closed the log."""
    write("error", message)
    try:
        os.fstat(error_log.stream.fileno())
    except OSError:
        with suppress(OSError):
            os.write(2, f"poorhttp: {printable(message)}\n".encode(errors="replace"))


def end_line() -> None:
    """End the line that this thread, or greenlet, has begun in `wsgi.errors`. Never raises."""
    # The stream may be one of a program that has replaced standard error.
    with suppress(Exception):
        error_log.stream.flush()


def write_lines(text: str) -> None:
    """Write what the application has written to `wsgi.errors`."""
    if error_log.writer is not None:
        error_log.writer.write("error", text, current_request(), from_application=True)
        if error_log.relay is not None:
            error_log.relay.forward()


def make_writer(sink: Sink, settings: Settings) -> LogWriter:
    """Return the writer of the error log."""
    return LogWriter(sink, settings.log_level, json=settings.error_log_format == "json")


def exception(message: str, error: BaseException, request: RequestName | None = None) -> None:
    """Write a message, and the traceback of `error` below it."""
    if isinstance(error, (SyntaxError, ValueError, MemoryError, RecursionError)):
        from poorhttp.logs.source_errors import name_file

        name_file(error)
    if error_log.show is not None:
        try:
            error_log.show(message, error)
            return
        except Exception as another:
            # Write it plainly below.
            write("debug", f"a traceback cannot be shown: {type(another).__name__}: {another}")
    name = type(error).__name__
    try:
        text = str(error).partition("\n")[0][:500]
        summary = f"{name}: {text if text.isprintable() else ascii(text)}" if text else name
    except BaseException:
        summary = name
    try:
        import traceback  # large, and needed only here

        text = "".join(with_sources(lambda: traceback.format_exception(error)))
    except BaseException as another:
        text = f"{name} (no traceback: {type(another).__name__})"
    write("error", f"{message}: {summary}", request, traceback=text)


def start_failure(error: BaseException) -> None:
    """Log the error that keeps the server from starting, with the frames of the application.

    Not if the log is standard error, where the caller prints it.
    """
    settings = error_log.settings
    if settings is None or (settings.error_log == "-" and error_log.relay is None):
        return
    traceback = application_traceback(error).lstrip("\n") or None
    write("error", f"the server does not start: {error}", traceback=traceback)


def _standard_error() -> int:
    try:
        os.fstat(2)
        return 2
    except OSError:
        # The process has no standard error. Its number must not be reused for another file.
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
