"""Profiles of slow requests: their content and files, in every mode."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poorhttp.plugins.dev import profiler
from tests.support.development import answering, write
from tests.support.failure import says
from tests.testkit.client import Response
from tests.testkit.process import children
from tests.testkit.server import ROOT, Server, join

APP = "tests/apps/profiled.py"
NO_PIN = {"WERKZEUG_DEBUG_PIN": "off"}


@pytest.fixture
def server(mode: str, tmp_path: Path) -> Iterator[Server]:
    """The application, profiled into `tmp_path`."""
    env = {"PROFILES": str(tmp_path), "MODE": mode, **NO_PIN}
    with Server(APP, mode, env=env, tracebacks=True) as server:
        yield server


def pages(folder: Path) -> list[Path]:
    """The profiles, by the numbers of their requests."""
    return sorted(folder.iterdir(), key=lambda path: int(path.stem.partition("-")[2]))


def profiled(server: Server, name: str, *headers: str, host: str = "localhost") -> Response:
    """The answer to who asks for a profile."""
    target = name if name.startswith("/") else f"/__poorhttp__/profile/{name}"
    with server.connect() as connection:
        connection.host = host
        return connection.request("GET", target, *headers)


def session(page: str) -> Any:
    data, _ = json.JSONDecoder().raw_decode(page.partition("const sessionData = ")[2])
    return data


def times(page: str) -> dict[str, float]:
    found: dict[str, float] = {}

    def count(frame: Any) -> None:
        name = frame["identifier"].partition("\0")[0]
        found[name] = found.get(name, 0.0) + frame["time"]
        for child in frame["children"]:
            count(child)

    count(session(page)["frame_tree"])
    return found


@pytest.mark.each_mode
def test_what_took_long_is_in_the_profile(server: Server, tmp_path: Path) -> None:
    file = (ROOT / APP).read_bytes()
    targets = [
        ("/slow", "busy_head", 200, b"hello"),
        ("/body", "busy_body", 200, b"piece" * 3),
        ("/file", "busy_file", 200, file),
        ("/raise", "busy_head", 500, b"500 Internal Server Error\n"),
    ]
    with server.connect() as connection:
        # A quick request has no page.
        assert connection.request("GET", "/quick").body == b"hello"
        for number, (target, _, status, body) in enumerate(targets, start=2):
            response = connection.request("GET", target)
            assert (response.status, response.body) == (status, body)
            # It is there before the answer has ended, so that the request's line can name it.
            found = pages(tmp_path)
            assert len(found) == number - 1
            assert found[-1].stem.endswith(f"-{number}")
        assert connection.request("HEAD", "/body").body == b""
        assert connection.request("GET", "/nothing").status == 500
    server.wait_log("the application returned None")
    made = found
    for page, (target, function, *_) in zip(made, targets, strict=True):
        text = profiled(server, page.name)
        assert text.get("Content-Type") == "text/html; charset=utf-8"
        shown = text.body.decode()
        assert shown == page.read_text()
        assert times(shown)[function] >= 0.05
        assert session(shown)["session"]["target_description"] == f"GET {target}"
    # Of several at once, each has its own time, and not that of the others.
    for page in pages(tmp_path):
        page.unlink()
    threads = [threading.Thread(target=server.get, args=("/turns",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    join(*threads)
    each = [times(path.read_text()) for path in pages(tmp_path)]
    assert len(each) == 4
    for functions in each:
        assert functions["compute"] >= 0.02
        # pyinstrument takes a greenlet for a thread.
        assert len([name for name in functions if name.startswith(("Dummy-", "poorhttp-"))]) <= 1
    if server.mode == "gevent":
        assert any("[out-of-context]" in functions for functions in each)


def test_profiles_ask_for_the_pin(tmp_path: Path) -> None:
    (tmp_path / "1-2.html").write_text("shown")
    env = {"PROFILES": str(tmp_path), "WERKZEUG_DEBUG_PIN": "123-456-789"}
    with Server(APP, "threading", env=env) as server:
        page = profiled(server, "1-2.html")
        assert (page.status, b"Enter the PIN" in page.body) == (403, True)
        secret = page.body.decode().partition('s: "')[2].partition('"')[0]
        enter = f"1-2.html?__debugger__=yes&s={secret}&cmd=pinauth&pin="
        for pin, host, auth in (("1", "localhost", b"false"), ("123456789", "localhost", b"true")):
            answered = profiled(server, f"{enter}{pin}", host=host)
            assert b'"auth": ' + auth in answered.body
        assert answered.get("Set-Cookie")
        cookie = f"Cookie: {(answered.get('Set-Cookie') or '').partition(';')[0]}"
        assert profiled(server, "1-2.html", cookie).body == b"shown"
        for refused in (
            profiled(server, "1-2.html", "Cookie: a=b"),
            profiled(server, "1-2.html", cookie, host="evil.example"),
        ):
            assert refused.status == 403
            assert b"shown" not in refused.body


def test_pages_lead_nowhere_else(tmp_path: Path) -> None:
    outside, folder = tmp_path / "1-1.html", tmp_path / "profiles"
    write(tmp_path, {"1-1.html": "secret"})
    write(folder, {"1-2.html": "shown", ".1-2.html": "half a page"})
    with Server(APP, "single", env={"PROFILES": str(folder), **NO_PIN}) as server:
        assert profiled(server, "1-2.html").body == b"shown"
        for name in (
            *("1-1.html", "../1-1.html", "..%2f1-1.html", "%2e%2e/1-1.html", "/etc/passwd"),
            *(f"{outside}", ".1-2.html", "1-2.html/", "1-2", "%D9%A1-1.html", ""),
        ):
            response = profiled(server, f"/__poorhttp__/profile/{name}")
            assert response.status == 404, name
            assert b"there is no such profile" in response.body


def test_a_target_cannot_end_the_script_and_the_oldest_pages_go(tmp_path: Path) -> None:
    for number in range(profiler.MAX_PROFILES + 5):
        path = tmp_path / f"1-{number}.html"
        path.touch()
        os.utime(path, (number, number))
    with Server(APP, "single", env={"PROFILES": str(tmp_path)}) as server:
        server.get("/slow</script><script>alert('x')</script>")
        pid = children(server.process.pid)[0]
    left = {path.name for path in tmp_path.iterdir()}
    assert len(left) == profiler.MAX_PROFILES
    assert "1-5.html" not in left
    assert "1-6.html" in left
    text = (tmp_path / f"{pid}-1.html").read_text()
    assert "alert('x')" not in text
    assert text.count("</script>") == 2
    assert "/slow%3C/script%3E" in session(text)["session"]["target_description"]


def test_the_line_of_a_slow_request_says_where_its_profile_is(tmp_path: Path) -> None:
    app = answering("b'hello'", "import time\n")
    write(tmp_path, {"app.py": app.replace("    return", "    time.sleep(0.02)\n    return")})
    kept = tmp_path / "kept"
    kept.mkdir()
    options = ("--autoreload", "on", "--profile", "--slow-request", "0.01")
    env = {"TMPDIR": str(kept), **NO_PIN}
    arguments = ("--access-log", "terminal", "--log-level", "error", *options)
    with Server("app:application", "threading", *arguments, env=env, cwd=tmp_path) as server:
        assert server.get("/").body == b"hello"
        address = server.wait_line(re.compile(r"profile: (\S+)\n"))[1]
        root = f"http://127.0.0.1:{server.port}"
        assert address.startswith(f"{root}/__poorhttp__/profile/")
        assert "sleep" in times(profiled(server, address.removeprefix(root)).body.decode())
        server.stop()
    assert list(kept.iterdir()) == []


def test_without_autoreload_it_is_refused() -> None:
    """It would do nothing."""
    said = "only with autoreload, which is off; both are for development: poorhttp dev --profile"
    message = says(3, "serve", APP, "--bind", "127.0.0.1:0", "--profile")
    assert message == f"poorhttp: --profile: {said}\n"
