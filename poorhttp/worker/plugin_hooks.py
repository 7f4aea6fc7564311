"""The class `WorkerHooks`: what a plug-in does when settings are read or an application loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from poorhttp.config.registry import FINDER, LeftOut, registry
from poorhttp.config.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from _typeshed.wsgi import WSGIApplication

    from poorhttp._core import Request
    from poorhttp.config.address import Address
    from poorhttp.net.listener import Listener
    from poorhttp.net.transport import Transport
    from poorhttp.targets.routes import Routes
    from poorhttp.worker.service import Service
    from poorhttp.worker.stop_signals import StopSignals

    #: Whether a server of poorhttp listens at an address, which is left alone then.
    IsOurs: TypeAlias = Callable[[Address], bool]


class WorkerHooks:
    """Base class; each method does nothing, and a plug-in replaces those that it needs.

    There is one object in the process that reads the settings, and its forks have it. The methods
    are called in the order in which they stand here, also by a server without a main process.

    Attributes:
        modules: modules and packages of the server itself that are imported later than at the
            start, as names below `poorhttp`; they are kept as they are now. Those of another
            distribution are imported as they are then.
    """

    modules: Sequence[str] = ()

    def read_settings(self, read: Callable[[], list[Settings]], command: str) -> list[Settings]:
        """Read the settings for a command that has its target found if none is named.

        May change the environment before it calls `read`, and complete the settings after.
        """
        return read()

    def find(self, settings: Settings) -> None:
        """Find the target for a command that needs one, and complete the settings with it.

        Raises:
            UsageError: nothing was found.
        """

    def hint_for_file(self, path: str) -> str:
        """Return what else can be written where a file that was named has no application."""
        return ""

    def hint(self, settings: Settings, command: str) -> str:
        """Return what else can be written where nothing is named to serve, as `; SENTENCE`."""
        return ""

    def complete(self, services: Sequence[Settings]) -> None:
        """Check settings that were read, and complete them.

        Raises:
            Failure: an option is wrong.
        """

    def try_open(self, services: Sequence[Settings], is_ours: IsOurs) -> Sequence[Listener]:
        """Open the addresses that the plug-in has in the main process, for `poorhttp check`.

        Returns:
            The listeners, which the caller closes; none for an address that is `is_ours`.

        Raises:
            Failure: an address cannot be used.
        """
        return ()

    def check(self, settings: Settings) -> None:
        """Check the settings of a service, before its addresses are opened, in the main process.

        Raises:
            Failure: an option is wrong, or a module is missing.
        """

    def approve(self, settings: Settings, listeners: Sequence[Listener]) -> None:
        """Approve listening sockets that were opened.

        Raises:
            Failure: the service may not listen there.
        """

    def opened(self, service: Service) -> None:
        """Set attributes of a service, whose listening sockets are open, for all its workers."""

    def start(self, settings: Settings, signals: StopSignals) -> None:
        """Prepare a worker, before the application is loaded in it, or was loaded."""

    def before_loading(self, settings: Settings) -> None:
        """Prepare the process that loads the application: a worker, or one that forks them."""

    def wrap_target(
        self, application: WSGIApplication, target: str, settings: Settings
    ) -> WSGIApplication:
        """Return the application of one target, or another one around it.

        `settings` are those of the host for which the target is.
        """
        return application

    def wrap(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Return the whole application, or another one around it, when all targets are loaded."""
        return application

    def serve(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Return the application that a worker calls: in the worker, before its first request.

        With a target `tcp:`, it is the handler of connections.
        """
        return application

    def reactor_arguments(self, settings: Settings) -> dict[str, Any]:
        """Return fields of `WorkerOptions`, in the worker that makes the reactor."""
        return {}

    def ready(self) -> None:
        """Note that a server without a main process accepts connections."""

    def offer_upgrade(
        self,
        environ: dict[str, Any],
        request: Request,
        application: object,
        replace: Callable[[], bool] | None,
    ) -> None:
        """Offer the connection of a request for another protocol, in its environ.

        `replace` starts a thread in the place of the present one, and returns whether it could;
        `None`: there is no pool of threads.
        """

    def end_upgraded(self, request: Request, error: BaseException) -> None:
        """End the connection of a request whose application has got it, and is through.

        Raises:
            ThreadReplaced: another thread serves in the place of this one.
        """

    def stop(self, settings: Settings) -> None:
        """Release what a worker has, after its last request."""


def finder() -> WorkerHooks | None:
    """Return the hooks that find a target; `None` if no plug-in does."""
    entry = registry.known("worker_hooks", FINDER)
    try:
        found: WorkerHooks | None = entry.load() if entry is not None else None
    except LeftOut:
        return None
    return found


def used(settings: Settings) -> list[WorkerHooks]:
    """Return the hooks of plug-ins that these settings use; none for a plug-in's own process.

    Raises:
        ConfigError: a plug-in cannot be loaded.
    """
    if settings.service.startswith("/"):
        return []
    return [
        entry.named(entry.load()) for entry in registry.used("worker_hooks", settings.is_enabled)
    ]


def modules(services: Sequence[Settings]) -> list[str]:
    """Return the modules that the hooks of all services name, each once."""
    return list({name: None for each in services for hooks in used(each) for name in hooks.modules})


def approver(hooks: Sequence[WorkerHooks]) -> Callable[[Settings, Sequence[Listener]], None]:
    """Return the function that has all hooks approve listening sockets."""

    def approve(settings: Settings, listeners: Sequence[Listener]) -> None:
        for each in hooks:
            each.approve(settings, listeners)

    return approve


def target_wrapper(
    hooks: Sequence[WorkerHooks],
) -> Callable[[WSGIApplication, str, Settings], WSGIApplication]:
    """Return the function that wraps the application of one target by all hooks."""

    def wrap(application: WSGIApplication, target: str, settings: Settings) -> WSGIApplication:
        for each in hooks:
            application = each.wrap_target(application, target, settings)
        return application

    return wrap


def load_application(
    hooks: Sequence[WorkerHooks],
    settings: Settings,
    routes: Routes,
    application: WSGIApplication | None = None,
) -> WSGIApplication:
    """Load what the routes name, as all hooks want it; `application`: if it is loaded already."""
    for each in hooks:
        each.before_loading(settings)
    application = application or routes.load(target_wrapper(hooks))
    for each in hooks:
        application = each.wrap(application, settings)
    return application


def serving(
    hooks: Sequence[WorkerHooks],
    settings: Settings,
    application: WSGIApplication,
    transport: Transport | None,
    listeners: Sequence[Listener],
) -> tuple[WSGIApplication, dict[str, Any]]:
    """Return the application that a worker calls, and what plug-ins give its reactor."""
    arguments: dict[str, Any] = {}
    for each in hooks:
        application = each.serve(application, settings)
        arguments |= each.reactor_arguments(settings)
    if transport is not None:
        arguments |= transport.reactor_arguments(listeners)
    return application, arguments
