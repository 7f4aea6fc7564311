"""Options of other servers on our command line: short forms, aliases, variables, and advice."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from loadtests.network.port import free_port
from poorhttp.cli import CommandLine
from poorhttp.config import loader
from poorhttp.config.command_line import FILE_FLAGS, HELP_FLAGS, VERSION_FLAGS
from poorhttp.config.command_line import command as known_command
from poorhttp.config.help import common_options, option_help
from poorhttp.config.other_servers.translations import PRIVATE, TRANSLATIONS, USUAL_HEADERS
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import Failure, UsageError
from tests.support.failure import says
from tests.support.forked_command import run_command
from tests.testkit.client import HANG
from tests.testkit.server import ROOT, Server, command, run, wait_for

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
    (
        "--forwarded-allow-ips 10.0.0.1 --forwarded-headers forwarded",
        "forwarded_headers",
        "forwarded",
    ),
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


def test_each_translation_is_tried() -> None:
    tried = {words.split()[0].lstrip("-").partition("=")[0] for words, _, _ in TRANSLATED}
    tried |= {word[0] for word in tried} | {name.lstrip("-") for name in NAMES}
    assert set(TRANSLATIONS) <= tried


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("-k eventlet", r'^-k: "eventlet" is not supported: .* write gevent'),
        ("-k uvicorn.workers.UvicornWorker", "^-k: .* is for ASGI or Tornado; .* write threading"),
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
            r'^--access-logformat: "%\(x\)s" has no equivalent \(docs/reference/l',
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


def test_names_are_unique() -> None:
    names = [name for option in OPTIONS.values() for name in (*option.aliases, *option.fixed)]
    names += [option.flag.removeprefix("--") for option in OPTIONS.values() if option.flag]
    letters = [option.short for option in OPTIONS.values() if option.short] + ["h", "c", "v"]
    for each in (names, letters):
        assert sorted(each) == sorted(set(each))


def test_other_names_take_little_memory() -> None:
    """Every worker keeps what the command has imported."""
    program = (
        "import sys; from poorhttp.cli import CommandLine; line = CommandLine(); "
        "line.read(['-w', '2', '-k', 'sync', '--timeout', '3', 'x:y']); print(*sys.modules)"
    )
    modules = run(sys.executable, "-S", "-c", program).stdout.split()
    assert "poorhttp.config.other_servers.translations" in modules
    assert {"re", "typing", "poorhttp.config.other_servers.advice"} & set(modules) == set()


# Variables of platforms


@pytest.mark.parametrize(
    ("words", "environ", "bind", "workers", "places"),
    [
        ("", {}, "127.0.0.1:8080", 0, ("bind", "workers")),
        ("", {"PORT": "", "WEB_CONCURRENCY": ""}, "127.0.0.1:8080", 0, ("bind", "workers")),
        ("", {"PORT": "7", "WEB_CONCURRENCY": "3"}, "0.0.0.0:7", 3, ("PORT", "WEB_CONCURRENCY")),
        ("--debug", {"PORT": "7"}, "127.0.0.1:7", 0, ("PORT", "workers")),
        (
            "-b 127.0.0.1:1 -w 2",
            {"PORT": "7", "WEB_CONCURRENCY": "3"},
            "127.0.0.1:1",
            2,
            ("-b", "-w"),
        ),
        (
            "",
            {"PORT": "7", "POORHTTP_BIND": "127.0.0.1:1", "POORHTTP_WORKERS": "2"},
            "127.0.0.1:1",
            2,
            ("POORHTTP_BIND", "POORHTTP_WORKERS"),
        ),
        (
            "--supervisor=off",
            {"WEB_CONCURRENCY": "3"},
            "127.0.0.1:8080",
            0,
            ("bind", "workers"),
        ),
    ],
)
def test_variables_of_platforms(
    words: str, environ: dict[str, str], bind: str, workers: int, places: tuple[str, str]
) -> None:
    found = parsed("x:y", *words.split(), environ=environ)
    assert ([str(each) for each in found.bind], found.workers) == ([bind], workers)
    assert (found.origin("bind"), found.origin("workers")) == places


@pytest.mark.parametrize(
    ("variable", "complaint"),
    [
        ("PORT", '^PORT: "many" in "0.0.0.0:many" is not a port'),
        ("WEB_CONCURRENCY", '^WEB_CONCURRENCY: "many" is not a whole number'),
    ],
)
def test_wrong_variables_of_platforms(variable: str, complaint: str) -> None:
    with pytest.raises(Failure, match=complaint):
        parsed("x:y", environ={variable: "many"})


# Help


def test_help_has_two_lengths() -> None:
    of_serve, of_dev = common_options(), known_command("dev").common
    assert len(of_serve) == len(of_dev) == 20
    for common in (of_serve, of_dev):
        shown = {
            name
            for name, each in OPTIONS.items()
            if _is_in(each.flag, option_help(common, everything=False))
        }
        assert shown == set(common)
    everything = option_help()
    for option in OPTIONS.values():
        assert all(f"--{name}" in everything for name in (*option.aliases, *option.fixed))
        assert not option.short or f"  -{option.short}, {option.flag}" in everything


def _is_in(flag: str, text: str) -> bool:
    return any(
        line.lstrip().partition("--")[2].startswith((f"{flag[2:]} ", f"{flag[2:]}["))
        for line in text.splitlines()
        if line.startswith("  -")
    ) and bool(flag)


@pytest.mark.parametrize("words", ["--help-all", "--help all", "serve -h all", "-w 4 --help-all"])
def test_all_options_are_asked_for(words: str) -> None:
    line = CommandLine()
    line.read(words.split())
    assert "--kernel-tls" in line.information


@pytest.mark.parametrize("words", ["--help", "serve -h", "-w 4 --help", "dev --help"])
def test_the_most_important_options_are_asked_for(words: str) -> None:
    line = CommandLine()
    line.read(words.split())
    assert "--help-all" in line.information
    assert "--kernel-tls" not in line.information


# Through servers


class Started(Server):
    """A server from any command line of `poorhttp`."""

    def __init__(self, *words: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self._start(*command(*words), cwd=cwd, env=env, tracebacks=False)


APPLICATION = """\
import os

