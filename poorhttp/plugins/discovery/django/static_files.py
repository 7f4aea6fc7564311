"""Serves static files of Django's applications without `collectstatic`, as `runserver` does."""

from __future__ import annotations

import sys

from poorhttp.errors import ApplicationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def with_static_files(application: WSGIApplication, target: str) -> WSGIApplication:
    """Return an application that also serves static files, if it is a Django project with some.

    They are served with `django.contrib.staticfiles` installed and DEBUG on, as Django does. Any
    other application is returned unchanged, and Django is not imported for it.

    Args:
        application: the loaded application.
        target: its target.

    Raises:
        ApplicationError: the settings for static files are wrong.
    """
    if "django.core.handlers.wsgi" not in sys.modules:
        return application
    from django.apps import apps
    from django.conf import settings
    from django.core.handlers.wsgi import WSGIHandler

    if not (settings.configured and apps.ready and settings.DEBUG):
        return application
    # A project may wrap its application.
    named = target.replace(":", ".") == getattr(settings, "WSGI_APPLICATION", None)
    if not (named or isinstance(application, WSGIHandler)):
        return application
    if not apps.is_installed("django.contrib.staticfiles") or not settings.STATIC_URL:
        return application
    if apps.is_installed("whitenoise.runserver_nostatic"):
        # WhiteNoise serves them, and disables runserver's handler by this entry.
        return application
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.exceptions import ImproperlyConfigured

    try:
        files: WSGIApplication = StaticFilesHandler(application)
    except ImproperlyConfigured as error:
        raise ApplicationError(f"{target}: static files: {error}") from error
    return files
