"""Discovery of the application by `poorhttp dev`, and messages when there is none or several."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from poorhttp.errors import UsageError
from poorhttp.plugins.discovery.search import search
from tests.support.development import DEV, Started, save, write
from tests.support.forked_command import run_command
from tests.testkit.server import wait_for

#: Answers who it is; with the folder in which it runs.
APPLICATION = """
import os
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{__name__} in {os.path.basename(os.getcwd())}".encode()]
"""
APP = APPLICATION.replace("application(environ", "app(environ")
FACTORY = "def create_app(config=None, *, debug=False):"
FACTORY += APPLICATION.replace("\n", "\n  ") + "\n  return application\n"
FLASK = """
from flask import Flask
%s = Flask(__name__)
@%s.get("/")
def index():
    return f"{__name__} by Flask"
"""
BROKEN = "raise SystemExit('this was run')\n"
TABLE = """
from poorhttp import dispatch as http
def hello(req):
    req.write("by the table")
    return http.DONE
handlers = {"/": (http.METHOD_GET, hello)}
"""


#: pgAdmin 4: a factory in a package, which a file beside it calls and configures.
DESKTOP = {
    "pgAdmin4.py": "from pgadmin import create_app\napp = create_app()\n"
    "app.config['MODE'] = 'desktop'\nif __name__ == '__main__':\n    app.run()\n",
    "pgAdmin4.wsgi": "from pgAdmin4 import app as application\n",
    "pgadmin/__init__.py": "from flask import Flask\nclass PgAdmin(Flask): pass\n"
    "def create_app(app_name=None):\n  app = PgAdmin(__name__)\n"
    "  @app.get('/')\n  def index(): return app.config.get('MODE', 'not configured')\n"
    "  return app\n",
}
CALLED = "class Site:\n    {} __call__(self, {}): pass\nsite = Site()\n"
FACTORY_FLASK = "from flask import Flask\ndef create_app(name='x'):\n  return Flask(name)\n"
PASTE = "[app:main]\nuse = call:shop:main\n[server:main]\nuse = egg:waitress#main\n"
PASTED = "def main(everything):\n  def app(e, s):\n    s('200 OK', [])\n    return [b'pasted']\n"
PASTED += "  return app\n"
ROUTES = "from bottle import route, run\n@route('/')\ndef index(): return 'by Bottle'\n"

MAKER = "a function that makes an application"
PACKED = "packed in project"


def fails(code: int, folder: Path, *words: str) -> str:
    """What `poorhttp dev` says, in one line, before it ends with this exit code."""
    env = {"POORHTTP_BIND": "127.0.0.1:0", "POORHTTP_AUTORELOAD": "off"}
    done = run_command("dev", *words, cwd=folder, env=env)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("poorhttp: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("poorhttp: ")


# What is found


@pytest.mark.parametrize(
    ("files", "said", "answer"),
    [
        ({"dispatch_table.py": TABLE, "app.py": BROKEN},
         "a dispatch table (dispatch_table.py): serving dispatch:.", "by the table"),
        ({"wsgi.py": "from shop import app as application", "app.py": APP, "shop.py": APP},
         "an application (wsgi.py): serving wsgi:application (and not app:app)", "shop in project"),
        ({"src/shop/__init__.py": "", "src/shop/wsgi.py": APPLICATION, "setup.py": BROKEN},
         "an application (src/shop/wsgi.py): serving shop.wsgi:application",
         "shop.wsgi in project"),
        ({"calendar.py": APPLICATION},  # Python has one too
         "an application (calendar.py): serving calendar.py:application",
         "project_calendar in project"),
        ({"__init__.py": "", "app.py": "from .parts import app", "parts.py": APP},
         "an application (app.py): serving app.py:app", "project.parts in project"),
        (DESKTOP, "a Flask application (pgAdmin4.py): serving pgAdmin4:app", "desktop"),
        ({"hello.py": ROUTES + "run(port=1)\n"},
         "Bottle's default application (hello.py): serving hello", "by Bottle"),
        ({"index.html": "<%page/>\n% if True:\n1 + 1 = ${1 + 1}\n% endif\n"},
         "template pages (index.html): serving pages:.", "1 + 1 = 2"),
    ],
)  # fmt: skip
def test_found(tmp_path: Path, files: dict[str, str], said: str, answer: str) -> None:
    folder = tmp_path / "project"
    write(folder, files)
    with Started(*DEV, cwd=folder, reloads=False) as server:
        assert server.said == f"found {said}"
        assert server.get("/").body.decode().strip() == answer


def said_of(folder: Path, word: str, patch: pytest.MonkeyPatch) -> tuple[str, str]:
    """What is said of a word in a folder, without how each sentence begins, and the target."""
    patch.chdir(folder)
    found = search(str(folder), word)
    return (found.sentence.removeprefix("found "), found.target) if found else ("", "")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"app.py": APPLICATION.replace("environ, start_response", "e, start_response, x=1")},
         "an application (app.py): serving app:application"),
        ({"main.py": "class application:\n  def __init__(self, e, s): pass\n"
          "  def __iter__(self): yield b'a class'\n"},
         "an application (main.py): serving main:application"),
        ({"wsgi.py": "from app import app", "app.py": APP},
         "an application (wsgi.py): serving wsgi:app"),
        ({"app/__init__.py": FACTORY, "app/views.py": BROKEN},
         f"{MAKER} (app/__init__.py): serving app:create_app()"),
        ({"shop/__init__.py": "from .web import create_app", "shop/web.py": FACTORY},
         f"{MAKER} (shop/__init__.py): serving shop:create_app()"),
        ({"run.py": FLASK % ("server", "server") + "if __name__ == '__main__':\n  app = server\n"},
         "a Flask application (run.py): serving run:server"),
        ({"shop.py": "from kinds import Shop\nweb = Shop(__name__)\nweb.run()\n",
          "kinds.py": "import flask\nclass Shop(flask.Flask): pass\n"},
         "a Flask application (shop.py): serving shop:web"),
        ({"app.py": "try: from none import app\nexcept ImportError: from shop import app",
          "shop.py": APP}, "an application (app.py): serving app:app"),
    ],
)  # fmt: skip
def test_what_is_said_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], said: str
) -> None:
    write(tmp_path, files)
    assert said_of(tmp_path, "", monkeypatch) == (said, said.partition(" serving ")[2])


@pytest.mark.parametrize(
    ("files", "target"),
    [
        # Names of modules, and their places.
        ({"2048.py": APP}, "2048.py:app"),
        ({"_site.py": APP}, "_site:app"),
        ({"tasks.py": APP}, "tasks:app"),
        ({"shop.wsgi": APPLICATION}, "shop.wsgi:application"),
        ({"my-shop/__init__.py": "", "my-shop/web.py": APP}, "my-shop/web.py:app"),
        ({"shop/__init__.py": "", "shop/web/__init__.py": "", "shop/web/serving.py": APP},
         "shop.web.serving:app"),
        # Folders without `__init__.py`.
        ({"shop/web/serving.py": f"from shop import names\n{APP}", "shop/names.py": ""},
         "shop.web.serving:app"),
        ({"src/shop/web/serving.py": f"from . import names\n{APP}", "tools/serving.py": APP},
         "shop.web.serving:app"),
        # Objects of classes, and middleware.
        ({"serving.py": CALLED.format("def", "environ, start_response")}, "serving:site"),
        ({"serving.py": CALLED.format("async def", "scope, receive, send")}, "serving:site"),
        ({"serving.py": f"{CALLED.format('def', 'environ, start_response')}{FLASK % ('web', 'web')}"
          "wrapped = Site(web)\n"}, "serving:web"),
        ({"wsgi.py": f"from w import Mounts\n{FLASK % ('site', 'site')}"
          "application = Mounts(site, {'/api': api})\n"}, "wsgi:application"),
        ({"x.py": f"from celery import Celery\n{FLASK % ('site', 'site')}app = Celery(site)\n"},
         "x:site"),
        # What may be an application, where nothing else is.
        ({"serving.py": "from lib import Router\napp = Router()\n"}, "serving:app"),
        ({"serving.py": "def app(one, two): return two('200 OK', []) and []\n"}, "serving:app"),
        # Values and factories.
        ({"lib.py": FACTORY_FLASK, "x.py": "import lib\nweb = lib.create_app()\n"}, "x:web"),
        ({"lib.py": FACTORY_FLASK, "x.py": "from lib import *\nweb = create_app()\n"}, "x:web"),
        ({"lib.py": FACTORY_FLASK.replace("='x'", ""),
          "x.py": "from lib import create_app\nif True:\n  web = create_app('y')\n"}, "x:web"),
        ({"lib.py": FACTORY_FLASK,
          "x.py": "from lib import create_app\nfrom w import ProxyFix\n"
          "app = ProxyFix(create_app())\n"}, "x:app"),
        ({"app/__init__.py": FACTORY_FLASK,
          "main.py": "from app import create_app\napp = create_app()\n",
          "worker.py": "from app import create_app\napp = create_app()\n"}, "main:app"),
        ({"app/__init__.py": FACTORY_FLASK,
          "x.py": "from app import create_app as make\napp = make()\n",
          "queue_of.py": "from app import create_app\nflask_app = create_app()\n"}, "x:app"),
        ({"shop/__init__.py": "from .making import create_app\n", "shop/making.py": FACTORY_FLASK,
          "shop/serving.py": "from . import create_app\nsite = create_app()\n"},
         "shop.serving:site"),
        # PasteDeploy
        ({"my.ini": PASTE.replace("app:main", "app:one")}, "paste:my.ini#one"),
        ({"production.ini": PASTE, "testing.ini": PASTE}, "paste:production.ini"),
        ({"my.ini": PASTE, "shop.py": APP}, "paste:my.ini"),
        # Bottle
        ({"own.py": "from bottle import Bottle\nweb = Bottle()\nweb.run(port=1)\n"},
         "poorhttp.plugins.discovery.bottle_default:application('own:web')"),
        ({"a.py": ROUTES, "b.py": "import bottle, a\n@bottle.get('/b')\ndef b(): pass\n"},
         "poorhttp.plugins.discovery.bottle_default:application('b')"),
    ],
)  # fmt: skip
def test_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], target: str
) -> None:
    write(tmp_path, files)
    assert said_of(tmp_path, "", monkeypatch)[1] == target


@pytest.mark.parametrize(
    ("files", "seen"),
    [
        ({"a.ini": PASTE, "b.ini": PASTE}, "several applications: paste:a.ini, paste:b.ini;"),
        ({"a.py": ROUTES, "b.py": ROUTES}, "several applications: a, b;"),
        ({"a-1.py": APP, "b-2.py": APP}, "several applications: a-1.py:app, b-2.py:app;"),
        ({"lib.py": FACTORY_FLASK, "x.py": "from lib import create_app\napp = create_app()\n",
          "y.py": "from lib import create_app\napp = create_app('z')\n"},
         "several applications: x:app, y:app;"),
        (dict.fromkeys(("a.py", "b.py"), "from lib import Router\napp = Router()\n"),
         "several applications: a:app, b:app;"),
        ({"cli.py": "import typer\napp = typer.Typer()\n", "v.py": "from flask import "
          "current_app as app\n", "c.py": "class A: pass\napp = A()\n", "d.py": "app = 5\n"},
         "c.py: app does not look like a WSGI application; cli.py: app does not look like a WSGI "
         "application; d.py: app does not look like a WSGI application; v.py: app does not look"),
        ({"api/serving.py": f"import names\n{APP}", "api/names.py": ""},
         "; there is an application: poorhttp dev api/serving.py:app; name it"),
        ({"setup.ini": "[app]\nname = shop\n[tool]\nuse = x\n"}, "found nothing to serve"),
        ({}, "no manage.py of Django, no dispatch_table.py, no application or create_app()"),
        ({"manage.py": "print('mine')\n"}, "no manage.py of Django"),
        ({"app.py": "app = 5\n"}, "found nothing to serve in"),
        ({"app.py": "def app(one): pass\ndef application(a, b, c): pass\n"}, "found nothing"),
        ({"tool.py": "def app(one, two): pass\n"}, "found nothing to serve in"),
        ({"tool.py": "app = Application()\n"}, "found nothing to serve in"),
        ({"test_app.py": APP, "tests/__init__.py": APP, ".venv/app.py": APP}, "found nothing"),
        ({"app.py": "async def app(request): pass\n"},
         "app.py: app is a coroutine function, and none of ASGI"),
        ({"shop.py": "def create_app(config, *, name): pass\n"},
         "shop.py: create_app() needs config, name: give it literals"),
        ({"site1/manage.py": "import django\n"}, "there is site1/manage.py: poorhttp dev site1;"),
    ],
)  # fmt: skip
def test_what_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], seen: str
) -> None:
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as raised:
        search(str(tmp_path), "")
    complaint = str(raised.value)
    assert seen in complaint
    end = "; name it: poorhttp dev package.module:application"
    assert complaint.endswith(end) or "several" in seen, complaint


def test_programs_beside_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nprogram'\n"
    write(tmp_path, {"index.html": "a file", "cgi-bin/hello": program})
    (tmp_path / "cgi-bin/hello").chmod(0o755)
    with Started(*DEV, cwd=tmp_path, reloads=False) as server:
        assert server.said == (
            "found files (index.html): serving static:., and the programs of cgi-bin at /cgi-bin"
        )
        assert server.get("/").body == b"a file"
        assert server.get("/cgi-bin/hello").body == b"program"
    said, _ = said_of(tmp_path, "cgi-bin", monkeypatch)
    assert said == "programs (this is cgi-bin): serving cgi:., in cgi-bin"
    (tmp_path / "index.html").unlink()
    with Started(*DEV, cwd=tmp_path, reloads=False) as server:
        assert server.said == "found programs (cgi-bin): serving cgi:cgi-bin at /cgi-bin"
        assert server.get("/cgi-bin/hello").body == b"program"


# What is said


PROJECT = {
    "shop/app.py": APP,
    "shop/deep/wsgi.py": APPLICATION,
    "packed/__init__.py": FACTORY,
    "packed/web.py": APPLICATION,
    "both.py": APP,
    "both/wsgi.py": APPLICATION,
}


@pytest.mark.parametrize(
    ("words", "said", "answer"),
    [
        ("shop/", "an application (app.py): serving app:app, in shop/", "app in shop"),
        (
            "--chdir shop deep",
            "an application (wsgi.py): serving wsgi:application, in deep",
            "wsgi in deep",
        ),
        ("packed/", f"{MAKER} (packed/__init__.py): serving packed:create_app()", PACKED),
        ("both/", "an application (wsgi.py): serving wsgi:application, in both/", "wsgi in both"),
        ("--mount /=shop/app.py:app", "", "app in project"),
    ],
)
def test_a_folder_a_file_a_module(tmp_path: Path, words: str, said: str, answer: str) -> None:
    write(tmp_path / "project", PROJECT)
    with Started(*DEV, *words.split(), cwd=tmp_path / "project", reloads=False) as server:
        assert server.said.removeprefix("found ") == said
        assert server.get("/").body.decode().strip() == answer


def test_the_python_path_that_was_given_stays(tmp_path: Path) -> None:
    write(tmp_path, {"src/app.py": "import other\n" + APP, "lib/other.py": ""})
    with Started(*DEV, "--pythonpath", "lib", cwd=tmp_path, reloads=False) as server:
        assert server.get("/").body.startswith(b"app in")


def test_a_file_that_cannot_be_read_is_served_if_it_is_meant_to_be(tmp_path: Path) -> None:
    write(tmp_path, {"app.py": "def app(:\n", "other.py": "def app(:\n"})
    done = run_command("dev", "--autoreload=off", "--bind=127.0.0.1:0", cwd=tmp_path)
    said = "poorhttp: found a module, invalid syntax in line 1 (app.py): serving app\n"
    assert (done.returncode, said in done.stderr) == (4, True), done.stderr


# What is ambiguous, or nothing


ELSEWHERE = "elsewhere on Python's path"


def test_several_or_none(tmp_path: Path) -> None:
    end = "; name it: poorhttp dev package.module:application\n"
    complaint = fails(2, tmp_path)
    assert complaint.startswith(f"found nothing to serve in {tmp_path}")
    assert complaint.endswith(end)
    files = {"north.py": APP, "south/__init__.py": FACTORY, "east.py": "from north import app"}
    write(tmp_path, files)
    said = fails(2, tmp_path)
    assert "there are several applications: east:app, south:create_app();" in said
    assert "say which one, for example: poorhttp dev east:app" in said


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("shp/", 2, 'there is no folder shp/; did you mean "shop"?'),
        ("shp", 4, f'there is no module shp, in {{folder}} or {ELSEWHERE}; did you mean "shop"?'),
        ("shop/ap.py", 4, 'there is no file ap.py in {folder}/shop; did you mean "app.py"?'),
        ("shop/app.py:ap", 4, 'shop/app.py has no "ap"; did you mean "app"?'),
    ],
)
def test_a_target_that_is_not_there(tmp_path: Path, target: str, code: int, said: str) -> None:
    write(tmp_path, {"shop/app.py": APP})
    assert fails(code, tmp_path, target) == f"{said.format(folder=tmp_path)}\n"


def test_serve_finds_nothing_and_says_who_does(tmp_path: Path) -> None:
    write(tmp_path, {"app.py": APP})
    done = run_command("serve", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("; poorhttp dev finds it by itself\n")


# Afterwards


def test_a_save(tmp_path: Path) -> None:
    """The next version is found where the first one was, and so is one that was broken at first."""
    write(tmp_path, {"shop/src/app.py": "def create_app(:\n"})
    with Started(*DEV, "shop", cwd=tmp_path, tracebacks=True) as server:
        assert server.said.endswith("line 1 (src/app.py): serving app, in shop")
        assert server.get("/").status == 500
        save(tmp_path / "shop/src/app.py", APP)
        wait_for(lambda: server.get("/").body == b"app in shop", "the new version")


def test_a_configuration_that_names_a_target_later_is_heard(tmp_path: Path) -> None:
    write(tmp_path, {"app.py": APP, "other.py": APP, "x.ini": "[http]\n"})
    with Started(*DEV, "-c", "x.ini", cwd=tmp_path) as server:
        write(tmp_path, {"x.ini": "[http]\ntarget = other:app\n"})
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("the new version serves")
        assert server.get("/").body.startswith(b"other in")


def test_several_services_say_what_each_serves(tmp_path: Path) -> None:
    write(tmp_path, {"app.py": APP, "x.ini": "[http]\n[service:one]\nbind = 127.0.0.1:0\n"})
    assert "nothing to dev for service one" in fails(2, tmp_path, "-c", "x.ini")
