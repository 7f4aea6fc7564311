"""Faults of applications: the client's response and the message in the log."""

from __future__ import annotations

import os
import re
import signal
import socket
from contextlib import suppress
from itertools import count
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.apps.faulty import FAILURES
from tests.conftest import Serve
from tests.support.each_value import DIFFERENT, each_value
from tests.testkit.client import BadResponse, Closed, Connection
from tests.testkit.process import children
from tests.testkit.server import ROOT, Server, wait_for

FAULTY = str(ROOT / "tests/apps/faulty.py")

tokens = (f"t{number}" for number in count(1))


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(FAULTY, "--log-level", "info", "--write-timeout", "0.2", tracebacks=True)


def says(server: Server, target: str, what: str, before: int, method: str = "GET") -> None:
    """Wait for the one line of the log that says what was wrong with a request, behind `before`."""
    request = rf"request \d+ {method} {re.escape(target)}"
    line = re.compile(rf"^\S+Z \[\d+ worker \d\] error: {request}: {what}$", re.MULTILINE)
    wait_for(lambda: line.search(server.log(), before), f"{line.pattern} in the log")
    assert len(line.findall(server.log(), before)) == 1


# Exceptions

SAID = {
    "exception": "LookupError: told so",
    "exit": "SystemExit: told to exit",
    "interrupt": "KeyboardInterrupt",
    "generator-exit": "GeneratorExit",
    "memory": "MemoryError",
    "recursion": "RecursionError: maximum recursion depth exceeded.*",
    "mute": "Mute",
    # What it says in further lines stands in the traceback, and moves no cursor there either.
    "lines": "ValueError: one",
    "control": r"ValueError: '\\x1b\[2J\\rforged'",
    "type": "TypeError: of its own",
}


#: Where applications fail, by what the client sees: a 500, a cut response, nothing of it.
BEFORE, BEHIND, CLOSE = ("called", "started", "iter", "first"), ("between", "after"), ("close",)


@pytest.mark.parametrize(
    ("mode", "where", "how"),
    [row for where in (BEFORE, BEHIND, CLOSE) for row in each_value(DIFFERENT, where, FAILURES)],
    indirect=["mode"],
)
def test_failure(server: Server, where: str, how: str) -> None:
    target, before = f"/failing/{where}?{how}", len(server.log())
    with server.connect() as connection:
        connection.send_request("GET", target)
        connection.send_request("GET", "/pid")
        if where in BEHIND:
            answer = connection.rest()
            assert answer.endswith(b"first \r\n" if where == "between" else b"second\r\n")
            assert answer.count(b"HTTP/1.1") == 1
        else:
            whole = (200, b"first second"), (500, b"500 Internal Server Error\n")
            response = connection.response()
            assert (response.status, response.body) == whole[where in BEFORE]
            assert connection.response().status == 200
    says(server, target, f"the application failed: {SAID[how]}", before)
    assert server.get("/pid").status == 200


def test_failure_while_another_thread_writes_the_response(server: Server) -> None:
    """A request in use is not one of the process that forked this one: the worker goes on."""
    before = children(server.process.pid)
    for _ in range(10):
        begins, target = len(server.log()), f"/fail_beside?{next(tokens)}"
        with server.connect() as connection:
            connection.send_request("GET", target)
            says(server, target, f"the application failed: {SAID['exception']}", begins)
    assert server.get("/pid").status == 200
    assert children(server.process.pid) == before


@pytest.mark.each_mode
def test_generator_that_ignores_its_end(server: Server) -> None:
    target, before = f"/ignores_exit?{next(tokens)}", len(server.log())
    with server.connect() as connection:
        assert connection.request("GET", target).body == b"first "
        assert connection.request("GET", "/pid").status == 200
    says(server, target, "the application failed: RuntimeError: generator ignored .*", before)


# What is no answer

RETURNED = r"TypeError: the application returned {}; an iterable of bytes was expected \(PEP 3333\)"
PIECE = r"a piece of the body must be bytes \(PEP 3333\), not "
NO_ANSWER = {
    "/returned/none": RETURNED.format("None"),
    "/returned/number": RETURNED.format("an int"),
    "/returned/text": RETURNED.format("a str"),
    "/returned/bytes": RETURNED.format("a bytes"),
    "/returned/dict": RETURNED.format("a dict"),
    "/returned/object": RETURNED.format("an object"),
    "/returned/list-of-text": f"TypeError: {PIECE}str",
    "/returned/list-of-numbers": f"TypeError: {PIECE}int",
    "/returned/tuple-of-none": f"TypeError: {PIECE}NoneType",
    "/yields_text": f"TypeError: {PIECE}str",
    "/never": "ValueError: the application did not call start_response before .*",
    "/late": "ValueError: the application did not call start_response before .*",
    "/twice": "RuntimeError: start_response was called a second time without exc_info",
}


@pytest.mark.parametrize("path", NO_ANSWER)
def test_no_answer(server: Server, path: str) -> None:
    target, before = f"{path}?{next(tokens)}", len(server.log())
    response = server.get(target)
    assert (response.status, response.body) == (500, b"500 Internal Server Error\n")
    says(server, target, f"the application failed: {NO_ANSWER[path]}", before)


