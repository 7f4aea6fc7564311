"""`flask dev`, with `--app` and `FLASK_APP`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from flask.cli import FlaskGroup, ScriptInfo

from poorhttp.plugins.discovery import flask_command, flask_files
from poorhttp.plugins.discovery.search import of_flask
from poorhttp.plugins.discovery.source.python import Sources
from tests.support.development import DEV, Started, save, write
from tests.support.installed import installed
from tests.testkit.server import ROOT, command, wait_for

SHOP = """
import os

def create_app(name="shop"):
    debug = os.environ.get("FLASK_DEBUG", "0") != "0"

    def app(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [f"{name} in {__name__}, debug {debug}".encode()]

    return app
"""
FLASKS = "from flask import Flask\ndef create_app(): return Flask(__name__)\n"
APP = "from shop import create_app\nsite = create_app('site')\n"

FLASK = (sys.executable, "-m", "flask")

#: A watcher, a fork server and a process that stands by take as long as all the rest.
OFF = {"POORHTTP_AUTORELOAD": "off"}


#: Starts the server that a process of Flask's command becomes, in a folder and with variables.
Become = Callable[..., Started]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "shop/__init__.py": SHOP,
        "shop/web.py": "from . import create_app\n",
        "src/inner.py": FLASKS,
        "wsgi.py": APP,
        "two.py": APP + "other = create_app()\n",
        "needs.py": "def create_app(name): pass\n",
    }
    write(tmp_path / "project", files)
    return tmp_path / "project"


@pytest.fixture
def become(monkeypatch: pytest.MonkeyPatch) -> Iterator[Become]:
    """The process is this one until it executes the server; its variables are restored."""
    before = dict(os.environ)

    def start(folder: Path, words: str, **more: str) -> Started:
        executed: list[str] = []

        def execute(_: str, command_line: list[str]) -> None:
            executed.extend(command_line)
            raise SystemExit

        os.environ.update(more)
        started_with = set(os.environ)
        monkeypatch.setattr(flask_files, "started_with", lambda: started_with)
        monkeypatch.setattr(os, "execv", execute)
        monkeypatch.setattr(sys, "argv", ["flask", *words.split()])
        monkeypatch.chdir(folder)
        group = FlaskGroup()
        group.add_command(flask_command.command)
        CliRunner().invoke(group, words.split(), catch_exceptions=False)
        at = executed.index("-m") + 1
        assert executed[at] == "poorhttp"
        return Started(*command(*executed[at + 1 :]), cwd=folder, env=more)

    yield start
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("--app shop.web:create_app(name='n:m') dev --threads 2", "n:m in shop, debug True"),
        ("dev 127.0.0.1:0 --threads=3", "site in shop, debug True"),
        ("--no-debug --app shop/web dev", "shop in shop, debug False"),
    ],
)
def test_what_is_served(project: Path, become: Become, words: str, answer: str) -> None:
    with become(project, words, **OFF) as server:
        assert server.get("/").body.decode() == answer


@pytest.mark.parametrize(
    ("named", "target", "folders"),
    [
        ("shop", "shop:create_app()", []),
        ("shop:create_app", "shop:create_app()", []),
        ("shop:create_app('north')", "shop:create_app('north')", []),
        ("shop/web.py", "shop/web.py:create_app()", []),
        ("shop/web", "shop/web.py:create_app()", []),
        ("../project/shop", "../project/shop/__init__.py:create_app()", []),
        ("wsgi", "wsgi:site", []),
        ("wsgi:site", "wsgi:site", []),
        ("inner", "inner:create_app()", ["src"]),
    ],
)
def test_the_target_of_a_name(
    project: Path, monkeypatch: pytest.MonkeyPatch, named: str, target: str, folders: list[str]
) -> None:
    monkeypatch.chdir(project)
    assert of_flask(Sources(), named) == (target, folders)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("--theads 2", 2, 'unknown option "--theads"; did you mean "--threads"?\n'),
        ("shop", 2, '"shop" is no address; write flask dev 8000, or 0.0.0.0:8000; the target is'),
        ("-c none.ini", 3, "none.ini: cannot be read"),
        ("--app two", 2, "there are several applications: two:site, two:other; say which one"),
        ("--app needs", 2, "needs.py: create_app() needs name: give it literals\n"),
    ],
)
def test_mistakes(
    project: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: int, said: str
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "argv", ["flask", "dev"])
    app = words.removeprefix("--app ") if words.startswith("--app") else None
    done = CliRunner().invoke(
        flask_command.command, [] if app else words.split(), obj=ScriptInfo(app_import_path=app)
    )
    assert (done.exit_code, done.stderr.count("\n")) == (code, 1), done.stderr
    assert done.stderr.startswith(f"poorhttp: {said}")


#: Shows variables, and whether Flask would debug, without its import.
READS = """
import os
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    names = os.environ.get("SHOWN", "").split()
    debug = os.environ.get("FLASK_DEBUG", "0") != "0"
    shown = " ".join(os.environ.get(name, "-") for name in names) + f" {debug} {__name__}"
    return [shown.encode()]
"""


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    """A project that shows variables, some of which are in files."""
    files = {
        "project/one.py": READS,
        "project/two.py": READS,
        ".env": "ABOVE=above\nHERE=above\n",
        "project/.flaskenv": "FLASK_APP=one.py # a comment\nBOTH=flaskenv\nexport F='${BOTH}'\n",
        "project/.env": "BOTH=env\nTAKEN=env\n",
    }
    write(tmp_path, files)
    return tmp_path / "project"


def wait_body(server: Started, body: str) -> None:
    wait_for(lambda: server.get("/").body.decode() == body, body[:100])


def test_files_of_variables(reader: Path, tmp_path: Path) -> None:
    """`.env` and `.flaskenv` have their latest values, and those of the environment stay."""
    # What an installation of ours says: where the command is.
    env = installed(tmp_path / "installed")
    env |= {"SHOWN": "BOTH F TAKEN ABOVE", "TAKEN": "environment"}
    with Started(*FLASK, "dev", cwd=reader, env=env) as server:
        assert server.get("/").body == b"env flaskenv environment - True one"
        save(reader / ".env", "BOTH=saved\nTAKEN=saved\n")
        wait_body(server, "saved flaskenv environment - True one")
        server.wait_log("reloading: .env\n")
        # The next one above counts, and what was a variable of the file is none.
        (reader / ".env").unlink()
        wait_body(server, "flaskenv flaskenv environment above True one")
        save(reader / ".flaskenv", "FLASK_APP=two:app\nFLASK_DEBUG=0\n")
        wait_body(server, "- - environment above False two")


@pytest.mark.parametrize(
    ("words", "extra", "answer"),
    [
        ("--env-file other dev", {}, "other flaskenv True one"),
        ("--app two --no-debug dev", {"FLASK_ENV_FILE": "other"}, "other flaskenv False two"),
        ("--app two dev", {"FLASK_SKIP_DOTENV": "1"}, "- - True two"),
    ],
)
def test_other_files_of_variables(
    reader: Path, become: Become, words: str, extra: dict[str, str], answer: str
) -> None:
    write(reader, {"other": "BOTH=other\n"})
    with become(reader, words, SHOWN="BOTH F", **(extra and OFF), **extra) as server:
        assert server.get("/").body.decode() == answer
        if not extra:
            save(reader / "other", "BOTH=saved\n")
            wait_body(server, "saved flaskenv True one")


def test_options_in_a_file_of_variables(reader: Path, become: Become) -> None:
    write(reader, {".env": "POORHTTP_THREADS=3\nPOORHTTP_MODE=single\n"})
    with become(reader, "dev", SHOWN="BOTH") as server:
        assert server.mode == "single"
        # If one is wrong, the version that goes on keeps its variables.
        save(reader / ".env", "POORHTTP_THREADS=many\nBOTH=saved\n")
        server.wait_log("not reloaded; the previous version keeps serving: POORHTTP_THREADS")
        save(reader / "one.py", READS.replace('= " "', '= "new" + " "'))
        wait_body(server, "newflaskenv True one")


LARGER = "".join(f"Q{n}=" + (f"${{Q{n - 1}}}" if n else "x" * 9) * 9 + "\n" for n in range(30))

#: Texts of files that cannot be used, and what is said of each.
UNUSABLE = {
    "A=a\0b\n": "'A' cannot be a variable of the environment",
    LARGER: "with each other's values in them, the variables are larger than 1024 MiB",
}


def test_files_that_cannot_be_used(reader: Path) -> None:
    """When they are saved: then the version before goes on."""
    with Started(*DEV, cwd=reader, env={"SHOWN": "BOTH"}) as server:
        for times, (text, said) in enumerate(UNUSABLE.items(), 1):
            save(reader / ".env", text)
            refused = f"not reloaded; the previous version keeps serving: {reader}/.env"
            server.wait_log(refused, times)
            server.wait_log(said)
            assert server.get("/").body == b"env True one"
        save(reader / ".env", f"BOTH={'x' * 100_000}\n")
        wait_body(server, "x" * 100_000 + " True one")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_variables_of_another_user(reader: Path, tmp_path: Path) -> None:
    """In a folder above, such as /tmp; not that of the owner of the project."""
    (reader / ".env").unlink()
    os.chown(tmp_path / ".env", 65534, -1)
    os.chown(reader / ".flaskenv", 65533, -1)
    os.chown(reader, 65533, -1)
    variables = {"SHOWN": "ABOVE BOTH"}
    with Started(*DEV, cwd=reader, env=variables, reloads=False) as server:
        assert server.get("/").body == b"- flaskenv True one"
        assert server.log().count(f"{tmp_path}/.env: not read, because it belongs to user ") == 1
    variables["FLASK_ENV_FILE"] = "../.env"
    with Started(*DEV, cwd=reader, env=variables, reloads=False) as server:
        assert server.get("/").body == b"above flaskenv True one"


def test_files_without_their_library(reader: Path, tmp_path: Path) -> None:
    write(tmp_path, {"hidden/dotenv.py": "raise ImportError('hidden')\n", "project/app.py": READS})
    variables = {"SHOWN": "BOTH", "PYTHONPATH": f"{tmp_path}/hidden:{ROOT}"}
    with Started(*DEV, cwd=reader, env=variables, reloads=False) as server:
        assert server.get("/").body.startswith(b"- True ")
        assert sum("python-dotenv" in line for line in server.log().splitlines()) == 1
