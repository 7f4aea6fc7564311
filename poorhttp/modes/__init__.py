"""Modes: how the requests of a worker are scheduled.

single.py      one request at a time
forking.py     one request at a time in each of several processes
threading.py   threads that share one reactor
gevent.py      a greenlet for each request

A mode is a module with a function `run(worker)`, which serves until the reactor stops, and an
optional function `prepare()`, which is called before the application is imported. Modes are entries
of the registry in the group `modes`.
"""

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
    entry = registry.entries["modes"][settings.mode]
    try:
        mode: Mode = entry.load()
    except ConfigError as error:
        if isinstance(error.__cause__, ImportError):
            raise _unusable(settings, error.__cause__) from error
        raise
    return mode


def prepare(mode: Mode, settings: Settings) -> None:
    """Prepare this process for a mode, before the application is imported.

    Raises:
        ConfigError: a module that the mode needs is not installed.
    """
    try:
        if hasattr(mode, "prepare"):
            mode.prepare()
    except ImportError as error:
        raise _unusable(settings, error) from error


def _unusable(settings: Settings, error: ImportError) -> ConfigError:
    hint = f"; {how_to_install('gevent')}" if settings.mode == "gevent" else ""
    where = settings.origin("mode")
    return ConfigError(f"{where}: mode {settings.mode} cannot be used: {error}{hint}")
