"""`log_config`: a configuration of Python's `logging` takes over both logs."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.logs.log_files import rotate
from tests.support.each_value import DIFFERENT, each_value
from tests.support.failure import says
from tests.support.forked_command import run_command
from tests.support.nobody import IS_ROOT, Nobody
from tests.testkit.server import ROOT, Server, wait_for

TALKER = "tests/apps/talker.py"

#: Requests on each of four connections, of which no line may be lost, and messages of one request.
ROUNDS, MESSAGES = 150, [f"m-{number}" for number in range(600)]

INI = """\
[loggers]
keys = root, access

[handlers]
keys = errors, requests

[formatters]
keys = all

[logger_root]
level = DEBUG
handlers = errors

[logger_access]
qualname = poorhttp.access
handlers = requests
propagate = 0

[handler_errors]
class = FileHandler
args = ("error.log",)
formatter = all

[handler_requests]
class = FileHandler
args = ("access.log",)

[formatter_all]
format = %(name)s %(levelname)s %(message)s
"""

FILE = "logging.FileHandler"
TABLE = {
    "version": 1,
    "formatters": {
        "server": {"format": "%(levelname)s %(worker)s %(request)s %(message)s"},
        "plain": {"format": "%(name)s %(message)s"},
    },
    "handlers": {
        "errors": {"class": FILE, "filename": "error.log", "formatter": "server"},
        "requests": {"class": FILE, "filename": "access.log"},
        "rest": {"class": FILE, "filename": "rest.log", "formatter": "plain"},
    },
    "loggers": {
        "poorhttp.error": {"handlers": ["errors"], "propagate": False},
        "poorhttp.access": {"handlers": ["requests"], "propagate": False},
    },
    "root": {"level": "INFO", "handlers": ["rest"]},
}

JSON = json.dumps(TABLE, indent=1)
TOML = "\n".join(
    f"{key} = {json.dumps(value, separators=(', ', ' = '))}" for key, value in TABLE.items()
)
FILES = {"log.json": JSON, "log.toml": TOML}


def serve(
    tmp_path: Path, mode: str, text: str, *options: str, file: str = "log.json", app: str = TALKER
) -> Server:
    """A server in a folder of its own, with a configuration."""
    (tmp_path / file).write_text(text)
    target = str(Path(app).resolve())
    access = () if "--access-log" in options else ("--access-log", "-")
    options = ("--log-config", file, *access, "--access-log-format", "%q", *options)
    return Server(target, mode, *options, cwd=tmp_path)


@pytest.mark.parametrize(("mode", "file"), each_value(DIFFERENT, FILES), indirect=["mode"])
def test_both_logs(mode: str, file: str, tmp_path: Path) -> None:
    """Records have worker and request; the application's own loggers are set up before it loads."""
    if file == "log.toml" and sys.version_info < (3, 11):
        (tmp_path / file).write_text(TOML)
        arguments = ("serve", TALKER, "--log-config", str(tmp_path / file))
        assert "TOML needs Python 3.11 or newer" in says(3, *arguments)
        return
    with serve(tmp_path, mode, FILES[file], file=file) as server:
        assert server.get("/raise?told").status == 500
        assert server.get("/logger?hello%20there").status == 200
        assert server.get("/say?spoken%0A").status == 200
        with server.connect() as connection:
            connection.send(b"nonsense\r\n\r\n")
            assert connection.response().status == 400
        errors, access = tmp_path / "error.log", tmp_path / "access.log"
        wait_for(lambda: access.read_text().count("\n") == 4, "the lines of the access log")
        wait_for(lambda: "refused with 400" in errors.read_text(), "the lines of the error log")
        assert server.output() == ""
        assert "request" not in server.log()
    queries = sorted(access.read_text().split("\n")[:-1])
    assert queries == ["", "?hello%20there", "?spoken%0A", "?told"]
    text = errors.read_text()
    assert re.search(r"^ERROR worker \d (\d+) request \1 GET /raise\?told: the appl", text, re.M)
    assert re.search(r"^ValueError: told$", text, re.MULTILINE)
    assert re.search(r"^INFO worker \d (\d+) request \1 of .*: refused with 400", text, re.M)
    assert re.search(r"^ERROR worker \d None spoken$", text, re.MULTILINE)
    rest = (tmp_path / "rest.log").read_text().splitlines()
    assert "talker loaded" in rest
    assert rest.count("talker hello there") == 1


