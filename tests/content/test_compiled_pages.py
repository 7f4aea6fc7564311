"""`poorhttp compile`: compiled template pages, their files, and which of them are trusted."""

from __future__ import annotations

import marshal
import os
from pathlib import Path
from unittest.mock import patch

import pytest

from poorhttp.config.settings import Settings
from poorhttp.errors import ApplicationError
from poorhttp.plugins.apps.pages import compiler
from poorhttp.targets import load
from tests.support.forked_command import run_command
from tests.support.template_pages import FAILING, set_page, write
from tests.support.wsgi_call import ask
from tests.testkit.server import Server

PAGES = {
    "index.html": '<%inherit file="_layout.html"/>index',
    "deep/page.html": "<% 1 %>deep ${request.method}",
    "_layout.html": "[${next.body()}]",
    "style.css": "* { ${ }",
    ".git/page.html": "${1 +}",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "pages", PAGES)
    return tmp_path / "pages"


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    return tmp_path / "modules"


def compile_pages(folder: Path, modules: Path) -> tuple[int, str, str]:
    """What the command says."""
    done = run_command("compile", str(folder), "--pages-modules", str(modules))
    return done.returncode, done.stdout, done.stderr


def loaded(folder: Path, modules: Path, path: str = "/deep/page") -> str:
    """A page of an application that keeps what it compiles."""
    return ask(load(f"pages:{folder}", Settings(pages_modules=str(modules))), path).text


def place(modules: Path, page: Path) -> Path:
    """Where a compiled page is kept."""
    return modules / f"{page.relative_to('/')}.code"


def kept(modules: Path, folder: Path) -> list[str]:
    """The names of the compiled pages of a folder."""
    there = modules / folder.relative_to("/")
    return sorted(str(path.relative_to(there)) for path in there.rglob("*") if path.is_file())


def test_compile(folder: Path, modules: Path) -> None:
    write(folder, {"module.html": "<%! raise SystemExit('it is run') %>"})
    code, output, error = compile_pages(folder, modules)
    assert (code, error) == (0, "")
    assert output == f"{folder}: 4 pages compiled, kept in {modules}\n"
    names = ("_layout", "deep/page", "index", "module")
    assert kept(modules, folder) == [f"{name}.html.code" for name in names]
    with patch("poorhttp.plugins.apps.pages.folder.compile_page") as compiled_again:
        assert loaded(folder, modules, "/") == "[index]"
        assert loaded(folder, modules) == "deep GET"
    compiled_again.assert_not_called()


def test_compile_tells_every_mistake(folder: Path, modules: Path) -> None:
    wrong = ("expression.html", "code.html", "tag.html", "unclosed.html", "break.html")
    write(folder, {name: FAILING[name][0] for name in wrong})
    code, output, error = compile_pages(folder, modules)
    assert (code, output) == (4, f"{folder}: 3 pages compiled, kept in {modules}\n")
    *mistakes, last = error.splitlines()
    assert last == "poorhttp: 5 pages cannot be compiled"
    places = [mistake.rpartition(f"{folder}/")[2].split(": ")[0] for mistake in mistakes]
    assert places == sorted(FAILING[name][1].split(": ")[0] for name in wrong)
    assert f"{folder}/code.html:4: SyntaxError: invalid syntax" in mistakes
    assert kept(modules, folder) == ["_layout.html.code", "deep/page.html.code", "index.html.code"]


def test_a_server_keeps_what_it_compiles(mode: str, folder: Path, modules: Path) -> None:
    options = ("--pages-modules", str(modules))
    with Server(f"pages:{folder}", mode, *options) as server:
        assert server.get("/").body == b"[index]"
        assert kept(modules, folder) == ["_layout.html.code", "index.html.code"]
        before = place(modules, folder / "_layout.html").read_bytes()
        set_page(folder / "_layout.html", "(${next.body()})")
        assert server.get("/").body == b"(index)"
        assert place(modules, folder / "_layout.html").read_bytes() != before
    with Server(f"pages:{folder}", mode, *options) as server:
        assert server.get("/").body == b"(index)"
        assert kept(modules, folder) == ["_layout.html.code", "index.html.code"]


@pytest.mark.parametrize("change", ["same length", "cut", "foreign"])
def test_what_does_not_fit_is_compiled_anew(change: str, folder: Path, modules: Path) -> None:
    assert loaded(folder, modules) == "deep GET"
    page = folder / "deep/page.html"
    code = place(modules, page)
    expected, kept = "deep GET", code.read_bytes()
    if change == "same length":
        times = page.stat().st_atime_ns, page.stat().st_mtime_ns
        page.write_text(page.read_text().replace("deep", "DEEP"))
        os.utime(page, ns=times)
        expected = "DEEP GET"
    else:
        others = {"cut": kept[:-20], "foreign": kept[:32] + marshal.dumps("no code")}
        code.write_bytes(others[change])
    assert loaded(folder, modules) == expected
    assert len(code.read_bytes()) > 100
    assert (code.read_bytes()[:32] == kept[:32]) == (change in ("cut", "foreign"))
    assert loaded(folder, modules) == expected


def test_code_that_others_may_write_is_not_executed(folder: Path, modules: Path) -> None:
    code = place(modules, folder / "deep/page.html")

    def evil() -> None:
        """Put something else there, with the digest that it should have."""
        other = compiler.compile_page(b"evil", "/deep/page.html", "evil")
        code.write_bytes(code.read_bytes()[:32] + marshal.dumps(other))

    assert loaded(folder, modules) == "deep GET"
    evil()
    # That is what is guarded against.
    assert loaded(folder, modules) == "evil"
    code.chmod(0o666)
    assert loaded(folder, modules) == "deep GET"
    assert code.stat().st_mode & 0o022 == 0
    evil()
    code.parent.chmod(0o777)
    assert loaded(folder, modules) == "deep GET"
    code.parent.chmod(0o755)
    evil()
    code.rename(modules / "aside")
    code.symlink_to(modules / "aside")
    assert loaded(folder, modules) == "deep GET"


def test_a_folder_that_others_may_write_is_refused(folder: Path, modules: Path) -> None:
    modules.mkdir()
    for mode in (0o777, 0o775, 0o1777, 0o757):
        modules.chmod(mode)
        with pytest.raises(ApplicationError, match=r"may be written by others .*chmod go-w"):
            load(f"pages:{folder}", Settings(pages_modules=str(modules)))


def test_what_cannot_be_kept_is_served(folder: Path, modules: Path) -> None:
    """Here the place of a folder is taken by a file; no permission keeps out the superuser."""
    place(modules, folder / "index.html").parent.mkdir(parents=True)
    place(modules, folder / "deep").with_suffix("").write_text("")
    with Server(f"pages:{folder}", "single", "--pages-modules", str(modules)) as server:
        for _ in range(2):
            assert server.get("/deep/page").body == b"deep GET"
        server.wait_log("warning: compiled pages are not kept in")
