"""Options of other servers on our command line: short forms, aliases, variables, and advice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from poorhttp.cli import CommandLine
from poorhttp.config import loader
from poorhttp.config.command_line import FILE_FLAGS, HELP_FLAGS, VERSION_FLAGS
from poorhttp.config.other_servers.translations import PRIVATE, USUAL_HEADERS
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import Failure, UsageError
from tests.support.development import Started
from tests.support.forked_command import run_command
from tests.testkit.server import ROOT, Server, command, wait_for

CASES = ROOT / "tests/cases/other_servers"

#: The flags of each server, in a file with its name and version.
FLAGS_OF = {
    path.stem: [line for line in path.read_text().splitlines() if not line.startswith("#")]
    for path in sorted(CASES.glob("*.txt"))
}

#: Each short form and alias, by its flag.
NAMES = {
    **{f"-{option.short}": option for option in OPTIONS.values() if option.short},
    **{f"--{name}": option for option in OPTIONS.values() for name in option.aliases},
}

#: Texts for options that take no number.
TEXTS = {
    "bind": "127.0.0.1:7",
    "env": "NAME=a=b",
    "mode": "forking",
    "asgi_loop": "asyncio",
    "asgi_lifespan": "off",
    "http2_connection_window": "1MiB",
    "http2_stream_window": "1MiB",
    "trusted_proxies": "10.0.0.0/8,unix",
    "forwarded_headers": "x-forwarded-for x-forwarded-proto",
    "tls_client_auth": "optional",
    "tls_min_version": "1.3",
    "access_log_format": "json",
    "static": "/x=y",
    "statsd": "127.0.0.1:8125",
    "hsts": "max-age=60",
    "umask": "022",
    "max_header_size": "4096",
    "socket_mode": "660",
}

#: Values that read differently elsewhere, with ours for each: `*` where no number does.
TRANSLATED = [
    ("-k sync", "mode", "forking"),
    ("-k gthread", "mode", "threading"),
    ("-kgevent", "mode", "gevent"),
    ("--worker-class=gunicorn.workers.gthread.ThreadWorker", "mode", "threading"),
    ("--worker-class threading", "mode", "threading"),
    ("-k sync --threads 4", "mode", "threading"),
    ("-k sync --threads 1", "mode", "forking"),
    # The last one counts, also of two names for one option.
    ("-k sync --worker-class gevent", "mode", "gevent"),
    ("-k sync --worker-class gevent --threads 4", "mode", "gevent"),
    ("--worker-class gevent -k sync --threads 4", "mode", "threading"),
    ("--worker-class gevent -k sync", "mode", "forking"),
    ("-k sync --mode gevent --threads 4", "mode", "gevent"),
    ("--uds run/a", "bind", "unix:run/a"),
    ("--unix-socket /run/a", "bind", "unix:/run/a"),
    ("--fd 3", "bind", "fd:3"),
    ("--listen *:7", "bind", "0.0.0.0:7"),
    ("--listen [::1]:7", "bind", "[::1]:7"),
    ("--http :7", "bind", "0.0.0.0:7"),
    ("--http-socket /run/a", "bind", "unix:/run/a"),
    ("--socket /run/a", "bind", "uwsgi+unix:/run/a"),
    ("--socket :7", "bind", "uwsgi://0.0.0.0:7"),
    ("--host 0.0.0.0 --port 7", "bind", "0.0.0.0:7"),
    ("--port 7", "bind", "127.0.0.1:7"),
    ("--host ::1", "bind", "[::1]:8080"),
    ("--host=*", "bind", "0.0.0.0:8080"),
    ("-b unix:///run/a", "bind", "unix:///run/a"),
    ("-p run/a.pid", "pidfile", "run/a.pid"),
    ("-t 0", "request_timeout", "0"),
    ("-t 7", "request_timeout", "7"),
    ("-t 7 -k sync", "request_timeout", "7"),
    ("--keep-alive 0", "keepalive_timeout", "0.001"),
    ("--timeout-keep-alive 5", "keepalive_timeout", "5"),
    ("--limit-request-line 0", "max_request_line", "65000"),
    ("--limit-request-field_size 0", "max_header_size", "65000"),
    ("--http1-header-read-timeout 1500", "header_timeout", "1.5"),
    ("--workers-max-rss 7", "max_rss", "7M"),
    ("--reload-on-rss 7", "max_rss", "7M"),
    ("--forwarded-allow-ips *", "trusted_proxies", PRIVATE),
    ("--forwarded-allow-ips 10.0.0.1", "forwarded_headers", USUAL_HEADERS),
    ("--forwarded-allow-ips ::1 --forwarded-headers forwarded", "forwarded_headers", "forwarded"),
    ("--proxy-allow-from 10.0.0.1,10.0.0.2", "trusted_proxies", "10.0.0.1 10.0.0.2"),
    ("--trust-proxy-header X-Forwarded-For", "forwarded_headers", "x-forwarded-for"),
    (
        '--access-logformat %(h)s,%(t)s,"%(r)s",%(s)s,%(b)s,%({X-A}i)s,%(D)s,%(p)s,%(U)s?%(q)s',
        "access_log_format",
        '%h,%t,"%r",%s,%B,%{X-A}i,%D,<%P>,%U%q',
    ),
    ("--access-logformat %({remote_addr}e)s%(M)d", "access_log_format", "%{REMOTE_ADDR}e%{ms}T"),
    ("--log-syslog-to unix:///dev/log#dgram", "error_log", "syslog:/dev/log"),
    ("--log-syslog", "error_log", "syslog"),
    ("--cert-reqs 2", "tls_client_auth", "required"),
    ("--ssl-cert-reqs CERT_OPTIONAL", "tls_client_auth", "optional"),
    ("--ssl-protocol-min tls1.3", "tls_min_version", "1.3"),
    ("--reload-extra-file x.sql", "reload_include", "x.sql"),
    ("--reload-extra-file /", "reload_include", "/**"),
    ("--statsd-host unix:///run/statsd", "statsd", "unix:/run/statsd"),
    ("--no-preload", "preload", "off"),
    ("--no-reload", "autoreload", "off"),
    ("--reload", "autoreload", "on"),
    # The last one counts, whatever it is called.
    ("--workers 1 -w 2 --processes 3", "workers", "3"),
    ("--processes 3 --workers 2", "workers", "2"),
    ("-t 5 --request-timeout 6", "request_timeout", "6"),
]


def parsed(*words: str, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings from a command line."""
    line = CommandLine()
    line.read(words)
    return loader.load(line.values, environ or {}, flags=line.flags)[0]