def test_ini(mode: str, tmp_path: Path) -> None:
    with serve(tmp_path, mode, INI, file="log.ini") as server:
        server.get("/raise?told")
        server.get("/logger?hello")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reloaded" in (tmp_path / "error.log").read_text(), "the reload")
    text = (tmp_path / "error.log").read_text()
    assert "\ntalker WARNING hello\n" in text
    assert re.search(r"^poorhttp\.error ERROR request \d+ GET /raise\?told: ", text, re.MULTILINE)
    assert "poorhttp.error INFO reloaded: the new version serves\n" in text
    assert sorted((tmp_path / "access.log").read_text().split()) == ["?hello", "?told"]


@pytest.mark.each_mode
def test_everything_is_handed_on_before_the_end(mode: str, tmp_path: Path) -> None:
    with serve(tmp_path, mode, JSON) as server:
        connections = [server.connect() for _ in range(4)]
        for number in range(ROUNDS):
            for place, connection in enumerate(connections):
                connection.send_request("GET", f"/say?{place}-{number}%0A")
            for connection in connections:
                assert connection.response().status == 200
        # Of one request, more than the kernel keeps for a reader that has no turn meanwhile.
        target = f"/say-in-pieces?{'%0A'.join(MESSAGES)}%0A"
        assert connections[0].request("GET", target).status == 200
    expected = Counter(f"{place}-{number}" for place in range(4) for number in range(ROUNDS))
    access = (tmp_path / "access.log").read_text().splitlines()
    assert Counter(line[1:-3] for line in access if "m-" not in line) == expected
    errors = (tmp_path / "error.log").read_text().splitlines()
    said = [line.split()[-1] for line in errors if " None " in line and "stops" not in line]
    assert Counter(word for word in said if "m-" not in word) == expected
    assert [word for word in said if "m-" in word] == MESSAGES


def test_rotation(mode: str, tmp_path: Path) -> None:
    """USR1 has handlers open their files anew."""
    path = tmp_path / "access.log"
    with serve(tmp_path, mode, JSON, "--workers", "1") as server:
        server.get("/?before")
        wait_for(path.read_text, "the line")
        path.rename(tmp_path / "access.1")
        server.process.send_signal(signal.SIGUSR1)
        number = 0
        while not path.exists():
            assert server.get(f"/?{number}").status == 200
            number += 1
        server.get("/?after")
    lines = (tmp_path / "access.1").read_text() + path.read_text()
    assert lines.split() == ["?before", *(f"?{count}" for count in range(number)), "?after"]


#: In gevent, signal handlers run in the hub if that waits; this sends the signal from there.
ROTATES_IN_THE_HUB = """
import logging, os, signal
from gevent import get_hub, sleep

def application(environ, start_response):
    with logging.getLogger("poorhttp.access").handlers[0].lock:
        get_hub().loop.run_callback(os.kill, os.getpid(), signal.SIGUSR1)
        sleep(0.1)
    start_response("200 OK", [("Content-Length", "0")])
    return []
"""


def test_rotation_while_a_greenlet_has_the_lock(tmp_path: Path) -> None:
    app, path = tmp_path / "app.py", tmp_path / "access.log"
    app.write_text(ROTATES_IN_THE_HUB)
    options = ("--supervisor", "off")
    with serve(tmp_path, "gevent", JSON, *options, app=str(app)) as server:
        path.rename(tmp_path / "access.1")
        server.get("/?first")
        server.get("/?second")
        wait_for(path.exists, "the new file")
    assert "cannot be reopened" not in (tmp_path / "error.log").read_text()


@pytest.mark.parametrize("mode", ["threading", "gevent"])
def test_a_stop_whose_time_is_over(mode: str, tmp_path: Path) -> None:
    """What is on its way is handed on, from wherever the signal handler is called."""
    app = str(ROOT / "tests" / "apps" / "gate.py")
    options = ("--supervisor", "off", "--graceful-timeout", "0.2")
    log = tmp_path / "error.log"
    with serve(tmp_path, mode, JSON, *options, app=app) as server:
        server.connect().send_request("GET", "/wait?/never")
        wait_for(lambda: "entered /never\n" in log.read_text(), "the request")
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        cut_off = "stopped with requests still in flight: request 1 GET /wait?/never\n"
        assert cut_off in log.read_text()
        server.ended()


