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

#: The environment in which they are migrated.
ENVIRONMENT = {"SHOP_WORKERS": "5"}


def migrated(line: str, environ: dict[str, str] | None = None) -> Plan:
    """The plan for a command line."""
    return sources.read(shlex.split(line), environ or {})


def options(plan: Plan) -> dict[str, list[str]]:
    """The options of a plan that our loader reads from its file."""
    plan.text("a test")
    return {name: planned.values for name, planned in plan.options.items()}


def flat(plan: Plan) -> str:
    """The file of a plan as one line, without the signs of comments."""
    return " ".join(plan.text("a test").replace("#", " ").split())


# Files


@pytest.mark.parametrize("name", SOURCES)
def test_a_file(name: str) -> None:
    """To renew what is expected: `SHOP_WORKERS=5 poorhttp migrate NAME` in the folder `sources`."""
    done = run_command("migrate", name, cwd=CASES / "sources", env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    expected = CASES / "expected" / f"{name}.ini"
    assert done.stdout == expected.read_text(encoding="utf-8")
    (settings,) = loader.load({}, {}, str(expected))
    assert settings.target


# Command lines


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gunicorn app:app", {"target": "app:app", "bind": "127.0.0.1:8000", "mode": "single"}),
        ("gunicorn -w 4 app", {"mode": "forking", "workers": "4"}),
        ("gunicorn --threads 3 app", {"mode": "threading", "threads": "3"}),
        ("gunicorn -k gthread app", {"mode": "threading", "threads": "1"}),
        ("gunicorn -k gevent --worker-connections=50 app", {"max_connections": "50"}),
        ("SCRIPT_NAME=/a gunicorn app", {"mount": "/a=app"}),
        ("env SCRIPT_NAME=/a gunicorn app:x", {"mount": "/a=app:x"}),
        ("gunicorn -e SCRIPT_NAME=/a/ -e B=1 app", {"mount": "/a=app", "env": "B=1"}),
        ("gunicorn -e SCRIPT_NAME=/a --paste p.ini", {"mount": "/a=paste:p.ini"}),
        ("SCRIPT_NAME=/a waitress-serve app:x", {"env": "SCRIPT_NAME=/a", "target": "app:x"}),
        ("gunicorn --paste p.ini#shop", {"target": "paste:p.ini#shop"}),
        ("uwsgi --http :80 --paste config:p.ini", {"target": "paste:p.ini"}),
        ("gunicorn -b :9000 -b [::1]:9001 app", {"bind": ["0.0.0.0:9000", "[::1]:9001"]}),
        ("gunicorn -b unix:/run/a.sock app", {"trusted_proxies": "unix"}),
        ("gunicorn -b unix:/run/a.sock app", {"socket_mode": "0777"}),
        ("waitress-serve --unix-socket=/s a:b", {"socket_mode": "0600"}),
        ("uvicorn --interface wsgi --uds /s a:b", {"socket_mode": "0666"}),
        ("gunicorn -b fd://3 app", {"bind": "fd:3"}),
        ("gunicorn --certfile c --keyfile k app", {"bind": "https://127.0.0.1:8000"}),
        ("gunicorn --certfile c --ca-certs a --cert-reqs 2 app", {"tls_client_ca": "a"}),
        ("gunicorn --protocol uwsgi app", {"bind": "uwsgi://127.0.0.1:8000"}),
        ("gunicorn --umask 007 app", {"umask": "0007"}),
        ("gunicorn --proxy-protocol app", {"proxy_protocol": "on"}),
        ("gunicorn --limit-request-l 5000 app", {"max_request_line": "5000"}),
        ("gunicorn 'shop:make(\"a b\")'", {"target": 'shop:make("a b")'}),
        ("A=1 exec /opt/venv/bin/gunicorn app", {"target": "app"}),
        ("python3 -m gunicorn app", {"target": "app"}),
        ("sh -c 'cd /srv && gunicorn -w 2 app'", {"workers": "2", "chdir": "/srv"}),
        ("uwsgi --http :80 -w app:app -p 3 -M", {"mode": "forking", "bind": "0.0.0.0:80"}),
        ("uwsgi --socket a.sock --module app --threads 4", {"bind": "uwsgi+unix:a.sock"}),
        ("uwsgi --http-socket :80 --wsgi-file a.py --callable x", {"target": "a.py:x"}),
        ("uwsgi --https :443,c.pem,k.pem -w a", {"tls_certificate": "c.pem", "tls_key": "k.pem"}),
        ("uwsgi -s :80 --protocol=http -w a --check-static pub", {"static": "/=pub"}),
        ("uwsgi --http :80 -w a --req-logger file:r.log", {"access_log": "r.log"}),
        ("waitress-serve app:app", {"bind": "0.0.0.0:8080", "threads": "4"}),
        ("waitress-serve --port=80 --url-prefix=/a app:app", {"mount": "/a=app:app"}),
        ("waitress-serve --unix-socket=/s --unix-socket-perms=600 a:b", {"socket_mode": "0600"}),
        ("gunicorn --reload --reload-extra-file a.txt app", {"reload_include": "a.txt"}),
        ("granian --uds /s --uds-permissions 660 a:b", {"socket_mode": "0660", "bind": "unix:/s"}),
        ("uwsgi -s /s --chmod-socket=664 --umask 022 -w a", {"socket_mode": "0664"}),
        ("uvicorn --interface wsgi --port 80 a:b", {"bind": "127.0.0.1:80", "access_log": "-"}),
        ("uvicorn --factory --uds /s a:b", {"target": "a:b()", "bind": "unix:/s"}),
        ("uvicorn --ssl-certfile c a:b", {"bind": "https://127.0.0.1:8000"}),
        ("granian --interface wsgi --blocking-threads 3 a:b", {"threads": "3"}),
        ("granian --url-path-prefix /x --workers-max-rss 90 a:b", {"max_rss": "90M"}),
        ("gunicorn --http-protocols h1 --http2-cleartext both a:b", {"http2": "off"}),
        ("gunicorn --http-protocols h2,h1 --http2-cleartext upgrade a:b", {"http2": "tls"}),
        ("gunicorn --http2-cleartext both --http-protocols h2 a:b", {"http2": "trusted"}),
        (
            "gunicorn --http2-max-concurrent-streams 9 --http2-initial-window-size 70000 "
            "--http2-max-header-list-size 9000 a:b",
            {
                "http2_max_streams": "9",
                "http2_stream_window": "70000",
                "max_request_header_size": "9000",
            },
        ),
        ("granian --interface wsgi --http 1 a:b", {"http2": "off"}),
        (
            "granian --interface wsgi --http 2 --no-http2-adaptive-window "
            "--http2-initial-stream-window-size 70000 --http2-initial-connection-window-size 80000 "
            "--http2-max-concurrent-streams 9 --http2-max-headers-size 9000 a:b",
            {
                "http2": "on",
                "http2_stream_window": "70000",
                "http2_connection_window": "80000",
                "http2_max_streams": "9",
                "max_request_header_size": "9000",
            },
        ),
        ("uvicorn --interface wsgi --http2 a:b", {"http2": "on"}),
    ],
)
def test_a_command_line(line: str, expected: dict[str, str | list[str]]) -> None:
    found = options(migrated(line))
    for name, value in expected.items():
        assert found.get(name) == (value if isinstance(value, list) else [value])