def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    names = ["NAME", "TZ"]
    values = [os.environ.get(name, "") for name in names] + [environ["REMOTE_ADDR"]]
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
    with Started(*words.split(), cwd=project) as server:
        assert (server.mode, server.workers) == ("forking", 2)
        answer = server.get("/a?b", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https")
        assert answer.body.decode().splitlines() == [
            *("value", "UTC", "192.0.2.1", "https", "False", str(project)),
        ]
        assert server.log().startswith("poorhttp: --forwarded-allow-ips *: trusts private networks")
        assert (project / "run.pid").read_text().strip() == str(server.process.pid)
        wait_for(server.output, "the line of the access log")
        assert server.output() == "192.0.2.1|GET /a?b HTTP/1.1|200\n"


def test_variables_of_the_application_and_of_a_platform(project: Path) -> None:
    """As a container has them: `PORT`, and arguments of gunicorn in a variable, which are named."""
    port = free_port()
    environ = {"PORT": str(port), "WEB_CONCURRENCY": "2", "GUNICORN_CMD_ARGS": "--workers 3"}
    with Started("shop:application", "--env=NAME=value", cwd=project, env=environ) as server:
        assert (server.urls, server.workers) == (f"http://0.0.0.0:{port}", 2)
        assert server.log().startswith("poorhttp: GUNICORN_CMD_ARGS is not read; ")
        assert server.get("/").body.decode().splitlines()[:1] == ["value"]


@pytest.mark.parametrize(
    ("words", "environ", "noted"),
    [
        ((), {"SCRIPT_NAME": "/a/"}, True),
        (("-e", "SCRIPT_NAME=/a"), {}, True),
        ((), {"SCRIPT_NAME": "/"}, False),
        (("-e", "SCRIPT_NAME=x"), {}, False),
        (("--mount", "/a=shop:application"), {"SCRIPT_NAME": "/a"}, False),
        ((), {}, False),
    ],
)
def test_the_prefix_of_gunicorn_in_a_variable(
    words: tuple[str, ...], environ: dict[str, str], noted: bool, project: Path
) -> None:
    done = run_command("check", "shop:application", *words, cwd=project, env=environ)
    said = "at SCRIPT_NAME, poorhttp does not: write --mount /a=shop:appl"
    assert (done.returncode, said in done.stderr) == (0, noted), done.stderr


def test_a_certificate_of_gunicorn_is_served_at_every_address(project: Path) -> None:
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        cwd=project,
        check=True,
        capture_output=True,
        timeout=HANG,
    )
    os.chmod(project / "key.pem", 0o600)
    words = "shop.py --host 127.0.0.1 --port 0 --certfile cert.pem --keyfile key.pem"
    with Started(*words.split(), cwd=project) as server:
        trusting = ssl.create_default_context(cafile=str(project / "cert.pem"))
        with (
            socket.create_connection(("127.0.0.1", server.port)) as plain,
            trusting.wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            secure.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: secure.recv(65536), b""))
        assert b"\nhttps\n" in answer


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("serv shop:application", 2, 'unknown command "serv"; did you mean "serve"?'),
        (
            "shopp",
            2,
            'unknown command "shopp"; see poorhttp --help; to serve a module of this name',
        ),
        ("-w 2 check shop", 2, "the command stands before its options: poorhttp check ..."),
        ("--daemon shop:application", 2, 'unknown option "--daemon"; the server stays in'),
        ("shop:application -w x", 2, '-w: "x" is not a whole number'),
        ("nothing.there:app", 4, "there is no module nothing"),
    ],
)
def test_mistakes_without_a_command(project: Path, words: str, code: int, message: str) -> None:
    assert says(code, *words.split(), cwd=project).startswith(f"poorhttp: {message}")