def test_refork(tmp_path: Path) -> None:
    """The thread that forwards the logs ends before workers are forked from its process."""
    options = ("--preload", "--workers", "2", "--refork-after", "5,5", "--drain-timeout", "0.1")
    answers = 0
    with serve(tmp_path, "threading", JSON, *options) as server:
        log = tmp_path / "error.log"

        def reforked() -> bool:
            nonlocal answers
            server.get("/logger?hello")
            answers += 1
            return log.read_text().count("reforked 2 workers") == 2

        wait_for(reforked, "two reforks")
    assert (tmp_path / "access.log").read_text().count("\n") == answers
    rest = (tmp_path / "rest.log").read_text().splitlines()
    assert rest.count("talker loaded") == 1
    assert rest.count("talker hello") == answers
    assert "not reforked" not in log.read_text()


def test_no_access_log_unless_asked_for(tmp_path: Path) -> None:
    with serve(tmp_path, "single", JSON, "--access-log", "off") as server:
        server.get("/?nothing")
    assert (tmp_path / "access.log").read_text() == ""


def test_logging_costs_nothing_without(tmp_path: Path) -> None:
    """It is a large module, and every process would pay for it."""
    app = tmp_path / "app.py"
    app.write_text(
        "import sys\n"
        "def application(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [str('logging' in sys.modules).encode()]\n"
    )
    with Server(str(app), "single") as server:
        assert server.get("/").body == b"False"


BAD_CLASS = {"version": 1, "handlers": {"x": {"class": "logging.NoHandler"}}}
BAD_PATH = {"version": 1, "handlers": {"x": {"class": FILE, "filename": "no/x.log"}}}


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("log.json", '{"version": 1,\n "root": }', "log.json:2: "),
        ("log.json", "[]", "log.json: holds no table"),
        ("log.json", "{}", "log.json: dictionary doesn't specify a version"),
        ("log.json", json.dumps(BAD_CLASS), "log.json: Unable to configure handler 'x': "),
        ("log.json", json.dumps(BAD_PATH), "No such file or directory"),
        ("log.ini", "[loggers]\nkeys = root\nnonsense\n", "log.ini:3: "),
        ("log.ini", "keys = root\n", "log.ini:1: "),
        ("log.ini", "[loggers]\nkeys = root\n", "log.ini: there is no section [formatters]"),
        ("log.ini", INI.replace("= root, ", "= "), "log.ini: [loggers]: keys lacks root"),
        ("log.ini", INI.replace("= root", "= x, root"), "log.ini: there is no section [logger_x]"),
        ("log.ini", INI.replace("class", "clas"), "log.ini: [handler_errors] has no class"),
        ("log.ini", INI.replace("File", "Fill"), "log.ini: [handler_errors]: No module named"),
        ("log.ini", INI.replace("DEBUG", "LOUD"), "log.ini: [logger_root]: Unknown level: 'LOUD'"),
        ("log.toml", 'version = 1\nroot = "\n', "line 2"),
        ("log.yaml", "version: 1\n", "ends in .ini, .json or .toml"),
        ("log.json", "\xff", "log.json is not UTF-8 text"),
        ("no.json", None, "cannot open no.json: No such file or directory\n"),
    ],
)
def test_mistakes(file: str, text: str | None, named: str, tmp_path: Path) -> None:
    if file == "log.toml" and sys.version_info < (3, 11):
        named = "TOML needs Python 3.11 or newer"
    if text is not None:
        (tmp_path / file).write_text(text, "latin-1")
    for command in ("serve", "check"):
        arguments = (command, str(Path(TALKER).resolve()), "--log-config", file)
        message = says(3, *arguments, cwd=tmp_path)
        assert message.startswith("poorhttp: --log-config: ")
        assert named in message, message
        assert message.count("\n") == 1


MEMORY = {"class": "logging.handlers.MemoryHandler", "capacity": 1, "target": "requests"}


