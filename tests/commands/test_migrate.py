"""`poorhttp migrate`: what becomes of files and command lines of other servers."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from poorhttp.config import loader
from poorhttp.config.other_servers.translations import worker_class
from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.migrate import sources
from poorhttp.plugins.setup.migrate.equivalents.plan import Plan, clean
from tests.support.forked_command import run_command
from tests.testkit.server import ROOT

CASES = ROOT / "tests" / "cases" / "migrate"

#: Files in tests/cases/migrate/sources; beside them, what they become, in `expected`.
SOURCES = sorted(path.name for path in (CASES / "sources").iterdir() if path.is_file())


def migrated(line: str, environ: dict[str, str] | None = None) -> Plan:
    """The plan for a command line."""
    return sources.read(shlex.split(line), environ or {})


def plan_of(
    folder: Path, name: str, text: str | bytes, environ: dict[str, str] | None = None
) -> Plan:
    """The plan for a file of this name and text, which is written to a folder."""
    # A Python file is run by the user nobody.
    folder.chmod(0o777)
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return sources.read([str(folder / name)], environ or {})


def options(plan: Plan) -> dict[str, list[str]]:
    """The options of a plan that our loader reads from its file."""
    plan.text("a test")
    return {name: planned.values for name, planned in plan.options.items()}


def flat(text: str) -> str:
    """A file of ours as one line, without the signs of comments."""
    return " ".join(text.replace("#", " ").split())


def check(plan: Plan, expected: str, *said: str) -> None:
    """Check the options of a plan, and what is said in its file.

    `expected` has words `name=value`, of which several are the values of one option, and `!name`
    for an option that the plan does not have.
    """
    found = options(plan)
    wanted: dict[str, list[str] | None] = {}
    for word in shlex.split(expected):
        name, equals, value = word.partition("=")
        if equals:
            wanted[name] = [*(wanted.get(name) or []), value]
        else:
            wanted[name.removeprefix("!")] = None
    assert {name: found.get(name) for name in wanted} == wanted
    text = flat(plan.text("a test"))
    for each in said:
        assert each in text


# Files


@pytest.mark.parametrize("name", SOURCES)
def test_a_file(name: str) -> None:
    """To renew what is expected: `SHOP_WORKERS=5 poorhttp migrate NAME` in the folder `sources`."""
    done = run_command("migrate", name, cwd=CASES / "sources", env={"SHOP_WORKERS": "5"})
    assert done.returncode == 0, done.stderr
    expected = CASES / "expected" / f"{name}.ini"
    assert done.stdout == expected.read_text(encoding="utf-8")
    (settings,) = loader.load({}, {}, str(expected))
    assert settings.target


# Command lines

#: With the options that they become.
LINES = [
    ("gunicorn app:app", "target=app:app bind=127.0.0.1:8000 mode=single"),
    ("gunicorn -w 4 app", "mode=forking workers=4"),
    ("gunicorn --threads 3 app", "mode=threading threads=3"),
    ("gunicorn -k gthread app", "mode=threading threads=1"),
    ("gunicorn -k gevent --worker-connections=50 app", "max_connections=50"),
    ("SCRIPT_NAME=/a gunicorn app", "mount=/a=app"),
    ("env SCRIPT_NAME=/a gunicorn app:x", "mount=/a=app:x"),
    ("gunicorn -e SCRIPT_NAME=/a/ -e B=1 app", "mount=/a=app env=B=1"),
    ("gunicorn -e SCRIPT_NAME=/a --paste p.ini", "mount=/a=paste:p.ini"),
    ("SCRIPT_NAME=/a waitress-serve app:x", "env=SCRIPT_NAME=/a target=app:x"),
    ("gunicorn --paste p.ini#shop", "target=paste:p.ini#shop"),
    ("uwsgi --http :80 --paste config:p.ini", "target=paste:p.ini"),
    ("gunicorn -b :9000 -b [::1]:9001 app", "bind=0.0.0.0:9000 bind=[::1]:9001"),
    ("gunicorn -b unix:/run/a.sock app", "trusted_proxies=unix socket_mode=0777"),
    ("waitress-serve --unix-socket=/s a:b", "socket_mode=0600"),
    ("uvicorn --interface wsgi --uds /s a:b", "socket_mode=0666"),
    ("gunicorn -b fd://3 app", "bind=fd:3"),
    ("gunicorn --certfile c --keyfile k app", "bind=https://127.0.0.1:8000"),
    ("gunicorn --certfile c --ca-certs a --cert-reqs 2 app", "tls_client_ca=a"),
    ("gunicorn --protocol uwsgi app", "bind=uwsgi://127.0.0.1:8000"),
    ("gunicorn --umask 007 app", "umask=0007"),
    ("gunicorn --proxy-protocol app", "proxy_protocol=on"),
    ("gunicorn --limit-request-l 5000 app", "max_request_line=5000"),
    ("gunicorn 'shop:make(\"a b\")'", "target='shop:make(\"a b\")'"),
    ("A=1 exec /opt/venv/bin/gunicorn app", "target=app"),
    ("python3 -m gunicorn app", "target=app"),
    ("sh -c 'cd /srv && gunicorn -w 2 app'", "workers=2 chdir=/srv"),
    ("uwsgi --http :80 -w app:app -p 3 -M", "mode=forking bind=0.0.0.0:80"),
    ("uwsgi --socket a.sock --module app --threads 4", "bind=uwsgi+unix:a.sock"),
    ("uwsgi --http-socket :80 --wsgi-file a.py --callable x", "target=a.py:x"),
    ("uwsgi --https :443,c.pem,k.pem -w a", "tls_certificate=c.pem tls_key=k.pem"),
    ("uwsgi -s :80 --protocol=http -w a --check-static pub", "static=/=pub"),
    ("uwsgi --http :80 -w a --req-logger file:r.log", "access_log=r.log"),
    ("waitress-serve app:app", "bind=0.0.0.0:8080 threads=4"),
    ("waitress-serve --port=80 --url-prefix=/a app:app", "mount=/a=app:app"),
    ("waitress-serve --unix-socket=/s --unix-socket-perms=600 a:b", "socket_mode=0600"),
    ("gunicorn --reload --reload-extra-file a.txt app", "reload_include=a.txt"),
    ("granian --uds /s --uds-permissions 660 a:b", "socket_mode=0660 bind=unix:/s"),
    ("uwsgi -s /s --chmod-socket=664 --umask 022 -w a", "socket_mode=0664"),
    ("uvicorn --interface wsgi --port 80 a:b", "bind=127.0.0.1:80 access_log=-"),
    ("uvicorn --factory --uds /s a:b", "target=a:b() bind=unix:/s"),
    ("uvicorn --ssl-certfile c a:b", "bind=https://127.0.0.1:8000"),
    ("granian --interface wsgi --blocking-threads 3 a:b", "threads=3"),
    ("granian --url-path-prefix /x --workers-max-rss 90 a:b", "max_rss=90M"),
    ("gunicorn --http-protocols h1 --http2-cleartext both a:b", "http2=off"),
    ("gunicorn --http-protocols h2,h1 --http2-cleartext upgrade a:b", "http2=tls"),
    ("gunicorn --http2-cleartext both --http-protocols h2 a:b", "http2=trusted"),
    (
        "gunicorn --http2-max-concurrent-streams 9 --http2-initial-window-size 70000 "
        "--http2-max-header-list-size 9000 a:b",
        "http2_max_streams=9 http2_stream_window=70000 max_request_header_size=9000",
    ),
    ("granian --interface wsgi --http 1 a:b", "http2=off"),
    (
        "granian --interface wsgi --http 2 --no-http2-adaptive-window "
        "--http2-initial-stream-window-size 70000 --http2-initial-connection-window-size 80000 "
        "--http2-max-concurrent-streams 9 --http2-max-headers-size 9000 a:b",
        "http2=on http2_stream_window=70000 http2_connection_window=80000 http2_max_streams=9 "
        "max_request_header_size=9000",
    ),
    ("uvicorn --interface wsgi --http2 a:b", "http2=on"),
    # The last of a repeated flag counts.
    ("gunicorn -w 2 -w 3 app", "workers=3"),
    ("uwsgi --http :80 -w a --harakiri 1 --harakiri 2", "request_timeout=2"),
    # Where the umask decides about a socket, or there is none.
    ("gunicorn -b unix:@shop app", "!socket_mode"),
    ("gunicorn -b 127.0.0.1:8000 app", "!socket_mode"),
    ("gunicorn -b unix:/run/a.sock --umask 007 app", "!socket_mode"),
    ("uwsgi -s /s -w a", "!socket_mode"),
    ("granian --uds /s a:b", "!socket_mode"),
    # Who is reached by others trusts nobody: `X-Forwarded-...` stay ordinary fields, as there.
    ("gunicorn -b 0.0.0.0:80 app", "!trusted_proxies !forwarded_headers"),
    ("hypercorn wsgi:a:b", "!mode"),
]

#: The same of servers of ASGI.
ASGI_LINES = [
    ("gunicorn -k uvicorn.workers.UvicornWorker -w 2 a:b", "workers=2"),
    ("gunicorn -k uvicorn_worker.UvicornWorker --asgi-lifespan off a:b", "asgi_lifespan=off"),
    ("gunicorn -k asgi --asgi-loop uvloop a:b", "asgi_loop=uvloop"),
    ("uvicorn --loop none --limit-concurrency 9 a:b", "asgi_loop=auto"),
    ("uvicorn --limit-concurrency 9 --lifespan on a:b", "asgi_concurrency=9"),
    ("uvicorn --root-path /x a:b", "mount=/x=a:b"),
    ("granian --interface asginl a:b", "asgi_lifespan=off"),
    ("hypercorn -b 0.0.0.0:80 -w 3 -k uvloop asgi:a:b", "asgi_loop=uvloop target=a:b"),
    ("hypercorn --certfile c --keyfile k a:b", "bind=https://127.0.0.1:8000"),
    ("daphne -b 0.0.0.0 -p 80 a:b", "bind=0.0.0.0:80"),
    ("gunicorn -k asgi --websocket-max-message-size 9 a:b", "websocket_max_message=9"),
    (
        "uvicorn --ws-max-size 9 --ws-ping-interval 1.5 --ws-per-message-deflate false a:b",
        "websocket_max_message=9 websocket_ping_interval=1.5 websocket_compression=off",
    ),
    ("uvicorn --ws-ping-timeout 7 a:b", "websocket_ping_timeout=7"),
    ("hypercorn --websocket-ping-interval 5 a:b", "websocket_ping_interval=5"),
    (
        "daphne --ping-interval 5 --ping-timeout 30 a:b",
        "websocket_ping_interval=5 websocket_ping_timeout=30",
    ),
    ("daphne -u /s a:b", "bind=unix:/s"),
]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_a_command_line(line: str, expected: str) -> None:
    check(migrated(line), expected)


@pytest.mark.parametrize(("line", "expected"), ASGI_LINES)
def test_a_command_line_of_asgi(line: str, expected: str) -> None:
    check(migrated(line), f"mode=asyncio {expected}")


@pytest.mark.parametrize(
    ("line", "expected", "said"),
    [
        # The port of a platform.
        ("gunicorn -b 0.0.0.0:$PORT app", "!bind", "the variable PORT names"),
        ("gunicorn -b :${PORT} app", "!bind", "the variable PORT names"),
        ("uwsgi --http :$PORT -w app", "!bind", "the variable PORT names"),
        ("waitress-serve --port=$PORT app:app", "!bind", "the variable PORT names"),
        ("uvicorn --host 0.0.0.0 --port $PORT app:app", "!bind", "the variable PORT names"),
        # Without `bind`, the port would be open to others.
        ("gunicorn -b 127.0.0.1:$PORT app", "!bind", "set POORHTTP_BIND to it"),
        # A variable of gunicorn that is no mount.
        ("gunicorn -e SCRIPT_NAME=/ app", "target=app !mount", "The application is at the root"),
        ("gunicorn -e SCRIPT_NAME=a app", "target=app !mount", "Write mount = /a=app instead of"),
        ("gunicorn -e SCRIPT_NAME='$P' app", "target=app !mount", "write mount = /PREFIX=app"),
        ("gunicorn -e SCRIPT_NAME=/a?b app", "target=app !mount", "mount"),
        # Neither WSGI nor ASGI.
        ("gunicorn -k aiohttp.GunicornWebWorker a:b", "", "ATTENTION:"),
        ("granian --interface rsgi a:b", "", "ATTENTION:"),
        ("gunicorn --backlog 99999999 app", "!backlog", "99999999 is out of range"),
        ("gunicorn --limit-request-line 0 app", "!max_request_line", ""),
    ],
)
def test_what_is_said_of_a_command_line(line: str, expected: str, said: str) -> None:
    check(migrated(line), expected, said)


#: Variables that are flags of servers, or that command lines name.
ENVIRON = {
    "GUNICORN_CMD_ARGS": "--workers=3 --log-level debug",
    "UWSGI_PROCESSES": "4",
    "GRANIAN_WORKERS": "5",
    "UVICORN_WORKERS": "6",
    "SECONDS": "9",
}


@pytest.mark.parametrize(
    ("line", "expected", "said"),
    [
        ("gunicorn --log-level error app", "workers=3 log_level=error", ""),
        ("uwsgi --http :80 -w app", "workers=4", ""),
        ("granian --interface wsgi a:b", "workers=5", ""),
        ("uvicorn a:b", "workers=6", ""),
        ("gunicorn -w '${N:-2}' -t '$SECONDS' app", "workers=2 request_timeout=9", ""),
        ("gunicorn --threads '$UNKNOWN' app", "!threads", "set POORHTTP_THREADS to it"),
    ],
)
def test_variables(line: str, expected: str, said: str) -> None:
    check(migrated(line, ENVIRON), expected, said)


def test_everybody_is_not_trusted() -> None:
    """Here, whoever is trusted names the client's address."""
    plan = migrated("gunicorn --forwarded-allow-ips '*' app")
    trusted = options(plan)["trusted_proxies"]
    assert "0.0.0.0/0" not in trusted
    assert "10.0.0.0/8" in trusted
    assert plan.warnings


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.service", "[Service]\nEnvironment=SCRIPT_NAME=/a\nExecStart=/usr/bin/gunicorn app\n"),
        ("Dockerfile", 'FROM x\nENV SCRIPT_NAME=/a\nCMD ["gunicorn", "app"]\n'),
        ("Dockerfile", 'FROM x\nENV GUNICORN_CMD_ARGS="-e SCRIPT_NAME=/a"\nCMD gunicorn app\n'),
        ("Procfile", "web: SCRIPT_NAME=/a gunicorn app\n"),
        ("run.sh", "export SCRIPT_NAME=/a\nexec gunicorn app\n"),
        ("gunicorn.conf.py", "raw_env = ['B=1', 'SCRIPT_NAME=/a']\nwsgi_app = 'app'\n"),
    ],
)
def test_a_variable_of_gunicorn_is_a_mount(name: str, text: str, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, name, text)
    check(plan, f"mount=/a=app !target {'env=B=1' if 'B=1' in text else '!env'}")
    assert "# target =" not in plan.text("a test")


