"""Application configuration of the INSTALLED_APPS entry `poorhttp.frameworks.django`."""

from poorhttp.plugins.discovery.django.apps import PoorHttpConfig

__all__ = ["PoorHttpConfig"]
