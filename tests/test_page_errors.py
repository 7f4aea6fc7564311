"""Pages that fail: the log names their own line, the visitor learns nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.server import Server
from tests.test_pages import set_page, write

FAILING = {
    "plain.html": ("one\ntwo\n${1 / 0}\n", "plain.html:3: ${1 / 0}"),
    "block.html": ("<%\n  a = 1\n\n  b = a / 0\n%>\n", "block.html:4: b = a / 0"),
    "control.html": (
        "a\n% for x in range(2):\n${x}\n${1 / x}\n% endfor\n",
        "control.html:4: ${1 / x}",
    ),
    "module.html": ("a\n<%!\n  b = 1 / 0\n%>", "module.html:3: b = 1 / 0"),
    "def.html": ("<%def name='f(x)'>\n\n${1 / x}</%def>\n${f(0)}", "def.html:3: ${1 / x}</%def>"),
    "undefined.html": ("\n${nobody}", "undefined.html:2: ${nobody}"),
    "include.html": ("\n<%include file='_bad.html'/>", "_bad.html:2: ${1 / 0}"),
    "inherit.html": ("<%inherit file='_bad.html'/>", "_bad.html:2: ${1 / 0}"),
    "missing.html": ("\n<%include file='none.html'/>", "missing.html:2: <%include"),
    "outside.html": ("\n<%include file='../../etc/passwd'/>", "outside.html:2: <%include"),
    "expression.html": ("\n${1 +}", "expression.html:2: ${1 +}"),
    "code.html": ("\n<%\n  a = 1\n  b = = 2\n%>", "code.html:4: b = = 2"),
    "tag.html": ("\n\n<%nothing/>", "tag.html:3: <%nothing/>"),
    "unclosed.html": ("% if True:\n a", "unclosed.html:1: % if True:"),
    "break.html": ("\n<%\n  break\n%>", "break.html:3: break"),
    "type.html": ("\n<% response.headers['A'] = 'a\\nb' %>", "type.html:2: <% response.headers"),
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("failing")
    write(folder, {name: text for name, (text, _) in FAILING.items()})
    write(folder, {"_bad.html": "bad\n${1 / 0}\n"})
    return f"pages:{folder}"


@pytest.mark.parametrize("name", FAILING)
def test_the_log_names_the_line_of_the_page(serve: Serve, failing: str, name: str) -> None:
    server = serve(failing, tracebacks=True)
    for times in (1, 2):
        answer = server.get(f"/{name}")
        assert answer.status == 500
        for detail in (b"html", b"Traceback", b"Python", b"/0"):
            assert detail not in answer.body
        server.wait_log(f"GET /{name}: the application failed: ", times)
        # Others may fail in the same line of the same part.
        assert server.log().count(f"error: {FAILING[name][1]}") >= times
    assert server.get("/none").status == 404


def test_a_traceback_shows_the_page_itself(serve: Serve, failing: str) -> None:
    server = serve(failing, tracebacks=True)
    server.get("/include")
    folder = failing.removeprefix("pages:")
    server.wait_log(f'File "{folder}/include.html", line 2, in render_body')
    server.wait_log(f'File "{folder}/_bad.html", line 2, in render_body\n        ${{1 / 0}}\n')
    server.wait_log("ZeroDivisionError: division by zero")


def test_the_log_shows_a_line_as_it_is_now(tmp_path: Path) -> None:
    write(tmp_path, {"index.html": "${1 / 0}"})
    with Server(f"pages:{tmp_path}", "single", tracebacks=True) as server:
        server.get("/")
        server.wait_log("error: index.html:1: ${1 / 0}")
        # The end of the traceback: what comes before it may look at the file as well.
        server.wait_log("    ZeroDivisionError: division by zero")
        set_page(tmp_path / "index.html", "${2 / 0}")
        server.get("/")
        server.wait_log("error: index.html:1: ${2 / 0}")
