"""Pages with WebSockets in a browser, through nginx with TLS: flask-sock and Flask-SocketIO."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.browser import Browser
from tests.support.proxies import Proxy
from tests.testkit.server import ROOT, Server

pytest.importorskip("flask_sock")
pytest.importorskip("flask_socketio")

APP = ROOT / "tests" / "apps" / "sockets_shown.py"


@pytest.fixture(scope="module", params=["threading", "gevent"])
def proxy(request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """nginx as `proxy/nginx/site.conf` has it, in front of a server at a Unix socket."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        options = ("-c", "proxy/site.ini")
        bind = (f"unix:{folder / 'poorhttp.sock'}",)
        with (
            Server(str(APP), request.param, *options, bind=bind),
            Proxy("nginx", "site", folder) as proxy,
        ):
            yield proxy.wait_listening()


def shown(browser: Browser, proxy: Proxy, path: str, *texts: str) -> None:
    """Open a page and wait for texts; a picture of it is kept where POORHTTP_SCREENSHOTS says."""
    browser.open(f"https://127.0.0.1:{proxy.port}{path}")
    for text in texts:
        browser.wait_text(text)
    if folder := os.environ.get("POORHTTP_SCREENSHOTS"):
        browser.picture(Path(folder) / f"{path.strip('/')}.png")


def test_flask_sock(browser: Browser, proxy: Proxy) -> None:
    said = "echoed: Grüße from the page", "closed with 1000, clean: true"
    shown(browser, proxy, "/sock", *said)


def test_flask_socketio(browser: Browser, proxy: Proxy) -> None:
    """It begins with polling, and goes on over a WebSocket."""
    said = (
        "connected by polling: true",
        "upgraded to a WebSocket",
        "said: Grüße from the page, answered",
    )
    shown(browser, proxy, "/socketio", *said)
