"""Published folders beside an application: precedence, and transfer of the files."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.testkit.client import BadResponse, Closed, Connection
from tests.testkit.process import files_of_workers
from tests.testkit.server import MODES, Server, alone, wait_for

ALONE = True

APP = "tests/apps/hog.py"

#: More than a socket takes at once.
LARGE = os.urandom(1 << 20) * 5
SMALL = b"small\n"


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small and a large file."""
    folder = tmp_path_factory.mktemp("public")
    (folder / "small.txt").write_bytes(SMALL)
    (folder / "large.bin").write_bytes(LARGE)
    for mode in MODES:
        (folder / f"written-{mode}.txt").write_bytes(b"before")
    return folder


@pytest.fixture
def server(serve: Serve, public: Path) -> Server:
    """A server of both."""
    return serve(APP, "--static", f"/static={public}")


def test_a_body_that_no_file_takes_need_not_be_sent(server: Server) -> None:
    with server.connect() as connection:
        connection.send_request("POST", "/static/small.txt", "Content-Length: 1000000000")
        answer = connection.response("POST")
        assert (answer.status, answer.get("Allow")) == (405, "GET, HEAD")
    with server.connect() as connection:
        assert connection.request("DELETE", "/static/small.txt").get("Allow") == "GET, HEAD"
        assert connection.request("GET", "/static/small.txt", body=b"not read").body == SMALL
        assert connection.request("GET", "/", body=b"read").json()["body"] == "read"


def test_a_file_that_shrinks_ends_the_connection(server: Server, public: Path) -> None:
    """Whenever that is noticed, it is said: also before the request itself is put away."""
    shrinking = public / "shrinking.bin"
    before = server.log().count("became shorter while it was sent")
    # Each ends it at another moment.
    times = 15
    for number in range(times):
        shrinking.touch()
        os.truncate(shrinking, 50 << 20)
        with server.connect() as connection:
            connection.send_request("GET", "/static/shrinking.bin")
            assert not connection.at_end()
            time.sleep(number / 15_000)
            os.truncate(shrinking, 0)
            with pytest.raises((BadResponse, Closed)):
                connection.response()
    shrinking.unlink()
    server.wait_log("became shorter while it was sent", before + times)


def test_changes_count_for_the_next_request(server: Server, public: Path) -> None:
    """Also those that keep size and time, and those by which another file takes the name."""
    changing = public / "changing.txt"
    old = 1_600_000_000
    with server.connect() as connection:

        def ask() -> bytes:
            answer = connection.request("GET", "/static/changing.txt")
            return answer.body if answer.status == 200 else b""

        for number in range(3):
            text = b"%08d" % number
            for file, content in ((changing, text), (public / "other.txt", text[::-1])):
                file.write_bytes(content)
                os.utime(file, (old, old))
                file.rename(changing)
                assert ask() == content
            changing.unlink()
            assert ask() == b""


def test_files_are_sent_while_the_interpreter_is_held(tmp_path: Path, public: Path) -> None:
    """In a thread of the reactor that needs no interpreter."""
    flag = tmp_path / "go-on.flag"
    server = Server(APP, "threading", "--static", f"/static={public}")
    with server, server.connect() as hog:
        hog.send_request("GET", f"/hog?{flag}")
        wait_for((tmp_path / "go-on.begun").exists, "the application holds the interpreter")
        try:
            assert server.get("/static/small.txt").body == SMALL
            assert server.get("/static/large.bin").body == LARGE
        finally:
            flag.touch()
        assert hog.response().status == 200


def test_requests_for_files_are_logged_like_others(tmp_path: Path, public: Path, mode: str) -> None:
    log = tmp_path / "access.log"
    options = ("--access-log", str(log), "--access-log-format", "json")
    with Server(f"static:{public}", mode, *options, *alone(mode)) as server:
        server.get("/small.txt")
        server.get("/none")
        server.request("HEAD", "/large.bin")
        server.get("/large.bin", "Range: bytes=1-3")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {(line["target"], line["status"], line["size"]) for line in lines} == {
        ("/small.txt", 200, len(SMALL)),
        ("/none", 404, len("404 Not Found: there is no such file\n")),
        ("/large.bin", 200, 0),
        ("/large.bin", 206, 3),
    }
    assert len(lines) == 4


@pytest.mark.each_mode
def test_a_download_is_finished_before_the_server_ends(public: Path, mode: str) -> None:
    server = Server(f"static:{public}", mode, "--drain-timeout", "0")
    with server, Connection(("127.0.0.1", server.port)) as connection:
        connection.send_request("GET", "/large.bin")
        assert not connection.at_end()
        server.process.send_signal(signal.SIGTERM)
        assert connection.response().body == LARGE
        assert server.wait() == 0
        server.ended()


def test_a_link_that_is_not_followed_is_a_line_in_the_log(
    public: Path, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "files/folder").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    links = {"escape": "../secret", "absolute": str(tmp_path / "secret"), "up": str(public)}
    for name, target in links.items():
        (tmp_path / "files" / name).symlink_to(target)
    (tmp_path / "files/dangling").symlink_to("nothing")
    for fallthrough, status in (("off", 404), ("on", 200)):
        options = ("--static", f"/static={tmp_path}/files", "--static-fallthrough", fallthrough)
        with Server(APP, mode, *options, *alone(mode)) as server:
            for name in ("dangling", "nothing", "escape", "absolute", "up", "up/small.txt"):
                assert server.get(f"/static/{name}").status == status
                if name.partition("/")[0] in links:
                    said = f"a symbolic link is absolute or leads out of {tmp_path}/files"
                    server.wait_log(f" warning: GET /static/{name}: {said}, and is not followed\n")
            assert server.log().count("symbolic link") == 4


# What needs files that have not changed for some seconds: last, so that nobody waits for that.


def test_what_an_application_writes_is_seen_behind_its_answer(
    server: Server, public: Path, tmp_path: Path, mode: str
) -> None:
    """Also by a request that had come before (RFC 9112 section 9.3.2)."""
    file, flag = public / f"written-{mode}.txt", tmp_path / "go-on.flag"
    # Until then it may change without a sign of it, and is not kept.
    wait_for(lambda: time.time() > file.stat().st_ctime + 4, "the file is old enough")
    paths = (f"/static/{file.name}", f"/hog?{flag}", f"/static/{file.name}")
    with server.connect() as connection:
        assert connection.request("GET", paths[0]).body == b"before"
        for path in paths:
            connection.send_request("GET", path)
        wait_for((tmp_path / "go-on.begun").exists, "the application runs")
        file.write_bytes(b"behind")
        flag.touch()
        answers = [connection.response().body for _ in paths]
    assert (answers[0], answers[2]) == (b"before", b"behind")


# The periods of the core are some seconds; its own tests have the cache (core/files).
@pytest.mark.full
def test_an_idle_worker_closes_files(public: Path) -> None:
    """Otherwise one that was removed would need its room on the disk until the next request."""
    file = public / "large.bin"
    with Server(f"static:{public}", "single") as server:

        def is_open() -> bool:
            return str(file.resolve()) in files_of_workers(server)

        def is_kept() -> bool:
            assert server.get("/large.bin").body == LARGE
            return is_open()

        wait_for(is_kept, "a file that has not changed for a while is kept open")
        wait_for(lambda: not is_open(), "the file is closed")