@pytest.mark.parametrize("flag", NAMES)
def test_each_other_name_means_the_same_as_its_option(flag: str) -> None:
    option = NAMES[flag]
    if any(words.split()[0].partition("=")[0] == flag for words, _, _ in TRANSLATED):
        return
    words = [] if option.words else [TEXTS.get(option.name, "7")]
    if option.name == "tls_client_ca":
        words += ["--tls-client-auth", "required"]
    found = getattr(parsed("x:y", flag, *words), option.name)
    assert found == getattr(parsed("x:y", option.flag, *words), option.name)
    assert found != option.default


@pytest.mark.parametrize("name", sorted({n for o in OPTIONS.values() for n in o.fixed}))
def test_each_name_without_a_value(name: str) -> None:
    (option,) = (option for option in OPTIONS.values() if name in option.fixed)
    text = option.fixed[name]
    found = getattr(parsed("x:y", f"--{name}"), option.name)
    assert found == getattr(parsed("x:y", f"{option.flag}={text}"), option.name)


@pytest.mark.parametrize(("words", "name", "text"), TRANSLATED)
def test_values_that_read_differently(words: str, name: str, text: str) -> None:
    found = parsed("x:y", *words.split())
    assert getattr(found, name) == getattr(Settings(**{name: text}), name)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("-k eventlet", r'^-k: "eventlet" is not supported: .* write gevent'),
        ("-k trio", '^-k: "trio" is not supported; write asyncio, or threading for WSGI$'),
        ("-p 8000", "^-p: is the pidfile, as for gunicorn; write --port 8000, or -p FILE$"),
        ("-t 0:16", "^-t: is a time in seconds, as for gunicorn; write --threads 16$"),
        ("-e production", r'^-e: "production" is not a variable .*NAME=VALUE$'),
        ("-w many", '^-w: "many" is not a whole number'),
        ("--listen 128", "^--listen: a number is uWSGI's .*; write --backlog 128$"),
        ("--http h11", r'^--http: "h11" is not an address; .*--http2 names$'),
        ("--port 8080 -b :80", "^--port and -b both say where to listen; write --bind HOST:PORT$"),
        ("--port web", r'^--port: "web" in "127\.0\.0\.1:web" is not a port'),
        ("--ca-certs x", "^--ca-certs alone asks clients for no certificate in other servers"),
        ("--cert-reqs 0", "^--cert-reqs: then clients are asked for no certificate"),
        ("--access-logformat %(L)s", r'^--access-logformat: "%\(L\)s" has no equivalent; write'),
        (
            "--access-logformat %(x)s",
            r'^--access-log.*: "%\(x\)s" has no equivalent \(docs/reference/l',
        ),
        ("--log-syslog-to udp://a:1", "^--log-syslog-to: .*; write --error-log syslog"),
        ("-c gunicorn.conf.py", "^-c: gunicorn.conf.py is .*; poorhttp migrate gunicorn.conf.py"),
        ("--config=python:conf", "^--config: python:conf is a file of another server"),
        ("--worker-clas sync", r'^unknown option "--worker-clas"; did you mean "--worker-class"\?'),
        ("-D", '^unknown option "-D"; the server stays in the foreground; .*deploy.md'),
    ],
)
def test_values_that_cannot_be_translated(words: str, complaint: str) -> None:
    with pytest.raises(Failure, match=complaint) as failure:
        parsed("x:y", *words.split())
    assert failure.value.exit_code == 2


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("-t 30 -k gthread", False),
        ("--timeout 30 --threads 4", False),
        ("-k gevent --timeout=30", False),
        ("-t 30 -k sync --threads 4", False),
        ("-t 30 --threads 1", True),
        ("-t 30 --mode threading --threads 4", True),
        ("--harakiri 30 --threads 4", True),
        ("--threads 4 -t 60 --request-timeout 30", True),
    ],
)
def test_the_timeout_of_gunicorn_is_that_of_a_request_with_sync_only(
    words: str, kept: bool
) -> None:
    line = CommandLine()
    line.read(["x:y", *words.split()])
    assert (line.values.get("request_timeout") == ["30"]) is kept
    assert bool(line.notes) is not kept
    assert all("--request-timeout 30 ends requests" in note for note in line.notes)


