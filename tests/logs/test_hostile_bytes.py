"""Bytes of clients that try to forge lines or values, in every format of both logs."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest

from tests.testkit.cases.blocks import FOLDER, blocks
from tests.testkit.server import ROOT, Server

CASES = list(blocks([FOLDER / "logs" / "hostile.txt"], "hostile"))

TALKER = "tests/apps/talker.py"
# One thread, so that lines come in the order of the requests.
OPTIONS = ("--threads", "1", "--trusted-proxies", "127.0.0.1", "--request-id", "on")

#: Each atom with text of a client, in quotes.
ATOMS = (
    "%r", "%m", "%U", "%q", "%u", "%V", "%{User-Agent}i", "%{X-Any}i", "%{id}C", "%{id}L",
    "%{trace}L", "%{span}L", "%{X-Request-ID}o", "%{HTTP_X_ANY}e", "%{QUERY_STRING}e",
)  # fmt: skip
LINE = re.compile(
    rb"%s \d{3} \d+" % b" ".join([rb'"((?:[^"\\]|\\["\\]|\\x[0-9a-f]{2})*)"'] * len(ATOMS))
)

KEYS = [
    *("time", "remote_addr", "method", "target", "protocol", "host", "referer", "user_agent"),
    *("user", "worker", "status", "size", "uncoded_size", "complete", "sent", "received"),
    *("duration_us", "request", "request_id", "trace_id", "span_id", "kept", "pid"),
]
ERROR_KEYS = [
    *("time", "level", "pid", "worker", "logger", "message", "request", "request_id"),
    *("trace_id", "span_id", "exception"),
]


def requests(value: bytes, form: str) -> Iterator[tuple[str, bytes]]:
    """A place in a request for a value, and the request."""
    ask = b"GET /raise HTTP/1.1\r\nHost: a\r\n"
    yield "target", b"GET /" + value + b" HTTP/1.1\r\nHost: a\r\n\r\n"
    yield "query", b"GET /raise?" + quote(value).encode() + b" HTTP/1.1\r\nHost: a\r\n\r\n"
    if form == "json":
        # In the other format, what an application says is written as it is.
        yield "said", b"GET /say?" + quote(value + b"\n").encode() + b" HTTP/1.1\r\nHost: a\r\n\r\n"
    yield "method", value + b" / HTTP/1.1\r\nHost: a\r\n\r\n"
    yield "host", b"GET / HTTP/1.1\r\nHost: " + value + b"\r\n\r\n"
    user = b64encode(value.replace(b":", b"") + b":secret")
    yield "user", ask + b"Authorization: Basic " + user + b"\r\n\r\n"
    for name in ("User-Agent", "Referer", "X-Any", "X-Request-ID", "traceparent"):
        yield name, ask + name.encode() + b": " + value + b"\r\n\r\n"
    yield "cookie", ask + b"Cookie: a=b; id=" + value + b"\r\n\r\n"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The logs of two servers, in text and in JSON; cases and places of requests with statuses."""
    found: dict[str, Any] = {}
    for form in ("text", "json"):
        folder = tmp_path_factory.mktemp(form)
        line = " ".join(f'"{atom}"' for atom in ATOMS) + " %s %B"
        options = (
            *("--access-log", str(folder / "access"), "--error-log", str(folder / "error")),
            *("--access-log-format", line if form == "text" else "json"),
            *("--error-log-format", form),
        )
        with Server(TALKER, "threading", *OPTIONS, *options, tracebacks=True) as server:
            found[form] = []
            for case in CASES:
                for place, request in requests(case["hostile"], form):
                    with server.connect() as connection:
                        connection.send(request)
                        found[form].append((case, place, connection.response().status))
        for log in ("access", "error"):
            found[f"{log} {form}"] = (folder / log).read_bytes()
    return found


