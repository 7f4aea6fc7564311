"""`--open`: the page, the browser, and once only."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from poorhttp.plugins.dev import open_browser
from tests.testkit.server import Server, wait_for

TALKER = "tests/apps/talker.py"


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A browser that notes where it went, and talks."""
    script = tmp_path / "browser"
    script.write_text(
        f'#!/bin/sh\necho what a browser says\necho and more >&2\necho "$@" >> {tmp_path}/visited\n'
    )
    script.chmod(0o755)
    return script


def visited(fake: Path) -> list[str]:
    file = fake.parent / "visited"
    return file.read_text().split() if file.exists() else []


def test_the_browser_is_opened_once(fake: Path) -> None:
    with Server(TALKER, "single", "--open", env={"BROWSER": f"{fake} %s"}) as server:
        wait_for(lambda: visited(fake), "the visit")
        assert visited(fake) == [f"http://127.0.0.1:{server.port}"]
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded")
        # One that was opened again would be there by now: this comes behind it.
        another = Server(TALKER, "single", "--open", env={"BROWSER": f"{fake} %s"})
        with another as other:
            wait_for(lambda: f"http://127.0.0.1:{other.port}" in visited(fake), "the visit")
        assert len(visited(fake)) == 2
        assert "what a browser says" not in server.log() + server.output()
        assert "and more" not in server.log() + server.output()


def test_no_browser(tmp_path: Path) -> None:
    env = {"BROWSER": "false", "PATH": str(tmp_path), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    with Server(TALKER, "single", "--open", env=env) as server:
        server.wait_log("poorhttp: no browser can be opened here")


@pytest.mark.parametrize(
    ("urls", "page"),
    [
        (["unix:/run/http", "http://127.0.0.1:8080"], "http://127.0.0.1:8080"),
        (["http://[::]:80"], "http://localhost:80"),
        (["http://[::1]:80"], "http://[::1]:80"),
        (["uwsgi://127.0.0.1:3031", "tcp://127.0.0.1:1"], ""),
    ],
)
def test_the_page(urls: list[str], page: str) -> None:
    assert open_browser.browser_url(urls) == page
