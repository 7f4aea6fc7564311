"""`wsgi.errors`: no application can close it, and the text of each request ends its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.each_value import DIFFERENT, each_value
from tests.testkit.server import Server, wait_for

pytestmark = pytest.mark.each_mode

APPLICATION = """\
import logging, os, sys, time

def application(environ, start_response):
    stream, query = environ["wsgi.errors"], environ["QUERY_STRING"]
    path = environ["PATH_INFO"]
    if path == "/do":
        try:
            exec({
                "close": "stream.close()",
                "with": "with stream: pass",
                "detach": "stream.detach()",
                "buffer": "stream.buffer.close()",
                "raw": "stream.buffer.raw.close()",
                "standard": "sys.stderr.close(); sys.stdout.close()",
                "shutdown": "logging.shutdown()",
                "descriptor": "os.close(2)",
            }[query])
        except (OSError, AttributeError):
            pass  # refused: this log is no file, or the stream belongs to the server
    elif path == "/meet":
        # Two requests write by turns.
        open(query, "w").close()
        other = query[:-1] + str(1 - int(query[-1]))
        for number in range(3):
            print(f"{query[-1]}{number}", end=" ", file=stream)
            open(f"{query}.{number}", "w").close()
            while not os.path.exists(f"{other}.{number}"):
                time.sleep(0.001)
    else:
        print(query, end="", file=stream)
        if path == "/fail":
            raise ValueError("expected")
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"answered"]
"""

#: What an application may do to end the stream, on purpose or not.
ENDS = ("close", "with", "detach", "buffer", "raw", "standard", "shutdown", "descriptor")

LOGS = {"stderr": ("-", "text"), "file": ("error.log", "text"), "json": ("error.log", "json")}


class Talking(Server):
    """A server of the application with one of `LOGS`."""

    def __init__(self, mode: str, folder: Path, log: str) -> None:
        (folder / "app.py").write_text(APPLICATION)
        place, form = LOGS[log]
        self._file = None if place == "-" else folder / place
        options = ("--error-log", place, "--error-log-format", form)
        super().__init__("app.py", mode, *options, cwd=folder, tracebacks=True)

    def text(self) -> str:
        return self._file.read_text() if self._file else self.log()

    def wait_text(self, text: str) -> None:
        wait_for(lambda: text in self.text(), f"{text!r} in the log")


@pytest.mark.parametrize(("mode", "log"), each_value(DIFFERENT, LOGS), indirect=["mode"])
def test_a_stream_that_was_closed_is_written(mode: str, log: str, tmp_path: Path) -> None:
    with Talking(mode, tmp_path, log) as server, server.connect() as connection:
        for end in ENDS:
            assert connection.request("GET", f"/do?{end}").status == 200, end
            assert connection.request("GET", f"/say?after-{end}").status == 200, end
            server.wait_text(f"after-{end}")


@pytest.mark.parametrize(
    ("mode", "log"), [*each_value(DIFFERENT, LOGS), ("asyncio", "file")], indirect=["mode"]
)
def test_text_without_a_line_end_is_not_joined(mode: str, log: str, tmp_path: Path) -> None:
    with Talking(mode, tmp_path, log) as server, server.connect() as connection:
        for number in range(3):
            assert connection.request("GET", f"/say?part-{number}").status == 200
            # Before the next request.
            server.wait_text(f"part-{number}")
        assert connection.request("GET", "/fail?failing").status == 500
        text = server.text()
        lines = [line for line in text.splitlines() if "part-" in line or "failing" in line]
        assert [line.count("part-") for line in lines if "part-" in line] == [1, 1, 1]
        if log != "json":
            assert [line for line in lines if "part-" in line] == ["part-0", "part-1", "part-2"]
            server.wait_text("\nfailing\n")


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("mode", ["threading", "gevent"])
def test_requests_at_the_same_time_have_lines_of_their_own(
    mode: str, log: str, tmp_path: Path
) -> None:
    with Talking(mode, tmp_path, log) as server:
        connections = [server.connect(), server.connect()]
        for number, connection in enumerate(connections):
            connection.send_request("GET", f"/meet?{tmp_path}/turn{number}")
        assert [each.response().status for each in connections] == [200, 200]
        for text in ("00 01 02", "10 11 12"):
            server.wait_text(text)
