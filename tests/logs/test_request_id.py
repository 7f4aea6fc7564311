"""`request_id`: ids in the environ, in responses, and on every line about a request."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.client import Response
from tests.testkit.server import ROOT, Server, wait_for

IDENTIFIED = "tests/apps/identified.py"
ON = ("--request-id", "on")
MADE = re.compile(r"[0-9a-f]{16}")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE[0]}-{TRACE[1]}-01"


def id_of(response: Response) -> str:
    """The id in a response and the environ of its request, which are equal."""
    found = response.get("X-Request-ID")
    assert found is not None
    seen = response.json()
    assert seen["HTTP_X_REQUEST_ID"] == found
    return found


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def json_logs(folder: Path) -> tuple[str, ...]:
    """The options that write both logs as JSON into a folder."""
    access, error = str(folder / "access"), str(folder / "error")
    formats = ("--access-log-format", "json", "--error-log-format", "json")
    return ("--access-log", access, "--error-log", error, *formats, *ON)


def test_off_is_the_default(mode: str) -> None:
    with Server(IDENTIFIED, mode) as server:
        response = server.get("/", "X-Request-ID: theirs")
        assert response.get("X-Request-ID") is None
        assert response.json()["HTTP_X_REQUEST_ID"] == "theirs"


@pytest.mark.each_mode
def test_each_request_has_another(mode: str, tmp_path: Path) -> None:
    """Also the repeated ones of a connection, and after a restart."""
    found: list[str] = []
    for _ in range(2):
        with Server(IDENTIFIED, mode, *json_logs(tmp_path)) as server:
            connection = server.connect()
            found += [id_of(connection.request("GET", "/")) for _ in range(20)]
    assert len(set(found)) == 40
    assert all(MADE.fullmatch(each) for each in found)
    logged = entries(tmp_path / "access")
    assert [entry["request_id"] for entry in logged] == found


def test_failure(mode: str, tmp_path: Path) -> None:
    options = (*json_logs(tmp_path), "--workers", "1")
    with Server(IDENTIFIED, mode, *options, tracebacks=True) as server:
        response = server.get("/raise?x", f"traceparent: {TRACEPARENT}")
        assert response.status == 500
        wait_for(lambda: "ValueError" in (tmp_path / "error").read_text(), "the traceback")
    made = response.get("X-Request-ID")
    (access,) = entries(tmp_path / "access")
    (error,) = [entry for entry in entries(tmp_path / "error") if entry["level"] == "error"]
    for entry in (access, error):
        assert (entry["request"], entry["request_id"]) == (1, made)
        assert (entry["trace_id"], entry["span_id"]) == TRACE
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"])
    assert error["message"] == (
        f"request 1 ({made}) GET /raise?x: the application failed: ValueError: told"
    )
    assert error["worker"] == access["worker"] == "worker 1"
    assert error["pid"] == access["pid"]
    assert error["exception"].endswith("\nValueError: told")
    assert error["logger"] == "poorhttp.error"


def test_ids_of_proxies(mode: str) -> None:
    trust = ("--trusted-proxies", "127.0.0.1")
    with Server(IDENTIFIED, mode, *ON, *trust) as server, server.connect() as connection:
        for theirs in ("0f-_.~:=+/@Z", "x" * 128, "1"):
            for _ in range(3):
                assert id_of(connection.request("GET", "/", f"X-Request-ID: {theirs}")) == theirs
        for theirs in ("", "a b", "a,b", "a(b", '"', "x" * 129, "\xe9"):
            response = connection.request("GET", "/", f"X-Request-ID: {theirs}")
            assert MADE.fullmatch(id_of(response)), theirs
        twice = connection.request("GET", "/", "X-Request-ID: a", "X-Request-ID: b")
        assert MADE.fullmatch(id_of(twice))
        # Refused with a known head.
        response = connection.request("GET", "/", "X-Request-ID: a", "Content-Length: 9000000000")
        assert (response.status, response.get("X-Request-ID")) == (413, "a")


def test_without_proxies(mode: str) -> None:
    """Ids of others are replaced, that of the application is kept."""
    with Server(IDENTIFIED, mode, *ON) as server:
        assert MADE.fullmatch(id_of(server.get("/", "X-Request-ID: theirs")))
        assert server.get("/own").get_all("X-Request-ID") == ["mine"]


def test_responses_of_the_server_itself(mode: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    times = ("--request-timeout", "0.2", "--slow-request", "0.1")
    options = ("--static", f"/files={tmp_path}", *times)
    with Server(IDENTIFIED, mode, *json_logs(tmp_path), *options, tracebacks=True) as server:
        static = server.get("/files/file").get("X-Request-ID")
        with server.connect() as connection:
            connection.send(b"GET / HTTP/1.1\r\n\r\n")
            refused = connection.response().get("X-Request-ID")
        late = server.get("/nap")
        assert late.status in (500, 504)
        timed_out = late.get("X-Request-ID")
        wait_for(lambda: "waiting for a thread" in (tmp_path / "error").read_text(), "the slow log")
    by_status = {entry["status"]: entry["request_id"] for entry in entries(tmp_path / "access")}
    assert by_status == {200: static, 400: refused, late.status: timed_out}
    assert all(MADE.fullmatch(made) for made in by_status.values())
    errors = entries(tmp_path / "error")
    about = {entry["request_id"]: entry["message"] for entry in errors if entry["request_id"]}
    assert f"({refused}) of 127.0.0.1:" in about[refused or ""]
    texts = [entry["message"] for entry in errors if entry["request_id"] == timed_out]
    assert any("(request_timeout) the application is in" in text for text in texts)
    assert any("waiting for a thread" in text for text in texts)
    (stack,) = [entry["exception"] for entry in errors if "is in /" in entry["message"]]
    assert "time.sleep(0.1)" in stack


@pytest.mark.parametrize("mode", ["threading", "gevent"])
def test_what_the_application_logs(mode: str) -> None:
    """Requests that run at the same time keep theirs apart; the configuration is in conf/logs."""
    config = ("--log-config", str(ROOT / "conf/logs/logging.json"))
    options = (*config, "--access-log", "-", "--access-log-format", "json", *ON)
    with Server(IDENTIFIED, mode, *options) as server:
        with ThreadPoolExecutor(4) as pool:
            asked = pool.map(lambda number: server.get(f"/log?{number}"), range(4))
            ids = {str(number): id_of(response) for number, response in enumerate(asked)}
        assert server.get("/raise", f"traceparent: {TRACEPARENT}").status == 500
        for key in ('"/raise"', '"exception": "'):
            wait_for(lambda key=key: key in server.output(), key)  # type: ignore[misc]
        wait_for(lambda: server.output().endswith("\n"), "a whole line")
        found = [json.loads(line) for line in server.output().splitlines()]
    for logger, said in (("wsgi.errors", "said"), ("identified", "logged")):
        logged = {entry["message"]: entry for entry in found if entry.get("logger") == logger}
        for number, made in ids.items():
            assert logged[f"{said} {number}"]["request_id"] == made
            assert logged[f"{said} {number}"]["worker"] == "worker 1"
    (own,) = [entry for entry in found if entry.get("message") == "logged 2"]
    assert (own["level"], own["number"], own["tags"]) == ("warning", "2", "['a']")
    access = {entry["target"]: entry for entry in found if "target" in entry}
    assert access["/log?3"]["request_id"] == ids["3"]
    (failed,) = [entry for entry in found if entry.get("exception")]
    assert access["/raise"]["request_id"] == failed["request_id"]
    assert failed["exception"].endswith("\nValueError: told")
    assert (failed["trace_id"], failed["logger"]) == (TRACE[0], "poorhttp.error")
    started = [entry for entry in found if entry.get("logger") == "poorhttp.error"]
    assert all(entry["time"].endswith("Z") for entry in started)


def test_traces_that_are_not_valid(mode: str, tmp_path: Path) -> None:
    values = ["", "00", TRACEPARENT.upper(), TRACEPARENT.replace("a", "\xe9"), TRACEPARENT + "-x"]
    with Server(IDENTIFIED, mode, *json_logs(tmp_path)) as server:
        for value in values:
            assert server.get("/", f"traceparent: {value}").json()["HTTP_TRACEPARENT"] == value
    found = [(entry["trace_id"], entry["span_id"]) for entry in entries(tmp_path / "access")]
    assert found == [(None, None)] * len(values)
