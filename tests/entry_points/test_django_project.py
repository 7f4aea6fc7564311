"""`poorhttp serve --django`: the project, its static files, and messages."""

from __future__ import annotations

import pwd
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.support.development import DEV, Started, write
from tests.support.forked_command import run_command
from tests.support.nobody import IS_ROOT, Nobody
from tests.testkit.server import Server, command, patched, run, wait_for

MANAGE = """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site2.settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
SETTINGS = """
import os
from pathlib import Path
BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "not a secret"
ROOT_URLCONF = "site2.urls"
WSGI_APPLICATION = "site2.wsgi.application"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["goods", "django.contrib.staticfiles"]
MIDDLEWARE = []
STATIC_URL = "files/"
STATIC_ROOT = BASE_DIR / os.environ.get("COLLECTED", "collected")
USE_TZ = True
print("settings are imported")
"""
URLS = """
import os
from django.conf import settings
from django.http import HttpResponse
from django.urls import path
urlpatterns = [path("", lambda request: HttpResponse(f"{settings.DEBUG} in {os.getcwd()}"))]
"""
WSGI = """
from django.core.wsgi import get_wsgi_application
application = get_wsgi_application()
"""
FILES = {
    "manage.py": MANAGE,
    "site2/__init__.py": "",
    "site2/settings.py": SETTINGS,
    "site2/urls.py": URLS,
    "site2/wsgi.py": WSGI,
    "goods/__init__.py": "",
    "goods/static/goods/style.css": "p { color: green }\n",
    "collected/goods/style.css": "p { color: blue }\n",
    "other/file.txt": "of another folder\n",
}
#: What Django makes of settings, or adds to them.
PLAIN = "DEBUG, STATIC_URL = False, '/files/'\n"
#: Instead of Django, which takes its time: settings that are those of the project, and a page.
STAND_IN = {
    "django/__init__.py": "",
    "django/conf.py": "import site2.settings as settings\n",
    "site2/wsgi.py": """
from django.conf import settings
def application(environ, start_response):
    start_response("404 Not Found", [])
    return []
""",
}
SERVE = (*command("serve"), "--django")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "project", FILES)
    return tmp_path / "project"


def style(server: Server) -> tuple[int, bytes]:
    answer = server.get("/files/goods/style.css")
    return answer.status, answer.body


def test_a_project(project: Path) -> None:
    """manage.py of another folder; collectstatic; a reload finds the files that are there then."""
    shutil.rmtree(project / "collected")
    with Started(*SERVE, "project", cwd=project.parent) as server:
        found = "found a Django project (manage.py, settings site2.settings): serving site2.wsgi:"
        assert server.said == f"{found}application, in project"
        server.wait_log(f"poorhttp: STATIC_ROOT {project}/collected does not exist: run")
        assert server.get("/").body.decode() == f"False in {project}"
        assert style(server)[0] == 404
        collected = run(sys.executable, "manage.py", "collectstatic", "--noinput", cwd=project)
        assert collected.returncode == 0, collected.stderr
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: style(server) == (200, b"p { color: green }\n"), "static files")
        assert server.log().count("found a Django project") == 1
        assert server.get("/").body.decode() == f"False in {project}"


def test_static_files(project: Path) -> None:
    """They are the core's, which answers ranges; settings are imported with the environment."""
    write(project, STAND_IN | {"site2/settings.py": f"{SETTINGS}{PLAIN}"})
    env = {"POORHTTP_DJANGO": "on", "COLLECTED": "other", "POORHTTP_MODE": "forking"}
    with Started(*SERVE[:-1], "--static", "/more=goods", cwd=project, env=env) as server:
        server.wait_log(f"poorhttp: serves {project}/other at /files/ (STATIC_ROOT, STATIC_URL)\n")
        assert server.get("/files/file.txt", "Range: bytes=3-9").body == b"another"
        assert server.get("/more/__init__.py").status == 200


@pytest.mark.parametrize(
    ("settings", "words", "answer"),
    [
        ("", ("--static", "/files=other"), 404),
        ("STATIC_URL = 'https://files.example/'", (), 404),
        ("MIDDLEWARE = ['whitenoise.middleware.WhiteNoiseMiddleware']", (), 404),
        ("STATIC_ROOT = str(STATIC_ROOT)", ("--static-header", "/files=A: b"), 200),
    ],
)
def test_who_serves_the_files(
    project: Path, settings: str, words: tuple[str, ...], answer: int
) -> None:
    white = "def WhiteNoiseMiddleware(get): return get\n"
    files = {"whitenoise/__init__.py": "", "whitenoise/middleware.py": white}
    write(project, STAND_IN | files | {"site2/settings.py": f"{SETTINGS}{PLAIN}{settings}\n"})
    with Started(*SERVE, *words, cwd=project) as server:
        assert style(server)[0] == answer
        assert ("STATIC_ROOT" in server.log()) == (answer == 200 or bool(words))


