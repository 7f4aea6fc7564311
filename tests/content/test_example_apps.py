"""The example applications, called as WSGI servers call them."""

from __future__ import annotations

import json
import re
import runpy
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from poorhttp.targets import load
from tests.support.wsgi_call import ask
from tests.testkit.server import Server, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed.wsgi import WSGIApplication

APPS = Path(__file__).parents[2] / "apps"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}


def app(name: str) -> WSGIApplication:
    return load(str(APPS / name / "app.py"))


def test_hello_and_page() -> None:
    answer = ask(app("hello"))
    assert (answer.body, answer.headers["content-length"]) == (b"Hello, world!", "13")
    answer = ask(app("page"))
    assert len(answer.body) == 10240 == int(answer.headers["content-length"])
    assert answer.text.endswith("</html>\n")


def test_echo() -> None:
    body = bytes(range(256))
    answer = ask(app("echo"), "/a b?c=d", "PUT", body, {"X-One": "1", "Content-Type": "x/y"})
    echoed = json.loads(answer.body)
    headers = echoed.pop("headers")
    assert echoed == {
        "method": "PUT",
        "path": "/a b",
        "query": "c=d",
        "body": body.decode("latin-1"),
    }
    assert (headers["x-one"], headers["content-type"]) == ("1", "x/y")
    assert headers["content-length"] == "256"
    # A body whose length is not known.
    environ = {"wsgi.input_terminated": True, "CONTENT_LENGTH": ""}
    answer = ask(app("echo"), "/", "POST", b"body", environ=environ, validate=False)
    assert json.loads(answer.body)["body"] == "body"


def test_slow() -> None:
    for spin in ("", "&spin=1"):
        assert ask(app("slow"), f"/?seconds=0.001{spin}").text == "slept 0.001 s\n"
    for seconds in ("x", "-1", "61", "nan", "inf"):
        assert ask(app("slow"), f"/?seconds={seconds}").status == 400


@pytest.mark.parametrize("path", ["/", "/write", "/late", "/length"])
def test_stream(path: str) -> None:
    application = app("stream")
    closed = int(ask(application, "/closed").body)
    answer = ask(
        application, f"{path}?chunks=3&size=4&delay=0.001", validate=path not in ("/late", "/write")
    )
    assert answer.body == b"0 ..1 ..2 .."
    assert answer.headers.get("content-length") == ("12" if path == "/length" else None)
    assert int(ask(application, "/closed").body) == closed + (path != "/write")
    assert ask(application, "/nowhere").status == 404


def test_upload() -> None:
    content = bytes(range(256)) * 1000
    body = (
        b'--b\r\nContent-Disposition: form-data; name="note"\r\n\r\n<b>\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="<i>.bin"\r\n\r\n'
        + content
        + b"\r\n--b--\r\n"
    )
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    application = app("upload")
    assert "<form" in ask(application).text
    page = ask(application, "/", "POST", body, headers).text
    digest = sha256(content).hexdigest()
    assert f"<li><code>&lt;i&gt;.bin 256000 {digest}</code></li>" in page
    assert "<p>&lt;b&gt;</p>" in page
    text = ask(application, "/", "POST", body, {**headers, "Accept": "text/plain"}).text
    assert text == f"<i>.bin 256000 {digest}\n"


def links(page: str) -> dict[str, str]:
    """The links of a page, by their last segment and the way of handing out."""
    found = re.findall(r'href="(/(\w+)/([^?]*)\?[^"]*)"', page)
    return {f"{way} {name}": href.replace("&amp;", "&") for href, way, name in found}


FILES = APPS / "downloads" / "files"


def test_downloads() -> None:
    """The application names the file, and other servers have the headers too."""
    application = app("downloads")
    found = links(ask(application).text)
    assert len(found) == 3 * len(list(FILES.iterdir()))
    answer = ask(application, found["sendfile terms.txt"])
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["x-sendfile"] == str(FILES / "terms.txt")
    answer = ask(application, found["accel terms.txt"])
    assert answer.headers["x-accel-redirect"] == "/protected/terms.txt"
    answer = ask(application, found["wrapper terms.txt"])
    assert answer.body == (FILES / "terms.txt").read_bytes()
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''terms.txt"


@pytest.mark.parametrize("way", ["sendfile", "accel", "wrapper"])
def test_downloads_refuse(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    application = app("downloads")
    link = links(ask(application).text)[f"{way} terms.txt"]
    until = int(re.findall(r"until=(\d+)", link)[0])
    for wrong in (
        link.partition("?")[0],
        link.replace("terms.txt", "price-list.csv"),
        *(link.replace(str(until), other) for other in (str(until + 1), "x")),
        *(link[:-1], f"{link[:-1]}é"),
    ):
        assert ask(application, wrong).status == 403, wrong
    for nowhere in (
        "/terms.txt",
        f"/{way}",
        f"/{way}/",
        f"/{way}/none",
        f"/{way}/../app.py",
        "/x/y",
    ):
        assert ask(application, nowhere).status == 404, nowhere
    # Its time is over.
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3601)
    assert ask(application, link).status == 403


def test_downloads_are_sent_by_the_server(mode: str) -> None:
    content = (FILES / "terms.txt").read_bytes()
    with Server("--config=apps/downloads/downloads.ini", mode) as server:
        found = links(server.get("/").body.decode())
        for way in ("sendfile", "accel", "wrapper"):
            answer = server.get(found[f"{way} terms.txt"])
            assert (answer.status, answer.body) == (200, content)
            assert answer.get("Content-Type") == "application/octet-stream"
            assert answer.get("X-Sendfile") is answer.get("X-Accel-Redirect") is None
        answer = server.get(found["sendfile terms.txt"], "Range: bytes=0-3")
        assert (answer.status, answer.body) == (206, content[:4])
        assert server.get(found["accel terms.txt"] + "0").status == 403
        assert server.get("/protected/terms.txt").status == 404


