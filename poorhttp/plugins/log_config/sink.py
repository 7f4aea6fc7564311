"""The sink `log_config`: has Python's `logging` handle both logs while that option is on."""

from __future__ import annotations

from poorhttp.config.settings import Settings
from poorhttp.logs.sink import LogSink
from poorhttp.plugins.log_config.options import LogConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.log_config.relay import Relay


class LoggingSink(LogSink):
    """Configures `logging`, and forwards the logs to its loggers."""

    # No other option names it.
    logs = ()
    relays = True

    def relay(self, settings: Settings, folder: str, label: str, *, configure: bool) -> Relay:
        """Return the relay of this process.

        Raises:
            ConfigError: the file is missing or wrong.
        """
        # `logging` is large, and the main process of root runs no handlers.
        from poorhttp.plugins.log_config import configuration, project_modules
        from poorhttp.plugins.log_config.relay import Relay

        if configure:
            place = settings.origin("log_config")
            with project_modules.found(settings, folder):
                configuration.apply(str(settings.of(LogConfig).log_config), place, folder)
        return Relay(label)


SINK = LoggingSink()
