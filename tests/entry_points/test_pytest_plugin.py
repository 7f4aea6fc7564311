"""`poorhttp_server`, and live servers of pytest-django, pytest-flask and Django, by their tools."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import indent

import pytest

from tests.support.development import write
from tests.support.installed import examples, installed
from tests.testkit.server import run

#: Plugins that are installed for our own tests or with other packages, and take time.
OTHERS = (
    *("xdist", "xdist.looponfail", "timeout", "hypothesispytest"),
    *("anyio", "locust", "platformdirs"),
)
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error")

GET = """
import urllib.request

def get(url):
    with urllib.request.urlopen(url, timeout=240) as answer:
        return answer.headers["Server"], answer.read().decode()
"""

PLAIN = f"""{GET}
import sys
import pytest

def test_nothing_is_imported_before_it_is_used():
    assert "poorhttp.plugins.testing.pytest_plugin" in sys.modules
    assert not {{"poorhttp.api", "poorhttp._core", "django", "flask"}} & set(sys.modules)

seen = []

def application(environ, start_response):
    seen.append(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"multithread" if environ["wsgi.multithread"] else b"alone"]

urls = {{}}

def test_an_application(poorhttp_server):
    one, two = poorhttp_server(application), poorhttp_server(application, mode="single")
    assert get(one.url + "/one") == ("poorhttp", "multithread")
    assert get(two.url + "/two") == ("poorhttp", "alone")
    assert seen == ["/one", "/two"]
    urls["stopped"] = one.url

def test_a_target(poorhttp_server_factory, tmp_path):
    (tmp_path / "file.txt").write_text("a file")
    server = poorhttp_server_factory(f"static:{{tmp_path}}", server_header="mine")
    urls["kept"] = server.url
    assert get(server.url + "/file.txt") == ("mine", "a file")

def test_which_servers_have_stopped():
    with pytest.raises(OSError):
        get(urls["stopped"])
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(urls["kept"] + "/none")

def test_a_mistake(poorhttp_server):
    with pytest.raises(Exception, match='unknown setting "thread"; did you mean "threads"'):
        poorhttp_server(application, thread=1)
"""

GUIDE = """
import urllib.request
import warnings
import poorhttp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import webtest

def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"a page"]

"""

SETTINGS = """
import os
SECRET_KEY = "not a secret"
ROOT_URLCONF = "site3.urls"
ALLOWED_HOSTS = []
INSTALLED_APPS = [
    *("django.contrib.contenttypes", "django.contrib.auth", "goods", "django.contrib.staticfiles"),
]
STATIC_URL = "static/"
MIDDLEWARE = []
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("DATABASE", ":memory:"),
        "TEST": {"NAME": os.environ.get("DATABASE")},
        # Requests leave their connection open.
        "CONN_MAX_AGE": None,
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
"""
URLS = """
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.urls import path

def groups(request):
    if request.method == "POST":
        Group.objects.create(name=request.body.decode())
    names = ", ".join(group.name for group in Group.objects.all())
    script = "<script>document.title = 'run'</script>"
    return HttpResponse(f"<p id=groups>{names}</p>{script}")

def broken(request):
    Group.objects.count()
    raise LookupError

urlpatterns = [path("", groups), path("broken", broken)]
"""
DJANGO = {
    "manage.py": """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site3.settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
""",
    "pytest.ini": """
[pytest]
DJANGO_SETTINGS_MODULE = site3.settings
poorhttp_live_server = true
""",
    "site3/__init__.py": "",
    "site3/settings.py": SETTINGS,
    "site3/urls.py": URLS,
    "goods/__init__.py": "",
    "goods/static/goods.css": "p { color: green }",
}
PYTEST_DJANGO = f"""{GET}
import os
import time
import urllib.request
import pytest
from django.contrib.auth.models import Group
from django.contrib.staticfiles.testing import StaticLiveServerTestCase
from django.test import LiveServerTestCase

def opened():
    files = [f"/proc/self/fd/{{fd}}" for fd in os.listdir("/proc/self/fd")]
    return sum("a.db" in os.readlink(file) for file in files if os.path.exists(file))

@pytest.mark.django_db(transaction=True)
def test_live_server(live_server):
    Group.objects.create(name="of the test")
    before = opened()
    assert get(live_server.url) == ("poorhttp", "<p id=groups>of the test</p>" + SCRIPT)
    urllib.request.urlopen(live_server + "/", data=b"of the server").close()
    assert Group.objects.count() == 2
    with pytest.raises(urllib.error.HTTPError):
        get(live_server.url + "/broken")
    end = time.monotonic() + 240
    while opened() != before:
        assert time.monotonic() < end, "connections of other threads are left open"
        time.sleep(0.01)
    assert get(live_server.url + "/static/goods.css")[1] == "p {{ color: green }}"