def test_eventlet_is_what_the_command_line_says_of_it() -> None:
    with pytest.raises(ValueError, match="eventlet") as raised:
        worker_class("eventlet")
    advice = str(raised.value).partition("eventlet; ")[2].partition(" (")[0]
    for name in ("eventlet", "gunicorn.workers.geventlet.EventletWorker", "egg:gunicorn#eventlet"):
        plan = migrated(f"gunicorn -k {name} app")
        assert "mode" not in options(plan)
        assert advice.replace("gevent", "mode = gevent", 1) in plan.warnings[0]


def test_a_log_format_of_gunicorn() -> None:
    line = "gunicorn --access-logfile - --access-logformat '%(h)s %({X-A}i)s %(M)s %(L)s %(z)s' app"
    plan = migrated(line)
    said = "%(L)s: seconds with decimals there; %D has microseconds"
    check(plan, "access_log_format='%h %{X-A}i %{ms}T %D -'", said)
    assert "%(z)s: not known here" in " ".join(plan.options["access_log_format"].comments)


@pytest.mark.parametrize(
    "line",
    [
        "gunicorn -w 2 -w 2 app",
        "gunicorn -e A=1 -e SCRIPT_NAME=/a app",
        "gunicorn --paste a.ini app",
        "gunicorn app two two",
        "uwsgi --http :80 -w a --master --master --wsgi-file b.py",
        "waitress-serve --unix-socket /s --port 80 a:b",
        *SOURCES,
    ],
)
def test_each_setting_is_counted_once(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows from the place of a server (PORT, sockets of systemd) is not counted."""
    monkeypatch.chdir(CASES / "sources")
    plan = migrated(line)
    read, carried, explained = plan.counts()
    text = plan.text("a test")
    end = text.partition("# What has no equivalent")[2]
    assert read == carried + explained
    assert f"of {read} settings" in text
    written = [each for each, _ in plan.explanations if each is not None and each.is_written]
    assert all(f"{clean(each.place)}: "[:60] in " ".join(end.split()) for each in written)
    shown = len({id(each) for each in written}.difference(plan._carried))
    assert (shown, any("LISTEN_FDS" in each.text for each in written)) == (explained, False)


# Files of a command line, and what files do


def test_the_command_line_takes_precedence_over_its_file(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text('workers = 2\nbind = "0.0.0.0:81"\nloglevel = "debug"\n')
    plan = migrated(f"gunicorn -c {tmp_path}/conf.py -w 7 app")
    check(plan, "workers=7 bind=0.0.0.0:81 log_level=debug", "conf.py:1: workers = 2")


def test_a_file_of_uwsgi_on_its_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.ini").write_text("[uwsgi]\nhttp = :81\n[two]\nmodule = two:app\nhttp = :82\n")
    check(migrated(f"uwsgi --ini {tmp_path}/a.ini -w one"), "target=one")
    check(migrated(f"uwsgi {tmp_path}/a.ini:two"), "target=two:app")


@pytest.mark.parametrize(
    ("module", "target"),
    [
        ("DEBUG = True\n", "start.py"),
        ("from flask import Flask as application\n", "shop.conf"),
        ("from other import *\n", "shop.conf"),
        (None, "shop.conf"),
    ],
)
def test_a_module_of_uwsgi_beside_a_file(module: str | None, target: str, tmp_path: Path) -> None:
    """uWSGI serves the file if the module has no application."""
    (tmp_path / "src" / "shop").mkdir(parents=True)
    if module is not None:
        (tmp_path / "src" / "shop" / "conf.py").write_text(module)
    text = f"[uwsgi]\nhttp = :80\nchdir = {tmp_path}\npythonpath = src\nmodule = shop.conf\n"
    (tmp_path / "uwsgi.ini").write_text(f"{text}wsgi-file = start.py\n")
    for source in ([str(tmp_path / "uwsgi.ini")], ["uwsgi", "--ini", str(tmp_path / "uwsgi.ini")]):
        plan = sources.read(source, {})
        check(plan, f"target={target}")
        said = flat(plan.text("a test"))
        why = f"uWSGI finds no application in {tmp_path}/src/shop/conf.py, and serves wsgi-file"
        assert (why in said) is (target == "start.py")
        assert ("in that case, write target = start.py" in said) is (target != "start.py")


CONDITIONS = """[uwsgi]
module = app
if-env = STAGE
procname-prefix = %(_)
endif =
if-exists = %p
harakiri = 5
endif =
if-not-file = %p
harakiri = 6
endif =
http = :80
"""
FAILING = "import none_such\nbind = ':80'\nworkers = none_such.N\nloglevel = 'debug'\n"
NAMING = "import os\nworkers = int(os.environ['N'])\nthreads = len(os.environ.get('SEC' 'RET', ''))"
SPECIFIERS = (
    "[Service]\nExecStart=gunicorn --bind unix:%t/%p.sock --pid /run/%i.pid --name a%%b app\n"
)
ARGUMENTS = 'FROM x\nENV GUNICORN_CMD_ARGS="--bind :81 --workers 2"\nCMD gunicorn app\n'


@pytest.mark.parametrize(
    ("name", "text", "environ", "expected", "said"),
    [
        ("a.ini", CONDITIONS, {"STAGE": "test"}, "proc_name=test request_timeout=5", ""),
        ("a.ini", CONDITIONS, {}, "!proc_name", "The condition if-env = STAGE did not hold here"),
        (
            "shop.service",
            SPECIFIERS,
            {},
            "bind=unix:/run/shop.sock !pidfile",
            "systemd replaces %i",
        ),
        ("Dockerfile", ARGUMENTS, {}, "bind=0.0.0.0:81", ""),
        ("gunicorn.conf.py", FAILING, {}, "bind=0.0.0.0:80", "conf.py:1: import none_such"),
        ("gunicorn.conf.py", FAILING, {}, "log_level=debug", "conf.py:3: workers = none_such.N"),
        # The names of variables that a file has in it are looked for, and these are passed.
        ("gunicorn.conf.py", NAMING, {"N": "6", "SECRET": "123"}, "workers=6 !threads", ""),
    ],
)
def test_what_a_file_does(
    name: str, text: str, environ: dict[str, str], expected: str, said: str, tmp_path: Path
) -> None:
    check(plan_of(tmp_path, name, text, environ), expected, said)


# Arguments and exit codes


def test_output_is_written_and_not_replaced(tmp_path: Path) -> None:
    words = ("migrate", "-o", "shop.ini", "--", "gunicorn", "-w", "2", "app:app")
    done = run_command(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("shop.ini written: 2 of 2 settings of gunicorn carried over")
    before = (tmp_path / "shop.ini").read_text()
    again = run_command(*words, cwd=tmp_path)
    assert again.returncode == 3
    assert "--force replaces it" in again.stderr
    assert (tmp_path / "shop.ini").read_text() == before
    forced = ("migrate", "--force", "--output=shop.ini", "gunicorn", "-w", "3", "app:app")
    assert run_command(*forced, cwd=tmp_path).returncode == 0
    assert "workers = 3" in (tmp_path / "shop.ini").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["shop.ini"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ((), 2, "nothing to migrate"),
        (("--wrong", "x"), 2, 'unknown option "--wrong"'),
        (("-o",), 2, "needs a value"),
        (("no-such-file",), 3, "no-such-file: cannot be read"),
        (("-o", "no/such/folder/a.ini", "--", "gunicorn", "a"), 3, "cannot be written"),
        (("--", "apache2", "-D", "x"), 3, "starts no known server"),
        (("gunicorn", "-w"), 3, "-w has no value"),
        (("/",), 3, "cannot be read"),
    ],
)
def test_mistakes(words: tuple[str, ...], code: int, text: str, tmp_path: Path) -> None:
    done = run_command("migrate", *words, cwd=tmp_path)
    assert done.returncode == code
    assert text in done.stderr
    assert "internal error" not in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("paste.ini", "[server:main]\nuse = egg:waitress#main\n", "poorhttp serve paste:"),
        ("ours.ini", "[http]\ntarget = a\n", "is a file of poorhttp already"),
        ("notes.txt", "buy milk\n", "is not a known kind of file"),
        ("Procfile", "worker: celery\n", "none of its processes is a known server"),
        ("a.service", "[Service]\nExecStart=/bin/true\n", "starts no known server"),
        ("Dockerfile", "FROM x\n", "neither CMD nor ENTRYPOINT"),
        ("uwsgi.ini", "[uwsgi]\n", "no section [uwsgi]"),
        ("gunicorn.conf.py", "bind = \n", "SyntaxError"),
        ("a.sh", "echo 'gunicorn\n", "no line of it starts a server"),
    ],
)
def test_files_that_are_something_else(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        plan_of(tmp_path, name, text)
    assert message in str(raised.value)
