"""Reads request bodies while they come (`stream_request_body`), in the way that the path names."""

from __future__ import annotations

import hashlib
import io
import os
import threading
from typing import BinaryIO

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse, wait_for_file
from tests.apps.echo import application as echo_application


def whole(source: BinaryIO) -> bytes:
    return source.read()


def pieces(source: BinaryIO) -> bytes:
    return b"".join(iter(lambda: source.read(1_000), b""))


def large(source: BinaryIO) -> bytes:
    return b"".join(iter(lambda: source.read(1 << 20), b""))


def lines(source: BinaryIO) -> bytes:
    return source.readline() + b"".join(source.readlines(100)) + b"".join(source)


def into(source: BinaryIO) -> bytes:
    room, found = bytearray(300_000), b""
    while length := source.readinto(room):  # type: ignore[attr-defined]
        found += room[:length]
    return found


def available(source: BinaryIO) -> bytes:
    found = b""
    while piece := source.read1():  # type: ignore[attr-defined]
        found += piece
    return found


WAYS = {way.__name__: way for way in (whole, pieces, large, lines, into, available)}


def summary(content: bytes) -> bytes:
    """What is answered for a body."""
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}".encode()


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer with length and hash of the body, or as the path says."""
    log, source, query = environ["wsgi.errors"], environ["wsgi.input"], environ["QUERY_STRING"]
    name = environ["PATH_INFO"].rpartition("/")[2]
    log.write(f"entered {name} {query}\n")

    def answer(status: str, text: bytes) -> list[bytes]:
        start_response(status, [TEXT, ("Content-Length", str(len(text)))])
        return [text]

    if name in WAYS:
        return answer("200 OK", summary(WAYS[name](source)))
    if name == "kind":
        kind, length = type(source).__name__, environ.get("CONTENT_LENGTH")
        return answer("200 OK", f"{kind} {length} {len(source.read())}".encode())
    if name == "hash":
        hashed, length = hashlib.sha256(), 0
        while piece := source.read(1 << 20):
            hashed.update(piece)
            length += len(piece)
        return answer("200 OK", f"{length} {hashed.hexdigest()}".encode())
    if name == "refuse":
        return answer("413 Content Too Large", b"no")
    if name == "first":
        return answer("200 OK", source.read(1))
    if name == "echo":
        start_response("200 OK", [TEXT])
        return iter(source.read1, b"")
    if name == "announced":
        content = source.read(int(environ["CONTENT_LENGTH"]))
        start_response("200 OK", [TEXT])
        return iter([summary(content)])
    if name == "started":
        start_response("200 OK", [TEXT, ("X-Early", "yes")])
        return [summary(source.read())]
    if name == "caught":
        try:
            source.read()
        except OSError as error:
            log.write(f"caught {type(error).__name__}: {error}\n")
            return answer("400 Bad Request", b"caught")
        return answer("200 OK", b"nothing was wrong")
    if name == "later":
        threading.Thread(target=read_later, args=(source, query, log)).start()
        return answer("200 OK", b"later")
    if name == "beside":
        found: list[bytes] = []
        threads = [threading.Thread(target=lambda: found.append(source.read(10))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answer("200 OK", b" ".join(sorted(found)))
    if name == "forked":
        pid = os.fork()
        if not pid:
            try:
                source.read()
            except ValueError:
                os._exit(3)
            os._exit(4)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return answer("200 OK", f"{code} ".encode() + summary(source.read()))
    return answer("404 Not Found", b"")


def read_later(source: io.BufferedReader, path: str, log: io.TextIOBase) -> None:
    """Read when the request has been answered, and the file exists."""
    wait_for_file(path)
    try:
        log.write(f"read later: {source.read()!r}\n")
    except ValueError as error:
        log.write(f"too late: {error}\n")


def echo(environ: Environ, start_response: StartResponse) -> Pieces:
    """Receive the whole body, and answer as `tests/apps/echo.py` does."""
    body = environ["wsgi.input"].read()
    environ["wsgi.input"] = io.BytesIO(body)
    if body:
        environ.setdefault("CONTENT_LENGTH", str(len(body)))
    return echo_application(environ, start_response)
