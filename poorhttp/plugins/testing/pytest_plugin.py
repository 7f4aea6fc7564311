"""Plugin of pytest: servers for tests, in threads of their process.

def test_page(poorhttp_server):
    server = poorhttp_server(application)
    urllib.request.urlopen(server.url)

With `poorhttp_live_server = true` in pytest's configuration, the fixtures `live_server` of
pytest-django and pytest-flask, and Django's `LiveServerTestCase`, serve by poorhttp.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from _typeshed.wsgi import WSGIApplication

    import poorhttp

    Factory: TypeAlias = Callable[..., poorhttp.Server]

LIVE_SERVER = "poorhttp_live_server"


@pytest.fixture
def poorhttp_server() -> Iterator[Factory]:
    """Return a function that starts a server for an application, or for the text of a target.

    It takes the arguments of `poorhttp.Server`. At the end of the test its servers stop.
    """
    yield from _factory()


@pytest.fixture(scope="session")
def poorhttp_server_factory() -> Iterator[Factory]:
    """Return the same function as `poorhttp_server`; its servers stop at the end of the session."""
    yield from _factory()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the setting."""
    parser.addini(
        LIVE_SERVER,
        "serve by poorhttp: live_server of pytest-django and pytest-flask, LiveServerTestCase",
        type="bool",
        default=False,
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Replace the live servers of frameworks, if the setting says so."""
    if not session.config.getini(LIVE_SERVER):
        return
    if "django" in sys.modules:
        from poorhttp.plugins.testing import django_live_server

        django_live_server.install()
    if "pytest_flask.live_server" in sys.modules:
        from poorhttp.plugins.testing import flask_live_server

        flask_live_server.install()


def _factory() -> Iterator[Factory]:
    with ExitStack() as running:

        def start(
            app: WSGIApplication | str | None = None,
            bind: str = "127.0.0.1:0",
            mode: str = "threading",
            **options: object,
        ) -> poorhttp.Server:
            import poorhttp

            return running.enter_context(poorhttp.Server(app, bind, mode, **options))

        yield start
