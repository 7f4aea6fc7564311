"""Template pages over a socket, in every mode: choice of the page, and its variables."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from poorhttp.errors import ApplicationError
from poorhttp.targets import load
from tests.conftest import Serve
from tests.support.template_pages import FAILING, set_page, write
from tests.support.wsgi_call import ask
from tests.testkit.client import Response
from tests.testkit.server import Server, wait_for

ALONE = True

FORM = "Content-Type: application/x-www-form-urlencoded"

PAGES = {
    "index.html": "index",
    "hello.html": '<b>${form.getfirst("name", "nobody")}</b> ${form.getfirst("name") or "" | n}\n',
    "both.html": '${sorted(form.keys())} ${",".join(form.getlist("a")) | n}\n',
    "file.html": '${form["file"].filename}: ${len(form["file"].value)}\n',
    "untouched.html": "${request.method}${form if False else ''}",
    "cookies.html": '<% response.set_cookie("seen", "é;" + cookies.get("seen", "")) %>\\\n'
    '${cookies.get("seen", "none")} ${len(cookies)}',
    "answer.html": "<% response.status = 202; response.content_type = 'text/plain'\n"
    "response.headers['X-Name'] = 'value' %>plain",
    "typed.html": "<% response.headers['content-type'] = 'text/csv' %>a,b",
    "nothing.html": "<% response.status = 204 %>",
    "leave.html": "<% response.set_cookie('a', 1)\n"
    "response.redirect('/x y\\r\\nSet-Cookie: b=2') %>",
    "refuse.html": "<% response.abort(410, 'It was <here>.') %>",
    "surroundings.html": "${request.environ['SCRIPT_NAME']}|${request.environ['PATH_INFO']}|"
    "${request.headers_in['X-One']}",
    "numbers.html": "${1} ${2.5} ${None} ${3 | n} ${'a' | n}",
    "safe.html": "<%! from markupsafe import Markup %>${Markup('<i>')} ${'\"\\'&' | h} "
    "${'a&é ' | u} ${'<' | h,trim} ${5 | u}",
    "deep/index.html": '<%inherit file="/_layout.html"/><%block name="title">Deep</%block>\\\n'
    'inside <%include file="../_part.html"/>',
    "deep/er/page.html": "deeper",
    "ünicode.html": "${request.uri}",
    "odd name.html": "odd",
    "_layout.html": "<title><%block name='title'>None</%block></title>[${next.body()}]",
    "_part.html": "part",
    "_private/page.html": "private",
    ".hidden.html": "hidden",
    ".git/page.html": "hidden",
    "style.css": "* { color: red }",
    "loop.html": "% for i in range(3):\n${loop.index}${'' if loop.last else ','}\\\n% endfor\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The target of a folder with all pages."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    write(folder, PAGES)
    (folder.parent / "secret.html").write_text("secret")
    (folder / "link.html").symlink_to("hello.html")
    (folder / "out.html").symlink_to("../secret.html")
    (folder / "outside").symlink_to("..")
    os.mkfifo(folder / "fifo.html")
    (folder / "folder.html").mkdir()
    return f"pages:{folder}"


@pytest.fixture(scope="module")
def get(serve: Serve, site: str) -> Callable[..., Response]:
    return serve(site).get


# Which page answers


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/", "index"),
        ("/index", "index"),
        ("/index.html?a=b", "index"),
        ("/deep/", "<title>Deep</title>[inside part]"),
        ("/deep/index", "<title>Deep</title>[inside part]"),
        ("/deep/er/page", "deeper"),
        ("/link?name=a", "<b>a</b> a\n"),
        ("/%C3%BCnicode", "/ünicode"),
        ("/odd%20name.html", "odd"),
        ("/loop", "0,1,2"),
    ],
)
def test_a_page_is_found(get: Callable[..., Response], path: str, text: str) -> None:
    for _ in range(2):
        answer = get(path)
        assert (answer.status, answer.body.decode()) == (200, text)
        assert answer.get("Content-Type") == "text/html; charset=utf-8"
        assert answer.framing == "length"


@pytest.mark.parametrize(
    "path",
    [
        *("/none", "/_layout", "/_layout.html", "/_private/page", "/.hidden", "/.hidden.html"),
        *("/.git/page", "/style.css", "/style", "/hello/", "/hello.html/more", "/hello.htm"),
        *("/HELLO", "/out", "/outside/secret", "/fifo", "/folder", "/folder.html", "/../secret"),
        *("/../pages/hello", "/%2e%2e/secret", "/deep/../hello", "/deep/%2e%2e/hello", "/./hello"),
        *("/deep%2f..%2f..%2fsecret", "//hello", "/deep//index", "/deep//", "//example.org/"),
        *("/%5c..%5csecret", "/%ff", "/" + "a" * 300, "/" + "a/" * 300),
    ],
)
def test_nothing_else_is_found(get: Callable[..., Response], path: str) -> None:
    answer = get(path)
    # Some are refused by the server itself.
    assert answer.status == 400 or (answer.status == 404 and b"<h1>404 Not Found" in answer.body)


def test_a_folder_without_slash(get: Callable[..., Response]) -> None:
    for query in ("", "?a=%20"):
        answer = get(f"/deep{query}")
        assert (answer.status, answer.get("Location")) == (308, f"/deep/{query}")


def test_below_a_prefix(site: str) -> None:
    below = {"SCRIPT_NAME": "/a b/ü".encode().decode("latin-1")}
    application = load(site)
    answer = ask(application, "/surroundings", headers={"X-One": "1"}, environ=below)
    assert answer.text == "/a b/ü".encode().decode("latin-1") + "|/surroundings|1"
    assert ask(application, "/deep", environ=below).headers["location"] == "/a%20b/%C3%BC/deep/"
    below["PATH_INFO"] = ""
    assert ask(application, environ=below).headers["location"] == "/a%20b/%C3%BC/"


def test_methods(serve: Serve, site: str) -> None:
    server = serve(site)
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "BREW"):
        answer = server.request(method, "/hello")
        assert (answer.status, answer.get("Allow")) == (405, "GET, HEAD, POST")
    answer = server.request("HEAD", "/hello?name=abc")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.get("Content-Length") == "15"
    # Other servers may send what they are given.
    other = ask(load(site), "/hello?name=abc", "HEAD")
    assert (other.body, other.headers["content-length"]) == (b"", "15")


# What a page finds


def test_values_are_escaped(get: Callable[..., Response]) -> None:
    answer = get("/hello?name=%3Ci%3E%26%22%27%C3%A9")
    assert answer.body.decode() == "<b>&lt;i&gt;&amp;&#34;&#39;é</b> <i>&\"'é\n"
    assert get("/numbers").body == b"1 2.5 None 3 a"
    assert get("/safe").body == b"<i> &#34;&#39;&amp; a%26%C3%A9+ &lt; 5"


def test_a_form(serve: Serve, site: str) -> None:
    server = serve(site)
    answer = server.request("POST", "/both?c=3", FORM, body=b"a=1&b=2&a=%3C+%3E&d=")
    # Fields without a value count as not sent.
    assert answer.body == b"[&#39;a&#39;, &#39;b&#39;, &#39;c&#39;] 1,< >\n"
    assert server.get("/both?a=1&&=2&a&a=3=4&b").body == b"[&#39;&#39;, &#39;a&#39;] 1,3=4\n"
    header = "Content-Type: multipart/form-data; boundary=x"
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="<a>.bin"\r\n\r\n'
    body = head + os.urandom(1_100_000) + b"\r\n--x--\r\n"
    answer = server.request("POST", "/file", header, body=body)
    assert answer.body == b"&lt;a&gt;.bin: 1100000\n"
    # Those that cannot be read.
    assert server.request("POST", "/both", header, body=b"--x\r\nnothing").status == 400
    assert server.request("POST", "/both", FORM, body=b"a&" * 2000).status == 413
    # It is only read by who wants to know.
    assert server.request("POST", "/untouched", header, body=b"--x\r\nnothing").body == b"POST"


def test_cookies(get: Callable[..., Response]) -> None:
    answer = get("/cookies", 'Cookie: a=1; seen=%3Cx%3E; broken; seen=second; z="q"')
    assert answer.body == b"&lt;x&gt; 3"
    cookie = answer.get("Set-Cookie")
    assert cookie == "seen=%C3%A9%3B<x>; Path=/; SameSite=Lax; HttpOnly"
    assert get("/cookies", f"Cookie: {cookie.partition(';')[0]}").body == "é;&lt;x&gt; 1".encode()


def test_the_answer(get: Callable[..., Response]) -> None:
    answer = get("/answer")
    assert (answer.status, answer.body) == (202, b"plain")
    assert (answer.get("Content-Type"), answer.get("X-Name")) == ("text/plain", "value")
    assert get("/typed").get("Content-Type") == "text/csv"
    answer = get("/nothing")
    assert (answer.status, answer.body, answer.get("Content-Type")) == (204, b"", None)


def test_leaving_a_page(get: Callable[..., Response]) -> None:
    answer = get("/leave")
    assert (answer.status, answer.body) == (303, b"")
    assert answer.get("Location") == "/x%20y%0D%0ASet-Cookie:%20b=2"
    assert answer.get("Set-Cookie") == "a=1; Path=/; SameSite=Lax; HttpOnly"
    answer = get("/refuse")
    assert answer.status == 410
    assert b"It was &lt;here&gt;." in answer.body


#: A page with a layout.
LAID_OUT = {"index.html": "<%inherit file='_l.html'/>1", "_l.html": "[${self.body()}]"}


def test_changes_are_seen(mode: str, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    write(tmp_path, LAID_OUT)
    with Server(f"pages:{tmp_path}", mode, tracebacks=True) as server:
        both = [server.connect() for _ in range(8)]

        def told() -> set[bytes | int]:
            """What all get, or the status of a failure."""
            answers = [connection.request("GET", "/") for connection in both]
            return {each.body if each.status == 200 else each.status for each in answers}

        assert told() == {b"[1]"}
        set_page(tmp_path / "_l.html", "<%include file='_p.html'/>(${self.body()})")
        assert told() == {500}
        set_page(tmp_path / "_p.html", "p")
        assert told() == {b"p(1)"}
        set_page(tmp_path / "_p.html", "q")
        set_page(page, "<%inherit file='_l.html'/>2")
        assert told() == {b"q(2)"}
        page.write_text("3")
        assert told() == {b"3"}
        set_page(page, "${1 +}")
        assert told() == {500}
        page.unlink()
        assert told() == {404}
        # Also one that keeps time and size, as those of archives that are unpacked over each other.
        for text in ("4", "5"):
            page.write_text(text)
            os.utime(page, (1, 1))
            assert told() == {text.encode()}


def test_changes_are_not_looked_for(mode: str, tmp_path: Path) -> None:
    write(tmp_path, LAID_OUT)
    with Server(f"pages:{tmp_path}", mode, "--workers", "1", "--pages-reload", "off") as server:
        assert server.get("/").body == b"[1]"
        set_page(tmp_path / "_l.html", "changed")
        (tmp_path / "index.html").unlink()
        assert server.get("/").body == b"[1]"


def test_there_is_no_such_folder(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "file").touch()
    for target, why in [
        ("", "names no folder"),
        (f"{tmp_path}/page", f'did you mean "pages:{tmp_path}/pages"'),
        (f"{tmp_path}/page/", f'did you mean "pages:{tmp_path}/pages"'),
        (f"{tmp_path}/none", "there is no folder"),
        (f"{tmp_path}/file", "is a file"),
    ]:
        with pytest.raises(ApplicationError, match=why):
            load(f"pages:{target}")


def test_what_is_needed_is_not_installed(tmp_path: Path) -> None:
    for name in ("mako", "itsdangerous"):
        with (
            patch.dict(sys.modules, {name: None}),
            pytest.raises(ApplicationError, match=rf"pages need {name}.*'\.\[pages\]'"),
        ):
            load(f"pages:{tmp_path}")


def test_the_example(serve: Serve) -> None:
    server = serve("pages:apps/pages", "--workers", "1")
    assert b"Nobody has written" in server.get("/").body
    answer = server.request("POST", "/", FORM, body=b"name=%3Ci%3E&text=Hello")
    assert (answer.status, answer.get("Location")) == (303, "index.html")
    cookie = str(answer.get("Set-Cookie")).partition(";")[0]
    page = server.get("/", f"Cookie: {cookie}").body.decode()
    assert "<b>&lt;i&gt;</b>" in page
    assert 'value="&lt;i&gt;"' in page
    assert "You have seen 1 page here" in page
    assert server.get("/table?rows=7").body.count(b"<tr>") == 7
    assert server.get("/table?rows=seven").status == 400


def test_a_page_that_fails(serve: Serve, tmp_path: Path) -> None:
    """The log names its line, the response says nothing of it."""
    write(tmp_path, {name: text for name, (text, _) in FAILING.items()})
    write(tmp_path, {"_bad.html": "bad\n${1 / 0}\n"})
    server = serve(f"pages:{tmp_path}", tracebacks=True)
    for name, (_, line) in FAILING.items():
        before = server.log_size()
        answer = server.get(f"/{name}")
        assert answer.status == 500
        for detail in (b"html", b"Traceback", b"Python", b"/0"):
            assert detail not in answer.body
        wait_for(lambda: f"error: {line}" in server.log(before), line)  # noqa: B023
    server.wait_log(f'File "{tmp_path}/_bad.html", line 2, in render_body\n        ${{1 / 0}}\n')
