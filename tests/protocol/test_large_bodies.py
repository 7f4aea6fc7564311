"""Large bodies of requests and responses: effects on others, temporary files, space, memory."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import psutil
import pytest

from tests.apps.long import BLOCK, BLOCKS
from tests.apps.streamed import summary
from tests.conftest import Serve
from tests.testkit.client import Connection, chunked
from tests.testkit.process import children, descriptors, limited, opened
from tests.testkit.server import Server, wait_for

#: Answers to `/hash` with the `summary` of the body.
APP = "tests/apps/streamed.py"


def body(length: int) -> bytes:
    """Something of this length in which no two places look the same."""
    return Random(length).randbytes(length)


def worker(server: Server) -> int:
    """The process that serves."""
    (pid,) = children(server.process.pid)
    return pid


@pytest.mark.parametrize("length", [20_000, 1_048_576, 1_048_577, 5_000_001])
def test_bodies_arrive_whole(length: int, serve: Serve) -> None:
    content = body(length)
    cuts = [0]
    while cuts[-1] < length:
        cuts.append(cuts[-1] + 1 + cuts[-1] * 7919 % 70_000)
    sent = chunked(*(content[begin:end] for begin, end in pairwise(cuts)))
    with serve(APP).connect() as connection:
        for _ in range(2):
            answer = connection.request("POST", "/hash", body=content)
            assert (answer.status, answer.body) == (200, summary(content))
            connection.send_request("POST", "/hash", "Transfer-Encoding: chunked")
            connection.send(sent)
            assert connection.response().body == summary(content)


def test_a_body_in_a_file_is_read_like_any_file(serve: Serve, tmp_path: Path) -> None:
    """In pieces, to its end, and as lines; 40 MB are read into huge pages."""
    app = tmp_path / "app.py"
    app.write_text("""
import io
from tests.apps.long import BLOCK, BLOCKS
from tests.apps.streamed import summary

def application(environ, start_response):
    source = environ["wsgi.input"]
    lines = [source.readline(), next(source), source.read(10), *source.readlines(30)]
    if environ["QUERY_STRING"] == "size":
        rest = source.read(int(environ["CONTENT_LENGTH"]) - source.tell())
    elif environ["QUERY_STRING"] == "into":
        rest = bytearray(50_000_000)
        del rest[source.readinto(rest):]
    else:
        rest = source.read(None) if environ["QUERY_STRING"] else source.read()
    content = b"".join(lines) + rest
    ends = source.read(), source.read(5), source.readline(), isinstance(source, io.BufferedIOBase)
    answer = f"{lines} {ends} {summary(content).decode()}".encode()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]
