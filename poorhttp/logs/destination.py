"""Opens the destination of a log: a file, syslog or journald."""

from __future__ import annotations

import os

from poorhttp._core import Sink
from poorhttp.config.parsers import LOG_DAEMONS
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.logs.sink import has_relay, open_sink, sink_of
from poorhttp.process.safe_open import safe_open


def is_file(settings: Settings, option: str) -> bool:
    """Tell whether a log is a file, which may be rotated."""
    where: str | None = settings.value(option)
    # With a relay, `error_log` is still the log of a main process that has none.
    return (
        (option == "error_log" or not has_relay(settings))
        and where not in (None, "-")
        and str(where).partition(":")[0] not in LOG_DAEMONS
        and sink_of(settings, option) is None
    )


def by_name(settings: Settings, option: str) -> Sink | None:
    """Return a connection to the daemon, or to the sink of a plug-in, that the option names.

    Returns:
        `None` if it names neither.

    Raises:
        ConfigError: no daemon listens at the socket, or the sink cannot be opened.
    """
    kind, _, where = str(settings.value(option)).partition(":")
    if kind not in LOG_DAEMONS:
        return open_sink(settings, option)
    # Absolute, because the core connects again later, when the directory may have changed.
    path = os.path.abspath(where or LOG_DAEMONS[kind])
    try:
        if kind == "journald":
            return Sink.journald(path)
        return Sink.syslog(path, access=option == "access_log")
    except OSError as error:
        raise ConfigError(
            f"{settings.origin(option)}: cannot reach {kind} at {path}: "
            f"{os.strerror(error.errno or 0)}"
        ) from error


def open_file(
    settings: Settings, option: str, folder: str, owner: tuple[int, int] | None = None
) -> int:
    """Open the file of a log for appending, and return its descriptor.

    Args:
        settings: of the service.
        option: `"access_log"` or `"error_log"`.
        folder: folder of a relative path.
        owner: user and group of a new file.

    Raises:
        ConfigError: it cannot be opened.
    """
    path: str = settings.value(option)
    file = os.path.join(folder, path)
    # Opening a named pipe without a reader must not block.
    flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY
    try:
        try:
            fd = safe_open(file, flags | os.O_CREAT | os.O_EXCL, 0o640)
            if owner is not None:
                os.fchown(fd, *owner)
        except FileExistsError:
            # If the file was rotated in the meantime, this creates it.
            fd = safe_open(file, flags | os.O_CREAT, 0o640)
        # The application writes to it too, and does not expect EAGAIN.
        os.set_blocking(fd, True)
        return fd
    except OSError as error:
        folder = os.path.dirname(file)
        missing = isinstance(error, FileNotFoundError) and not os.path.isdir(folder)
        hint = f"; there is no folder {folder}" if missing else ""
        raise ConfigError(
            f"{settings.origin(option)}: cannot open {path}: {error.strerror}{hint}"
        ) from error


def file_lines(settings: Settings, option: str, folder: str) -> Sink:
    """Return a sink that appends lines to the file of a log; errors as of `open_file`."""
    fd = open_file(settings, option, folder)
    try:
        return Sink.lines(fd)
    finally:
        os.close(fd)


def is_journal(fd: int) -> bool:
    """Tell whether `fd` is connected to systemd's journal (sd-daemon(3))."""
    try:
        stat = os.fstat(fd)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{stat.st_dev}:{stat.st_ino}"
