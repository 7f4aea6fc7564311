"""Live pages: which responses get the reload script, and its effect in a browser."""

from __future__ import annotations

import gzip
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from poorhttp import logs
from poorhttp.plugins.dev.live_reload import LiveReload
from tests.apps.living import PAGE
from tests.support.browser import Browser
from tests.support.development import save, write
from tests.support.forked_command import run_command
from tests.testkit.client import Connection, Response
from tests.testkit.server import Server

APP = "tests.apps.living:application"
LIVE = ("--autoreload", "full", "--live")

#: What is added to a page.
SCRIPT = re.compile(rb'<script src="(.*)/__poorhttp__/live\.js\?([\w.~-]+)" async></script>\Z')


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with the text of `/text`."""
    return tmp_path_factory.mktemp("live") / "text"


@pytest.fixture(scope="module")
def server(text: Path) -> Iterator[Server]:
    with Server(APP, "single", *LIVE, env={"TEXT_FILE": str(text)}, tracebacks=True) as running:
        yield running


def added(answer: Response) -> bytes:
    """The script at the end of a page; it is taken off."""
    found = SCRIPT.search(answer.body)
    assert found, answer.body
    answer.body = answer.body[: found.start()]
    return found[0]


def said(server: Server, path: str, *parts: str, headers: tuple[str, ...] = ()) -> Response:
    return server.get(f"{path}?{quote('|'.join(parts))}", *headers)


@pytest.mark.parametrize("path", ["/list", "/pieces", "/stream", "/one"])
@pytest.mark.parametrize("length", [True, False])
def test_what_bodies_become(server: Server, path: str, length: bool) -> None:
    """The script stands behind them, and the length counts it."""
    parts = [f"Content-Length:{len(PAGE)}"] if length else []
    with server.connect() as connection:
        connection.send_request("GET", f"{path}?{quote('|'.join(parts))}")
        answer = connection.response()
        assert (answer.framing == "length") == (length or path in ("/list", "/one"))
        added(answer)
        assert answer.body == PAGE
        # The connection is as good as before.
        assert connection.request("GET", "/asked").status == 200


def test_how_applications_may_answer(server: Server) -> None:
    for path, body in (("/late", b"<p>late</p>"), ("/written", b"<p>written</p>"), ("/file", PAGE)):
        answer = server.get(path)
        added(answer)
        assert answer.body == body, path
    before = int(server.get("/counted?/pieces").body)
    server.get("/pieces")
    assert int(server.get("/counted?/pieces").body) == before + 1
    answer = server.get("/nothing")
    added(answer)
    assert answer.body == b""


def test_errors_are_the_applications(server: Server) -> None:
    answer = server.get("/twice")
    assert (answer.status, answer.reason, answer.body) == (500, "Oh", b"failed")
    with server.connect() as connection:
        connection.send_request("GET", "/fails")
        assert connection.rest().endswith(b"<p>half\r\n")
    server.wait_log("ValueError: no more")
    assert server.get("/tuple").status == 500
    server.wait_log("headers must be a list of tuples, not tuple")
    answer = said(server, "/one", "Bad\nName:x")
    assert answer.status == 500
    server.wait_log("'\\n' is not allowed in a name")


@pytest.mark.parametrize(
    "parts",
    [
        ["status:204 No Content"],
        ["status:304 Not Modified"],
        ["status:206 Partial Content", "Content-Range:bytes 0-25/26"],
        ["Content-Range:bytes 0-25/26"],
        ["X-Accel-Redirect:/elsewhere"],
        ["Content-Type:text/plain"],
        ["Content-Type:application/xhtml+xml"],
        ["Content-Disposition:attachment; filename=page.html"],
    ],
)
def test_what_is_no_page(server: Server, parts: list[str]) -> None:
    """It is left as it is, with all its headers."""
    for answer in (said(server, "/one", *parts, 'ETag:"1"'), said(server, "/pieces", *parts)):
        assert b"script" not in answer.body
        assert "live:" not in server.log()
    assert said(server, "/one", *parts, 'ETag:"1"').get("ETag") == '"1"'


def test_a_post_and_a_head_are_left_alone(server: Server) -> None:
    assert server.request("POST", "/one", body=b"").body == PAGE
    answer = server.request("HEAD", "/one")
    assert (answer.get("Content-Length"), answer.body) == (str(len(PAGE)), b"")


def test_what_scripts_ask_for_is_theirs(server: Server) -> None:
    conditions = ('If-None-Match: "1"', "Accept-Encoding: gzip")
    for headers in (
        *(("Sec-Fetch-Dest: empty", "Accept: text/html"), ("Sec-Fetch-Dest: style",)),
        *(("X-Requested-With: XMLHttpRequest",), ("HX-Request: true",)),
    ):
        assert said(server, "/one", headers=headers).body == PAGE, headers
        asked = server.get("/asked", *headers, *conditions).body
        assert asked == b"['\"1\"', None, 'gzip', None]", headers


def test_no_browser_guesses_how_long_something_is_new(server: Server) -> None:
    """A style sheet that the application sends is asked for again, unless it says otherwise."""
    style = ("Content-Type:text/css", "Last-Modified:Sat, 21 Nov 2020 00:00:00 GMT")
    for headers in ((), ("Sec-Fetch-Dest: style",)):
        answer = said(server, "/one", *style, headers=headers)
        assert (answer.body, answer.get("Cache-Control")) == (PAGE, "no-cache")
        assert answer.get("Last-Modified")
        for own, expected in (
            ("Cache-Control:max-age=9", "max-age=9"),
            ("Expires:Sat, 21 Nov 2026 00:00:00 GMT", None),
        ):
            answer = said(server, "/one", *style, own, headers=headers)
            assert answer.get("Cache-Control") == expected


def test_no_cache_has_a_page_without_its_script(server: Server) -> None:
    """Not one that it had before, and not one that it gets now."""
    conditions = (
        *('If-None-Match: "1"', "If-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT"),
        *("Accept-Encoding: gzip", "Range: bytes=0-3"),
    )
    for headers in ((), ("Sec-Fetch-Dest: document",), ("Sec-Fetch-Dest: iframe",)):
        answer = server.get("/asked", *headers, *conditions)
        assert answer.body == b"[None, None, 'identity', None]"
    validators = ('ETag:"1"', "Last-Modified:Sat, 21 Nov 2026 00:00:00 GMT")
    for control, kept in (("max-age=600", "no-cache"), ("private, No-Store", "no-store")):
        answer = said(server, "/one", *validators, f"Cache-Control:{control}")
        added(answer)
        assert (answer.get("ETag"), answer.get("Last-Modified")) == (None, None)
        assert answer.get("Cache-Control") == kept


@pytest.mark.parametrize(
    ("policies", "nonce"),
    [
        (["default-src 'self'"], ""),
        (["default-src 'none'; script-src 'self'; connect-src 'SELF'"], ""),
        (["script-src 'self' 'nonce-abc' 'strict-dynamic'; connect-src *"], "abc"),
        (["script-src 'none'; script-src-elem 'nonce-abc'"], "abc"),
        (["script-src 'nonce-abc', script-src 'nonce-x' 'nonce-abc'"], "abc"),
        (["script-src 'none'"], None),
        (["connect-src 'none'"], None),
        (["script-src 'self' 'strict-dynamic'"], None),
        (["script-src 'nonce-abc'", "script-src 'nonce-xyz'"], None),
        (["script-src 'nonce-\"><b>'"], None),
        (["sandbox"], None),
        (["sandbox allow-scripts"], ""),
    ],
)
def test_content_security_policy(
    policies: list[str], nonce: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script has the nonce that it needs. Where it would not run, that is said once."""
    complaints: list[str] = []
    monkeypatch.setattr(logs, "write", lambda level, message: complaints.append(message))
    headers = [("Content-Type", "text/html")]
    headers += [("Content-Security-Policy", policy) for policy in policies]

    def application(environ, start_response):  # type: ignore[no-untyped-def]
        start_response("200 OK", headers)
        return [b"page"]

    wrapped = LiveReload(application, "1")
    for _ in range(2):
        environ = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "/\xe4 b", "REQUEST_URI": "/x"}
        body = b"".join(wrapped(environ, lambda *_: lambda _: None))
        attribute = f' nonce="{nonce}"' if nonce else ""
        script = f'<script src="/%E4%20b/__poorhttp__/live.js?1"{attribute} async></script>'
        assert body == b"page" + (b"" if nonce is None else script.encode())
    assert len(complaints) == (nonce is None)


