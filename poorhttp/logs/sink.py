"""The class `LogSink`: a destination of logs that a plug-in adds (`poorhttp.log_sinks`)."""

from __future__ import annotations

import os
from contextlib import nullcontext

from poorhttp._core import Sink
from poorhttp.config.registry import registry
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError, Failure, Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from poorhttp.config.registry import Entry


class LogSink:
    """Base class; a plug-in replaces `open`.

    The name of the entry point is what an option such as `access_log` says, alone or with more
    behind a colon: `NAME:PLACE`. The server makes the lines, and writes them to a descriptor
    without Python, whole lines at once. No request waits for a log: while the descriptor takes
    nothing, lines wait in a buffer, and those that have no room are counted as lost.

    Attributes:
        logs: options that may name the sink: `access_log`, `error_log`.
        format: format of the access log; empty for that of `access_log_format`.
        needs_main: a main process has to be there.
        errors_first: an exception of the application is logged before its request is.
    """

    logs: Sequence[str] = ("access_log",)
    format = ""
    needs_main = False
    errors_first = False

    def open(self, settings: Settings, option: str) -> int:
        """Return a descriptor for the lines of a log; the server closes it.

        Called in each worker, and for the error log first in the main process. It may be a file, a
        pipe or a connected socket. What stands behind the name is in the value of `option`.

        Raises:
            ConfigError: the log cannot be opened.
        """
        raise NotImplementedError


def sink_of(settings: Settings, option: str) -> LogSink | None:
    """Return the sink that the option names; `None` if it names another destination.

    Raises:
        ConfigError: the plug-in cannot be loaded.
    """
    entry = _entry(settings, option)
    if entry is None:
        return None
    sink = entry.load()
    if not isinstance(sink, LogSink):
        raise ConfigError(f"{entry} is no object of a class that is derived from LogSink")
    return sink if option in sink.logs else None


def open_sink(settings: Settings, option: str) -> Sink | None:
    """Open the sink that the option names; `None` if it names another destination.

    Raises:
        ConfigError: it cannot be opened.
    """
    sink = sink_of(settings, option)
    if sink is None:
        return None
    entry = _entry(settings, option)
    is_of_others = entry is not None and entry.plugin
    try:
        with registry.calling(f"{entry}: open") if is_of_others else nullcontext():
            fd = sink.open(settings, option)
        try:
            return Sink.lines(fd)
        finally:
            os.close(fd)
    except (Failure, Stopped, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ConfigError(
            f"{settings.origin(option)}: {entry}: open: {type(error).__name__}: {error}"
        ) from error


def _entry(settings: Settings, option: str) -> Entry | None:
    return registry.known("log_sinks", str(settings.value(option)).partition(":")[0])
