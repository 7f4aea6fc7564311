"""The class `LogSink`: a destination of logs that a plug-in adds (`poorhttp.log_sinks`)."""

from __future__ import annotations

import os

from poorhttp._core import Sink
from poorhttp.config.registry import calling_plugin, registry
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from typing import Protocol

    from poorhttp.config.registry import Entry

    class Relay(Protocol):
        """Handles what one process logs in Python, where both logs would be written."""

        def sink(self) -> Sink:
            """Return the destination of the error log, which the caller forwards."""

        def access_sink(self) -> Sink:
            """Return the destination of the access log, after `start`."""

        def start(self, *, in_greenlet: bool) -> None:
            """Begin to forward by itself, in a worker; `in_greenlet`: gevent patches threads."""

        def forward(self) -> None:
            """Forward what was logged, unless that happens by itself."""

        def reopen(self) -> None:
            """Reopen files, which have been renamed."""

        def close(self) -> None:
            """Forward everything, before the process ends or is forked."""

        def close_inherited(self) -> None:
            """Close the descriptors that were inherited from the parent process."""


class LogSink:
    """Base class; a plug-in replaces `open`, or `relay`.

    The name of the entry point is what an option such as `access_log` says, alone or with more
    behind a colon: `NAME:PLACE`. The server makes the lines, and writes them to a descriptor
    without Python, whole lines at once. No request waits for a log: while the descriptor takes
    nothing, lines wait in a buffer, and those that have no room are counted as lost.

    A sink that `relays` has the name of an option, and gets both logs whenever that is on.

    Attributes:
        logs: options that may name the sink: `access_log`, `error_log`.
        format: format of the access log; empty for that of `access_log_format`.
        needs_main: a main process has to be there.
        errors_first: an exception of the application is logged before its request is.
        relays: `relay` is called instead of `open`.
    """

    logs: Sequence[str] = ("access_log",)
    format = ""
    needs_main = False
    errors_first = False
    relays = False

    def open(self, settings: Settings, option: str) -> int:
        """Return a descriptor for the lines of a log; the server closes it.

        Called in each worker, and for the error log first in the main process. It may be a file, a
        pipe or a connected socket. What stands behind the name is in the value of `option`.

        Raises:
            ConfigError: the log cannot be opened.
        """
        raise NotImplementedError

    def relay(self, settings: Settings, folder: str, label: str, *, configure: bool) -> Relay:
        """Return what handles both logs of this process in Python.

        Args:
            settings: of the service.
            folder: folder of relative paths.
            label: name of this process, such as `worker 2`.
            configure: this process loads the application, or is the first one.

        Raises:
            ConfigError: the option is wrong.
        """
        raise NotImplementedError


def sink_of(settings: Settings, option: str) -> LogSink | None:
    """Return the sink that the option names; `None` if it names another destination.

    Raises:
        ConfigError: the plug-in cannot be loaded.
    """
    entry = _named(settings, option)
    # In a main process without a relay, the error log has its destination nevertheless.
    if entry is None or (option == "access_log" and has_relay(settings)):
        return None
    sink: LogSink = entry.load()
    return sink if option in sink.logs else None


def open_sink(settings: Settings, option: str) -> Sink | None:
    """Open the sink that the option names, if it does; a ConfigError if that fails."""
    sink, entry = sink_of(settings, option), _named(settings, option)
    if sink is None or entry is None:
        return None
    with _calling(entry, "open", settings.origin(option)):
        fd = sink.open(settings, option)
        try:
            return Sink.lines(fd)
        finally:
            os.close(fd)


def has_relay(settings: Settings) -> bool:
    """Tell whether a plug-in handles both logs in Python."""
    return _with_option(settings) is not None


def open_relay(settings: Settings, folder: str, label: str, *, configure: bool) -> Relay | None:
    """Return what handles both logs in Python, as `LogSink.relay`; `None`: nothing does.

    Raises:
        ConfigError: it cannot be used.
    """
    entry = _with_option(settings)
    if entry is None:
        return None
    with _calling(entry, "relay", settings.origin(entry.name)):
        relay: Relay = entry.load().relay(settings, folder, label, configure=configure)
        return relay


def _named(settings: Settings, option: str) -> Entry | None:
    return registry.known("log_sinks", str(settings.value(option)).partition(":")[0])


def _with_option(settings: Settings) -> Entry | None:
    for name, entry in registry.entries["log_sinks"].items():
        if settings.is_enabled(name) and entry.load().relays:
            return entry
    return None


def _calling(entry: Entry, method: str, place: str) -> AbstractContextManager[None]:
    return calling_plugin(f"{entry}: {method}", ConfigError, place, is_watched=bool(entry.plugin))