def test_why_a_page_is_left_alone_is_said_once(server: Server) -> None:
    for part, why in (
        ("Content-Encoding:br", "the answer is compressed"),
        ("Content-Type:text/html; charset=UTF-16LE", "its charset is UTF-16"),
        ("Content-Security-Policy:default-src 'none'", "its Content-Security-Policy forbids that"),
    ):
        for _ in range(3):
            assert said(server, "/one", part).body == PAGE
        server.wait_log(why)
        assert server.log().count(why) == 1


def listening(server: Server, query: str) -> Connection:
    """A connection on which events are awaited."""
    connection = server.connect()
    connection.send_request("GET", f"/__poorhttp__/live?{query}")
    return connection


def test_the_script_and_events(mode: str, text: Path) -> None:
    """The version is said at once; who has another one is not kept, nor is anybody by a stop."""
    with Server(APP, mode, *LIVE, env={"TEXT_FILE": str(text)}) as server:
        version = SCRIPT.search(server.get("/one").body)
        assert version
        script = server.get("/__poorhttp__/live.js?1")
        assert script.get("Content-Type") == "text/javascript; charset=utf-8"
        assert script.get("Cache-Control") == "no-store"
        assert b"EventSource" in script.body
        ours = version[2].decode()
        told = f"retry: 50\nevent: version\ndata: {ours}\n\n".encode()
        for query in ("version=another", "version=another&age=5"):
            answer = listening(server, query).response()
            assert (answer.body, answer.get("Content-Type")) == (told, "text/event-stream")
            assert answer.get("Cache-Control") == "no-store"
        kept = [listening(server, f"version={ours}&age={age}") for age in ("1", "x", "9" * 30, "")]
        for _ in range(2 * server.workers):
            assert server.get("/asked").status == 200
        server.process.send_signal(signal.SIGTERM)
        for connection in kept:
            assert connection.response().body == told
        assert server.wait() == 0
        server.ended()


