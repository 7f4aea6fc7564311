"""Django's application configuration of this package."""

from __future__ import annotations

from django.apps import AppConfig


class PoorHttpConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """An application without models, which provides the command `dev`."""

    name = "poorhttp.plugins.discovery.django"
    label = "poorhttp"
    verbose_name = "Poor HTTP"
