"""Sizes and states in the access log: bytes taken by the kernel, complete or not."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.apps.long import BLOCK, BLOCKS
from tests.logs.log_files import ANSWERS, CLOSE, Logged

LONG = "tests/apps/long.py"
FORMAT = "%m %U %s %B %O %X"


def content(answer: bytes) -> int:
    """The length of what stands behind the head of an answer."""
    return len(answer.partition(b"\r\n\r\n")[2])


def test_whole_answers(mode: str, tmp_path: Path) -> None:
    expected: list[str] = []
    with Logged(ANSWERS, mode, tmp_path, FORMAT) as server:
        for path in ("/one", "/several", "/empty", "/large", "/many_pieces"):
            answer = server.ask(path, fields=CLOSE).rest()
            head = server.ask(path, "HEAD", CLOSE).rest()
            expected += [
                f"GET {path} 200 {content(answer)} {len(answer)} -",
                f"HEAD {path} 200 0 {len(head)} -",
            ]
            assert server.wait_lines(len(expected)) == expected


def test_pieces(mode: str, tmp_path: Path) -> None:
    """The content is counted without the framing of chunks, all bytes are counted with it."""
    with Logged(ANSWERS, mode, tmp_path, FORMAT) as server:
        for number, path in enumerate(("/generated", "/large_generated", "/generated_length")):
            client = server.ask(path)
            length = len(client.response().body)
            answer = server.ask(path, fields=CLOSE).rest()
            lines = server.wait_lines(2 * number + 2)[-2:]
            assert lines[0].startswith(f"GET {path} 200 {length} ")
            assert lines[0].endswith(" +")
            assert lines[1] == f"GET {path} 200 {length} {len(answer)} -"


def test_pipeline(mode: str, tmp_path: Path) -> None:
    """Answers that are gathered are logged one by one, in their order, when they have been sent."""
    paths = ["/one", "/several", "/large", "/generated", "/pair", "/one"]
    with Logged(ANSWERS, mode, tmp_path, FORMAT) as server, server.connect() as client:
        requests = [b"GET %s HTTP/1.1\r\nHost: a\r\n" % path.encode() for path in paths]
        client.send(b"\r\n".join(requests) + CLOSE + b"\r\n")
        sent = len(client.rest())
        lines = [line.split() for line in server.wait_lines(len(paths))]
        assert [line[1] for line in lines] == paths
        assert [line[5] for line in lines] == ["+"] * 5 + ["-"]
        assert sum(int(line[4]) for line in lines) == sent


def test_one_answer(mode: str, tmp_path: Path) -> None:
    """An interim response is no part of it; a refusal is one, too."""
    with Logged(ANSWERS, mode, tmp_path, FORMAT) as server:
        fields = b"Content-Length: 3\r\nExpect: 100-continue\r\n" + CLOSE
        client = server.ask("/one", "POST", fields)
        assert client.interim() == 100
        client.send(b"abc")
        answer = client.rest()
        assert server.wait_lines(1) == [f"POST /one 200 5 {len(answer)} -"]
        refusal = server.ask("/one", fields=b"Content-Length: x\r\n").rest()
        assert server.wait_lines(2)[1] == f"- - 400 {content(refusal)} {len(refusal)} -"


def test_client_that_leaves(mode: str, tmp_path: Path) -> None:
    """Of an answer that is not taken to its end only that counts which the kernel has taken."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "large").write_bytes(BLOCK * BLOCKS)
    with Logged(LONG, mode, tmp_path, FORMAT, "--static", f"/file={files}") as server:
        for number, path in enumerate(("/pieces", "/chunks", "/list", "/file/large")):
            client = server.ask(path)
            # Or the kernel may take all of the answer for it, where that may be 32 MiB.
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 10)
            got = b""
            while len(got) < 1_000_000:
                got += client.socket.recv(65536)
            client.reset()
            method, logged, status, size, sent, state = server.wait_lines(number + 1)[-1].split()
            assert (method, logged, status, state) == ("GET", path, "200", "X")
            assert content(got) <= int(sent)
            assert int(size) < int(sent) < len(BLOCK) * BLOCKS


@pytest.mark.each_mode
def test_line_is_written_when_all_is_sent(mode: str, tmp_path: Path) -> None:
    with Logged(LONG, mode, tmp_path, FORMAT) as server:
        client = server.ask("/pieces")
        server.wait_log("made /pieces")
        assert server.request("HEAD", "/list").status == 200
        assert server.wait_lines(1)[0].startswith("HEAD /list ")
        assert client.response().body == BLOCK * BLOCKS
        line = server.wait_lines(2)[1]
        assert line.startswith(f"GET /pieces 200 {len(BLOCK) * BLOCKS} ")
        assert line.endswith(" +")


def test_client_that_is_given_up(mode: str, tmp_path: Path) -> None:
    with Logged(LONG, mode, tmp_path, FORMAT, "--write-timeout", "0.2") as server:
        client = server.ask("/pieces")
        line = server.wait_lines(1)[0]
        assert line.endswith(" X")
        assert int(line.split()[4]) < len(BLOCK) * BLOCKS
        assert len(client.rest()) < len(BLOCK) * BLOCKS


def test_application_that_fails_within_an_answer(mode: str, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(
        "def application(environ, start_response):\n"
        "    start_response('200 OK', [('Content-Length', '10')])\n"
        "    yield b'12345'\n"
        "    if environ['PATH_INFO'] == '/wrong':\n"
        "        yield 'no bytes'\n"
    )
    app = str(tmp_path / "fails.py")
    with Logged(app, mode, tmp_path, FORMAT, tracebacks=True) as server:
        for number, path in enumerate(("/short", "/wrong")):
            answer = server.ask(path).rest()
            assert server.wait_lines(number + 1)[-1] == f"GET {path} 200 5 {len(answer)} X"


def test_json(mode: str, tmp_path: Path) -> None:
    with Logged(LONG, mode, tmp_path, "json") as server:
        answer = server.ask("/list", fields=CLOSE).rest()
        client = server.ask("/list")
        assert not client.at_end()
        client.reset()
        whole, cut = map(json.loads, server.wait_lines(2))
        assert (whole["size"], whole["sent"]) == (content(answer), len(answer))
        assert whole["complete"] is True
        assert cut["complete"] is False
        assert cut["size"] < whole["size"]