@pytest.mark.parametrize("live", [("--live",), ("--live", "--autoreload", "off")])
def test_never_in_production(live: tuple[str, ...]) -> None:
    done = run_command("serve", APP, *live)
    assert done.returncode == 3
    assert "--live: only with autoreload" in done.stderr


def test_a_browser_reloads_for_a_new_version(text: Path, browser: Browser) -> None:
    """Whether the server was restarted by hand or went from version to version."""
    text.write_text("<p>first")
    with Server(APP, "threading", *LIVE, env={"TEXT_FILE": str(text)}) as server:
        port = server.port
        browser.open(f"{server.urls}/text")
        browser.wait_text("first")
        browser.wait_for("window['poorhttp-live'] === true")
        browser.run("window.stays = 1")
        text.write_text("<p>second")
        server.process.send_signal(signal.SIGHUP)
        browser.wait_text("second")
        assert browser.run("window.stays") is None
        browser.wait_for("window['poorhttp-live'] === true")
        browser.run("window.stays = 2")
        text.write_text("<p>third")
    # Nobody is there: the page is still to be read.
    assert browser.text() == "second"
    bind = (f"127.0.0.1:{port}",)
    with Server(APP, "single", *LIVE, bind=bind, env={"TEXT_FILE": str(text)}):
        browser.wait_text("third")
        assert browser.run("window.stays") is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pages = {"page.html": PAGE.decode(), "large.html": PAGE.decode() * 10_000}
    pages |= {"sub/index.html": "", "gone.html": "<p>gone", "style.css": "p { color: red }"}
    write(tmp_path / "files", pages)
    (tmp_path / "files/page.html.gz").write_bytes(gzip.compress(PAGE))
    return tmp_path / "files"


