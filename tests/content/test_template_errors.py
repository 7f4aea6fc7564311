"""Template pages that fail: the log names the page's line, the response has no details."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.support.template_pages import FAILING, set_page, write
from tests.testkit.server import Server


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
