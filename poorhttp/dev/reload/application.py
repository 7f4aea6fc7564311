"""The application of a version, in what its author wants around it; or a page in its place."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings
    from poorhttp.dev.reload.generation import Version
    from poorhttp.dev.reload.preimport.preimport import Warmth


def dress(
    application: WSGIApplication, settings: Settings, version: Version, warmth: Warmth | None
) -> WSGIApplication:
    """Put around an application what its author wants to see."""
    from poorhttp.config.address import is_raw_tcp
    from poorhttp.dev.debug.middleware import Debugged
    from poorhttp.dev.live_reload import Live, script
    from poorhttp.dev.reload.import_tracker import News

    if is_raw_tcp(settings.target):
        # It takes connections, and has no pages.
        return application
    # A page that stands in for an application goes away by itself in any case.
    adds = settings.live or getattr(application, "reloads", False)
    if settings.profile:
        from poorhttp.dev import profiler

        if profiler.kept is not None:
            folder = profiler.kept.folder
            if isinstance(application, Debugged):
                # The page of an error is not what takes the application long.
                inner = application.application
                application.application = profiler.Profiled(inner, settings, folder)
            else:
                application = profiler.Profiled(application, settings, folder)
            application = profiler.Pages(application, settings, folder)
    application = News(application, version, warmth)
    if settings.live:
        version.service.live = script(version.name)
    return Live(application, version.name, adds=adds)


def failed(error: BaseException, settings: Settings, version: Version) -> WSGIApplication:
    """Return the page for a version that cannot be loaded, and tell of it in the terminal."""
    from poorhttp import logs
    from poorhttp.dev.debug.load_error_page import failure
    from poorhttp.logs.frames import source_folders, strip_frames

    # What the application has raised, rather than our words for it, if it was that.
    cause = strip_frames(error)
    logs.exception(f"version {version.number} cannot be loaded", cause)
    # What has raised may lie outside of the project, in an editable install.
    version.lineage.tell_folders(source_folders(cause))
    return failure(cause, settings)
