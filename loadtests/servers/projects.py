"""Projects for the study `develop`, which edits them: three applications, and one of 5,000 files.

Each answers any path with the versions of two of its modules and how long the body was that it was
sent; `/slow` takes a while.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from loadtests.clients.connection import Answer
from loadtests.errors import LabError
from loadtests.servers.application import Application

MAIN, SUB = "main", "sub"
VERSION_LINE = 'VERSION = "000000"'
FIRST = "000000"
ANSWER = "main {} sub {} read {}\n"


@dataclass(frozen=True)
class Kind:
    """A sort of project: its files, and which of them are the main module and one it imports.

    `needs` are modules that must be installed. `first` is a command of Python before the files are
    written, which go behind what it has made, and `last` one that completes the project.
    """

    name: str
    title: str
    files: Mapping[str, str]
    sub: str
    main: str = "app.py"
    module: str = "app"
    callable: str = "application"
    needs: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


def _files(name: str) -> dict[str, str]:
    """Those of `developed/`, and what makes packages of their folders."""
    folder = Path(__file__).with_name("developed") / name
    found = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }
    packages = {path.rpartition("/")[0] for path in found if "/" in path}
    return found | {f"{package}/__init__.py": "" for package in packages}


HELLO = Kind("hello", "hello", _files("hello"), "words/greeting.py")
FLASK = Kind(
    "flask",
    "Flask with SQLAlchemy and pandas",
    _files("flask"),
    "shop/stock.py",
    callable="app",
    needs=("flask", "sqlalchemy", "pandas"),
)
_URLS = """
from django.urls import re_path
from news.views import index

urlpatterns.append(re_path("", index))
"""
DJANGO = Kind(
    "django",
    "Django with the admin",
    {
        **_files("django"),
        "news/migrations/__init__.py": "",
        "office/settings.py": '\nINSTALLED_APPS += ["news"]\n',
        "office/urls.py": _URLS,
    },
    "news/texts.py",
    "news/views.py",
    "office.wsgi",
    needs=("django",),
    first=("-m", "django", "startproject", "office", "."),
    last=("manage.py", "migrate", "--run-syncdb", "--verbosity", "0"),
)
KINDS = {kind.name: kind for kind in (HELLO, FLASK, DJANGO)}


def _large() -> dict[str, str]:
    """Modules, all of which are imported, so that also those are watched who watch nothing else."""
    folders = [f"parts{number:02}" for number in range(100)]
    names = [f"part{number:02}" for number in range(49)]
    head, rest = HELLO.files["app.py"].split("\n\n", 1)
    imports = "".join(f"import {folder}\n" for folder in folders)
    parts = f"import {', '.join(names)}\n"
    return {
        **HELLO.files,
        "app.py": f"{head}\n\n{imports}{rest}",
        **{f"{folder}/__init__.py": f"from {folder} {parts}" for folder in folders},
        **{f"{folder}/{name}.py": f"NAME = {name!r}\n" for folder in folders for name in names},
    }


LARGE = replace(HELLO, name="large", title="5,000 files", files=_large())


@dataclass(frozen=True)
class EditedProject(Application):
    """A project that the study `develop` edits, in a folder of its own, as first written."""

    kind: Kind = HELLO

    def answer(self, target: str, body: bytes) -> Answer:
        return Answer(200, "text/plain", ANSWER.format(FIRST, FIRST, len(body)).encode("ascii"))

    def text(self, file: str, version: str) -> str:
        """The content of a file in a version; of the same length in all versions."""
        return self.kind.files[file].replace(VERSION_LINE, VERSION_LINE.replace(FIRST, version))


@contextmanager
def made(kind: Kind) -> Iterator[EditedProject]:
    """The project, until the block ends. Raises LabError if something that it needs is missing."""
    missing = [name for name in kind.needs if importlib.util.find_spec(name) is None]
    if missing:
        raise LabError(
            f"the project {kind.title!r} needs {' and '.join(missing)}: pip install '.[dev,lab]'"
        )
    # Without a trace in the project: what servers compile is theirs.
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with TemporaryDirectory(prefix="loadtests-project-") as folder:
        # Not the temporary folder itself: what is beside it is on the same file system, and unseen.
        root = Path(folder) / "project"
        root.mkdir()
        run = partial(subprocess.run, cwd=root, env=environ, check=True, stdout=subprocess.DEVNULL)
        if kind.first:
            run([sys.executable, *kind.first])
        for name, text in kind.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            with (root / name).open("a", encoding="utf-8") as file:
                file.write(text)
        if kind.last:
            run([sys.executable, *kind.last])
        yield EditedProject(str(root), kind.module, kind.callable, kind=kind)
