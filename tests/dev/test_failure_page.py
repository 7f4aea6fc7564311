"""The page shown while a new version cannot be loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dev.test_error_pages import HTML, text_of
from tests.support.browser import Browser
from tests.support.development import answering, write
from tests.testkit.server import Server

APP = "tests/apps/failed.py"

FROM = "from packed.deep import (\n  wide\n)\n"
#: What a module says, what the target has behind it, and what is shown.
BROKEN = {
    "syntax": ("a = 1\nb = = 2\n", "", ("SyntaxError: invalid syntax", "line 2", "b = = 2", "^")),
    "import": ("import shop_of_nobody\n", "", ("No module named", "shop_of_nobody", "line 1")),
    "exit": ("import sys\nsys.exit('no')\n", "", ("SystemExit: no", "line 2")),
    "raise": ("basket = {'apples': 41}\n1 / 0\n", "", ("ZeroDivisionError", "line 2")),
    "other": ("import broken_too\n", "", ("IndentationError", "broken_too.py", "line 2")),
    "missing": ("application_ = 1\n", "", ('did you mean "', "application_")),
    "factory": ("def make():\n    1 / 0\n", ":make()", ("ZeroDivisionError", "in make")),
    "null": ("a = 1\nb = '\0'\n", "", ("null bytes", "shop.py", "line 2")),
    "deep": ("import packed.deep.null\n", "", ("null bytes", "packed/deep/null.py", "line 3")),
    "from": (FROM, "", ("null bytes; it is in UTF-16", "packed/deep/wide.py", "line 1")),
    "encoded": ("import packed.deep.encoded\n", "", ("packed/deep/encoded.py", "unknown encod")),
}

#: Modules whose errors Python does not say the file of.
PACKED = {
    "__init__.py": b"",
    "deep/__init__.py": b"",
    "deep/null.py": b"a = 1\n\nb = '\0'\n",
    "deep/wide.py": "a = 1\n".encode("utf-16"),
    "deep/encoded.py": b"# coding: of-nobody\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that is broken, each kind in a folder of its name."""
    folder = tmp_path_factory.mktemp("broken")
    for kind, (source, _, _) in BROKEN.items():
        (folder / kind / "packed" / "deep").mkdir(parents=True)
        (folder / kind / "shop.py").write_text(source)
        (folder / kind / "broken_too.py").write_text("if True:\na = 1\n")
        for name, content in PACKED.items():
            (folder / kind / "packed" / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # The debugger is that of the failure, so the server has none.
    with Server(APP, "threading") as server:
        yield server


@pytest.mark.parametrize("kind", BROKEN)
def test_shown(server: Server, folder: Path, kind: str) -> None:
    _, suffix, shown = BROKEN[kind]
    target = f"X-Target: {folder}/{kind}/shop.py{suffix}"
    for method, path in (("GET", "/"), ("POST", "/any/where?a=b")):
        text = server.request(method, path, target, "Accept: application/json", body=b"")
        assert text.status == 500
        assert text.get("Content-Type") == "text/plain; charset=utf-8"
        html = server.request(method, path, target, HTML, body=b"")
        assert html.status == 500
        assert "cannot be loaded" in text_of(html)
        for part in shown:
            assert part in text_of(text)
            assert part in re.sub("&#3[49];", lambda it: chr(int(it[0][2:4])), text_of(html))
        for each in (text_of(text), text_of(html)):
            assert "importlib" not in each
            assert "poorhttp/targets" not in each
    assert server.request("HEAD", "/", target, HTML).status == 500


def test_without_debug(tmp_path: Path) -> None:
    """Reloading alone shows nothing of the source."""
    (tmp_path / "shop.py").write_text(BROKEN["syntax"][0])
    env = {"FAILED_TARGET": f"{tmp_path}/shop.py", "FAILED_DEBUG": "off"}
    with Server(APP, "single", env=env) as server:
        for response in (server.get("/"), server.get("/", HTML)):
            assert response.status == 500
            assert "The log says why" in text_of(response)
            assert "shop" not in text_of(response)


FORM = '<!doctype html><form method="post" action="/x"></form>'


def developed(folder: Path, port: int = 0) -> Server:
    """A development server; without `live`, which these pages do not need."""
    options = ("--autoreload", "on", "--debug", "on", "--static", "/files=files")
    bind = (f"127.0.0.1:{port}",)
    return Server("shop.py", "threading", *options, bind=bind, cwd=folder, tracebacks=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "project", {"files/form.html": FORM, "shop.py": BROKEN["syntax"][0]})
    return tmp_path / "project"


def test_mended_in_browser(browser: Browser, project: Path) -> None:
    """It is loaded again when the file is mended, here while the server is away."""
    with developed(project) as server:
        browser.open(f"http://127.0.0.1:{server.port}/")
        browser.wait_text("b = = 2")
        server.stop()
        (project / "shop.py").write_text(answering("b'<!doctype html><body>all is well'"))
    with developed(project, server.port):
        browser.wait_text("all is well")


def test_posted_in_browser(browser: Browser, project: Path) -> None:
    """What was sent is not sent again by itself."""
    with developed(project) as server:
        browser.open(f"http://127.0.0.1:{server.port}/files/form.html")
        browser.run("document.forms[0].submit()")
        browser.wait_text("b = = 2")
        browser.wait_text("Send the request again")
        assert browser.run("document.querySelector('script[src*=live]')") is None
