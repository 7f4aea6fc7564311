"""The access log: its formats and fields, in every mode."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.server import Server, wait_for

ANSWERS = "tests/apps/answers.py"

QUOTED = r'"((?:[^"\\]|\\["\\]|\\x[0-9a-f]{2})*)"'
COMMON = r"127\.0\.0\.1 - - \[([^]]+)\] " + QUOTED + r" (\d{3}) (\d+|-)"
COMBINED = COMMON + " " + QUOTED + " " + QUOTED


class Log:
    """A server with an access log, which is read when the server has stopped."""

    def __init__(self, mode: str, path: Path, line: str, *options: str) -> None:
        self.path = path
        options = ("--access-log", str(path), "--access-log-format", line, *options)
        self.server = Server(ANSWERS, mode, *options)

    def lines(self) -> list[str]:
        """Its lines. Whatever clients sent, they are printable ASCII."""
        self.server.stop()
        data = self.path.read_bytes()
        assert re.fullmatch(rb"(?:[\x20-\x7e]*\n)*", data), data
        return data.decode().splitlines()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


def test_common(mode: str, path: Path) -> None:
    log = Log(mode, path, "common")
    before = int(time.time())
    log.server.get("/one?a=b")
    log.server.get("/empty")
    log.server.request("HEAD", "/one")
    log.server.request("POST", "/no_content", body=b"x")
    after = time.time()
    found = []
    for line in log.lines():
        match = re.fullmatch(COMMON, line)
        assert match, line
        stamp, request, status, size = match.groups()
        # The time is that of a cached clock: it may lag behind a little.
        moment = datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z").timestamp()
        assert before - 2 <= moment <= after + 2
        found.append((request, status, size))
    assert sorted(found) == [
        ("GET /empty HTTP/1.1", "200", "-"),
        ("GET /one?a=b HTTP/1.1", "200", "5"),
        ("HEAD /one HTTP/1.1", "200", "-"),
        ("POST /no_content HTTP/1.1", "204", "-"),
    ]


def test_combined_is_the_default(mode: str, path: Path) -> None:
    with (
        Server(ANSWERS, mode, "--access-log", str(path)) as server,
        # One connection, so one worker: what two of them log is in no order.
        server.connect() as connection,
    ):
        connection.request("GET", "/one", "Referer: http://there/", "User-Agent: tester/1 (x)")
        connection.request("GET", "/several")
    first, second = path.read_text().splitlines()
    match = re.fullmatch(COMBINED, first)
    assert match
    assert match.groups()[1:] == (
        "GET /one HTTP/1.1", "200", "5", "http://there/", "tester/1 (x)",
    )  # fmt: skip
    match = re.fullmatch(COMBINED, second)
    assert match
    assert match.groups()[1:] == ("GET /several HTTP/1.1", "200", "13", "-", "-")


@pytest.mark.each_mode
def test_duration_and_running_number(mode: str, path: Path) -> None:
    """%D, the duration in microseconds, and %L, counted by each worker."""
    log = Log(mode, path, "%L %D %s %U", "--workers", "1")
    with log.server.connect() as connection:
        for _ in range(5):
            connection.request("GET", "/one")
    for _ in range(5):
        log.server.get("/one")
    log.server.get("/large_generated")
    lines = [line.split() for line in log.lines()]
    assert [int(number) for number, *_ in lines] == list(range(1, 12))
    # Of most of them the clock may not see that they take any time.
    assert all(int(duration) >= 0 for _, duration, *_ in lines)
    assert [line[2:] for line in lines] == [["200", "/one"]] * 10 + [["200", "/large_generated"]]


def test_other_directives(mode: str, path: Path) -> None:
    log = Log(mode, path, "%h|%m|%U|%q|%H|%>s|%B|%{X-Name}i|%{X-None}i|%%")
    log.server.get("/one?a=b", "X-Name: value")
    assert log.lines() == ["127.0.0.1|GET|/one|?a=b|HTTP/1.1|200|5|value|-|%"]


def test_json(mode: str, path: Path) -> None:
    log = Log(mode, path, "json")
    began = time.monotonic()
    log.server.get("/one?a=%22", 'User-Agent: \xe9\t"quoted" \\', "Referer: http://there/")
    log.server.request("POST", "/several", body=b"x")
    took_us = (time.monotonic() - began) * 1_000_000
    entries: list[dict[str, Any]] = [json.loads(line) for line in log.lines()]
    entries.sort(key=lambda entry: entry["method"])
    first = entries[0]
    assert first["remote_addr"] == "127.0.0.1"
    assert (first["method"], first["target"], first["status"]) == ("GET", "/one?a=%22", 200)
    assert (first["protocol"], first["size"]) == ("HTTP/1.1", 5)
    assert first["user_agent"] == '\xe9\t"quoted" \\'
    assert first["referer"] == "http://there/"
    assert type(first["duration_us"]) is int
    assert 0 <= first["duration_us"] <= took_us
    datetime.fromisoformat(first["time"].replace("Z", "+00:00"))
    assert (entries[1]["method"], entries[1]["size"]) == ("POST", 13)
    assert entries[1]["user_agent"] is None


@pytest.mark.each_mode
def test_lines_of_several_workers_do_not_mix(mode: str, path: Path) -> None:
    log = Log(mode, path, "common", "--workers", "2")
    connections = [log.server.connect() for _ in range(8)]
    for _ in range(100):
        for connection in connections:
            connection.send_request("GET", "/one?" + "x" * 200)
        for connection in connections:
            connection.response()
    for connection in connections:
        connection.close()
    lines = log.lines()
    assert len(lines) == 800
    assert all(re.fullmatch(COMMON, line) for line in lines)


def test_standard_output(mode: str) -> None:
    with Server(ANSWERS, mode, "--access-log", "-", "--access-log-format", "%m %U") as server:
        server.get("/one")
        # Somebody may be watching: the line comes while the server runs.
        wait_for(lambda: server.output() == "GET /one\n", "the line on standard output")


def test_off_is_the_default(mode: str) -> None:
    with Server(ANSWERS, mode) as server:
        server.get("/one")
        assert server.output() == ""
        assert "/one" not in server.log()
