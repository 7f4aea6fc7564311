"""Static files of Django's applications, without `collectstatic`, as `runserver` has them."""

from __future__ import annotations

import sys

from poorhttp.errors import ApplicationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def with_static_files(application: WSGIApplication, target: str) -> WSGIApplication:
    """Return an application that answers for them too, if this is one of Django's that has some.

    That is, with `django.contrib.staticfiles` among its applications and DEBUG on: Django serves
    them in no other case. Of any other application nothing is changed, nor is Django imported.

    Args:
        application: that was loaded.
        target: by which.

    Raises:
        ApplicationError: Django does not know where they are.
    """
    if "django.core.handlers.wsgi" not in sys.modules:
        return application
    from django.apps import apps
    from django.conf import settings
    from django.core.handlers.wsgi import WSGIHandler

    if not (settings.configured and apps.ready and settings.DEBUG):
        return application
    # Projects wrap theirs, too.
    named = target.replace(":", ".") == getattr(settings, "WSGI_APPLICATION", None)
    if not (named or isinstance(application, WSGIHandler)):
        return application
    if not apps.is_installed("django.contrib.staticfiles") or not settings.STATIC_URL:
        return application
    if apps.is_installed("whitenoise.runserver_nostatic"):
        # It serves them, and says by this that runserver shall not.
        return application
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.exceptions import ImproperlyConfigured

    try:
        files: WSGIApplication = StaticFilesHandler(application)
    except ImproperlyConfigured as error:
        raise ApplicationError(f"{target}: static files: {error}") from error
    return files
