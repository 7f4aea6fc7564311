"""What Django is told of us."""

from __future__ import annotations

from django.apps import AppConfig


class PoorHttpConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """An application without models: it is there for its command."""

    name = "poorhttp.dev.discovery.django"
    label = "poorhttp"
    verbose_name = "Poor HTTP"