SCRIPT = "<script>document.title = 'run'</script>"

@pytest.mark.django_db(transaction=True)
def test_once_more(live_server):
    assert get(live_server.url) == ("poorhttp", "<p id=groups></p>" + SCRIPT)

class Plain(LiveServerTestCase):
    def test(self):
        Group.objects.create(name="plain")
        assert "plain" in get(self.live_server_url)[1]

class Static(StaticLiveServerTestCase):
    host = "127.0.0.1"
    def test(self):
        assert get(self.live_server_url + "/static/goods.css")[0] == "poorhttp"
"""
UNITTEST = f"""{GET}
from django.contrib.auth.models import Group
from django.test import LiveServerTestCase as Djangos
from poorhttp.frameworks.django.testing import LiveServerTestCase, StaticLiveServerTestCase

class Ours(LiveServerTestCase):
    def test(self):
        Group.objects.create(name="ours")
        server, body = get(self.live_server_url)
        assert (server, "ours" in body) == ("poorhttp", True)

class Static(StaticLiveServerTestCase):
    def test(self):
        assert get(self.live_server_url + "/static/goods.css")[0] == "poorhttp"

class Theirs(Djangos):
    def test(self):
        assert get(self.live_server_url)[0].startswith("WSGIServer")
"""
FLASK = """
import os
import urllib.request
import flask
import pytest

@pytest.fixture(scope="session")
def app():
    app = flask.Flask(__name__)
    app.config["SERVER_NAME"] = "localhost"
    app.get("/")(lambda: f"process {os.getpid()}")
    return app

@pytest.mark.parametrize("time", [1, 2])
def test(live_server, time):
    url = flask.url_for("<lambda>", _external=True)
    assert url == live_server.url("/")
    with urllib.request.urlopen(url) as answer:
        assert answer.headers["Server"] == "poorhttp"
        assert answer.read().decode() == f"process {os.getpid()}"
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    # A pytest closes the folder of all temporary files to other users: to ours, for some tests.
    return {**installed(tmp_path / "installed"), "PYTEST_DEBUG_TEMPROOT": str(tmp_path)}


def passed(folder: Path, env: dict[str, str], *without: str) -> int:
    """How many tests pass without these plugins; none fails, is skipped, or leaves an error."""
    words = [word for name in (*OTHERS, *without) for word in ("-p", f"no:{name}")]
    done = run(*PYTEST, *words, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"^(\d+) passed in [\d.]+s", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return int(found[1])


def test_the_fixtures(tmp_path: Path, env: dict[str, str]) -> None:
    write(tmp_path, {"tests/test_plain.py": PLAIN})
    assert passed(tmp_path / "tests", env, "django", "flask") == 5


def test_the_guide(tmp_path: Path, env: dict[str, str]) -> None:
    """WebTest imports what Python will not have for ever."""
    _, library, fixture, _, webtest = examples("frameworks", "python")
    text = f"{GUIDE}{library}\n{fixture}\ndef test_webtest(poorhttp_server):\n"
    write(tmp_path, {"tests/test_guide.py": text + indent(webtest, "    ")})
    assert passed(tmp_path / "tests", env, "django", "flask") == 2


@pytest.mark.parametrize("database", ["", pytest.param("a.db", marks=pytest.mark.full)])
def test_pytest_django(tmp_path: Path, env: dict[str, str], database: str) -> None:
    """A database in memory, which is shared, and one that each thread has a connection to."""
    write(tmp_path / "project", DJANGO | {"test_live.py": PYTEST_DJANGO})
    env |= {"DATABASE": database} if database else {}
    assert passed(tmp_path / "project", env, "flask") == 4


def test_pytest_django_as_it_is(tmp_path: Path, env: dict[str, str]) -> None:
    """Without the setting nothing is replaced, and the classes that are ours serve."""
    ini = "[pytest]\nDJANGO_SETTINGS_MODULE = site3.settings\n"
    write(tmp_path / "project", DJANGO | {"test_live.py": UNITTEST, "pytest.ini": ini})
    assert passed(tmp_path / "project", env, "flask") == 3


def test_pytest_flask(tmp_path: Path, env: dict[str, str]) -> None:
    """pytest-flask's own server is another process, which answers with another number."""
    ini = "[pytest]\npoorhttp_live_server = true\n"
    write(tmp_path / "project", {"test_live.py": FLASK, "pytest.ini": ini})
    assert passed(tmp_path / "project", env, "django") == 2
