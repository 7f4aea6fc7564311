"""Django: a project that `poorhttp dev` finds, its static files, and `manage.py dev`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from poorhttp.plugins.discovery.dev_command import DevCommand
from tests.support.development import DEV, Started, save, write
from tests.support.forked_command import run_command
from tests.testkit.server import Server, wait_for

MANAGE = """
import os, sys

def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site1.settings")
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)

if __name__ == "__main__":
    main()
"""
BASE = """
from pathlib import Path
SECRET_KEY = "not a secret"
ROOT_URLCONF = "site1.urls"
ALLOWED_HOSTS = ["test"]
INSTALLED_APPS = ["shop", "django.contrib.staticfiles", "poorhttp.frameworks.django"]
STATIC_URL = "static/"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
USE_TZ = True
"""
SETTINGS = """
from .base import *
DEBUG = True
WSGI_APPLICATION = "site1.wsgi.application"
"""
URLS = """
from django.conf import settings
from django.http import HttpResponse
from django.urls import path

def index(request):
    return HttpResponse(f"{settings.SETTINGS_MODULE}: {request.headers.get('X-By', '')}")

urlpatterns = [path("", index)]
"""
WSGI = """
from django.core.wsgi import get_wsgi_application
application = get_wsgi_application()
"""
#: An application around that of Django.
WRAPPED = """
from django.core.wsgi import get_wsgi_application
inner = get_wsgi_application()
def application(environ, start_response):
    environ["HTTP_X_BY"] = "the project's own"
    return inner(environ, start_response)
"""
OTHER = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"not Django, " + environ["PATH_INFO"].encode()]
"""

FILES = {
    "manage.py": MANAGE,
    "site1/__init__.py": "",
    "site1/settings/__init__.py": SETTINGS,
    "site1/settings/base.py": BASE,
    "site1/settings/production.py": "from .base import *\nDEBUG = False\n",
    "site1/urls.py": URLS,
    "site1/wsgi.py": WSGI,
    "shop/__init__.py": "",
    "shop/static/shop/style.css": "p { color: green }\n",
    "other.py": OTHER,
}
FOUND = (
    "found a Django project (manage.py, settings site1.settings): serving site1.wsgi:application"
)
WITH_FILES = f"{FOUND}, and static files of django.contrib.staticfiles at /static/"
MANAGED = (sys.executable, "manage.py", "dev")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "project", FILES)
    return tmp_path / "project"


def serves_files(server: Server) -> bool:
    answer = server.get("/static/shop/style.css")
    if answer.status == 404:
        return False
    assert (answer.status, answer.body) == (200, b"p { color: green }\n")
    assert answer.get("Content-Type") == "text/css"
    return True


# poorhttp dev


def test_a_save(project: Path) -> None:
    """The next version has the same settings, and serves files that are new."""
    with Started(*DEV, "project", cwd=project.parent) as server:
        assert server.said == f"{WITH_FILES}, in project"
        assert server.get("/").body == b"site1.settings: "
        assert serves_files(server)
        assert server.get("/static/new.css").status == 404
        write(project, {"shop/static/new.css": "p {}"})
        save(project / "site1/urls.py", URLS.replace('f"', 'f"saved, '))
        wait_for(lambda: server.get("/").body == b"saved, site1.settings: ", "the new version")
        assert server.get("/static/new.css").body == b"p {}"


def test_a_project_in_src(project: Path) -> None:
    """Its manage.py is named."""
    (project / "src").mkdir()
    for name in ("site1", "shop"):
        (project / name).rename(project / "src" / name)
    words = ("project/manage.py", "--autoreload=off")
    with Started(*DEV, *words, cwd=project.parent) as server:
        assert server.said == f"{WITH_FILES}, in project"
        assert server.get("/").body == b"site1.settings: "
        assert serves_files(server)


def test_other_settings_and_no_wsgi(project: Path) -> None:
    (project / "site1/wsgi.py").unlink()
    env = {"DJANGO_SETTINGS_MODULE": "site1.settings.production"}
    with Started(*DEV, cwd=project, env=env, reloads=False) as server:
        assert server.said == (
            "found a Django project (manage.py, settings site1.settings.production): serving "
            "Django's own application, and static files of django.contrib.staticfiles at /static/"
        )
        assert server.get("/").body == b"site1.settings.production: "
        # Nor would runserver, where DEBUG is off.
        assert not serves_files(server)


@pytest.mark.parametrize("option", ["--debug=on", "--debug=off"])
def test_files_are_served_to_whoever_works_on_it(project: Path, option: str) -> None:
    env = {"DJANGO_SETTINGS_MODULE": "site1.settings"}
    words = ("serve", "site1.wsgi", option)
    with Started(*DEV[:-1], *words, cwd=project, env=env) as server:
        assert serves_files(server) == (option == "--debug=on")


def test_an_application_around_that_of_django(project: Path) -> None:
    write(project, {"site1/wsgi.py": WRAPPED})
    env = {"DJANGO_SETTINGS_MODULE": "site1.settings"}
    words = ("site1.wsgi:application", "--mount", "/other=other")
    with Started(*DEV, *words, cwd=project, env=env, reloads=False) as server:
        assert server.get("/").body == b"site1.settings: the project's own"
        assert serves_files(server)
        assert server.get("/other/static/x").body == b"not Django, /static/x"


@pytest.mark.parametrize(
    ("before", "after", "code", "said"),
    [
        ("import os, sys", "raise SystemExit('this was run')", 4, WITH_FILES),
        ("main():", "main(:", 4, FOUND),
        ('.setdefault("DJANGO_SETTINGS_MODULE", ', '["DJANGO_SETTINGS_MODULE"] = (', 4, FOUND),
        (
            '"site1.settings"',
            "name()",
            2,
            "manage.py is that of a Django project, and does not say",
        ),
    ],
)
def test_nothing_of_the_project_is_run_to_find_it(
    project: Path, before: str, after: str, code: int, said: str
) -> None:
    manage = MANAGE.replace(before, after)
    assert manage != MANAGE
    write(project, {"manage.py": manage, "site1/__init__.py": "raise SystemExit('this was run')\n"})
    done = run_command("dev", "--autoreload=off", "--bind=127.0.0.1:0", cwd=project)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(f"poorhttp: {said}")
    assert code == 2 or "\npoorhttp: site1.wsgi cannot be " in done.stderr


# manage.py dev


def test_the_command(project: Path) -> None:
    """Its address beats the environment. What the checks find is said, and the server begins."""
    write(project, {"site1/urls.py": URLS.replace("index)]", "index), None]")})
    env = {"POORHTTP_BIND": "[::1]:0"}
    words = (*MANAGED, "127.0.0.1:0", "--threads", "3")
    with Started(*words, cwd=project, env=env, reloads=False) as server:
        assert server.urls.startswith("http://127.0.0.1:")
        server.wait_log("urls.E004")
        server.wait_log("System check identified 1 issue (0 silenced)")
        assert server.get("/").body == b"site1.settings: "
        assert serves_files(server)


@pytest.mark.parametrize(
    ("address", "bind"),
    [("80", "127.0.0.1:80"), ("0:81", "0.0.0.0:81"), ("localhost:0", "localhost:0")],
)
def test_an_address_as_runserver_takes_it(address: str, bind: str) -> None:
    command = DevCommand([address, "--debug=off"], "manage.py dev")
    assert f"--bind={bind}" in command.words("shop")
