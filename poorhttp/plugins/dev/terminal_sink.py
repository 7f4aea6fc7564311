"""The access log `terminal`: a pipe to the main process, which shows the requests."""

from __future__ import annotations

import os

from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.logs.sink import LogSink, has_relay


class TerminalSink(LogSink):
    """Has workers write to the pipe.

    Attributes:
        lines: descriptor of the pipe, in the main process and its forks; None if there is none.
    """

    # Easy to parse. The target is last, because that of a gateway may contain spaces.
    format = "%t %P %L %s %B %D %m %U%q"
    needs_main = True
    errors_first = True
    lines: int | None = None

    def open(self, settings: Settings, option: str) -> int:
        """Return a duplicate of the pipe.

        Raises:
            ConfigError: there is no main process.
        """
        if self.lines is None:
            raise ConfigError(
                f"{settings.origin(option)}: terminal needs a main process, which shows what "
                'the others serve; without one, write "-"'
            )
        return os.dup(self.lines)


SINK = TerminalSink()


def is_shown(settings: Settings) -> bool:
    """Tell whether the main process shows the access log of a service."""
    return settings.access_log == "terminal" and not has_relay(settings)