@pytest.mark.each_mode
def test_start_response_behind_content(server: Server) -> None:
    target, before = f"/late_again?{next(tokens)}", len(server.log())
    with pytest.raises(BadResponse):
        server.get(target)
    says(server, target, "the application failed: RuntimeError: start_response was .*", before)


# What never ends


@pytest.mark.each_mode
@pytest.mark.parametrize(
    ("path", "what", "how"),
    [
        # Pieces without content: only the write timeout shows that the client has closed.
        ("/endless", "0,0", "close"),
        ("/endless_write", "0.01,0", "reset"),
        ("/endless", "0.01,1", "reset"),
        ("/endless_length", "0,1000", "close"),
        ("/endless_204", "0,1", "reset"),
        ("/endless_write", "0,1", "close"),
        # Small pieces: in large ones it would write a gigabyte to the disk until the deadline.
        ("/endless", "0,100", "stays"),
        ("/endless", "0.01,65536", "stays"),
    ],
)
def test_endless_answer_ends(server: Server, path: str, what: str, how: str) -> None:
    """When its client leaves, or at the write deadline, where only one thread could see to it."""
    token = next(tokens)
    with server.connect() as connection:
        connection.send_request("GET", f"{path}/{what}?{token}")
        server.wait_log(f"begun {token}\n")
        if how != "stays":
            getattr(connection, how)()
        server.wait_log(f"closed {token}\n")
    assert server.get("/pid").status == 200


@pytest.mark.each_mode
@pytest.mark.parametrize(
    ("method", "path", "body", "what"),
    [
        ("HEAD", "/endless", b"", "0,65536"),
        ("HEAD", "/endless_length", b"", "0.01,1"),
        ("GET", "/endless_204", b"", "0,65536"),
        ("GET", "/endless_304", b"", "0.01,1"),
        ("GET", "/endless_length", b"x" * 10, "0,65536"),
    ],
)
def test_what_nobody_gets_is_not_produced_for_ever(
    server: Server, method: str, path: str, body: bytes, what: str
) -> None:
    """The client stays, and its next request is answered."""
    target, before = f"{path}/{what}?{next(tokens)}", len(server.log())
    with server.connect() as connection:
        response = connection.request(method, target)
        assert response.body == body
        assert connection.request("GET", "/pid").status == 200
    server.wait_log(f"closed {target.partition('?')[2]}\n")
    if body:
        too_many = r"the application produced \d+ bytes more than its Content-Length;.*"
        says(server, target, too_many, before)


@pytest.mark.each_mode
def test_code_behind_the_last_piece_is_run(server: Server) -> None:
    token = next(tokens)
    assert server.get(f"/exact?{token}").body == b"body"
    server.wait_log(f"behind {token}\n")


@pytest.mark.each_mode
def test_client_that_has_finished_sending_waits_for_its_answer(server: Server) -> None:
    """Although the application has nothing for it at first."""

    def answered() -> bool:
        """Whether it began at once: one that a busy machine keeps waiting is taken for gone."""
        with server.connect() as connection:
            connection.send_request("GET", "/pause")
            connection.socket.shutdown(socket.SHUT_WR)
            with suppress(Closed):
                assert connection.response().body == b"at last"
                return True
        return False

    wait_for(answered, "an answer")


# What ends a process


def of_each_worker(server: Server) -> list[tuple[int, Connection]]:
    """A connection to each worker, with its process."""
    found: dict[int, Connection] = {}

    def has_all() -> bool:
        connection = server.connect()
        found.setdefault(int(connection.request("GET", "/pid").body), connection)
        return len(found) == server.workers

    wait_for(has_all, "every worker")
    return list(found.items())


@pytest.mark.parametrize(
    ("mode", "how", "what"),
    [
        ("forking", "exit", "ended with 7"),
        ("threading", "realtime", f"was killed by signal {signal.SIGRTMIN + 1}"),
        ("gevent", "kill", "was killed by SIGKILL"),
    ],
)
def test_worker_dies(mode: str, how: str, what: str, tmp_path: Path) -> None:
    """Its client sees it, others do not; it is replaced, and the log says which request it was."""
    with Server(FAULTY, mode, "--workers", "2", tracebacks=True) as server:
        (_, other), (dying, connection) = of_each_worker(server)
        other.send_request("GET", f"/wait?{tmp_path / 'gate'}")
        server.wait_log("entered")
        connection.send_request("GET", f"/die/{how}?q")
        with pytest.raises(Closed):
            connection.response()
        (tmp_path / "gate").touch()
        assert other.response().body == b"waited"
        line = rf"error: worker {dying} {what} and is replaced; it had in flight: "
        line += rf"request \d+ GET /die/{how}\?q\n"
        wait_for(lambda: re.search(line, server.log()), line)
        assert dying not in {pid for pid, _ in of_each_worker(server)}