def test_files(folder: Path) -> None:
    """Pages get the script, other files and what is no page do not; and no cache decides."""
    options = (
        *("--static-precompressed", "on", "--static-listing", "on"),
        *("--static-not-found", "gone.html", "--static-header", "/=Cache-Control: max-age=600"),
    )
    with Server(f"static:{folder}", "single", *LIVE, *options) as server:
        gzipped = "Accept-Encoding: gzip"
        validators = "If-None-Match: *", "If-Modified-Since: Sun, 21 Nov 2100 00:00:00 GMT"
        for path, status, body in (
            ("/page.html", 200, PAGE),
            ("/large.html", 200, PAGE * 10_000),
            ("/sub/", 200, b""),
            ("/nowhere", 404, b"<p>gone"),
        ):
            for headers in ((), (gzipped,), validators, ("Range: bytes=0-3",)):
                with server.connect() as connection:
                    for _ in range(2):
                        answer = connection.request("GET", path, *headers)
                        added(answer)
                        assert (answer.status, answer.body) == (status, body), (path, headers)
                        assert answer.get("ETag") is answer.get("Last-Modified") is None
                        assert answer.get("Content-Encoding") is None
                        cached = None if status == 404 else "no-cache"
                        assert answer.get("Cache-Control") == cached
        listing = server.get("/")
        added(listing)
        assert b"style.css" in listing.body
        # As they are.
        for answer in (
            server.get("/page.html", "Sec-Fetch-Dest: empty"),
            server.get("/page.html", "HX-Request: true"),
        ):
            assert (answer.body, answer.get("Cache-Control")) == (PAGE, "no-cache")
        assert server.get("/page.html", "HX-Request: true", gzipped).get("Content-Encoding")
        style = server.get("/style.css")
        assert (style.body, style.get("Cache-Control")) == (b"p { color: red }", "no-cache")
        assert server.get("/style.css", f"If-None-Match: {style.get('ETag')}").status == 304
        assert server.get("/style.css", "Range: bytes=0-3").status == 206
        head = server.request("HEAD", "/page.html")
        assert head.get("Content-Length") == str(len(PAGE))
        # Though files are everywhere.
        assert server.get("/__poorhttp__/live.js").status == 200


def test_the_root_of_files(folder: Path) -> None:
    """The script is below the path by which a proxy knows us."""
    proxy = ("--trusted-proxies", "127.0.0.1", "--forwarded-headers", "x-forwarded-prefix")
    with Server(f"static:{folder}", "single", *LIVE, *proxy, "--mount", f"/app={APP}") as server:
        for path in ("/page.html", "/app/one"):
            found = SCRIPT.search(server.get(path, "X-Forwarded-Prefix: /a%20<b").body)
            assert found, path
            assert found[1] == b"/a%20%3Cb", path


def test_a_browser_reloads_for_a_save(tmp_path: Path, browser: Browser) -> None:
    """Of the application, of what it serves from a folder, and after one that was broken."""
    project = tmp_path / "project"
    module, style = project / "shown.py", project / "static/style.css"

    def save_page(text: str) -> None:
        page = f"<link rel=stylesheet href=/static/style.css><p>{text}</p>"
        save(
            module,
            "def application(environ, start_response):\n"
            "    start_response('200 OK', [('Content-Type', 'text/html')])\n"
            f"    return [{page.encode()!r}]\n",
        )

    save_page("first")
    save(style, "p { color: rgb(1, 1, 1) }")
    color = "[...document.querySelectorAll('p')].map(p => getComputedStyle(p).color)[0]"
    static = ("--static", f"/static={project}/static")
    options = ("--live", "--autoreload", "on", "--debug", "on", *static)
    with Server("shown:application", "threading", *options, cwd=project, tracebacks=True) as server:
        browser.open(server.urls)
        browser.wait_for(f"{color} === 'rgb(1, 1, 1)'")
        save(style, "p { color: rgb(2, 2, 2) }")
        browser.wait_for(f"{color} === 'rgb(2, 2, 2)'")
        save_page("second")
        browser.wait_text("second")
        save(module, "def application(environ, start_response:\n    pass\n")
        browser.wait_text("was never closed")
        save_page("third")
        browser.wait_text("third")
        assert browser.run("performance.getEntriesByType('navigation')[0].type") == "reload"
