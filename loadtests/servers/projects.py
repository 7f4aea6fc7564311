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
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from loadtests.clients.connection import Answer
from loadtests.errors import LabError
from loadtests.servers.application import Application

MAIN, SUB = "main", "sub"
VERSION_LINE = 'VERSION = "000000"'
FIRST = "000000"
ANSWER = "main {} sub {} read {}\n"
SLOW = 0.05
"""Seconds that `/slow` takes."""
FOLDERS, FILES_EACH = 100, 50

_HELLO = f'''\
"""Says which version it is."""

import time

from words import greeting

{VERSION_LINE}


def application(environ, start_response):
    if environ["PATH_INFO"] == "/slow":
        time.sleep({SLOW})
    read = len(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
    body = greeting.text(VERSION, read)
    start_response(
        "200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
    )
    return [body]
'''
_TEXT = f"""\
{VERSION_LINE}


def text(main, read):
    return f"main {{main}} sub {{VERSION}} read {{read}}\\n".encode("ascii")
"""

_FLASK = f'''\
"""A shop that says which version it is."""

import time

import pandas
from flask import Flask, Response, request
from shop import stock
from sqlalchemy.orm import Session

{VERSION_LINE}

app = Flask(__name__)
sold = pandas.DataFrame({{"item": ["pen", "ink"], "count": [3, 1]}}).set_index("item")


@app.route("/", defaults={{"path": ""}}, methods=["GET", "POST"])
@app.route("/<path:path>", methods=["GET", "POST"])
def index(path):
    if path == "slow":
        time.sleep({SLOW})
    return Response(stock.text(VERSION, len(request.get_data())), mimetype="text/plain")


def left(engine):
    with Session(engine) as session:
        return {{item.name: item.count for item in session.query(stock.Item)}}
'''
_STOCK = f'''\
"""What the shop has."""

from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

{_TEXT}

class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "items"

    name: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int]
'''

_MANAGE = """\
import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "office.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
"""
_SETTINGS = """\
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "for a measurement"
DEBUG = True
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "news",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "office.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
WSGI_APPLICATION = "office.wsgi.application"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}}
USE_TZ = True
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""
_WSGI = """\
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "office.settings")
application = get_wsgi_application()
"""
_URLS = """\
from django.contrib import admin
from django.urls import path, re_path
from news.views import index

urlpatterns = [path("admin/", admin.site.urls), re_path("", index)]
"""
_MODELS = """\
from django.db import models


class Article(models.Model):
    title = models.CharField(max_length=200)
    written = models.DateTimeField(auto_now_add=True)
"""
_ADMIN = """\
from django.contrib import admin
from news.models import Article

admin.site.register(Article)
"""
_VIEWS = f"""\
import time

from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt
from news import texts

{VERSION_LINE}


@csrf_exempt
def index(request):
    if request.path == "/slow":
        time.sleep({SLOW})
    return HttpResponse(texts.text(VERSION, len(request.body)), content_type="text/plain")
"""


@dataclass(frozen=True)
class Kind:
    """A sort of project: its files, and which of them are the main module and one it imports.

    `needs` are modules that must be installed, `last` a command of Python that completes it.
    """

    name: str
    title: str
    files: Mapping[str, str]
    module: str
    callable: str
    main: str
    sub: str
    needs: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


def _many() -> dict[str, str]:
    """Modules, all of which are imported, so that also those are watched who watch nothing else."""
    files = {}
    names = [f"part{number:02}" for number in range(FILES_EACH - 1)]
    for number in range(FOLDERS):
        folder = f"parts{number:02}"
        files[f"{folder}/__init__.py"] = f"from {folder} import {', '.join(names)}\n"
        files.update({f"{folder}/{name}.py": f"NAME = {name!r}\n" for name in names})
    return files


def _large() -> dict[str, str]:
    parts = [f"parts{number:02}" for number in range(FOLDERS)]
    imports = "".join(f"import {name}\n" for name in parts)
    head, rest = _HELLO.split("\n\n", 1)
    return {
        "app.py": f"{head}\n\n{imports}{rest}",
        "words/__init__.py": "",
        "words/greeting.py": _TEXT,
        **_many(),
    }


HELLO = Kind(
    "hello",
    "hello",
    {"app.py": _HELLO, "words/__init__.py": "", "words/greeting.py": _TEXT},
    "app",
    "application",
    "app.py",
    "words/greeting.py",
)
FLASK = Kind(
    "flask",
    "Flask with SQLAlchemy and pandas",
    {"app.py": _FLASK, "shop/__init__.py": "", "shop/stock.py": _STOCK},
    "app",
    "app",
    "app.py",
    "shop/stock.py",
    needs=("flask", "sqlalchemy", "pandas"),
)
DJANGO = Kind(
    "django",
    "Django with the admin",
    {
        "manage.py": _MANAGE,
        "office/__init__.py": "",
        "office/settings.py": _SETTINGS,
        "office/urls.py": _URLS,
        "office/wsgi.py": _WSGI,
        "news/__init__.py": "",
        "news/models.py": _MODELS,
        "news/admin.py": _ADMIN,
        "news/views.py": _VIEWS,
        "news/texts.py": _TEXT,
        "news/migrations/__init__.py": "",
    },
    "office.wsgi",
    "application",
    "news/views.py",
    "news/texts.py",
    needs=("django",),
    last=("manage.py", "migrate", "--run-syncdb", "--verbosity", "0"),
)
LARGE = Kind("large", "5,000 files", _large(), "app", "application", "app.py", "words/greeting.py")
KINDS = {kind.name: kind for kind in (HELLO, FLASK, DJANGO)}


@dataclass(frozen=True)
class Project(Application):
    """A project in a folder of its own, as it was first written."""

    kind: Kind = field(default=HELLO)

    def answer(self, target: str, body: bytes) -> Answer:
        """The answer of the first version."""
        return Answer(200, "text/plain", ANSWER.format(FIRST, FIRST, len(body)).encode("ascii"))

    def accepts(self, answer: Answer, right: Answer) -> bool:
        """Whether it is from the application at all."""
        return answer.status == right.status and answer.body == right.body

    def text(self, file: str, version: str) -> str:
        """The content of a file in a version; of the same length in all versions."""
        return self.kind.files[file].replace(VERSION_LINE, VERSION_LINE.replace(FIRST, version))


@contextmanager
def made(kind: Kind) -> Iterator[Project]:
    """The project, until the block ends. Raises LabError if something that it needs is missing."""
    missing = [name for name in kind.needs if importlib.util.find_spec(name) is None]
    if missing:
        raise LabError(
            f"the project {kind.title!r} needs {' and '.join(missing)}: pip install '.[dev,lab]'"
        )
    with TemporaryDirectory(prefix="loadtests-project-") as folder:
        # Not the temporary folder itself: what is beside it is on the same file system, and unseen.
        root = Path(folder) / "project"
        for name, text in kind.files.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if kind.last:
            # Without a trace in the project: what servers compile is theirs.
            environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
            subprocess.run(
                [sys.executable, *kind.last],
                cwd=root,
                env=environ,
                check=True,
                stdout=subprocess.DEVNULL,
            )
        yield Project(str(root), kind.module, kind.callable, kind=kind)
