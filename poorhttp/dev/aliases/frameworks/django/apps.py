"""The application that Django registers for an entry `poorhttp.frameworks.django`."""

from poorhttp.dev.discovery.django.apps import PoorHttpConfig

__all__ = ["PoorHttpConfig"]
