"""The site of the manual: built from a few pages, searched in a browser; `make docs` builds all."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.testkit.client import HANG
from tests.testkit.server import ROOT, Server

#: Not imported: each process of the tests reads this file.
MISSING = [name for name in ("furo", "myst_parser", "sphinx_copybutton") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {' '.join(MISSING)}")

#: What a page loads by itself, other than by a link that a reader follows.
LOADS = re.compile(
    r"<(?:script|img|iframe|source|audio|video)\b[^>]*?\bsrc(?:set)?=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|<link\b(?![^>]*rel=[\"']canonical)[^>]*?\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|url\([\"']?((?:https?:)?//[^)\"']+)|@import\s+[\"']((?:https?:)?//[^\"']+)"
)

#: In the process of the tests in a browser, which has the site.
BESIDE = pytest.mark.xdist_group("browser")

ADDRESS = "https://git.example.org/poor/"

SMALL = {
    "index.md": "# Small\n\n- [Guides](guides/index.md): all of them.\n",
    "guides/index.md": (
        "# Guides\n\n## Deploy\n\n- [First](first.md): the first.\n- [Wide](wide.md): a table.\n"
    ),
    "guides/first.md": (
        "# First\n\n## An anchor\n\n> **Note:** [mind](#an-anchor) [it](../../conf/a.ini).\n\n"
        '<picture>\n<source media="(prefers-color-scheme: dark)" srcset="../dark.svg">\n'
        '<img alt="Both" src="../light.svg">\n</picture>\n'
    ),
    "guides/wide.md": (
        f"# Wide\n\n{'| column ' * 30}|\n{'|---' * 30}|\n{'| x ' * 30}|\n\n"
        f"```\n{'command ' * 60}\n```\n\n`--{'long-' * 30}option`\n"
    ),
}


def environment(**more: str) -> dict[str, str]:
    """The tester's environment, without the address of a repository."""
    kept = os.environ.items()
    return {name: value for name, value in kept if not name.startswith("GITHUB_")} | more


def build(tree: Path, folder: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / "docs" / "manual_site" / "build.py"), str(folder)]
    return subprocess.run(
        [*command, *options],
        capture_output=True,
        text=True,
        env=environment(**more),
        check=False,
        timeout=HANG,
    )


def tree_of(tree: Path) -> Path:
    """A tree with a manual of three pages."""
    ours = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "docs/manual_site", tree / "docs/manual_site", ignore=ours)
    shutil.copy(ROOT / "docs/conf.py", tree / "docs/conf.py")
    icon = Path("poorhttp/plugins/monitor/page/icon.svg")
    for name, text in {
        "poorhttp/__init__.py": "",
        "poorhttp/config/__init__.py": "",
        "poorhttp/config/version.py": 'VERSION = "2.10.0"\n',
        str(icon): (ROOT / icon).read_text(),
        "conf/a.ini": "[http]\n",
        "docs/light.svg": (ROOT / icon).read_text(),
        "docs/dark.svg": (ROOT / icon).read_text(),
        **{f"docs/{page}": text for page, text in SMALL.items()},
    }.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tree


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manual of a release, and of the tree behind it, which has a page more."""
    folder = tmp_path_factory.mktemp("manual")
    tree = tree_of(folder / "tree")

    def git(*words: str) -> None:
        command = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([*command, *words], check=True, timeout=HANG)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "Release")
    git("tag", "v2.10.0")
    (tree / "docs/guides/second.md").write_text("# Second\n")
    with (tree / "docs/guides/index.md").open("a") as index:
        index.write("- [Second](second.md): the second.\n")
    git("commit", "-qam", "Work")
    done = build(tree, folder / "site", POORHTTP_REPOSITORY=ADDRESS)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "site"


def start_page(site: Path) -> Path:
    """The first page of the version to which the site's index leads."""
    found = re.search(r"url=([^\"]+)", (site / "index.html").read_text())
    assert found, "index.html does not redirect"
    return site / found[1]


@BESIDE
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    found = {
        (str(path.relative_to(site)), *filter(None, match))
        for path in site.rglob("*")
        if path.suffix in (".html", ".css", ".js")
        for match in LOADS.findall(path.read_text())
    }
    # Furo names it in a comment of its style sheet.
    assert not found