#: Settings that write to the pipe of the process that imports them, when they are first imported.
HOSTILE = """
import marshal, time
def write(text):
    for fd in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:"):
                os.write(fd, text)
        except OSError:
            pass
if not os.path.exists("imported"):
    open("imported", "w").close()
"""


@pytest.mark.parametrize(
    ("attack", "problem"),
    [
        ("write(marshal.dumps(5)); os._exit(0)", "gave no answer that can be read"),
        ("write(b'\\0\\0\\0\\x04' + b'[55]' * 9); os._exit(0)", "gave another answer"),
        ("write(b'x' * 0x10000); os._exit(0)", "gave no answer that can be read"),
        ("os.fork() == 0 and time.sleep(90)", ""),
        ("time.sleep(600)", "did not answer within 1 s"),
        ("STATIC_ROOT = BASE_DIR / 'a\\x1b[2J'", "STATIC_URL or STATIC_ROOT has control"),
    ],
)
def test_settings_that_attack(project: Path, attack: str, problem: str) -> None:
    """The main process parses JSON, and neither waits nor breaks."""
    settings = f"{SETTINGS}{PLAIN}{HOSTILE}    {attack}\n"
    write(project, STAND_IN | {"site2/settings.py": settings})
    collected = "poorhttp.plugins.discovery.django.collected"
    launcher = patched(collected, TIMEOUT=1.0) if "within" in problem else ()
    with Started(*launcher, *SERVE, cwd=project) as server:
        assert style(server)[0] == (404 if problem else 200)
        said = "poorhttp: static files are not served by the server: "
        assert (said in server.log(), problem in server.log()) == (bool(problem), True)


def test_debug(project: Path) -> None:
    """It is the project's, and told of; `poorhttp dev` serves files without collectstatic."""
    write(project, {"site2/settings.py": f"{SETTINGS}DEBUG = True\n"})
    with Started(*SERVE, cwd=project) as server:
        server.wait_log("poorhttp: DEBUG is on in the settings: Django shows every client")
        assert style(server) == (200, b"p { color: blue }\n")
    with Started(*DEV, "--django", cwd=project, reloads=False) as server:
        assert style(server) == (200, b"p { color: green }\n")
        assert "DEBUG" not in server.log()


@pytest.mark.skipif(not IS_ROOT, reason="nobody else can become another user")
def test_the_settings_are_imported_as_the_workers_user(folder: Path, nobody: Nobody) -> None:
    """No process of root runs code of the project. Django is one that everybody can read."""
    settings = """
import os
with open("users", "a") as file:
    print(os.geteuid(), file=file)
DEBUG, STATIC_URL, STATIC_ROOT, MIDDLEWARE = False, "/files/", "collected", []
INSTALLED_APPS = ["django.contrib.staticfiles"]
WSGI_APPLICATION = "site2.wsgi.application"
"""
    write(folder, FILES | STAND_IN | {"users": "", "site2/settings.py": settings})
    folder.chmod(0o755)
    (folder / "users").chmod(0o666)
    program = "import sys; from poorhttp.cli import main; sys.exit(main())"
    done = nobody.as_root(program, "check", f"--chdir={folder}", "--django", "--user=nobody")
    assert done.returncode == 0, done.stderr
    assert f"serves {folder}/collected at /files/" in done.stderr
    users = (folder / "users").read_text().split()
    assert users == [str(pwd.getpwnam("nobody").pw_uid)] * 2


def test_settings_that_fail(project: Path) -> None:
    """The worker that loads the application says it, once."""
    write(project, {"site2/settings.py": f"{SETTINGS}1 / 0\n"})
    done = run(*SERVE, "--bind", "127.0.0.1:0", cwd=project)
    assert done.returncode == 4
    assert done.stderr.count("ZeroDivisionError") == 1
    assert done.stdout.count("settings are imported") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("serve --django x:y", "--django finds what is served by itself: name the folder of the"),
        ("serve --django other", r"found no manage.py of Django in \S+/other; name its folder: "),
        ("serve --django ..", r"there is \.\./project/manage.py: poorhttp serve --django \.\./pr"),
        ("serve --django two", "the manage.py in .* is not that of a Django project"),
        ("check -c services.ini", "services.ini:3: django: only for a server of one service; "),
    ],
)
def test_nothing_is_found(project: Path, words: str, said: str) -> None:
    ini = "[http]\n# for\ndjango = on\n[service:a]\nbind=[::1]:1\n[service:b]\nbind=[::1]:2\n"
    write(project, {"two/manage.py": "print('not Django')\n", "services.ini": ini})
    done = run_command(*words.split(), cwd=project)
    assert done.returncode in (2, 3), done.stderr
    assert re.search(said, done.stderr), done.stderr


def test_check(project: Path) -> None:
    done = run_command("check", "--django", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "would serve site2.wsgi:application on http://127.0.0.1:8080" in done.stdout
    assert f"the files of {project}/collected" in " ".join(done.stdout.split())