def test_check_names_what_was_written(project: Path) -> None:
    done = run_command("check", "shop", *["-w", "2", "--port", "0", "-k", "sync"], cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    for line in (
        ["workers", "=", "2", "from", "-w"],
        ["mode", "=", "forking", "from", "-k"],
        ["bind", "=", "127.0.0.1:0", "from", "--port"],
    ):
        assert line in lines


# The guide


def test_the_guide_names_each_of_them() -> None:
    text = (ROOT / "docs/reference/command.md").read_text()
    for option in OPTIONS.values():
        names = [f"`-{option.short}`"] * bool(option.short)
        names += [f"`--{name}`" for name in (*option.aliases, *option.fixed)]
        row = f"| [`{option.name}`](options.md#{option.name}) | {' '.join(names)} |"
        assert not names or row in text


def test_the_answer_in_the_guide(project: Path) -> None:
    text = (ROOT / "docs/reference/command.md").read_text()
    found = re.search(r"^\$ poorhttp (.*)\n(poorhttp: .*\n)", text, re.MULTILINE)
    assert found is not None
    assert says(2, *found[1].split(), cwd=project) == found[2]


@pytest.mark.parametrize("name", ["ctl", "init", "migrate", "completion"])
def test_the_page_has_the_help_of_a_command(name: str) -> None:
    page = (ROOT / "docs/reference/command.md").read_text()
    done = run_command(name, "--help")
    assert f"```text\n{done.stdout.rstrip()}\n```" in page, f"put in: poorhttp {name} --help"


def test_the_page_names_each_command() -> None:
    page = (ROOT / "docs/reference/command.md").read_text()
    commands = re.findall(r"^  ([a-z]+) {3,}", run_command("--help").stdout, re.MULTILINE)
    assert {"serve", "ctl", "man"} <= set(commands)
    assert [name for name in commands if f"`poorhttp {name}" not in page] == []
