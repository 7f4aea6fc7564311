"""Default WSGI application of a Django project, as `runserver` serves it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def make_application() -> WSGIApplication:
    """Make the application of the settings that `DJANGO_SETTINGS_MODULE` names.

    A function, so that this module can be imported without a project.
    """
    import django
    from django.core.servers.basehttp import get_internal_wsgi_application

    django.setup()
    application: WSGIApplication = get_internal_wsgi_application()
    return application
