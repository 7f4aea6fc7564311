"""Test cases of Django with a live server, which is poorhttp."""

from poorhttp.plugins.testing.django_live_server import LiveServerTestCase, StaticLiveServerTestCase

__all__ = ["LiveServerTestCase", "StaticLiveServerTestCase"]