def test_lines_of_the_access_log(asked: dict[str, Any]) -> None:
    lines = asked["access text"].splitlines()
    assert len(lines) == len(asked["text"])
    for line, (case, place, status) in zip(lines, asked["text"], strict=True):
        match = LINE.fullmatch(line)
        assert match, (case["name"], place, line)
        assert line.rsplit(b" ", 2)[1] == str(status).encode()
    assert re.fullmatch(rb"[\n -~]*", asked["access text"])


def test_objects_of_the_access_log(asked: dict[str, Any]) -> None:
    assert asked["access json"].isascii()
    lines = asked["access json"].splitlines()
    assert len(lines) == len(asked["json"])
    for line, (case, place, status) in zip(lines, asked["json"], strict=True):
        entry = json.loads(line)
        assert list(entry) == KEYS
        assert entry["status"] == status
        value = case["hostile"].decode("latin-1")
        if place == "User-Agent" and status == 500:
            assert entry["user_agent"] == value.split("\r\n")[0]
        if place == "user" and status == 500:
            name = case["hostile"].replace(b":", b"")
            expected = {name.decode("latin-1"), name.decode("utf-8", "replace")}
            assert entry["user"] in expected
        assert re.fullmatch(r"[\w.~:=+/@-]{1,128}", entry["request_id"])


def test_lines_of_the_error_log(asked: dict[str, Any]) -> None:
    """A line of the server's own, or an indented one."""
    lines = asked["error text"].decode().split("\n")[:-1]
    begin = re.compile(r"\d{4}-\d\d-\d\dT[\d:]{8}Z \[\d+ (?:worker 1|main)\] \w+: |    ")
    assert all(begin.match(line) and line.isprintable() for line in lines)
    failed = [line for line in lines if re.search(r"^\S+ \[[^]]+\] error: request ", line)]
    assert len(failed) == sum(status == 500 for _, _, status in asked["text"])
    assert all(re.search(r" request \d+ \([\w.~:=+/@-]+\) GET /raise", line) for line in failed)


def test_objects_of_the_error_log(asked: dict[str, Any]) -> None:
    entries = [json.loads(line) for line in asked["error json"].decode().split("\n")[:-1]]
    assert all(list(entry) == ERROR_KEYS for entry in entries)
    failed = [entry for entry in entries if entry["level"] == "error" and entry["exception"]]
    assert len(failed) == sum(status == 500 for _, _, status in asked["json"])
    for entry in failed:
        assert entry["message"].startswith(f"request {entry['request']} ({entry['request_id']}) ")
        assert entry["exception"].startswith("Traceback (most recent call last):\n")
    spoken = [entry for entry in entries if entry["logger"] == "wsgi.errors"]
    said = [case for case, place, status in asked["json"] if (place, status) == ("said", 200)]
    assert len(said) > 10
    for entry, case in zip(spoken, said, strict=True):
        # The application decodes it as UTF-8.
        assert entry["message"] == case["hostile"].decode("utf-8", "replace").rstrip()
        assert entry["request_id"]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("loki.alloy", r'^\t+\w+ += "(\w+)",$'), ("filebeat.yml", r"(?<!dataset: )poorhttp\.(\w+)")],
)
def test_shippers_read_keys_that_lines_have(name: str, pattern: str) -> None:
    read = re.findall(pattern, (ROOT / "conf/logs" / name).read_text(), re.MULTILINE)
    assert len(read) > 5
    assert {*read} <= {*KEYS, *ERROR_KEYS}


def test_cloudwatch_reads_the_time_of_lines(asked: dict[str, Any]) -> None:
    config = json.loads((ROOT / "conf/logs/cloudwatch.json").read_text())
    collected = config["logs"]["logs_collected"]["files"]["collect_list"]
    for each, log in zip(collected, ("access", "error"), strict=True):
        assert each["file_path"].endswith(f"/{log}.log")
        found = re.search(r'"time":"[^."]+', asked[f"{log} json"].decode())
        assert found
        datetime.strptime(found[0], each["timestamp_format"])
