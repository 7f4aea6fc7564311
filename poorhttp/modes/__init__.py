"""Concurrency models: each is a way to schedule `serve(application, request)`.

A mode is a module with `run(worker)`, which serves until the reactor ends, and if it needs something
before the application is imported, `prepare()`. Others register under the entry-point group
`poorhttp.modes`.
"""

from __future__ import annotations

from importlib import import_module

from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from poorhttp.options import Settings
    from poorhttp.worker import Worker

    class Mode(Protocol):
        """What a mode's module holds."""

        def prepare(self) -> None:
            """Get this process ready, before the application is imported."""

        def run(self, worker: Worker) -> None:
            """Serve until told to stop."""


OURS = ("single", "forking", "threading", "gevent")


def load(settings: Settings) -> Mode:
    """Return the mode of these settings.

    Raises:
        ConfigError: what the mode needs is not installed.
    """
    name = settings.mode
    try:
        if name in OURS:
            mode: Mode = import_module(f"poorhttp.modes.{name}")
        else:
            from importlib.metadata import entry_points

            mode = next(iter(entry_points(group="poorhttp.modes", name=name))).load()
        if hasattr(mode, "prepare"):
            mode.prepare()
    except ImportError as error:
        hint = "; pip install 'poorhttp[gevent]'" if name == "gevent" else ""
        raise ConfigError(f"{settings.place('mode')}: mode {name} cannot be loaded: {error}{hint}") from error
    return mode
