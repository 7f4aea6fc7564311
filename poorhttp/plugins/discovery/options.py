"""The option `django`: finds and serves the Django project of a folder."""

from __future__ import annotations

from poorhttp.config.options.option import ON_COMMAND_LINE, Option
from poorhttp.config.parsers import boolean


class Discovery:
    """What is found instead of being named."""

    GROUP = "Application"
    AVAILABLE = ON_COMMAND_LINE
    INSTEAD = "only the command finds a project; name its WSGI_APPLICATION"

    django = Option(
        boolean,
        "off",
        "Serve the Django project of the current folder, or of the folder that the target names.",
        shared=True,
        reason="The settings are those that `DJANGO_SETTINGS_MODULE` names, or else those of "
        "`manage.py`, and the application is their `WSGI_APPLICATION`. Files that `collectstatic` "
        "has put into `STATIC_ROOT` are served at `STATIC_URL` without Python "
        "(docs/guides/django.md).",
    )
