"""Loads the mode that the settings name, `poorhttp.modes` or that of a plug-in."""

from __future__ import annotations

from poorhttp.config.registry import registry
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError, how_to_install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from poorhttp.worker.worker import Worker

    class Mode(Protocol):
        """The functions of a mode's module."""

        def prepare(self) -> None:
            """Prepare this process, before the application is imported."""

        def run(self, worker: Worker) -> None:
            """Serve until the reactor stops."""


def load(settings: Settings) -> Mode:
    """Return the mode of these settings. May be called before a fork: it changes nothing.

    Raises:
        ConfigError: the mode cannot be imported.
    """
    entry = registry.find("modes", settings.mode)
    if entry is None:
        raise ConfigError(f"{settings.origin('mode')}: there is no mode {settings.mode}")
    try:
        mode: Mode = entry.load()
    except ConfigError as error:
        if isinstance(error.__cause__, ImportError):
            raise _unusable(settings, error.__cause__) from error
        raise
    return mode


def prepare(mode: Mode, settings: Settings) -> None:
    """Prepare this process for a mode, before the application is imported; errors as of `load`."""
    try:
        if hasattr(mode, "prepare"):
            mode.prepare()
    except ImportError as error:
        raise _unusable(settings, error) from error


def _unusable(settings: Settings, error: ImportError) -> ConfigError:
    hint = f"; {how_to_install('gevent')}" if settings.mode == "gevent" else ""
    where = settings.origin("mode")
    return ConfigError(f"{where}: mode {settings.mode} cannot be used: {error}{hint}")
