"""Projects of each kind, for which `poorhttp init` writes files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.forked_command import run_command
from tests.testkit.client import HANG

#: It waits for others, and is started often: without what it would ask them with.
FLASK = """\
import flask

app = flask.Flask(__name__)


@app.get("/")
def page():
    return f"flask of {flask.request.remote_addr} at {flask.request.host}"


def ask():
    import requests
"""

VIEW = """\
from django.http import HttpResponse
from django.urls import path


def page(request):
    return HttpResponse(f"django of {request.META['REMOTE_ADDR']} at {request.META['HTTP_HOST']}")


urlpatterns = [path("", page)]
"""

TABLE = """\
from poorhttp import dispatch as http


def page(req):
    return f"dispatch of {req.environ['REMOTE_ADDR']} at {req.environ['HTTP_HOST']}"


handlers = {"/": (http.METHOD_GET, page)}
"""

#: What each has in its folder, beside what Django makes.
FILES = {
    "flask": {"app.py": FLASK, "requirements.txt": "flask\n"},
    "django": {},
    "dispatch": {"dispatch_table.py": TABLE},
    "static": {"index.html": "<p>static files\n"},
}


def make(kind: str, folder: Path) -> Path:
    """Make a project in `folder`, whose name is its kind; returns that of the project."""
    project = folder / f"My {kind}"
    project.mkdir()
    for name, text in FILES[kind].items():
        (project / name).write_text(text)
    if kind == "django":
        words = [sys.executable, "-m", "django", "startproject", "site_of_mine", str(project)]
        subprocess.run(words, check=True, capture_output=True, timeout=HANG)
        settings = project / "site_of_mine" / "settings.py"
        settings.write_text(
            settings.read_text().replace("ALLOWED_HOSTS = []", 'ALLOWED_HOSTS = ["*"]')
        )
        (project / "site_of_mine" / "urls.py").write_text(VIEW)
    return project


def init(project: Path, *options: str) -> str:
    """Run `poorhttp init` in a project; returns what it prints."""
    done = run_command("init", *options, cwd=project)
    assert done.returncode == 0, done.stderr
    return done.stdout