# The document's pages


def test_light() -> None:
    application = load(f"dispatch:{APPS / 'lightheavy'}")
    clock = re.compile(r"\d\d:\d\d:\d\d")
    answer = ask(application)
    assert clock.sub("", answer.text) == clock.sub("", ask(application, "/light").text)
    assert answer.headers == {"content-type": "text/html; charset=utf-8"}
    assert 600 <= len(answer.body) <= 700
    assert re.search(
        r"It is <code>\d{4}-\d\d-\d\d</code>, the clock says <code>\d\d:\d\d:\d\d</code>",
        answer.text,
    )
    bare = ask(load(f"{APPS / 'lightheavy' / 'bare.py'}:light"))
    assert clock.sub("", bare.text) == clock.sub("", answer.text)


def test_heavy() -> None:
    answer = ask(load(f"dispatch:{APPS / 'lightheavy'}"), "/heavy")
    verdicts = re.findall(r"<li><code>(.*)</code>: (yes|no)</li>", answer.text)
    assert len(verdicts) == 15
    assert [verdict for _, verdict in verdicts] == ["yes"] * 6 + ["no"] * 9
    assert re.search(r"MD5 <code>[0-9a-f]{32}</code>", answer.text)
    assert re.search(r"SHA-1 <code>[0-9a-f]{40}</code>", answer.text)
    assert sys.version.split()[0] in answer.text


def test_lightheavy_takes_get_and_head_only() -> None:
    application = load(f"dispatch:{APPS / 'lightheavy'}")
    assert ask(application, "/heavy", "HEAD").body == b""
    assert ask(application, "/light", "POST").status == 405
    assert ask(application, "/other").status == 404


def test_the_bare_page_needs_nothing_of_ours() -> None:
    code = "import sys, bare; print('poorhttp' in sys.modules)"
    done = run(sys.executable, "-S", "-c", code, cwd=APPS / "lightheavy")
    assert (done.stdout, done.stderr) == ("False\n", "")


# Every way to fail


def test_errors_lists_its_ways() -> None:
    application = app("errors")
    listed = ask(application).text.splitlines()
    ways = runpy.run_path(str(APPS / "errors" / "app.py"))["WAYS"]
    assert [line.split()[0] for line in listed] == list(ways)
    assert ask(application, "/no-such-way").status == 404


@pytest.mark.parametrize(
    ("path", "what"),
    [
        *((path, "Broken") for path in ("/raise-before", "/raise-after", "/raise-first")),
        *((path, "Broken") for path in ("/raise-between", "/raise-after-write")),
        *((path, "Broken") for path in ("/raise-in-close", "/error-page-late")),
        *(("/recursion", "RecursionError"), ("/system-exit", "SystemExit")),
        ("/keyboard-interrupt", "KeyboardInterrupt"),
    ],
)
def test_errors_raise(path: str, what: str) -> None:
    with pytest.raises(BaseException, match=r".*") as caught:
        ask(app("errors"), path, validate=False)
    assert type(caught.value).__name__ == what


@pytest.mark.parametrize(
    "path",
    [
        *("/number-status", "/split-header", "/bad-header-name", "/number-header", "/dict-headers"),
        *("/text-body", "/text-piece", "/text-written", "/bare-text", "/no-body"),
    ],
)
def test_errors_break_the_rules_of_pep_3333(path: str) -> None:
    """At least those that the validator knows."""
    with pytest.raises(AssertionError):
        ask(app("errors"), path)


@pytest.mark.parametrize(
    ("path", "field", "sent"),
    [
        ("/unicode-header", ("X-Value", "\u2603"), None),
        ("/hop-header", ("Transfer-Encoding", "chunked"), None),
        ("/two-lengths", ("Content-Length", "8"), None),
        ("/bad-length", ("Content-Length", "-4"), None),
        ("/too-short", ("Content-Length", "100"), 5),
        ("/too-long", ("Content-Length", "5"), 16),
        ("/too-short-pieces", ("Content-Length", "100"), 7),
        ("/too-long-pieces", ("Content-Length", "5"), 16),
    ],
)
def test_errors_of_headers(path: str, field: tuple[str, str], sent: int | None) -> None:
    """Those that mean nothing, and lengths that are none."""
    answer = ask(app("errors"), path, validate=False)
    assert field in answer.fields
    assert sent in (None, len(answer.body))


def test_errors_fail_well() -> None:
    answer = ask(app("errors"), "/error-page", validate=False)
    assert (answer.status, answer.body) == (503, b"sorry")


# Frameworks


@pytest.mark.parametrize("name", ["flaskapp", "djangoapp"])
def test_framework(name: str) -> None:
    application: Callable[..., Any] = app(name)
    host = {"Host": "127.0.0.1:8080"}
    assert "<h1>Hello, world!</h1>" in ask(application, "/", headers=host).text
    assert "<h1>Hello, &lt;b&gt;!</h1>" in ask(application, "/hello/<b>", headers=host).text

    greeted = ask(application, "/greet", "POST", b"name=%C5%BEena", {**FORM, **host})
    assert (greeted.status, greeted.headers["location"]) == (303, "/hello/%C5%BEena")
    assert ask(application, "/greet", headers=host).status == 405

    added = ask(application, "/sum", "POST", b'{"numbers": [1, 2, 39]}', {**JSON, **host})
    assert json.loads(added.body) == {"sum": 42}

    lost = ask(application, "/nowhere", headers=host)
    assert (lost.status, "Nobody of that name" in lost.text) == (404, True)