@pytest.mark.parametrize(
    "line",
    [
        "gunicorn -b unix:@shop app",
        "gunicorn -b 127.0.0.1:8000 app",
        "gunicorn -b unix:/run/a.sock --umask 007 app",
        "uwsgi -s /s -w a",
        "granian --uds /s a:b",
    ],
)
def test_the_umask_decides_about_a_socket(line: str) -> None:
    assert "socket_mode" not in options(migrated(line))


def test_the_last_of_a_repeated_flag_counts() -> None:
    assert options(migrated("gunicorn -w 2 -w 3 app"))["workers"] == ["3"]
    assert options(migrated("uwsgi --http :80 -w a --harakiri 1 --harakiri 2"))[
        "request_timeout"
    ] == ["2"]


def test_everybody_is_not_trusted() -> None:
    """Here, whoever is trusted names the client's address."""
    plan = migrated("gunicorn --forwarded-allow-ips '*' app")
    trusted = options(plan)["trusted_proxies"]
    assert "0.0.0.0/0" not in trusted
    assert "10.0.0.0/8" in trusted
    assert plan.warnings


def test_addresses_that_others_reach_trust_nobody() -> None:
    """Then `X-Forwarded-...` stay ordinary fields, as they are under gunicorn."""
    found = options(migrated("gunicorn -b 0.0.0.0:80 app"))
    assert "trusted_proxies" not in found
    assert "forwarded_headers" not in found


@pytest.mark.parametrize(
    "line",
    [
        "gunicorn -b 0.0.0.0:$PORT app",
        "gunicorn -b :${PORT} app",
        "uwsgi --http :$PORT -w app",
        "waitress-serve --port=$PORT app:app",
        "uvicorn --host 0.0.0.0 --port $PORT app:app",
    ],
)
def test_the_port_of_a_platform(line: str) -> None:
    plan = migrated(line)
    assert "bind" not in options(plan)
    assert "the variable PORT names" in flat(plan)


