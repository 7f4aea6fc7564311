"""Sizes and states in the access log: bytes taken by the kernel, complete or not."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.apps.long import BLOCK, BLOCKS
from tests.testkit.client import Connection
from tests.testkit.server import Server, wait_for

ANSWERS = "tests/apps/answers.py"
LONG = "tests/apps/long.py"
FORMAT = "%m %U %s %B %O %X"
CLOSE = b"Connection: close\r\n"


class Log:
    """A server whose access log tells what was sent."""

    def __init__(
        self, mode: str, app: str, folder: Path, *options: str, line: str = FORMAT
    ) -> None:
        self.path = folder / "access.log"
        logged = ("--access-log", str(self.path), "--access-log-format", line)
        self.server = Server(app, mode, "--workers", "1", *logged, *options)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *details: object) -> None:
        self.server.__exit__(*details)

    def lines(self, count: int) -> list[str]:
        """The lines, of which `count` are waited for."""
        wait_for(lambda: len(self.path.read_text().splitlines()) >= count, f"{count} lines")
        lines = self.path.read_text().splitlines()
        assert len(lines) == count
        return lines

    def ask(self, target: str, method: str = "GET", fields: bytes = b"") -> Connection:
        """A client that has asked, and has not read anything."""
        client = self.server.connect()
        head = f"{method} {target} HTTP/1.1\r\nHost: a\r\n".encode()
        client.send(head + fields + b"\r\n")
        return client


def content(answer: bytes) -> int:
    """The length of what stands behind the head of an answer."""
    return len(answer.partition(b"\r\n\r\n")[2])


def test_whole_answers(mode: str, tmp_path: Path) -> None:
    expected: list[str] = []
    with Log(mode, ANSWERS, tmp_path) as log:
        for path in ("/one", "/several", "/empty", "/large", "/many_pieces"):
            answer = log.ask(path, fields=CLOSE).rest()
            head = log.ask(path, "HEAD", CLOSE).rest()
            expected += [
                f"GET {path} 200 {content(answer)} {len(answer)} -",
                f"HEAD {path} 200 0 {len(head)} -",
            ]
            assert log.lines(len(expected)) == expected


def test_pieces(mode: str, tmp_path: Path) -> None:
    """The content is counted without the framing of chunks, all bytes are counted with it."""
    with Log(mode, ANSWERS, tmp_path) as log:
        for number, path in enumerate(("/generated", "/large_generated", "/generated_length")):
            client = log.ask(path)
            length = len(client.response().body)
            answer = log.ask(path, fields=CLOSE).rest()
            lines = log.lines(2 * number + 2)[-2:]
            assert lines[0].startswith(f"GET {path} 200 {length} ")
            assert lines[0].endswith(" +")
            assert lines[1] == f"GET {path} 200 {length} {len(answer)} -"


def test_pipeline(mode: str, tmp_path: Path) -> None:
    """Answers that are gathered are logged one by one, in their order, when they have been sent."""
    paths = ["/one", "/several", "/large", "/generated", "/pair", "/one"]
    with Log(mode, ANSWERS, tmp_path) as log, log.server.connect() as client:
        requests = [b"GET %s HTTP/1.1\r\nHost: a\r\n" % path.encode() for path in paths]
        client.send(b"\r\n".join(requests) + CLOSE + b"\r\n")
        sent = len(client.rest())
        lines = [line.split() for line in log.lines(len(paths))]
        assert [line[1] for line in lines] == paths
        assert [line[5] for line in lines] == ["+"] * 5 + ["-"]
        assert sum(int(line[4]) for line in lines) == sent


def test_continue_is_no_part_of_an_answer(mode: str, tmp_path: Path) -> None:
    with Log(mode, ANSWERS, tmp_path) as log:
        fields = b"Content-Length: 3\r\nExpect: 100-continue\r\n" + CLOSE
        client = log.ask("/one", "POST", fields)
        assert client.interim() == 100
        client.send(b"abc")
        answer = client.rest()
        assert log.lines(1) == [f"POST /one 200 5 {len(answer)} -"]


def test_refusal(mode: str, tmp_path: Path) -> None:
    with Log(mode, ANSWERS, tmp_path) as log:
        answer = log.ask("/one", fields=b"Content-Length: x\r\n").rest()
        assert log.lines(1) == [f"- - 400 {content(answer)} {len(answer)} -"]


def test_client_that_leaves(mode: str, tmp_path: Path) -> None:
    """Of an answer that is not taken to its end only that counts which the kernel has taken."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "large").write_bytes(BLOCK * BLOCKS)
    with Log(mode, LONG, tmp_path, "--static", f"/file={files}") as log:
        for number, path in enumerate(("/pieces", "/chunks", "/list", "/file/large")):
            client = log.ask(path)
            # Or the kernel may take all of the answer for it, where that may be 32 MiB.
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 10)
            got = b""
            while len(got) < 1_000_000:
                got += client.socket.recv(65536)
            client.reset()
            method, logged, status, size, sent, state = log.lines(number + 1)[-1].split()
            assert (method, logged, status, state) == ("GET", path, "200", "X")
            assert content(got) <= int(sent)
            assert int(size) < int(sent) < len(BLOCK) * BLOCKS


@pytest.mark.each_mode
def test_line_is_written_when_all_is_sent(mode: str, tmp_path: Path) -> None:
    with Log(mode, LONG, tmp_path) as log:
        client = log.ask("/pieces")
        log.server.wait_log("made /pieces")
        assert log.server.request("HEAD", "/list").status == 200
        assert log.lines(1)[0].startswith("HEAD /list ")
        assert client.response().body == BLOCK * BLOCKS
        line = log.lines(2)[1]
        assert line.startswith(f"GET /pieces 200 {len(BLOCK) * BLOCKS} ")
        assert line.endswith(" +")


def test_client_that_is_given_up(mode: str, tmp_path: Path) -> None:
    with Log(mode, LONG, tmp_path, "--write-timeout", "0.2") as log:
        client = log.ask("/pieces")
        line = log.lines(1)[0]
        assert line.endswith(" X")
        assert int(line.split()[4]) < len(BLOCK) * BLOCKS
        assert len(client.rest()) < len(BLOCK) * BLOCKS


def test_application_that_fails_within_an_answer(mode: str, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(
        "def application(environ, start_response):\n"
        "    start_response('200 OK', [('Content-Length', '10')])\n"
        "    yield b'12345'\n"
    )
    with Log(mode, str(tmp_path / "fails.py"), tmp_path) as log:
        answer = log.ask("/").rest()
        assert log.lines(1) == [f"GET / 200 5 {len(answer)} X"]


def test_json(mode: str, tmp_path: Path) -> None:
    with Log(mode, LONG, tmp_path, line="json") as log:
        answer = log.ask("/list", fields=CLOSE).rest()
        client = log.ask("/list")
        assert not client.at_end()
        client.reset()
        whole, cut = map(json.loads, log.lines(2))
        assert (whole["size"], whole["sent"]) == (content(answer), len(answer))
        assert whole["complete"] is True
        assert cut["complete"] is False
        assert cut["size"] < whole["size"]
