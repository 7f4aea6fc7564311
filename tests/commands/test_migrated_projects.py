"""Three projects under their old server, and under ours with what `poorhttp migrate` writes."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.forked_command import run_command
from tests.testkit.client import Connection, Response
from tests.testkit.server import ROOT, Program, command, wait_for

PROJECTS = ROOT / "tests" / "cases" / "migrate" / "projects"

#: What a server says when it listens; the last group is the port.
LISTENING = re.compile(
    r"(?:Listening at: |Serving on |listening on |bound to TCP address )(?:http://)?\S*:(\d+)"
)

#: How each project was started, with the old server; and its configuration.
STARTS = {
    "flask": ("gunicorn", "gunicorn.conf.py"),
    "pyramid": ("waitress-serve --listen=127.0.0.1:0 --threads=3 --call shop:make_app", ""),
    "uwsgi": ("pyuwsgi --ini uwsgi.ini", "uwsgi.ini"),
}

#: Variables that both servers get.
ENVIRONMENT = {"BIND": "127.0.0.1:0"}

FORM = "application/x-www-form-urlencoded"

#: Method, target with headers, and body of each request.
REQUESTS: list[tuple[str, tuple[str, ...], bytes]] = [
    ("GET", ("/", "User-Agent: a test"), b""),
    ("HEAD", ("/",), b""),
    ("GET", ("/hello?name=Ann%20B%C3%A9",), b""),
    ("POST", ("/form", f"Content-Type: {FORM}"), b"a=1&b=two+words"),
    ("GET", ("/redirect",), b""),
    ("GET", ("/cookie", "Cookie: visits=7"), b""),
    ("GET", ("/broken",), b""),
    ("GET", ("/stream",), b""),
    ("GET", ("/missing",), b""),
    ("GET", ("/scheme",), b""),
]

#: Headers of the servers themselves, or that differ with the time.
OF_SERVERS = {"server", "date", "connection", "keep-alive", "transfer-encoding", "via"}
OF_SERVERS |= {"content-length"}


@contextmanager
def old_server(name: str, folder: Path) -> Iterator[tuple[Program, int]]:
    """The old server of a project; with its port."""
    program, *words = shlex.split(STARTS[name][0])
    start = [sys.executable, "-m", program.removesuffix("-serve")]
    if program == "pyuwsgi":
        start = [str(Path(sys.executable).with_name(program))]
    with Program(*start, *words, cwd=folder, env=ENVIRONMENT, merged=True) as server:
        port = int(server.wait_line(LISTENING)[1])
        yield server, port
        server.process.terminate()
        server.wait()


@contextmanager
def our_server(name: str, folder: Path) -> Iterator[tuple[Program, int]]:
    """Our server with the file that the command writes; with its port."""
    line, file = STARTS[name]
    words = [file] if file else ["--", *shlex.split(line)]
    for step in (("migrate", "-o", "poorhttp.ini", *words), ("check", "-c", "poorhttp.ini")):
        done = run_command(*step, cwd=folder, env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr
    words = command("serve", "-c", "poorhttp.ini")
    with Program(*words, cwd=folder, env=ENVIRONMENT, merged=True) as server:
        port = int(server.wait_line(LISTENING)[1])
        yield server, port
        server.process.terminate()
        assert server.wait() == 0, server.log()


def get(port: int, target: str, *headers: str, method: str = "GET", body: bytes = b"") -> Response:
    """The response to a request on a connection of its own."""
    with Connection(("127.0.0.1", port)) as connection:
        return connection.request(method, target, *headers, body=body or None)


def ask(port: int) -> list[Response]:
    """The responses to all requests."""
    return [get(port, *words, method=way, body=body) for way, words, body in REQUESTS]


def access_lines(server: Program) -> list[str]:
    """The lines of the access log, without the time, when all are there.

    An empty body has a hyphen as its size in Apache's `%b`, and 0 in gunicorn. uWSGI sends the
    application's body also for HEAD.
    """

    def lines() -> list[str]:
        found = re.findall(r'^127\.0\.0\.1 .*"\w+ /.*$', server.log(), re.M)
        found = [re.sub(r"\[[^\]]*\]", "[]", line) for line in found]
        found = [re.sub(r'("HEAD .*" \d+) \d+', r"\1 0", line) for line in found]
        return [re.sub(r'" (\d+) 0(?= |$)', r'" \1 -', line) for line in found]

    wait_for(lambda: len(lines()) >= len(REQUESTS), "a line for each request")
    return sorted(lines())


@pytest.mark.parametrize("name", STARTS)
def test_the_same_under_both(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(PROJECTS / name, folder)
    # Any user may read it.
    tmp_path.chmod(0o755)
    with old_server(name, folder) as (theirs, port), our_server(name, folder) as (server, our_port):
        before, after = ask(port), ask(our_port)
        for request, old, new in zip(REQUESTS, before, after, strict=True):
            assert new.status == old.status, request
            assert new.body == old.body, request
            assert fields(new) == fields(old), request
            # A body in one piece gets its length here, and is chunked there.
            lengths = {old.get("Content-Length") or str(len(old.body)), old.get("Content-Length")}
            assert new.get("Content-Length") in lengths
        if name != "pyramid":  # waitress has no access log
            assert access_lines(server) == access_lines(theirs)
        if name == "uwsgi":
            # Static files; also one that is missing, which the application answers for.
            for target in ("/static/shop.css", "/static/missing.css"):
                old, new = get(port, target), get(our_port, target)
                assert (new.status, new.body) == (old.status, old.body)
                assert new.get("Last-Modified") == old.get("Last-Modified")
        elif name == "flask":
            # A proxy on this machine is trusted: gunicorn's default, when it listens on it only.
            headers = ("X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example")
            for each in (port, our_port):
                assert get(each, "/scheme", *headers).body == b"https 127.0.0.1"


def fields(response: Response) -> list[tuple[str, str]]:
    """The header fields that do not come from the server itself."""
    found = [(name.lower(), value) for name, value in response.headers]
    return sorted(field for field in found if field[0] not in OF_SERVERS)
