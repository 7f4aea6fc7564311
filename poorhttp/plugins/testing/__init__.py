"""Servers for tests of applications: a plugin of pytest, and the live servers of frameworks.

pytest_plugin.py        the fixtures `poorhttp_server` and `poorhttp_server_factory`
django_live_server.py   Django's `LiveServerTestCase`, and pytest-django's `live_server`
flask_live_server.py    pytest-flask's `live_server`

pytest imports the plugin in every run, also where nobody uses it: it imports the server late.
"""
