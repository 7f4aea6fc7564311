"""The class `WorkerHooks`: what a plug-in does when settings are read or an application loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from poorhttp.config.registry import registry
from poorhttp.config.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.net.listener import Listener
    from poorhttp.worker.service import Service
    from poorhttp.worker.stop_signals import StopSignals


class WorkerHooks:
    """Base class; each method does nothing, and a plug-in replaces those that it needs.

    There is one object in the process that reads the settings, and its forks have it. The methods
    are called in the order in which they stand here.
    """

    def read_settings(self, read: Callable[[], list[Settings]], command: str) -> list[Settings]:
        """Read the settings for a command that has its target found if none is named.

        May change the environment before it calls `read`, and complete the settings after.
        """
        return read()

    def hint(self, settings: Settings, command: str) -> str:
        """Return what else can be written where nothing is named to serve, as `; SENTENCE`."""
        return ""

    def complete(self, services: Sequence[Settings]) -> None:
        """Check settings that were read, and complete them.

        Raises:
            Failure: an option is wrong.
        """

    def check(self, service: Service) -> None:
        """Check what a service needs, before its addresses are opened, in the main process.

        May set attributes of the service.

        Raises:
            Failure: an option is wrong, or a module is missing.
        """

    def approve(self, settings: Settings, listeners: Sequence[Listener]) -> None:
        """Approve listening sockets that were opened.

        Raises:
            Failure: the service may not listen there.
        """

    def opened(self, service: Service) -> None:
        """Note that all listening sockets of a service are open; may add to its `notice`."""

    def start(self, settings: Settings, signals: StopSignals) -> None:
        """Prepare a worker, before the application is loaded in it, or was loaded."""

    def before_loading(self, settings: Settings) -> None:
        """Prepare the process that loads the application: a worker, or the preloader."""

    def wrap_target(
        self, application: WSGIApplication, target: str, settings: Settings
    ) -> WSGIApplication:
        """Return the application of one target, or another one around it."""
        return application

    def wrap(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Return the whole application, or another one around it, when all targets are loaded."""
        return application

    def serve(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Return the application that a worker calls: in the worker, before its first request."""
        return application

    def stop(self, settings: Settings) -> None:
        """Release what a worker has, after its last request."""


def used(settings: Settings) -> list[WorkerHooks]:
    """Return the hooks of plug-ins that these settings use.

    Raises:
        ConfigError: a plug-in cannot be loaded.
    """
    return [entry.load() for entry in registry.used("worker_hooks", settings.is_enabled)]