def test_search_from_files_and_from_the_server(site: Path, browser: Browser) -> None:
    """Guides stand above tables of measurements."""
    with Server(f"static:{site}", "single") as server:
        for start in (
            f"file://{start_page(site).parent}",
            f"{server.urls}/{start_page(site).parent.name}",
        ):
            browser.open(f"{start}/search.html?q=anchor")
            browser.wait_for("document.querySelector('.search a')?.href.includes('guides/')")
        # Of pages that are files, browsers tell nothing.
        loaded = browser.run("performance.getEntriesByType('resource').map(entry => entry.name)")
        outside = [name for name in loaded if not name.startswith((server.urls, "data:"))]
        assert (bool(loaded), outside) == (True, [])


def test_a_page_on_a_phone_is_no_wider_than_it(site: Path, browser: Browser) -> None:
    browser.resize(500, 800)
    for page in ("index.html", "guides/wide.html"):
        browser.open(f"file://{start_page(site).parent}/{page}")
        widths = browser.run("[document.documentElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1], page


def test_links_between_pages() -> None:
    """Of all pages; the build looks at their anchors, too, and takes longer."""
    for page in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```|`.*?`", "", page.read_text(), flags=re.DOTALL)
        links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
        assert [link for link in links if not (page.parent / link).exists()] == [], page


def test_each_fault_is_a_warning_and_fails_the_build(tmp_path: Path) -> None:
    """Here the address of the repository is not known, which is no fault."""
    faults = {
        "[a](nothing.md)": "'nothing.md'",
        "[a](index.md#nothing)": "'nothing'",
        "[a](#nowhere)": "'#?nowhere'",
        "[a](../../conf/b.ini)": "conf/b.ini",
        "```mermaid\nflowchart TB\n```": "guides-wide-1.svg does not show",
        "![a](b.png)": "b.png",
    }
    tree = tree_of(tmp_path / "tree")
    (tree / "docs/guides/wide.md").write_text("# Title\n\n" + "\n\n".join(faults))
    (tree / "docs/guides/second.md").write_text("# Second\n\nNo list has it.\n")
    done = build(tree, tmp_path / "site", "--versions")
    assert done.returncode == 1
    line = 3
    for fault, message in faults.items():
        assert re.search(f"wide.md:{line}: WARNING: .*{message}", done.stderr)
        line += fault.count("\n") + 2
    assert re.search("second.md: WARNING: .*any toctree", done.stderr)
    assert "first.md" not in done.stderr
    page = (start_page(tmp_path / "site").parent / "guides/first.html").read_text()
    assert '<span class="pre">conf/a.ini</span>' in page


@BESIDE
def test_versions(site: Path) -> None:
    """Releases are built from their tags; each page leads to the same page of the others."""

    def menu(page: str) -> list[tuple[str, str]]:
        text = (site / page).read_text()
        block = text.split("<!-- versions -->")[1].split("<!-- end of versions -->")[0]
        return re.findall(r'href="([^"]+)"|<li aria-current="true">([^<]+)', block)

    assert start_page(site) == site / "2.10.0" / "index.html"
    assert menu("dev/guides/second.html") == [("", "dev"), ("../../2.10.0/index.html", "")]
    assert menu("dev/guides/first.html")[1] == ("../../2.10.0/guides/first.html", "")
    assert menu("2.10.0/guides/first.html") == [("../../dev/guides/first.html", ""), ("", "2.10.0")]
    for version, revision in (("dev", "main"), ("2.10.0", "v2.10.0")):
        page = (site / version / "guides/first.html").read_text()
        # The guide has its link, its note, its picture and its place in the sidebar.
        assert f'href="{ADDRESS}blob/{revision}/conf/a.ini"' in page
        assert 'class="admonition note"' in page
        assert page.count("only-light") == page.count("only-dark") == 1
        assert '<li class="sidebar-group">Deploy</li>' in page


def test_the_order_of_versions() -> None:
    order = runpy.run_path(str(ROOT / "docs/manual_site/build.py"))["order"]
    assert sorted(["2.9.0", "dev", "2.10.0"], key=order) == ["2.9.0", "2.10.0", "dev"]