def test_what_is_kept_of_a_request_is_not_in_hand(mode: str) -> None:
    with Server(FAULTY, mode, "--workers", "2", tracebacks=True) as server:
        (pid, connection), _ = of_each_worker(server)
        for target in ("/keep/list", "/keep/iterator", "/keep/fail", "/pid"):
            assert connection.request("GET", target).status == (500 if "fail" in target else 200)
        os.kill(pid, signal.SIGKILL)
        line = re.compile(rf"worker {pid} was killed .*\n")
        wait_for(lambda: line.search(server.log()), line.pattern)
        # The last one may have been killed just behind its answer.
        assert "/keep" not in line.findall(server.log())[0]


@pytest.mark.parametrize("mode", ["gevent"])
def test_worker_dies_with_much_in_hand(mode: str, tmp_path: Path) -> None:
    """The newest are named first, also where there are more than the memory has room for."""
    with Server(FAULTY, mode, "--workers", "2", tracebacks=True) as server:
        (dying, connection), _ = of_each_worker(server)
        waiting = 0
        while waiting < 70:
            another = server.connect()
            if int(another.request("GET", "/pid").body) == dying:
                waiting += 1
                another.send_request("GET", f"/wait?{tmp_path / str(waiting)}")
                server.wait_log("entered", waiting)
        connection.send_request("GET", "/die/kill")
        line = re.compile(r"it had in flight: (.*)\n")
        wait_for(lambda: line.search(server.log()), line.pattern)
        first, *others, last = line.findall(server.log())[0].split(", ")
        assert first.endswith(" GET /die/kill")
        assert len(others) == 9
        assert all("GET /wait?" in other for other in others)
        assert last == "and 54 more"


def test_long_and_strange_request_line(mode: str) -> None:
    """As much of it as there is room for, and nothing that could forge a line."""
    with Server(FAULTY, mode, "--workers", "2", tracebacks=True) as server:
        with pytest.raises(Closed):
            server.get("/die/kill?'\"\\" + "x" * 1000)
        line = r"in flight: request \d+ GET /die/kill\?\\'\\\"\\\\x{231}\n"
        wait_for(lambda: re.search(line, server.log()), line)


def test_a_client_that_says_more_than_is_read(server: Server, tmp_path: Path) -> None:
    """It has its answer, although the connection ends with a reset for what was not read."""
    gate = tmp_path / "gate"
    with server.connect() as connection:
        connection.send_request("GET", f"/wait?{gate}", "Connection: close")
        server.wait_log(f"entered {gate}")
        connection.send(b"surplus")
        gate.touch()
        assert connection.response().body == b"waited"


def test_request_that_does_not_end_when_the_server_stops(mode: str, tmp_path: Path) -> None:
    options = ("--workers", "2", "--graceful-timeout", "0.1")
    with Server(FAULTY, mode, *options, tracebacks=True) as server:
        with server.connect() as connection:
            connection.send_request("GET", f"/wait?{tmp_path / 'never'}")
            server.wait_log("entered")
            server.process.terminate()
            assert server.wait() == 0
        assert re.search(r"SIGKILL; it had in flight: request \d+ GET /wait\?", server.log())
        server.ended()


#: Of an archive that has another encoding than UTF-8, the import hook cannot show the source.
IN_LATIN_1 = """\
# -*- coding: latin-1 -*-
import time
NAME = "\xe9"

def application(environ, start_response):
    until = time.monotonic() + 20
    while "slow" in environ["QUERY_STRING"] and time.monotonic() < until:
        pass
    raise ValueError("raised")

async def asgi(scope, receive, send):
    if scope["type"] == "http":
        application({"QUERY_STRING": scope["query_string"].decode()}, None)
"""


@pytest.mark.parametrize("mode", ["threading", "asyncio"])
@pytest.mark.parametrize("verb", ["serve", "dev"])
def test_a_source_that_cannot_be_shown(mode: str, verb: str, tmp_path: Path) -> None:
    """Its traceback has no lines of it, and its requests are interrupted."""
    with ZipFile(tmp_path / "modules.zip", "w") as archive:
        archive.writestr("archived.py", IN_LATIN_1.encode("latin-1"))
    lines = f"import sys; sys.path.insert(0, {str(tmp_path / 'modules.zip')!r})\n"
    (tmp_path / "app.py").write_text(lines + "from archived import *\n")
    target = "app:asgi" if mode == "asyncio" else "app:application"
    options = ("--request-timeout", "0.3", "--workers", "1")
    with Server(target, mode, *options, cwd=tmp_path, tracebacks=True, verb=verb) as server:
        assert server.get("/?slow").status == 504
        assert "cannot be interrupted" not in server.log()
        assert "the application is in" in server.log()
        assert server.get("/").status == 500
        place = 'modules.zip/archived.py", line 9, in application'
        wait_for(lambda: place in server.log(), "the place of the exception")


@pytest.mark.each_mode
def test_crash_leaves_a_traceback(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "error.log"
    options = ("--workers", "1", "--error-log", str(path))
    with Server(FAULTY, mode, *options, tracebacks=True) as server:
        with pytest.raises(Closed):
            server.get("/die/segv")
        place = r'Fatal Python error: Segmentation fault\n(.*\n)+?.*faulty.py", line \d+ in die\n'
        wait_for(lambda: re.search(place, path.read_text()), "the place of the crash")
        server.kill()
