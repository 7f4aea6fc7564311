"""Compressed responses of frameworks and CGI programs, and what curl and Chromium make of them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from tests.apps.compressed import text
from tests.conftest import Serve
from tests.packages import need
from tests.support.browser import Browser
from tests.testkit.client import HANG, Response
from tests.testkit.server import ROOT, Server

FLASK = "tests/apps/flask_files.py"
DJANGO = "tests/apps/django_files.py"
GZIP = "Accept-Encoding: gzip"

#: Django's own compression, in a project that has it.
TWICE = """
from django.conf import LazySettings
configure = LazySettings.configure
def with_gzip(self, **values):
    values["MIDDLEWARE"] = ["django.middleware.gzip.GZipMiddleware", *values["MIDDLEWARE"]]
    configure(self, **values)
LazySettings.configure = with_gzip
from tests.apps.django_files import application
"""

PAGE = """
import time
PAGE = b'''<!doctype html><title>events</title><pre id=seen></pre><script>
const source = new EventSource('/events')
source.onmessage = event => {
    document.getElementById('seen').textContent += event.data + ' '
    fetch('/seen?' + event.data)
    if (event.data == '3') source.close()
}
fetch('/data').then(answer => answer.json()).then(data => { window.rows = data.length })
</script>'''
seen = set()

def events():
    for number in range(4):
        # The browser has shown the one before.
        while number and str(number - 1) not in seen:
            time.sleep(0.001)
        yield b"data: %d\\n\\n" % number

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/events":
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        return events()
    if path == "/seen":
        seen.add(environ["QUERY_STRING"])
    kind = "application/json" if path == "/data" else "text/html"
    start_response("200 OK", [("Content-Type", kind), ("X-Compress", "on")])
    return [b"[" + b"1234," * 5000 + b"1]" if path == "/data" else PAGE]
"""


def decoded(response: Response) -> bytes:
    """The content of a response, which must be compressed once."""
    assert response.get_all("Content-Encoding") == ["gzip"]
    assert "Accept-Encoding" in str(response.get("Vary"))
    return gzip.decompress(response.body)


@pytest.mark.parametrize("app", [FLASK, DJANGO])
def test_frameworks(serve: Serve, app: str) -> None:
    server = serve(app, "--compress=on")
    for target in ("/itself", "/stream"):
        with server.connect() as connection:
            plain = connection.request("GET", target)
            coded = connection.request("GET", target, GZIP)
            assert decoded(coded) == plain.body
            assert plain.get("Content-Encoding") is None
            if tag := plain.get("ETag"):
                assert coded.get("ETag") == f"W/{tag.removeprefix('W/')}"
                again = f"If-None-Match: {coded.get('ETag')}"
                assert connection.request("GET", target, GZIP, again).status == 304


def test_django_compresses_itself(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(TWICE)
    options = ("--compress=on", "--pythonpath", str(ROOT))
    with Server("twice:application", "threading", *options, cwd=tmp_path) as server:
        for target in ("/itself", "/stream"):
            with server.connect() as connection:
                plain = connection.request("GET", target).body
                response = connection.request("GET", target, GZIP)
                assert decoded(response) == plain
                # This browser prefers what ours would have chosen.
                both = "Accept-Encoding: gzip, zstd"
                assert decoded(connection.request("GET", target, both)) == plain


def test_a_program(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "rows.py"
    program.write_text(
        f"#!{sys.executable}\nprint('Content-Type: text/plain\\n')\n"
        "for number in range(5000): print('row', number)\n"
    )
    program.chmod(0o755)
    response = serve(f"cgi:{folder}", "--compress=on").get("/rows.py", GZIP)
    rows = "".join(f"row {number}\n" for number in range(5000))
    assert decoded(response) == rows.encode()


@pytest.mark.parametrize("shape", ["list", "generator"])
def test_curl(serve: Serve, shape: str) -> None:
    need("curl")
    server = serve("tests/apps/compressed.py", "--compress=on")
    url = f"http://127.0.0.1:{server.port}/?shape={shape}&size=100000"
    words = ["curl", "--silent", "--show-error", "--fail", "--compressed", "--include", url]
    done = subprocess.run(words, capture_output=True, timeout=HANG, check=True)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    assert b"Content-Encoding: " in head
    assert body == text(100_000)


def test_a_browser_reads_each_event_before_the_next_is_made(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "page.py").write_text(PAGE)
    with Server("page:app", "threading", "--compress=on", cwd=tmp_path) as server:
        browser.open(server.urls)
        browser.wait_text("0 1 2 3")
        browser.wait_for("window.rows === 5001")
        sizes = "performance.getEntriesByName(location.origin + '/data')[0]"
        coded, plain = (
            browser.run(f"{sizes}.{name}") for name in ("encodedBodySize", "decodedBodySize")
        )
        assert plain == 25_003
        assert coded < 1_000