""")
    for length in (1_500_000, 40_000_000):
        content = (b"line of a body in a file, %d\n" % length) * (length // 34)
        line = content[: content.index(b"\n") + 1]
        ends = (b"", b"", b"", True)
        expected = f"{[line, line, line[:10], line[10:], line]} {ends} {summary(content).decode()}"
        with serve(str(app)).connect() as connection:
            for query in ("/", "/?size", "/?into", "/?none"):
                assert connection.request("POST", query, body=content).body.decode() == expected


def test_serving_threads_do_not_write_bodies(serve: Serve) -> None:
    """What a thread writes is counted by the kernel; psutil has that of processes only."""
    content = body(16 << 20)
    server = serve(APP, "--workers", "1")
    with server.connect() as connection:
        assert connection.request("POST", "/hash", body=content).body == summary(content)
        tasks = Path(f"/proc/{worker(server)}/task")
        written = {}
        for task in tasks.iterdir():
            with suppress(OSError):
                counted = dict(line.split(": ") for line in (task / "io").read_text().splitlines())
                written[task.name, (task / "comm").read_text().strip()] = int(counted["wchar"])
        for (_, name), count in written.items():
            assert name == "poorhttp-bodies" or count < 1 << 20, written


def test_unfinished_uploads_do_not_use_up_the_memory(mode: str, tmp_path: Path) -> None:
    """1,300 bodies, each too small for a file, under a limit of address space."""
    content = body(220_000)
    with ExitStack() as stack:
        stack.enter_context(limited(resource.RLIMIT_NOFILE, 8_000))
        threads = ("--threads", "2") if mode == "threading" else ()
        options = ("--workers", "1", "--temp-dir", str(tmp_path), *threads)
        server = stack.enter_context(Server(APP, mode, *options))
        process = worker(server)
        used = psutil.Process(process).memory_info().vms
        # For each thread that allocates, glibc reserves 64 MiB of addresses, and 128 for a moment.
        more = (456 if threads else 200) << 20
        resource.prlimit(process, resource.RLIMIT_AS, (used + more, resource.RLIM_INFINITY))
        uploads = []
        for _ in range(1_300):
            upload = stack.enter_context(server.connect())
            upload.send_request("POST", "/hash", f"Content-Length: {len(content)}")
            with suppress(ConnectionError):
                upload.send(content[:200_000])
            uploads.append(upload)
        assert server.request("POST", "/hash", body=b"x" * 1000).status == 200
        completed = 0
        for upload in uploads:
            with suppress(ConnectionError):
                upload.send(content[200_000:])
            answer = upload.response()
            if answer.status == 200:
                assert answer.body == summary(content)
                completed += 1
            else:
                assert answer.status == 503
        assert completed
        assert worker(server) == process


@dataclass(frozen=True)
class Lack:
    """What is missing for bodies, and what comes of it.

    Attributes:
        files: the largest file that the server may write; None if the folder of the files is gone.
        refused, kept: lengths of bodies that are refused, and that are not.
    """

    files: int | None
    options: tuple[str, ...]
    refused: int
    kept: int
    status: int


LACKS = {
    "folder": Lack(None, (), 2 << 20, 1_000, 507),
    "disk": Lack(600_000, ("--body-buffer-size", "256K"), 2 << 20, 300_000, 507),
    "memory": Lack(60_000, ("--body-memory", "0"), 100_000, 50_000, 503),
}


@pytest.mark.parametrize("lack", LACKS.values(), ids=LACKS)
def test_a_body_that_cannot_be_kept(mode: str, tmp_path: Path, lack: Lack) -> None:
    """It is refused with a line in the log; nothing else happens."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    most = lack.files or 1 << 40
    with limited(resource.RLIMIT_FSIZE, most):
        options = ("--workers", "1", *lack.options)
        server = Server(APP, mode, *options, env={"TMPDIR": str(folder)})
    with server:
        if lack.files is None:
            folder.rmdir()
        held = descriptors(worker(server))
        for _ in range(5):
            with server.connect() as connection:
                connection.send_request("POST", "/hash", f"Content-Length: {lack.refused}")
                # The server may answer before it has come.
                with suppress(ConnectionError):
                    connection.send(body(lack.refused))
                assert connection.response().status == lack.status
        server.wait_log("a request body cannot be stored", 5)
        kept = body(lack.kept)
        assert server.request("POST", "/hash", body=kept).body == summary(kept)
        assert not folder.exists() or not os.listdir(folder)
        wait_for(lambda: descriptors(worker(server)) <= held, "the end of temporary files")


def test_files_are_closed(mode: str, tmp_path: Path) -> None:
    """Whether the body is complete or its client leaves in the middle of it."""

    def files() -> list[str]:
        return [link for link in opened(worker(server)) if link.startswith(str(tmp_path))]

    content = body(2_000_000)
    with Server(APP, mode, "--workers", "1", "--temp-dir", str(tmp_path)) as server:
        with server.connect() as connection:
            assert connection.request("POST", "/hash", body=content).status == 200
            wait_for(lambda: not files(), "the end of the file of a complete body")
        with server.connect() as connection:
            connection.send_request("POST", "/hash", "Content-Length: 3000000")
            connection.send(content)
            wait_for(files, "the file of a body")
        wait_for(lambda: not files(), "the end of the file of a body whose client has left")