@pytest.mark.parametrize("server", FLAGS_OF)
def test_each_flag_of_another_server_has_a_meaning_or_an_answer(server: str) -> None:
    flags = {option.flag for option in OPTIONS.values() if option.flag}
    known = {*flags, *HELP_FLAGS, *VERSION_FLAGS, *FILE_FLAGS, *NAMES}
    known |= {f"--{name}" for option in OPTIONS.values() for name in option.fixed}
    known |= {f"--no-{name}" for o in OPTIONS.values() if o.words for name in o.aliases}
    known |= {f"--no-{o.flag[2:]}" for o in OPTIONS.values() if o.words}
    pages = set()
    for flag in FLAGS_OF[server]:
        if flag in known:
            continue
        with pytest.raises(UsageError) as caught:
            parsed("x:y", flag, "1")
        message = str(caught.value)
        assert message.startswith(f'unknown option "{flag}"; ')
        assert message.endswith(")"), message
        pages.add(message.rpartition("(")[2].removesuffix(")"))
    assert [page for page in pages if not (ROOT / page).is_file()] == []
    assert pages


# Variables of platforms


@pytest.mark.parametrize(
    ("words", "environ", "bind", "workers", "places"),
    [
        ("", {}, "127.0.0.1:8080", 0, ("bind", "workers")),
        ("", {"PORT": "", "WEB_CONCURRENCY": ""}, "127.0.0.1:8080", 0, ("bind", "workers")),
        ("", {"PORT": "7", "WEB_CONCURRENCY": "3"}, "0.0.0.0:7", 3, ("PORT", "WEB_CONCURRENCY")),
        ("--debug", {"PORT": "7"}, "127.0.0.1:7", 0, ("PORT", "workers")),
        ("-b :1 -w 2", {"PORT": "7", "WEB_CONCURRENCY": "3"}, "0.0.0.0:1", 2, ("-b", "-w")),
        (
            *("", {"PORT": "7", "POORHTTP_BIND": ":1", "POORHTTP_WORKERS": "2"}),
            *("0.0.0.0:1", 2, ("POORHTTP_BIND", "POORHTTP_WORKERS")),
        ),
        ("--supervisor=off", {"WEB_CONCURRENCY": "3"}, "127.0.0.1:8080", 0, ("bind", "workers")),
    ],
)
def test_variables_of_platforms(
    words: str, environ: dict[str, str], bind: str, workers: int, places: tuple[str, str]
) -> None:
    found = parsed("x:y", *words.split(), environ=environ)
    assert ([str(each) for each in found.bind], found.workers) == ([bind], workers)
    assert (found.origin("bind"), found.origin("workers")) == places