def test_a_check_opens_no_handler(tmp_path: Path) -> None:
    """The server that runs may have the same files."""
    (tmp_path / "shop.py").write_text(PACKAGE.format(1))
    (tmp_path / "broken.py").write_text("import nosuch\n")
    (tmp_path / "ending.py").write_text("import os\nos._exit(0)\n")
    table = json.loads(JSON)
    table["handlers"] |= {"own": {"class": "shop.Own", "filename": "o"}, "memory": MEMORY}
    words = ("shop:application", "--bind", "127.0.0.1:0", "--log-config")
    for file, text in (("log.json", json.dumps(table)), ("log.ini", INI)):
        (tmp_path / file).write_text(text)
        done = run_command("check", *words, file, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.glob("*.log")) + list(tmp_path.glob("o"))
    for klass, why in (
        (FILE, "Unable to configure handler 'x': missing a required argument: 'filename'"),
        ("broken.Handler", "Unable to configure handler 'x': Cannot resolve 'broken.Handler'"),
        ("ending.Handler", "it has ended the process"),
    ):
        table = {"version": 1, "handlers": {"x": {"class": klass}}}
        (tmp_path / "wrong.json").write_text(json.dumps(table))
        message = says(3, "check", *words, "wrong.json", cwd=tmp_path)
        assert f"--log-config: wrong.json: {why}" in message


def test_reload_of_a_broken_file(tmp_path: Path) -> None:
    """What serves goes on."""
    with serve(tmp_path, "threading", JSON) as server:
        (tmp_path / "log.json").write_text("{")
        server.process.send_signal(signal.SIGHUP)
        errors = tmp_path / "error.log"
        wait_for(lambda: "not reloaded" in errors.read_text(), "the refusal")
        wait_for(lambda: "log.json:1: " in errors.read_text(), "what is wrong")
        server.get("/?still")
    assert (tmp_path / "access.log").read_text() == "?still\n"


#: Tells who makes it and who uses it.
HANDLER = """
import logging, os

class Who(logging.FileHandler):
    def __init__(self, filename):
        tell("made")
        super().__init__(filename)

    def emit(self, record):
        tell("used")
        super().emit(record)

def tell(what):
    with open("who", "a") as file:
        file.write(f"{what} {os.geteuid()}\\n")
"""


@pytest.mark.parametrize("options", [(), ("--preload",), ("--supervisor", "off")])
def test_handlers_run_as_the_user(nobody: Nobody, folder: Path, options: tuple[str, ...]) -> None:
    """What a configuration names is code and files of the application, not of root."""
    user = "nobody" if IS_ROOT else str(os.getuid())
    uid = pwd.getpwnam("nobody").pw_uid if IS_ROOT else os.getuid()
    folder.chmod(0o755)
    shutil.copy(TALKER, folder)
    (folder / "who.py").write_text(HANDLER)
    table = json.loads(json.dumps(TABLE).replace(FILE, "who.Who"))
    for handler in table["handlers"].values():
        handler["filename"] = str(folder / handler["filename"])
    (folder / "log.json").write_text(json.dumps(table))
    if IS_ROOT:
        os.chown(folder, uid, -1)
    app = str(folder / "talker.py")
    logs = ("--log-config", "log.json", "--access-log", "-", "--access-log-format", "%q")
    words = (*logs, "--error-log", "main.log", "--user", user, *options)
    env = {**nobody.env, "PYTHONPATH": f"{folder}:{nobody.env.get('PYTHONPATH', ROOT)}"}
    with Server(app, "threading", *words, env=env, cwd=folder) as server:
        assert server.get("/raise?told").status == 500
        assert server.get("/say?spoken%0A").status == 200
        text = folder / "error.log"
        for said in ("None spoken", "ValueError: told"):
            wait_for(lambda said=said: said in text.read_text(), said)  # type: ignore[misc]
        if "off" not in options:
            server.process.send_signal(signal.SIGHUP)
            main = folder / "main.log" if IS_ROOT else text
            wait_for(lambda: "reloaded: " in main.read_text(), "the line of the main process")
            if IS_ROOT:
                # It follows the rotation of its own file.
                rotate(server, main)
    who = set((folder / "who").read_text().split("\n")) - {""}
    assert who == {f"made {uid}", f"used {uid}"}
    names = ("error.log", "access.log", "rest.log", "who")
    assert {(folder / name).stat().st_uid for name in names} == {uid}
    assert sorted((folder / "access.log").read_text().split()) == ["?spoken%0A", "?told"]


#: A package with a handler, of which each process tells its version, and the application.
PACKAGE = """
import logging

VERSION = {}

class Own(logging.FileHandler):
    def emit(self, record):
        record.msg = f"{{VERSION}} {{record.msg}}"
        super().emit(record)

def application(environ, start_response):
    start_response("200 OK", [("Content-Length", str(len(str(VERSION))))])
    return [str(VERSION).encode()]
"""


