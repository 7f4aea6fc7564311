"""Wraps a generation's application for development, or makes the page of its load error."""

from __future__ import annotations

from poorhttp.plugins.dev.options import Development

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings
    from poorhttp.plugins.dev.reload.preimport.preimport import Preimporter
    from poorhttp.plugins.dev.reload.spawner import VersionSpawner


def wrap(
    application: WSGIApplication,
    settings: Settings,
    spawner: VersionSpawner,
    preimporter: Preimporter | None,
) -> WSGIApplication:
    """Wrap an application: profiles, tracking of imports, live reload, as far as options ask."""
    from poorhttp.config.address import is_raw_tcp
    from poorhttp.plugins.dev.debug.middleware import ErrorPages
    from poorhttp.plugins.dev.live_reload import LiveReload, script
    from poorhttp.plugins.dev.reload.import_tracker import ImportTracker

    if is_raw_tcp(settings.target):
        # A handler of raw TCP connections has no pages.
        return application
    # A page in place of an application reloads itself even without the option `live`.
    adds_script = settings.of(Development).live or getattr(application, "reloads", False)
    if settings.of(Development).profile:
        from poorhttp.plugins.dev import profiler

        if profiler.profiles is not None:
            folder = profiler.profiles.folder
            if isinstance(application, ErrorPages):
                # Inside the error pages, whose making must not count as the application's time.
                inner = application.application
                application.application = profiler.ProfiledApplication(inner, settings, folder)
            else:
                application = profiler.ProfiledApplication(application, settings, folder)
            application = profiler.ProfilePages(application, settings, folder)
    application = ImportTracker(application, spawner, preimporter)
    if settings.of(Development).live:
        spawner.service.live = script(spawner.name)
    return LiveReload(application, spawner.name, adds_script=adds_script)


def load_error(
    error: BaseException, settings: Settings, spawner: VersionSpawner
) -> WSGIApplication:
    """Log why a version cannot be loaded, and return a page that says so."""
    from poorhttp import logs
    from poorhttp.logs.frames import source_folders, strip_frames
    from poorhttp.plugins.dev.debug.load_error_page import load_error_page

    # The exception that the application has raised, without the server's wrapper and frames.
    cause = strip_frames(error)
    logs.exception(f"version {spawner.number} cannot be loaded", cause)
    # The faulty file may be outside of the project, in an editable install: have it watched.
    spawner.shared.report_folders(source_folders(cause))
    return load_error_page(cause, settings)