# Responses: spooled to temporary files for slow clients, also without space for them

LONG = "tests/apps/long.py"
REASON = "a response cannot be spooled"


def ask(server: Server, path: str) -> Connection:
    """A client that has asked, and reads nothing."""
    client = server.connect()
    client.send_request("GET", path)
    return client


def spooled(server: Server, folder: Path) -> int:
    """The bytes that the workers of `server` have in files in `folder`."""
    total = 0
    for pid in children(server.process.pid):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if os.readlink(link).startswith(str(folder)):
                    total += link.stat().st_size
    return total


def test_a_response_on_a_full_disk(mode: str, tmp_path: Path) -> None:
    """The answer arrives whole: its application waits for the client."""
    with limited(resource.RLIMIT_FSIZE, 600_000):
        server = Server(LONG, mode, "--temp-dir", str(tmp_path))
    with server:
        client = server.connect()
        for path in ("/pieces", "/chunks", "/written", "/list"):
            client.send_request("GET", path)
            server.wait_log(REASON)
            assert client.response().body == BLOCK * BLOCKS, path
            assert client.request("GET", path).body == BLOCK * BLOCKS, path
        assert server.log().count(REASON) == 1
        server.wait_log("File too large")
        assert "cut short" not in server.log()
        assert "the client left" not in server.log()


def test_responses_without_files(mode: str, tmp_path: Path) -> None:
    """With `spool_limit = 0` the application waits, and that is no news."""
    with Server(LONG, mode, "--temp-dir", str(tmp_path), "--spool-limit", "0") as server:
        client = ask(server, "/pieces")
        assert not client.at_end()
        assert "made /pieces" not in server.log()
        assert spooled(server, tmp_path) == 0
        assert client.response().body == BLOCK * BLOCKS
        server.wait_log("made /pieces")
        assert REASON not in server.log()


@pytest.mark.each_mode
def test_a_spooled_response(mode: str, tmp_path: Path) -> None:
    """Where there is room nobody waits for a client that reads nothing."""
    with Server(LONG, mode, "--temp-dir", str(tmp_path)) as server:
        client = ask(server, "/pieces")
        server.wait_log("made /pieces")
        assert spooled(server, tmp_path) > 0
        assert server.get("/list").status == 200
        assert client.response().body == BLOCK * BLOCKS
        wait_for(lambda: spooled(server, tmp_path) == 0, "the end of the file")


# In the other modes, an application that waits holds up all others of its worker.
@pytest.mark.parametrize("mode", ["threading", pytest.param("gevent", marks=pytest.mark.full)])
def test_budget_of_a_worker_for_responses(mode: str, tmp_path: Path) -> None:
    options = ("--temp-dir", str(tmp_path), "--spool-total", "4M", "--threads", "4")
    with Server(LONG, mode, *options) as server:
        clients = [ask(server, path) for path in ("/pieces", "/chunks", "/list")]
        server.wait_log(REASON)
        server.wait_log("spool_total")
        assert spooled(server, tmp_path) <= 4 << 20
        # Nobody else is held up.
        assert server.request("HEAD", "/pieces").status == 200
        for client in clients:
            assert client.response().body == BLOCK * BLOCKS
        assert server.log().count(REASON) == 1


def test_client_that_is_given_up(mode: str, tmp_path: Path) -> None:
    """It is the server that ends the connection, so nobody says that the client has left."""
    options = ("--temp-dir", str(tmp_path), "--spool-limit", "0", "--write-timeout", "0.2")
    with Server(LONG, mode, *options) as server:
        client = ask(server, "/pieces")
        server.wait_log("the client does not read its response")
        assert len(client.rest()) < len(BLOCK) * BLOCKS
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert "made /pieces" not in server.log()
        assert "the client left" not in server.log()
        server.ended()