# Help


@pytest.mark.parametrize(
    ("words", "is_all"),
    [
        *(("--help", False), ("-w 4 --help", False), ("dev --help", False)),
        *(("--help-all", True), ("--help all", True), ("serve -h all", True)),
    ],
)
def test_the_most_important_options_are_asked_for(words: str, is_all: bool) -> None:
    line = CommandLine()
    line.read(words.split())
    assert ("--help-all" in line.information) or is_all
    assert ("--kernel-tls" in line.information) is is_all


# Through servers


APPLICATION = """\
import os

def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    values = [os.environ.get(name, "") for name in ("NAME", "TZ")] + [environ["REMOTE_ADDR"]]
    values += [environ["wsgi.url_scheme"], str(environ["wsgi.multithread"]), os.getcwd()]
    return ["\\n".join(values).encode()]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with an application in `shop.py`."""
    (tmp_path / "shop.py").write_text(APPLICATION)
    return tmp_path


def test_a_command_line_of_gunicorn(project: Path) -> None:
    """It serves, without a command and with its options first."""
    words = (
        "-w 2 -k sync -b 127.0.0.1:0 --timeout 30 --graceful-timeout 5 --keep-alive 5 "
        "--max-requests 1000 --max-requests-jitter 50 --access-logfile - --error-logfile - "
        "--log-level info --pid run.pid --name shop -e NAME=value -e TZ=UTC --worker-connections "
        "100 --limit-request-line 4094 --limit-request-fields 50 --forwarded-allow-ips * "
        "--access-logformat %(h)s|%(r)s|%(s)s --backlog 64 --preload shop"
    )
    with Started(*command(*words.split()), cwd=project) as server:
        assert (server.mode, server.workers) == ("forking", 2)
        answer = server.get("/a?b", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https")
        told = ["value", "UTC", "192.0.2.1", "https", "False", str(project)]
        assert answer.body.decode().splitlines() == told
        assert server.log().startswith("poorhttp: --forwarded-allow-ips *: trusts private networks")
        assert (project / "run.pid").read_text().strip() == str(server.process.pid)
        wait_for(server.output, "the line of the access log")
        assert server.output() == "192.0.2.1|GET /a?b HTTP/1.1|200\n"


def test_variables_of_the_application_and_of_a_platform(project: Path) -> None:
    """As a container has them: `PORT`, and arguments of gunicorn in a variable, which are named."""
    environ = {"PORT": "0", "WEB_CONCURRENCY": "2", "GUNICORN_CMD_ARGS": "--workers 3"}
    words = ("shop:application", "threading", "--env=NAME=value")
    with Server(*words, bind=(), cwd=project, env=environ) as server:
        assert (server.urls.rpartition(":")[0], server.workers) == ("http://0.0.0.0", 2)
        assert server.log().startswith("poorhttp: GUNICORN_CMD_ARGS is not read; ")
        assert server.get("/").body.decode().splitlines()[:1] == ["value"]


@pytest.mark.parametrize(
    ("words", "environ", "noted"),
    [
        ("", {"SCRIPT_NAME": "/a/"}, True),
        ("-e SCRIPT_NAME=/a", {}, True),
        ("--mount /a=shop:application", {"SCRIPT_NAME": "/a"}, False),
        ("", {}, False),
    ],
)
def test_the_prefix_of_gunicorn_in_a_variable(
    words: str, environ: dict[str, str], noted: bool, project: Path
) -> None:
    done = run_command("check", "shop:application", *words.split(), cwd=project, env=environ)
    said = "at SCRIPT_NAME, poorhttp does not: write --mount /a=shop:appl"
    assert (done.returncode, said in done.stderr) == (0, noted), done.stderr
