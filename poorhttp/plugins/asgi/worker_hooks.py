"""Finds out which targets are ASGI applications, whose bodies are received while they run."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError, how_to_install
from poorhttp.plugins.asgi.applications import Mounted
from poorhttp.plugins.asgi.options import Asgi
from poorhttp.targets.wsgi import is_asgi
from poorhttp.worker.plugin_hooks import WorkerHooks
from poorhttp.worker.service import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import WSGIApplication


class AsgiHooks(WorkerHooks):
    """Used in mode `asyncio`. Keeps what is loaded, by the names of services."""

    modules = ("plugins.asgi",)

    def __init__(self) -> None:
        self._services: dict[str, Service] = {}
        self._mounted: dict[str, list[Mounted]] = {}
        self._whole: dict[str, WSGIApplication] = {}

    def whole(self, settings: Settings, application: WSGIApplication) -> WSGIApplication:
        """Return what answers all requests of a service, before other plug-ins have wrapped it.

        What is served without having been loaded, such as a page that says why, is of WSGI.
        """
        if settings.service not in self._whole:
            page = Mounted(application, "", is_asgi=False)
            self._mounted[settings.service], self._whole[settings.service] = [page], page
        return self._whole[settings.service]

    def mounted(self, settings: Settings) -> list[Mounted]:
        """Return the applications of a service."""
        return self._mounted.get(settings.service, [])

    def logs_failure(self, settings: Settings) -> bool:
        """Whether the mode logs why an application cannot start."""
        return not self._services[settings.service].start_errors_muted

    def check(self, settings: Settings) -> None:
        """Check that the event loop is installed; load what workers that are forked need later."""
        with suppress(ModuleNotFoundError):
            import_module("poorhttp.plugins.asgi._websocket")
        if settings.of(Asgi).asgi_loop == "uvloop" and find_spec("uvloop") is None:
            where = settings.origin("asgi_loop")
            raise ConfigError(f"{where}: uvloop is not installed; {how_to_install('uvloop')}")

    def opened(self, service: Service) -> None:
        """Note the service, whose routes say later where bodies are received."""
        self._services[service.settings.service] = service

    def before_loading(self, settings: Settings) -> None:
        """Forget what a former load has found."""
        self._mounted[settings.service] = []
        self._whole.pop(settings.service, None)

    def wrap_target(self, application: Any, target: str, settings: Settings) -> Mounted:
        """Note an application, and whether it is an ASGI application."""
        mounted = Mounted(application, target, is_asgi=is_asgi(application))
        self._mounted.setdefault(settings.service, []).append(mounted)
        return mounted

    def wrap(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Keep the whole application as it is before other plug-ins wrap it."""
        if not self.mounted(settings):
            # It was given, not loaded.
            application = self.wrap_target(application, "", settings)
        self._whole[settings.service] = application
        return application

    def serve(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Have ASGI applications called before the bodies of their requests have come."""
        routes = self._services[settings.service].routes
        asgi = {each.target for each in self.mounted(settings) if each.is_asgi}
        rows = {(host, prefix): streamed for host, prefix, streamed in routes.streamed_bodies}
        for route in routes:
            if not route.folder:
                place = route.host, route.prefix
                rows[place] = route.target in asgi or rows.get(place, False)
        routes.streamed_bodies = [(*place, streamed) for place, streamed in rows.items()]
        return application

    def reactor_arguments(self, settings: Settings) -> dict[str, Any]:
        """Have heads of requests given in parts, and environs made only for WSGI applications."""
        return {"lazy_environ": True}


HOOKS = AsgiHooks()
