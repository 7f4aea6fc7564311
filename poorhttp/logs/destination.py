"""Where a log goes: the text of the options `access_log` and `error_log`, and what it opens."""

from __future__ import annotations

import os

from poorhttp._core import Sink
from poorhttp.config.parsers import LOG_DAEMONS
from poorhttp.errors import ConfigError
from poorhttp.process.safe_open import safe_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings


def is_file(settings: Settings, option: str) -> bool:
    """Tell whether a log is a file of its own, which may be renamed and made anew."""
    where: str | None = getattr(settings, option)
    if option == "access_log" and where == "terminal":
        return False
    # With `log_config` it may still be that of a main process that runs no handlers.
    return (
        (settings.log_config is None or option == "error_log")
        and where not in (None, "-")
        and str(where).partition(":")[0] not in LOG_DAEMONS
    )


def daemon(settings: Settings, option: str) -> Sink | None:
    """Return a way to the daemon that the option names, `None` if it names none.

    Raises:
        ConfigError: nobody listens there.
    """
    kind, _, where = str(getattr(settings, option)).partition(":")
    if kind not in LOG_DAEMONS:
        return None
    # Later it is looked for by its path again, when the application may be in another folder.
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
    """Return a descriptor that adds to the file of a log.

    Args:
        settings: of the service.
        option: its name.
        folder: from which a relative path counts.
        owner: user and group who get the file if it is made.

    Raises:
        ConfigError: it cannot be opened.
    """
    path: str = getattr(settings, option)
    file = os.path.join(folder, path)
    # A named pipe that nobody reads must not hold us up.
    flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY
    try:
        try:
            fd = safe_open(file, flags | os.O_CREAT | os.O_EXCL, 0o640)
            if owner is not None:
                os.fchown(fd, *owner)
        except FileExistsError:
            # Rotated in this very moment, it is made here.
            fd = safe_open(file, flags | os.O_CREAT, 0o640)
        # The application writes to it as well, and does not expect to be told to come back.
        os.set_blocking(fd, True)
        return fd
    except OSError as error:
        raise ConfigError(
            f"{settings.origin(option)}: cannot open {path}: {error.strerror}"
        ) from error


def is_journal(fd: int) -> bool:
    """Tell whether systemd's journal reads what is written to `fd` (sd-daemon(3))."""
    try:
        stat = os.fstat(fd)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{stat.st_dev}:{stat.st_ino}"