def test_the_port_of_this_machine_stays_there() -> None:
    """Without `bind`, the port would be open to others."""
    plan = migrated("gunicorn -b 127.0.0.1:$PORT app")
    assert "bind" not in options(plan)
    assert "set POORHTTP_BIND to it" in flat(plan)


def test_variables_of_a_shell() -> None:
    line = "gunicorn -w '${N:-3}' --threads '$UNKNOWN' -t '$SECONDS' app"
    plan = migrated(line, {"SECONDS": "9"})
    assert options(plan)["workers"] == ["3"]
    assert "set POORHTTP_THREADS to it" in flat(plan)


def test_variables_that_are_flags(tmp_path: Path) -> None:
    environ = {"GUNICORN_CMD_ARGS": "--workers=3 --log-level debug", "UWSGI_PROCESSES": "4"}
    found = options(migrated("gunicorn --log-level error app", environ))
    assert (found["workers"], found["log_level"]) == (["3"], ["error"])
    assert options(migrated("uwsgi --http :80 -w app", environ))["workers"] == ["4"]
    environ = {"GRANIAN_WORKERS": "5", "UVICORN_WORKERS": "6"}
    assert options(migrated("granian --interface wsgi a:b", environ))["workers"] == ["5"]
    assert options(migrated("uvicorn a:b", environ))["workers"] == ["6"]
    text = 'FROM x\nENV GUNICORN_CMD_ARGS="--bind :81 --workers 2"\nCMD gunicorn app\n'
    (tmp_path / "Dockerfile").write_text(text)
    assert options(sources.read([str(tmp_path / "Dockerfile")], {}))["bind"] == ["0.0.0.0:81"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gunicorn -k uvicorn.workers.UvicornWorker -w 2 a:b", {"workers": "2"}),
        (
            "gunicorn -k uvicorn_worker.UvicornWorker --asgi-lifespan off a:b",
            {"asgi_lifespan": "off"},
        ),
        ("gunicorn -k asgi --asgi-loop uvloop a:b", {"asgi_loop": "uvloop"}),
        ("uvicorn --loop none --limit-concurrency 9 a:b", {"asgi_loop": "auto"}),
        ("uvicorn --limit-concurrency 9 --lifespan on a:b", {"asgi_concurrency": "9"}),
        ("uvicorn --root-path /x a:b", {"mount": "/x=a:b"}),
        ("granian --interface asginl a:b", {"asgi_lifespan": "off"}),
        (
            "hypercorn -b 0.0.0.0:80 -w 3 -k uvloop asgi:a:b",
            {"asgi_loop": "uvloop", "target": "a:b"},
        ),
        ("hypercorn --certfile c --keyfile k a:b", {"bind": "https://127.0.0.1:8000"}),
        ("daphne -b 0.0.0.0 -p 80 a:b", {"bind": "0.0.0.0:80"}),
        ("gunicorn -k asgi --websocket-max-message-size 9 a:b", {"websocket_max_message": "9"}),
        (
            "uvicorn --ws-max-size 9 --ws-ping-interval 1.5 --ws-per-message-deflate false a:b",
            {
                "websocket_max_message": "9",
                "websocket_ping_interval": "1.5",
                "websocket_compression": "off",
            },
        ),
        ("uvicorn --ws-ping-timeout 7 a:b", {"websocket_ping_timeout": "7"}),
        ("hypercorn --websocket-ping-interval 5 a:b", {"websocket_ping_interval": "5"}),
        (
            "daphne --ping-interval 5 --ping-timeout 30 a:b",
            {"websocket_ping_interval": "5", "websocket_ping_timeout": "30"},
        ),
        ("daphne -u /s a:b", {"bind": "unix:/s"}),
    ],
)
def test_asgi_servers(line: str, expected: dict[str, str]) -> None:
    found = options(migrated(line))
    for name, value in {"mode": "asyncio", **expected}.items():
        assert found.get(name) == [value]


def test_what_is_neither_wsgi_nor_asgi() -> None:
    for line in ("gunicorn -k aiohttp.GunicornWebWorker a:b", "granian --interface rsgi a:b"):
        assert "# ATTENTION:" in migrated(line).text("a test")
    assert options(migrated("hypercorn wsgi:a:b")).get("mode") is None


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
    tmp_path.chmod(0o755)
    (tmp_path / name).write_text(text)
    plan = sources.read([str(tmp_path / name)], {})
    found = options(plan)
    assert found["mount"] == ["/a=app"]
    assert "target" not in found
    assert "SCRIPT_NAME" not in " ".join(found.get("env", []))
    assert "# target =" not in plan.text("a test")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("/", "The application is at the root"),
        ("a", "Write mount = /a=app instead of target"),
        ("$PREFIX", "write mount = /PREFIX=app with it"),
        ("/a?b", "mount"),
    ],
)
def test_a_variable_of_gunicorn_that_is_no_mount(value: str, why: str) -> None:
    plan = migrated(f"gunicorn -e SCRIPT_NAME='{value}' app")
    assert options(plan)["target"] == ["app"]
    assert "mount" not in options(plan)
    assert why in flat(plan)


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
    assert options(plan)["access_log_format"] == ["%h %{X-A}i %{ms}T %D -"]
    assert "%(L)s: seconds with decimals there; %D has microseconds" in flat(plan)
    assert "%(z)s: not known here" in " ".join(plan.options["access_log_format"].comments)


