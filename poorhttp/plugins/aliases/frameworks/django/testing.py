"""`poorhttp.frameworks.django.testing`: public name of `plugins.testing.django_live_server`."""

from poorhttp.plugins.testing.django_live_server import LiveServerTestCase, StaticLiveServerTestCase

__all__ = ["LiveServerTestCase", "StaticLiveServerTestCase"]