@pytest.mark.parametrize("preload", [(), ("--preload",)])
@pytest.mark.parametrize(
    ("target", "module"), [("shop:application", "shop"), ("shop/app.py:application", "app")]
)
def test_a_handler_of_the_project(
    target: str, module: str, preload: tuple[str, ...], tmp_path: Path
) -> None:
    """It is found where the application is, and a reload loads it anew with the application."""
    folder, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    elsewhere.mkdir()
    code = folder / "shop" / ("__init__.py" if module == "shop" else "app.py")
    code.parent.mkdir(parents=True)
    code.write_text(PACKAGE.format(1))
    (folder / "log.json").write_text(JSON.replace(FILE, f"{module}.Own"))
    log = ("--log-config", "log.json", "--access-log", "-", "--access-log-format", "%q")
    words = ("--chdir", str(folder), *log, *preload)
    access = folder / "access.log"
    with Server(target, "forking", *words, cwd=elsewhere) as server:
        assert server.get("/?before").body == b"1"
        wait_for(lambda: access.read_text() == "1 ?before\n", "the line")
        # Another size: the time of the file may be that of the bytecode.
        code.write_text(PACKAGE.format(20))
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reloaded: " in (folder / "error.log").read_text(), "the reload")
        assert server.get("/?after").body == b"20"
        wait_for(lambda: access.read_text().endswith("20 ?after\n"), "the line")


#: What an application does to `logging`, on purpose or not.
CONFIGURED = {
    "dictConfig": "logging.config.dictConfig({'version': 1})",
    "root": (
        "logging.config.dictConfig({'version': 1, 'handlers': {'h': {'class': "
        "'logging.NullHandler'}}, 'root': {'handlers': ['h'], 'level': 'CRITICAL'}})"
    ),
    "fileConfig": (
        "logging.config.fileConfig(io.StringIO('[loggers]\\nkeys=root\\n[handlers]\\nkeys=\\n"
        "[formatters]\\nkeys=\\n[logger_root]\\nhandlers=\\n'))"
    ),
    "disable": "logging.disable()",
    "shutdown": "logging.shutdown()",
    "cleared": "logging.getLogger().handlers.clear()",
}

#: Both logs by a handler of the root; one that is closed has no target.
ROOT_ONLY = {
    "version": 1,
    "handlers": {
        "file": {"class": FILE, "filename": "all.log"},
        "memory": {"class": "logging.handlers.MemoryHandler", "capacity": 1, "target": "file"},
    },
    "root": {"level": "INFO", "handlers": ["memory"]},
}


@pytest.mark.parametrize(
    ("what", "moment", "own"), each_value(CONFIGURED, ["import", "request"], [True, False])
)
def test_a_configuration_of_the_application_silences_no_log(
    mode: str, what: str, moment: str, own: bool, tmp_path: Path
) -> None:
    code = CONFIGURED[what]
    at_import, at_request = (code, "pass") if moment == "import" else ("pass", code)
    (tmp_path / "app.py").write_text(
        f"import io, logging, logging.config, logging.handlers\n{at_import}\n"
        "def application(environ, start_response):\n"
        f"    {at_request}\n"
        "    if environ['QUERY_STRING'] == 'fail':\n"
        "        raise ValueError('expected')\n"
        "    start_response('200 OK', [('Content-Type', 'text/plain')])\n"
        "    return [b'answered']\n"
    )
    table = TABLE if own else ROOT_ONLY
    app = str(tmp_path / "app.py")
    with serve(tmp_path, mode, json.dumps(table), app=app) as server:
        for query in ("first", "second", "fail"):
            server.get(f"/?{query}")
        errors, access = ("error.log", "access.log") if own else ("all.log", "all.log")
        wait_for(lambda: "?second\n" in (tmp_path / access).read_text(), "the access log")
        wait_for(lambda: "application failed" in (tmp_path / errors).read_text(), "the error log")


def test_handlers_that_end_with_the_process(tmp_path: Path) -> None:
    """Those that the application has replaced are given up while locks of gevent still work."""
    app = tmp_path / "app.py"
    app.write_text(
        "import logging\n"
        "logging.getLogger().handlers.clear()\n"
        "def application(environ, start_response):\n"
        "    start_response('200 OK', [('Content-Length', '0')])\n"
        "    return []\n"
    )
    with serve(tmp_path, "gevent", JSON, app=str(app)) as server:
        assert server.get("/?last").status == 200
    assert (tmp_path / "access.log").read_text() == "?last\n"