def test_a_value_that_ours_refuses_is_explained() -> None:
    plan = migrated("gunicorn --backlog 99999999 --limit-request-line 0 app")
    found = options(plan)
    assert "backlog" not in found
    assert "max_request_line" not in found
    text = flat(plan)
    assert "99999999 is out of range" in text


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


# The file of a command line


def test_the_command_line_takes_precedence_over_its_file(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text('workers = 2\nbind = "0.0.0.0:81"\nloglevel = "debug"\n')
    plan = migrated(f"gunicorn -c {tmp_path}/conf.py -w 7 app")
    found = options(plan)
    assert (found["workers"], found["bind"], found["log_level"]) == (
        ["7"],
        ["0.0.0.0:81"],
        ["debug"],
    )
    assert "conf.py:1: workers = 2" in flat(plan)


def test_a_file_of_uwsgi_on_its_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.ini").write_text("[uwsgi]\nhttp = :81\n[two]\nmodule = two:app\nhttp = :82\n")
    assert options(migrated(f"uwsgi --ini {tmp_path}/a.ini -w one"))["target"] == ["one"]
    assert options(migrated(f"uwsgi {tmp_path}/a.ini:two"))["target"] == ["two:app"]


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
        assert options(plan)["target"] == [target]
        why = f"uWSGI finds no application in {tmp_path}/src/shop/conf.py, and serves wsgi-file"
        assert (why in flat(plan)) is (target == "start.py")
        assert ("in that case, write target = start.py" in flat(plan)) is (target != "start.py")


def test_conditions_of_uwsgi(tmp_path: Path) -> None:
    file = tmp_path / "a.ini"
    text = f"""[uwsgi]
module = app
if-env = STAGE
procname-prefix = %(_)
endif =
if-exists = {file}
harakiri = 5
endif =
if-not-file = {file}
harakiri = 6
endif =
http = :80
"""
    file.write_text(text)
    found = options(sources.read([str(file)], {"STAGE": "test"}))
    assert found["proc_name"] == ["test"]
    assert found["request_timeout"] == ["5"]
    plan = sources.read([str(file)], {})
    assert "proc_name" not in options(plan)
    assert "The condition if-env = STAGE did not hold here" in flat(plan)


def test_specifiers_of_systemd(tmp_path: Path) -> None:
    line = "ExecStart=gunicorn --bind unix:%t/%p.sock --pid /run/%i.pid --name a%%b app"
    (tmp_path / "shop.service").write_text(f"[Service]\n{line}\n")
    plan = sources.read([str(tmp_path / "shop.service")], {})
    assert options(plan)["bind"] == ["unix:/run/shop.sock"]
    assert "pidfile" not in options(plan)
    assert "systemd replaces %i" in flat(plan)


# What a Python file does


def python_file(folder: Path, text: str, environ: dict[str, str] | None = None) -> Plan:
    """The plan for a gunicorn.conf.py."""
    folder.chmod(0o755)
    path = folder / "gunicorn.conf.py"
    path.write_text(text, encoding="utf-8")
    return sources.read([str(path)], environ or {})


def test_statements_that_fail_are_explained(tmp_path: Path) -> None:
    text = "import no_such_module\nbind = ':80'\nworkers = no_such_module.N\nloglevel = 'debug'\n"
    plan = python_file(tmp_path, text)
    assert options(plan)["bind"] == ["0.0.0.0:80"]
    assert options(plan)["log_level"] == ["debug"]
    text = flat(plan)
    assert "gunicorn.conf.py:1: import no_such_module" in text
    assert "gunicorn.conf.py:3: workers = no_such_module.N" in text


def test_variables_that_the_file_names_are_passed(tmp_path: Path) -> None:
    text = (
        "import os\nworkers = int(os.environ['N'])\nthreads = len(os.environ.get('SEC' 'RET', ''))"
    )
    environ = {"N": "6", "SECRET": "123", "PATH": "/bin"}
    found = options(python_file(tmp_path, text, environ))
    assert found["workers"] == ["6"]
    assert "threads" not in found or found["threads"] == ["0"]


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
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as raised:
        sources.read([str(tmp_path / name)], {})
    assert message in str(raised.value)
