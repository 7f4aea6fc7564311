"""The application of a version, in what its author wants around it; or a page in its place."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings
    from poorhttp.dev.reload.generation import Generation
    from poorhttp.dev.reload.preimport.preimport import Preimporter


def wrap(
    application: WSGIApplication,
    settings: Settings,
    generation: Generation,
    preimporter: Preimporter | None,
) -> WSGIApplication:
    """Put around an application what its author wants to see."""
    from poorhttp.config.address import is_raw_tcp
    from poorhttp.dev.debug.middleware import ErrorPages
    from poorhttp.dev.live_reload import LiveReload, script
    from poorhttp.dev.reload.import_tracker import ImportTracker

    if is_raw_tcp(settings.target):
        # It takes connections, and has no pages.
        return application
    # A page that stands in for an application goes away by itself in any case.
    adds_script = settings.live or getattr(application, "reloads", False)
    if settings.profile:
        from poorhttp.dev import profiler

        if profiler.profiles is not None:
            folder = profiler.profiles.folder
            if isinstance(application, ErrorPages):
                # The page of an error is not what takes the application long.
                inner = application.application
                application.application = profiler.ProfiledApplication(inner, settings, folder)
            else:
                application = profiler.ProfiledApplication(application, settings, folder)
            application = profiler.ProfilePages(application, settings, folder)
    application = ImportTracker(application, generation, preimporter)
    if settings.live:
        generation.service.live = script(generation.name)
    return LiveReload(application, generation.name, adds_script=adds_script)


def load_error(error: BaseException, settings: Settings, generation: Generation) -> WSGIApplication:
    """Return the page for a version that cannot be loaded, and tell of it in the terminal."""
    from poorhttp import logs
    from poorhttp.dev.debug.load_error_page import load_error_page
    from poorhttp.logs.frames import source_folders, strip_frames

    # What the application has raised, rather than our words for it, if it was that.
    cause = strip_frames(error)
    logs.exception(f"version {generation.number} cannot be loaded", cause)
    # What has raised may lie outside of the project, in an editable install.
    generation.shared.report_folders(source_folders(cause))
    return load_error_page(cause, settings)
