"""Stacks, profiles and memory of live workers, whatever holds them up; they go on afterwards."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from poorhttp.plugins.monitor.inspection import collect, flame_graph, py_spy, text
from poorhttp.plugins.monitor.inspection.stack_lists import collapsed
from tests.conftest import Serve
from tests.support.each_value import DIFFERENT, each_value
from tests.support.process_lock import ProcessLock
from tests.testkit.client import Connection
from tests.testkit.process import children, stopped
from tests.testkit.server import AT_ONCE, Server, patched, wait_for

APP = "tests/apps/stuck.py"

#: Without py-spy.
WITHOUT_PY_SPY = patched("poorhttp.plugins.monitor.inspection.py_spy", PROGRAM="no-such-program")

#: A way of being stuck in which no thread can run Python.
HOLDING = "in_c_holding"

#: Those in which the thread of the request cannot, but others can.
WAITING = ("in_c", "in_database")

WAYS = ("in_python", "in_sleep", "in_lock", *WAITING, HOLDING)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the admin address of the servers of this module."""
    return f"/tmp/poorhttp-{os.getpid()}-{tmp_path_factory.mktemp('admin').name[-8:]}"


def http(address: str, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    """One answer of the admin address, whose own name is in `Host`."""
    with Connection(address) as connection:
        headers = ("Host: localhost", "Content-Type: application/json")
        answer = connection.request(method, path, *headers, body=body, version="HTTP/1.0")
        return answer.status, answer.json()


def ask(address: str, command: str, **arguments: object) -> Any:
    """Execute a command at the admin address; its result."""
    status, found = http(address, "POST", f"/-/control/{command}", json.dumps(arguments).encode())
    assert status == 202, found
    job = found["job"]

    def has_ended() -> bool:
        nonlocal found
        found = http(address, "GET", f"/-/control/jobs/{job}")[1]
        return "job" not in found

    wait_for(has_ended, f"the end of {command}")
    assert found["ok"], found
    return found["result"]


class Stuck:
    """A request that is stuck in one of the ways, and what ends that."""

    def __init__(self, server: Server, way: str, folder: Path) -> None:
        self.way = way
        path = folder / way
        self._end: Callable[[], object] = path.touch
        if way.startswith("in_c"):
            lock = ProcessLock(path, make=True)
            lock.acquire()
            self._end = lock.release
        elif way == "in_database":
            database = sqlite3.connect(path, isolation_level=None)
            database.execute("CREATE TABLE stock (number)")
            database.execute("BEGIN EXCLUSIVE")
            self._end = database.close
        self.line = f"GET /{way}?{path}"
        self._connection = server.connect()
        self._connection.send_request("GET", f"/{way}?{path}")
        server.wait_log(f"entered {path}\n")

    def end(self) -> int:
        """Have it go on; the process ID of the worker that has answered."""
        self._end()
        response = self._connection.response()
        assert response.status == 200
        return int(response.body)

    def stack(self, result: Any) -> Any:
        (found,) = [
            stack
            for worker in result["workers"]
            for stack in worker["stacks"]
            if stack["request"] and stack["request"]["line"] == self.line
        ]
        return found


@contextmanager
def stuck(server: Server, way: str, folder: Path) -> Iterator[Stuck]:
    """A request that is stuck; its worker goes on afterwards."""
    before = workers(server)
    request = Stuck(server, way, folder)
    try:
        yield request
    except BaseException:
        request._end()
        raise
    assert request.end() in before
    assert workers(server) == before


def workers(server: Server) -> list[int]:
    """Its workers, which say so in their names; an inspection is a process as well."""
    found = []
    for pid in children(server.process.pid):
        with suppress(OSError):
            found += [pid] * ("worker" in Path(f"/proc/{pid}/comm").read_text())
    return found


def runs_python(mode: str, way: str) -> bool:
    """Whether the main thread of the worker runs Python, in which handlers of signals are called.

    In mode threading, it is not the one that runs requests.
    """
    return way not in (*WAITING, HOLDING) or (mode == "threading" and way in WAITING)


@pytest.mark.parametrize(("mode", "way"), each_value(DIFFERENT, WAYS), indirect=["mode"])
def test_stacks(serve: Serve, mode: str, way: str, address: str, tmp_path: Path) -> None:
    server = serve(APP, "--admin", f"unix:{address}")
    with stuck(server, way, tmp_path) as request:
        result = ask(address, "stacks")
        stack = request.stack(result)
        (worker,) = [one for one in result["workers"] if stack in one["stacks"]]
        how = "python" if runs_python(mode, way) else "py-spy"
        assert worker["how"] == how, worker["note"]
        # From where the application was called to where it is stuck.
        functions = [frame["function"].rpartition(".")[2] for frame in stack["frames"]]
        assert functions[:2] == ["application", way]
        assert {frame["file"] for frame in stack["frames"][:2]} == {os.path.abspath(APP)}
        assert stack["thread"] or stack["kind"] == "greenlet"
        assert ("holds the interpreter" in worker["note"]) == (way == HOLDING)
        others = [one for one in worker["stacks"] if one != stack and not one["idle"]]
        assert not any(one["request"] for one in others)
        assert worker["requests"] == []
        assert stack["request"]["seconds"] > 0
        shown = text.stacks(result)
        assert f"request {stack['request']['number']} {request.line}" in shown
        assert f"{way}  {os.path.abspath(APP)}:" in shown


def test_stacks_of_a_version(address: str, tmp_path: Path) -> None:
    """Workers of the development server answer, too."""
    shutil.copy(APP, tmp_path / "app.py")
    options = ("--admin", f"unix:{address}", "--autoreload", "on")
    with Server("app.py", "threading", *options, cwd=tmp_path):
        assert [worker["how"] for worker in ask(address, "stacks")["workers"]] == ["python"]


@pytest.mark.each_mode
def test_stacks_of_many(serve: Serve, mode: str, address: str, tmp_path: Path) -> None:
    """All threads and greenlets are told, each with its own request."""
    server = serve(APP, "--admin", f"unix:{address}")
    number = min(AT_ONCE[mode], 5)
    requests = []
    for place in range(number):
        folder = tmp_path / str(place)
        folder.mkdir()
        requests.append(Stuck(server, "in_sleep", folder))
    result = ask(address, "stacks")
    stacks = [request.stack(result) for request in requests]
    assert len({stack["request"]["number"] for stack in stacks}) in (number, 1)
    assert len({stack["name"] for stack in stacks}) == (1 if mode == "forking" else number)
    for request in requests:
        request.end()
    quiet = [each for worker in ask(address, "stacks")["workers"] for each in worker["stacks"]]
    assert not any(stack["request"] for stack in quiet)


def test_stacks_without_py_spy(address: str, tmp_path: Path) -> None:
    options = ("--admin", f"unix:{address}-alone")
    with (
        Server(APP, "single", *options, launcher=WITHOUT_PY_SPY) as server,
        stuck(server, HOLDING, tmp_path) as request,
    ):
        result = ask(f"{address}-alone", "stacks")
        (worker,) = result["workers"]
        assert worker["how"] == "faulthandler"
        assert "py-spy, which could look into it, is not installed" in worker["note"]
        functions = [frame["function"] for frame in request.stack(result)["frames"]]
        assert functions[:2] == ["application", HOLDING]
        profile = ask(f"{address}-alone", "profile", seconds=1, form="collapsed")
        stack, _, took = profile["text"].splitlines()[0].rpartition(" ")
        assert stack.startswith(f"application (apps/stuck.py);{HOLDING} (apps/stuck.py)")
        assert 200 <= int(took) <= 1500
        assert "by faulthandler" in profile["notes"][0]


@pytest.mark.parametrize(
    ("mode", "way"),
    each_value(DIFFERENT, ["in_python", "in_sleep", "in_database"]),
    indirect=["mode"],
)
def test_profile(serve: Serve, mode: str, way: str, address: str, tmp_path: Path) -> None:
    """The request takes nearly all the time, in a process of one service or of several."""
    server = serve(APP, "--admin", f"unix:{address}")
    with stuck(server, way, tmp_path):
        found = ask(address, "profile", seconds=1, form="collapsed")
    assert found["workers"]
    assert bool(found["samples"]) or not runs_python(mode, way)
    # In mode forking the other worker answers.
    assert len(found["notes"]) == (not runs_python(mode, way))
    parts = (line.rpartition(" ") for line in found["text"].splitlines())
    lines = {stack: int(took) for stack, _, took in parts}
    total = sum(lines.values())
    inside = [took for stack, took in lines.items() if f";{way} (" in stack]
    assert all(stack.startswith("application (") for stack in lines)
    assert sum(inside) > 0.9 * total
    # py-spy and faulthandler may begin late.
    assert 300 <= total <= 3000


@pytest.mark.parametrize("form", ["svg", "speedscope"])
def test_formats_of_a_profile(serve: Serve, address: str, form: str, tmp_path: Path) -> None:
    server = serve(APP, "--admin", f"unix:{address}")
    with stuck(server, "in_python", tmp_path):
        found = ask(address, "profile", seconds=1, form=form)
    if form == "speedscope":
        document = json.loads(found["text"])
        names = [frame["name"] for frame in document["shared"]["frames"]]
        (profile,) = document["profiles"]
        assert len(profile["samples"]) == len(profile["weights"])
        assert max(map(max, profile["samples"])) == len(names) - 1
    else:
        root = ElementTree.fromstring(found["text"])
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags == {"svg", "title", "style", "text", "g", "rect"}
        names = [element.text or "" for element in root.iter() if element.tag.endswith("title")]
    assert any(name.startswith("in_python (") for name in names)


def test_why_py_spy_fails() -> None:
    """The last cause, without its number and what Rust adds."""
    causes = "Error: Failed\n\nCaused by:\n  0: Denied (os error 1)\n  1: Denied (os error 13)\n"
    for said in (causes, f"{causes}\nStack backtrace:\n   0: main\n"):
        assert py_spy.problem(said) == "py-spy: Denied (os error 13)"
    assert py_spy.problem("") == "py-spy has failed"


def test_py_spy_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may be in a folder of somebody else, with a PATH that names the current folder."""
    (tmp_path / "py-spy").write_text("#!/bin/sh\n")
    (tmp_path / "py-spy").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    for path in (".", "", ".:", "bin:."):
        monkeypatch.setenv("PATH", path)
        assert "is not installed" in py_spy.PySpy().problem
    monkeypatch.setenv("PATH", str(tmp_path))
    assert py_spy.PySpy().problem == ""


def test_names_that_are_hostile() -> None:
    """Names of functions and files may be anything: `exec` takes them from data."""
    name = "<script>&\"'\x1b[2J\x00\ud800\n;a"
    names = {f"application;{name}": 700, name: 1}
    assert all(line.isprintable() for line in collapsed(names).split("\n"))
    drawing = flame_graph.svg(names, f"of {name}")
    root = ElementTree.fromstring(drawing.encode())
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert "\x1b" not in drawing
    frame = {"file": name, "line": 1, "function": name}
    request = {"number": 1, "line": name, "seconds": 2.0, "thread": 0, "id": name}
    stack = {"name": name, "kind": "thread", "thread": 1, "state": "R", "idle": False}
    worker = {"pid": 1, "service": name, "index": 0, "how": "python", "note": name}
    stacks = [{**stack, "frames": [frame], "request": request}]
    row = {"what": name, "count": 1, "grew": 1, "size": 1, "size_grew": 1}
    heap = {**worker, "since": 1.0, "rss": 1, "pss": 1, "rows": [row]}
    shown = text.stacks({"workers": [{**worker, "stacks": stacks, "requests": [request]}]})
    shown += text.heap({"workers": [heap]})
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    shown.encode()


@pytest.mark.each_mode
def test_heap(serve: Serve, mode: str, address: str) -> None:
    """The first answer says what there is, the next one what has grown since."""
    server = serve(APP, "--admin", f"unix:{address}")
    ask(address, "heap")
    assert server.get("/grow").status == 200
    result = ask(address, "heap")
    for worker in result["workers"]:
        assert (worker["how"], worker["since"] > 0) == ("gc", True)
        assert "tracemalloc = 1" in worker["note"]
        assert worker["rss"] >= worker["pss"] > 1 << 20
    rows = [row for worker in result["workers"] for row in worker["rows"]]
    (kept,) = [row for row in rows if row["what"].endswith(".Kept")]
    assert (kept["grew"], kept["size"]) == (10_000, 0)
    assert kept["count"] >= 10_000
    assert re.search(r"^ +\d+ +\+10000 +\S+\.Kept$", text.heap(result), re.MULTILINE)


def test_heap_by_line(address: str) -> None:
    options = ("--admin", f"unix:{address}-traced", "--tracemalloc", "1")
    with Server(APP, "single", *options) as server:
        ask(f"{address}-traced", "heap")
        assert server.get("/grow").status == 200
        (worker,) = ask(f"{address}-traced", "heap")["workers"]
        assert (worker["how"], worker["note"]) == ("tracemalloc", "")
        row = worker["rows"][0]
        assert row["grew"] >= 10_000
        file, _, line = row["what"].rpartition(":")
        assert file == os.path.abspath(APP)
        assert "KEPT.extend" in Path(APP).read_text().splitlines()[int(line) - 1]
        assert row["size_grew"] > 10_000 * 16


def test_a_worker_that_is_stopped(address: str) -> None:
    """It cannot answer, which the answer says; the other workers are told as ever."""
    options = ("--admin", f"unix:{address}-stopped", "--workers", "2")
    with Server(APP, "single", *options, launcher=WITHOUT_PY_SPY) as server:
        pid = workers(server)[0]
        with stopped(pid):
            result = ask(f"{address}-stopped", "stacks")
            notes = {worker["pid"]: worker["note"] for worker in result["workers"]}
            assert notes.pop(pid).startswith("it is stopped (SIGSTOP, or a debugger)")
            assert list(notes.values()) == [""]
        # The signals that it got meanwhile end nothing.
        assert ask(f"{address}-stopped", "stacks", pid=pid)["workers"][0]["how"] == "python"


def test_what_is_refused(serve: Serve, address: str) -> None:
    server = serve(APP, "--admin", f"unix:{address}")
    for command, arguments, status in [
        ("stacks", {"pid": 1}, 404),
        ("profile", {}, 400),
        ("profile", {"seconds": 0}, 400),
        ("profile", {"seconds": 10**9}, 400),
        ("profile", {"seconds": 1, "form": "png"}, 400),
        ("heap", {"pid": os.getpid()}, 404),
    ]:
        body = json.dumps(arguments).encode()
        found, answer = http(address, "POST", f"/-/control/{command}", body)
        assert (found, answer["ok"]) == (status, False)
    assert workers(server)


def test_one_at_a_time(serve: Serve, address: str) -> None:
    """And whatever the first one does, the server stops when it is told to."""
    options = ("--admin", f"unix:{address}-stops")
    with Server(APP, "single", *options) as server:
        body = b'{"seconds": 300}'
        assert http(f"{address}-stops", "POST", "/-/control/profile", body)[0] == 202
        assert http(f"{address}-stops", "POST", "/-/control/stacks", b"{}")[0] == 409
        (worker,) = workers(server)
        assert server.get("/in_sleep?/").body == str(worker).encode()


@pytest.mark.parametrize(
    "answer", [5, [5], [{"frames": [["a", "b", "c"]]}], [{"frames": 1}], {"a": "b"}]
)
def test_an_answer_of_another_form(answer: object) -> None:
    """Code of the application may write it: it breaks the answers of no other worker."""
    assert collect._stacks(answer) == ([], "its answer cannot be read")
