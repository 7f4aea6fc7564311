"""Finds what to serve, if no option names it, before a worker loads it; static files of Django."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from poorhttp.config import loader
from poorhttp.config.settings import Settings
from poorhttp.plugins.discovery.options import Discovery
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.plugins.discovery import discover
    from poorhttp.plugins.discovery.flask_files import FlaskFiles


class DiscoveryHooks(WorkerHooks):
    """Finds the target of a command, or the Django project of the option `django`."""

    def __init__(self) -> None:
        self._discovery: discover.Discovery | None = None
        self._files: FlaskFiles | None = None

    def read_settings(self, read: Callable[[], list[Settings]], command: str) -> list[Settings]:
        """Read the settings, and find the target; with the variables of files for Flask."""
        from poorhttp.plugins.discovery.flask_files import FlaskFiles

        files = self._files
        if files is None:
            # In the environment in which the server was started.
            files = self._files = FlaskFiles(os.environ)
        files.forget(os.environ)
        if files.is_for_command:
            files.read(os.environ, os.getcwd())
        services = read()
        discovery = self._prepare(services)
        discovery.changes = files.changes()
        discovery.complete(services)
        if discovery.found_flask and not files.is_for_command:
            files.read(os.environ, services[0].chdir)
        services[0].variable_files = files.paths
        return services

    def complete(self, services: Sequence[Settings]) -> None:
        """Find the Django project that is to be served."""
        if services[0].of(Discovery).django and self._files is None:
            self._prepare(services).complete(services)
        if services[0].is_enabled("debug"):
            from poorhttp.plugins import discovery

            discovery.set_debug_defaults(os.environ)

    def find(self, settings: Settings) -> None:
        """Find the target of a folder."""
        from poorhttp.plugins.discovery import discover

        discover.Discovery().complete([settings])

    def hint(self, settings: Settings, command: str) -> str:
        """Return which commands find a target, if this one does not."""
        if command != "serve":
            return ""
        hint = "; poorhttp dev finds it by itself"
        if os.path.isfile(os.path.join(settings.chdir, "manage.py")):
            hint += ", and poorhttp serve --django a project of Django"
        return hint

    def hint_for_file(self, path: str) -> str:
        """Return the application of the Django project of a `manage.py`."""
        from poorhttp.plugins.discovery.source.django import (
            MANAGE,
            SETTINGS_APPLICATION,
            DjangoProject,
        )
        from poorhttp.plugins.discovery.source.python import Sources

        folder, name = os.path.split(path)
        if name != MANAGE:
            return ""
        sources = Sources([folder or "."])
        project = DjangoProject(sources, sources.read(path))
        target = project.target
        if target == SETTINGS_APPLICATION:
            package = project.settings.partition(".")[0]
            target = f"{package}.wsgi:application" if sources.find(f"{package}.wsgi")[0] else ""
        chdir = f" --chdir {folder}" if folder else ""
        return f"the application of this Django project is {target}{chdir}" if target else ""

    def wrap_target(
        self, application: WSGIApplication, target: str, settings: Settings
    ) -> WSGIApplication:
        """Serve the static files of a Django project, as its own server does."""
        if not settings.is_enabled("debug"):
            return application
        from poorhttp.plugins.discovery.django import static_files

        return static_files.with_static_files(application, target)

    def _prepare(self, services: Sequence[Settings]) -> discover.Discovery:
        """Return what finds targets, for an environment with the variables that it reads."""
        if self._discovery is None:
            from poorhttp.plugins.discovery import discover

            self._discovery = discover.Discovery()
        # Such as DJANGO_SETTINGS_MODULE.
        loader.set_variables(services[0])
        return self._discovery


HOOKS = DiscoveryHooks()
