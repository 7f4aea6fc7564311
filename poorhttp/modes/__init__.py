"""Concurrency models: each is a way to schedule `serve(application, requests)`.

single.py      one request after another
forking.py     several such processes
threading.py   threads over one reactor
gevent.py      a greenlet for each request

A mode is a module with `run(worker)`, which serves until the reactor ends, and if it needs
something before the application is imported, `prepare()`. Others register under the entry-point
group `poorhttp.modes`.
"""

from __future__ import annotations

from importlib import import_module

from poorhttp.config.options.server import MODES
from poorhttp.errors import ConfigError, how_to_install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from poorhttp.config.settings import Settings
    from poorhttp.worker.worker import Worker

    class Mode(Protocol):
        """What a mode's module holds."""

        def prepare(self) -> None:
            """Get this process ready, before the application is imported."""

        def run(self, worker: Worker) -> None:
            """Serve until told to stop."""


def load(settings: Settings) -> Mode:
    """Return the mode of these settings. Changes nothing, so it may be done before forking.

    Raises:
        ConfigError: it cannot be imported.
    """
    name = settings.mode
    try:
        if name in MODES:
            mode: Mode = import_module(f"poorhttp.modes.{name}")
        else:
            from importlib.metadata import entry_points

            mode = next(iter(entry_points(group="poorhttp.modes", name=name))).load()
    except ImportError as error:
        raise _unusable(settings, error) from error
    return mode


def prepare(mode: Mode, settings: Settings) -> None:
    """Get this process ready for a mode, before the application is imported.

    Raises:
        ConfigError: what the mode needs is not installed.
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
