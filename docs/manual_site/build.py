"""Build the manual: `python docs/manual_site/build.py [--versions v1.0.0 v1.1.0] [FOLDER]`.

The present tree and tags (by default all `v*` that have a manual) each get a folder of
`build/docs`, with a menu of versions in every page, and `index.html` redirects to the newest
release. A warning is a failure. Nothing is fetched from a network.
"""

from __future__ import annotations

import argparse
import html
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

MENU = re.compile("<!-- versions -->.*?<!-- end of versions -->", re.DOTALL)

REDIRECT = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Poor HTTP</title>
<meta http-equiv="refresh" content="0; url={folder}/index.html">
<link rel="canonical" href="{folder}/index.html">
</head>
<body><p>The manual is in <a href="{folder}/index.html">{folder}</a>.</p></body>
</html>
"""


def main(words: list[str] | None = None) -> int:
    """Build all versions, and return the exit code: 1 if a page has a fault."""
    parser = argparse.ArgumentParser(prog="docs/manual_site/build.py", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "docs")
    parser.add_argument("--versions", nargs="*", metavar="TAG", help="default: all tags v*")
    given = parser.parse_args(words)
    tags = released() if given.versions is None else given.versions
    folder: Path = given.folder
    present = present_version(tags)
    failed = not sphinx(ROOT, folder / present)
    for tag in tags:
        if tag.removeprefix("v") != present:
            failed |= not build_tag(tag, folder / tag.removeprefix("v"))
    versions = [tag.removeprefix("v") for tag in tags]
    if present not in versions:
        versions.append(present)
    versions.sort(key=order, reverse=True)
    newest = next((name for name in versions if name != "dev"), present)
    write_menus(folder, versions)
    (folder / "index.html").write_text(REDIRECT.format(folder=html.escape(newest)))
    if not failed:
        print(f"The manual is in {folder / 'index.html'}")
    return int(failed)


def git(*words: str) -> bytes:
    """The output of a command of git, or nothing where there is no repository."""
    command = ["git", "-C", str(ROOT), *words]
    try:
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        ).stdout
    except FileNotFoundError:
        return b""


def released() -> list[str]:
    """The tags of releases that have a manual."""
    tags = git("tag", "--list", "v*").decode().split()
    return [tag for tag in tags if git("ls-tree", tag, "docs/conf.py")]


def present_version(tags: list[str]) -> str:
    """The name of the present tree: its version, or `dev` after the release of that version."""
    text = (ROOT / "poorhttp" / "config" / "version.py").read_text()
    found = re.search(r'^VERSION = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit('poorhttp/config/version.py has no line VERSION = "…"')
    version = found[1]
    here = git("tag", "--points-at", "HEAD").decode().split()
    return "dev" if f"v{version}" in tags and f"v{version}" not in here else version


def order(version: str) -> tuple[bool, list[int], str]:
    """The key by which versions are sorted; `dev` is the newest."""
    return version == "dev", [int(number) for number in re.findall(r"\d+", version)], version


def sphinx(tree: Path, folder: Path, revision: str = "") -> bool:
    """Build the manual of a tree, and say whether it has no fault."""
    print(f"{folder.name}: building", flush=True)
    doctrees = folder.parent.parent / f"{folder.parent.name}-doctrees" / folder.name
    if (folder / "objects.inv").exists():  # Pages that are gone do not stay.
        shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--fail-on-warning"]
    # All pages are read each time: those that did not change have warnings, too.
    command += ["--keep-going", "--quiet", "--fresh-env", "--jobs", "auto"]
    command += ["--doctree-dir", str(doctrees)]
    environment = os.environ | ({"POORHTTP_REVISION": revision} if revision else {})
    done = subprocess.run(
        [*command, str(tree / "docs"), str(folder)], cwd=tree, env=environment, check=False
    )
    return done.returncode == 0


def build_tag(tag: str, folder: Path) -> bool:
    """Build the manual of a release from its files in git."""
    archive = git("archive", "--format=tar", tag)
    if not archive:
        raise SystemExit(f"{tag}: git has no such tag")
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            # Python before 3.10.12 and 3.11.4 has no filters.
            files.extraction_filter = getattr(tarfile, "data_filter", None)
            files.extractall(place)
        return sphinx(Path(place), folder, tag)


def write_menus(folder: Path, versions: list[str]) -> None:
    """Write the menu of versions to every page: each leads to the same page where it exists."""
    for version in versions:
        for page in (folder / version).rglob("*.html"):
            text = page.read_text()
            if MENU.search(text):
                menu = version_menu(page, folder, version, versions)
                page.write_text(MENU.sub(lambda _, menu=menu: menu, text, count=1))  # type: ignore[misc]


def version_menu(page: Path, folder: Path, version: str, versions: list[str]) -> str:
    """The menu for one page; of a single version there is no menu."""
    path = page.relative_to(folder / version)
    up = "../" * len(path.parts)
    rows = []
    for other in versions:
        if other == version:
            rows.append(f'<li aria-current="true">{html.escape(other)}</li>')
            continue
        target = path if (folder / other / path).exists() else Path("index.html")
        address = html.escape(f"{up}{other}/{target}")
        rows.append(f'<li><a href="{address}">{html.escape(other)}</a></li>')
    menu = ""
    if len(versions) > 1:
        menu = (
            f'<details class="versions"><summary>Version {html.escape(version)}</summary>'
            f"<ul>{''.join(rows)}</ul></details>"
        )
    return f"<!-- versions -->{menu}<!-- end of versions -->"


if __name__ == "__main__":
    raise SystemExit(main())
