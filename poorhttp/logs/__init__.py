"""The logs of this process: opened once, reopened when they have been rotated.

destination.py      where a log goes: file, syslog, journald
text_stream.py      `wsgi.errors`
logging_config.py   the option `log_config`
relay.py            both logs to loggers of Python's `logging`
frames.py           tracebacks without the frames of the server
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager, suppress

from poorhttp._core import LogWriter, Sink
from poorhttp.errors import ConfigError
from poorhttp.logs import destination
from poorhttp.logs.text_stream import LineStream, LogFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from poorhttp._core import Reactor
    from poorhttp.config.settings import Settings
    from poorhttp.logs.relay import Relay


class ErrorLog:
    """Where this process reports what is worth telling a person.

    Attributes:
        writer: writes lines; Rust and Python share it.
        stream: the same as a text stream, which is `wsgi.errors`.
        settings: with which it was opened.
        folder: from which relative paths count, wherever the application goes later.
        relay: hands both logs to Python's `logging`, if `log_config` asks for it.
        show: shows an exception to the person at the terminal, where that is the log.
        shares_terminal: somebody sees it beside the lines of the requests, as they come.
    """

    show: Callable[[str, BaseException], None] | None = None
    writer: LogWriter | None = None
    stream: TextIO = sys.stderr
    settings: Settings | None = None
    folder = "."
    relay: Relay | None = None
    shares_terminal = False

    def open(self, settings: Settings, owner: tuple[int, int] | None = None) -> LogWriter:
        """Open what `settings` ask for.

        Args:
            settings: `chdir` has been followed already.
            owner: user and group who get the file if it is made, and whose processes alone may run
                the handlers of `log_config`. Where there is one, this process logs without them.

        Raises:
            ConfigError: it cannot be opened.
        """
        self.folder = os.getcwd()
        self.relay = None
        if settings.log_config is not None and owner is None:
            self._open_relay(settings)
        elif (daemon := destination.daemon(settings, "error_log")) is not None:
            self.use_writer(LogWriter(daemon, settings.log_level))
        elif settings.error_log == "-":
            self.stream = sys.stderr
            # Not `sys.stderr.fileno()`: under pytest and in notebooks that is something else.
            fd = _standard_error()
            sink = Sink.lines(fd, marked=destination.is_journal(2))
            self.writer = LogWriter(sink, settings.log_level)
            if fd == 2 and sys.stderr is sys.__stderr__:
                self.stream = _stream(LogFile(2, "w", self.writer.write, closefd=False))
        else:
            fd = destination.open_file(settings, "error_log", self.folder, owner)
            self.writer = LogWriter(Sink.lines(fd), settings.log_level)
            self.stream = _stream(LogFile(fd, "a", self.writer.write))
        self.settings = settings
        return self.opened

    def matches(self, settings: Settings) -> bool:
        """Whether it is what `settings` ask for: a reload may ask for something else."""
        options = ("error_log", "log_level", "log_config")
        return all(getattr(settings, name) == getattr(self.settings, name) for name in options)

    def _open_relay(self, settings: Settings) -> None:
        # Large, and for those who ask for it.
        from poorhttp.logs import logging_config
        from poorhttp.logs.relay import Relay

        logging_config.apply(settings, self.folder)
        self.relay = Relay("")
        self.use_writer(LogWriter(self.relay.sink(), settings.log_level))

    def use_writer(self, writer: LogWriter) -> None:
        """Have the text stream write to a log that is no file."""
        self.writer = writer
        self.stream = LineStream(write)  # type: ignore[assignment]

    @property
    def opened(self) -> LogWriter:
        """The writer of the log, which is open."""
        assert self.writer is not None
        return self.writer

    @contextmanager
    def tracing_crashes(self) -> Iterator[None]:
        """Have a crash of this process, or of one forked from it, leave Python's traceback here.

        A program that has turned on `faulthandler` itself keeps its own. Where the log is no file,
        it is left on standard error.
        """
        import faulthandler

        if faulthandler.is_enabled():
            yield
            return
        for stream in (self.stream, sys.stderr):
            # No file: there may be no standard error, and in notebooks it is something else.
            with suppress(Exception):
                faulthandler.enable(stream, all_threads=False)
                break
        try:
            yield
        finally:
            faulthandler.disable()


#: The error log of this process.
error_log = ErrorLog()

#: Where the access log goes if it is `terminal`: a pipe to the main process, which shows it.
terminal: int | None = None

#: What the core writes there about a request (`access_log_format`). The target is last: a gateway
#: may send one with spaces.
TERMINAL_FORMAT = "%t %P %L %s %B %D %m %U%q"


def begin_process(settings: Settings, label: str, *, configure: bool = True) -> None:
    """Be a process of its own: after the fork, and before the application is loaded.

    Args:
        settings: of what it serves.
        label: who this process is, in each line; `worker 2`.
        configure: read `log_config` again: this process loads an application.

    Raises:
        ConfigError: `log_config` is wrong.
    """
    if not error_log.matches(settings):
        error_log.open(settings)
    error_log.opened.set_label(label)
    if settings.log_config is None:
        return
    from poorhttp.logs import logging_config
    from poorhttp.logs.relay import Relay

    if configure:
        logging_config.apply(settings, error_log.folder)
    before, error_log.relay = error_log.relay, Relay(label)
    error_log.opened.reopen(error_log.relay.sink())
    if before is not None:
        before.close_inherited()
    else:
        error_log.use_writer(error_log.opened)


def adopt_settings(settings: Settings, owner: tuple[int, int] | None) -> None:
    """Have the main process log where a new configuration says, as its workers do by now."""
    if error_log.matches(settings):
        return
    try:
        error_log.open(settings, owner)
        error_log.opened.set_label("main")
    except ConfigError as failure:
        write("error", f"the main process goes on logging where it did: {failure}")


def make_access_log(settings: Settings, owner: tuple[int, int] | None) -> None:
    """See to it that workers, who may be another user, can open the file of the access log.

    Raises:
        ConfigError: it cannot be made.
    """
    if destination.is_file(settings, "access_log"):
        os.close(destination.open_file(settings, "access_log", os.getcwd(), owner))


def is_for_terminal(settings: Settings) -> bool:
    """Tell whether requests are shown by the main process."""
    return settings.access_log == "terminal" and settings.log_config is None


def open_access_log(settings: Settings) -> tuple[Sink, str] | None:
    """Return where requests are logged, and in which format; in the process that serves.

    `None`: they are not logged.

    Raises:
        ConfigError: it cannot be opened.
    """
    sink = _access_sink(settings)
    if sink is None:
        return None
    if not is_for_terminal(settings):
        return sink, settings.access_log_format
    error_log.shares_terminal = True
    return sink, TERMINAL_FORMAT


def _access_sink(settings: Settings) -> Sink | None:
    if error_log.relay is not None:
        error_log.relay.start()
        return None if settings.access_log is None else error_log.relay.access_sink()
    if settings.access_log is None:
        return None
    if (daemon := destination.daemon(settings, "access_log")) is not None:
        return daemon
    if settings.access_log == "-":
        return Sink.lines(1)
    if settings.access_log == "terminal":
        if terminal is None:
            raise ConfigError(
                f"{settings.origin('access_log')}: terminal needs a main process, which shows what "
                'the others serve; without one, write "-"'
            )
        return Sink.lines(terminal)
    fd = destination.open_file(settings, "access_log", error_log.folder)
    try:
        return Sink.lines(fd)
    finally:
        os.close(fd)


def reopen(
    settings: Settings, reactor: Reactor | None, owner: tuple[int, int] | None = None
) -> None:
    """Go on in new files, because the old ones have been renamed. Never raises.

    Each descriptor of an old file becomes one of the new file, so that all who hold it follow:
    `wsgi.errors`, `faulthandler`. What cannot be opened is left as it is.

    Args:
        settings: with which the logs were opened.
        reactor: of this process, if it serves; otherwise the files are only made.
        owner: user and group who get the files that are made.
    """
    try:
        if error_log.relay is not None:
            from poorhttp.logs import logging_config

            logging_config.reopen()
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
        write("error", f"a log cannot be reopened, and goes on where it is: {error}")


def _reopen_error_log(settings: Settings, owner: tuple[int, int] | None) -> None:
    fd = destination.open_file(settings, "error_log", error_log.folder, owner)
    try:
        # We may have interrupted the very write that would be flushed.
        with suppress(Exception):
            error_log.stream.flush()
        os.dup2(fd, error_log.stream.fileno(), inheritable=False)
        error_log.opened.reopen(Sink.lines(fd))
    finally:
        os.close(fd)


def close() -> None:
    """See to it that nothing is on its way any more, before this process ends."""
    # It may be gone, or not be ours.
    with suppress(Exception):
        error_log.stream.flush()
    if error_log.writer is not None:
        error_log.writer.close()
    if error_log.relay is not None:
        error_log.relay.close()


def write(level: str, message: str) -> None:
    """Write a line of the level debug, info, warning or error."""
    if error_log.writer is not None:
        error_log.writer.write(level, message)
        if error_log.relay is not None:
            error_log.relay.forward()


def exception(message: str, error: BaseException) -> None:
    """Write a line that says what went wrong, and the traceback of `error` below it."""
    if error_log.show is not None:
        try:
            error_log.show(message, error)
            return
        except Exception as another:
            # It is shown without ornaments.
            write("debug", f"a traceback cannot be shown: {type(another).__name__}: {another}")
    name = type(error).__name__
    try:
        said = str(error).partition("\n")[0][:500]
        said = f"{name}: {said if said.isprintable() else ascii(said)}" if said else name
    except BaseException:
        said = name
    try:
        # When it is needed: it is large.
        import traceback

        text = "".join(traceback.format_exception(error))
    except BaseException as another:
        text = f"{name} (its traceback cannot be had: {type(another).__name__})"
    write("error", f"{message}: {said}\n{text}")


def start_failure(error: BaseException) -> None:
    """Write what keeps the server from starting, which its caller tells on standard error.

    With the frames of the application, if it was that. Not where that is the log.
    """
    settings = error_log.settings
    if settings is None or (settings.error_log == "-" and error_log.relay is None):
        return
    from poorhttp.logs.frames import application_traceback

    write("error", f"the server does not start: {error}{application_traceback(error)}")


def _stream(file: LogFile) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(file), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )


def _standard_error() -> int:
    try:
        os.fstat(2)
        return 2
    except OSError:
        # We were started without one. What is written must not end up in whatever is opened next.
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
