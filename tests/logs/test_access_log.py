"""The access log: its formats and fields, in every mode."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.logs.log_files import ANSWERS, Logged
from tests.testkit.server import Server, wait_for

QUOTED = r'"((?:[^"\\]|\\["\\]|\\x[0-9a-f]{2})*)"'
COMMON = r"127\.0\.0\.1 - - \[([^]]+)\] " + QUOTED + r" (\d{3}) (\d+|-)"
COMBINED = COMMON + " " + QUOTED + " " + QUOTED


def test_common(mode: str, tmp_path: Path) -> None:
    before = int(time.time())
    with Logged(ANSWERS, mode, tmp_path, "common") as server:
        server.get("/one?a=b")
        server.get("/empty")
        server.request("HEAD", "/one")
        server.request("POST", "/no_content", body=b"x")
        after = time.time()
    found = []
    for line in server.lines():
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


def test_combined_is_the_default(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    with (
        Server(ANSWERS, mode, "--access-log", str(path)) as server,
        # One connection, so one worker: what two of them log is in no order.
        server.connect() as connection,
    ):
        connection.request("GET", "/one", "Referer: http://there/", "User-Agent: tester/1 (x)")
        connection.request("GET", "/several")
    found = [re.fullmatch(COMBINED, line) for line in path.read_text().splitlines()]
    assert [match and match.groups()[1:] for match in found] == [
        ("GET /one HTTP/1.1", "200", "5", "http://there/", "tester/1 (x)"),
        ("GET /several HTTP/1.1", "200", "13", "-", "-"),
    ]


@pytest.mark.each_mode
def test_duration_and_running_number(mode: str, tmp_path: Path) -> None:
    """%D, the duration in microseconds, and %L, counted by each worker."""
    with Logged(ANSWERS, mode, tmp_path, "%L %D %s %U") as server:
        with server.connect() as connection:
            for _ in range(5):
                connection.request("GET", "/one")
        for _ in range(5):
            server.get("/one")
        server.get("/large_generated")
    lines = [line.split() for line in server.lines()]
    assert [int(number) for number, *_ in lines] == list(range(1, 12))
    # Of most of them the clock may not see that they take any time.
    assert all(int(duration) >= 0 for _, duration, *_ in lines)
    assert [line[2:] for line in lines] == [["200", "/one"]] * 10 + [["200", "/large_generated"]]


def test_json(mode: str, tmp_path: Path) -> None:
    began = time.monotonic()
    with Logged(ANSWERS, mode, tmp_path, "json") as server:
        server.get("/one?a=%22", 'User-Agent: \xe9\t"quoted" \\', "Referer: http://there/")
        server.request("POST", "/several", body=b"x")
        took_us = (time.monotonic() - began) * 1_000_000
    entries: list[dict[str, Any]] = [json.loads(line) for line in server.lines()]
    first, second = sorted(entries, key=lambda entry: entry["method"])
    expected = {
        "remote_addr": "127.0.0.1",
        "method": "GET",
        "target": "/one?a=%22",
        "status": 200,
        "protocol": "HTTP/1.1",
        "size": 5,
        "user_agent": '\xe9\t"quoted" \\',
        "referer": "http://there/",
    }
    assert {key: first[key] for key in expected} == expected
    assert type(first["duration_us"]) is int
    assert 0 <= first["duration_us"] <= took_us
    datetime.fromisoformat(first["time"].replace("Z", "+00:00"))
    assert (second["method"], second["size"], second["user_agent"]) == ("POST", 13, None)


@pytest.mark.each_mode
def test_lines_of_several_workers_do_not_mix(mode: str, tmp_path: Path) -> None:
    with Logged(ANSWERS, mode, tmp_path, "common", "--workers", "2") as server:
        connections = [server.connect() for _ in range(8)]
        for _ in range(100):
            for connection in connections:
                connection.send_request("GET", "/one?" + "x" * 200)
            for connection in connections:
                connection.response()
    lines = server.lines()
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
