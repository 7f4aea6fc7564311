"""HTTP/2 over real connections: requests and responses as in HTTP/1.1, in every mode (RFC 9113)."""

from __future__ import annotations

import json
import os
import re
from itertools import product
from pathlib import Path

import pytest

from tests.apps.streamed import summary
from tests.conftest import Serve
from tests.support.certificate import certificate
from tests.support.http2_client import Client, Stream, client, tls
from tests.testkit.client import Connection
from tests.testkit.server import Program, Server, alone, command, run

ALONE = True

ECHO = "tests/apps/echo.py"
ANSWERS = "tests/apps/answers.py"
STREAMED = "tests/apps/streamed.py"
ON = "--http2=on"
#: Bodies are received while the application runs, in this folder.
STREAM = "--stream-request-body=/streamed"

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

#: More than the windows of a connection at its beginning.
BODY = bytes(range(256)) * 5_000

#: Codes of errors (RFC 9113 section 7).
NO_ERROR, INTERNAL_ERROR, CANCEL = 0, 2, 8


def text_of(stream: Stream) -> dict[str, str]:
    """The environ that the application `ECHO` has got."""
    assert stream.status == 200, stream
    return dict(json.loads(stream.body)["environ"])


# Ways in

#: Who may speak HTTP/2, by the values of the option: without TLS, without TLS from a trusted proxy,
#: over a Unix socket, by ALPN.
WAYS = {
    "off": (False, False, False, False),
    "tls": (False, False, False, True),
    "trusted": (False, True, True, True),
    "on": (True, True, True, True),
}


@pytest.mark.parametrize("value", WAYS)
def test_ways_in(value: str, folder: Path, tmp_path: Path) -> None:
    bind = (f"unix:{folder}/s", "https://127.0.0.1:0", "127.0.0.1:0")
    certificate().write(tmp_path / "pem")
    plain, from_proxy, unix, alpn = WAYS[value]
    for trusted in (False, True):
        trust = ("--trusted-proxies", "127.0.0.1") if trusted else ()
        options = (f"--http2={value}", *trust, "--tls-certificate", str(tmp_path / "pem"))
        with Server(ECHO, "threading", *options, *alone("threading"), bind=bind) as server:
            places: list[tuple[tuple[str, int] | str, bool]] = [
                (("127.0.0.1", server.port_of("http")), from_proxy if trusted else plain),
                (f"{folder}/s", unix),
            ]
            for address, admitted in places:
                if admitted:
                    with Client(address) as made:
                        assert text_of(made.get("/"))["SERVER_PROTOCOL"] == "HTTP/2"
                    continue
                with Connection(address) as connection:
                    connection.send(PREFACE)
                    assert connection.response().status == 505
                    assert value != "trusted" or "http2 = trusted" in server.log()
            with tls(server, "h2", "http/1.1") as sock:
                assert sock.selected_alpn_protocol() == ("h2" if alpn else "http/1.1")
                if alpn:
                    stream = Client(sock).post("/", BODY)
                    assert text_of(stream)["wsgi.url_scheme"] == "https"
                    assert json.loads(stream.body)["body"].encode("latin-1") == BODY
            for names in (("http/1.1",), ("http/1.0",), ()):
                with tls(server, *names) as sock:
                    assert sock.selected_alpn_protocol() == (names[0] if names else None)
                    sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    assert sock.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_preface_behind_a_proxy_header(serve: Serve) -> None:
    server = serve(ECHO, "--trusted-proxies=127.0.0.1", "--proxy-protocol=on")
    header = b"PROXY TCP4 192.0.2.7 192.0.2.8 1234 80\r\n"
    with client(server, first=header) as made:
        assert text_of(made.get("/"))["REMOTE_ADDR"] == "192.0.2.7"
    with server.connect() as connection:
        connection.send(header + PREFACE[:20])
        # The rest of the preface is missing, and the client sends nothing else for it.
        connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"no preface of HTTP/2" in connection.rest()


# Requests and responses as in HTTP/1.1


@pytest.mark.each_mode
def test_responses(serve: Serve) -> None:
    server = serve(ANSWERS, ON)
    names = re.findall(r"^def (\w+)\(environ", Path(ANSWERS).read_text(), re.MULTILINE)
    with client(server) as made:
        for name in names[:-1]:
            for method in ("GET", "HEAD"):
                stream = made.get(f"/{name}", method=method)
                other = server.request(method, f"/{name}")
                assert (stream.status, stream.reset) == (other.status, None)
                assert stream.body == other.body
                ours = [(key.lower(), value) for key, value in other.headers]
                dropped = ("connection", "transfer-encoding", "date")
                expected = [field for field in ours if field[0] not in dropped]
                assert [field for field in stream.headers if field[0] != "date"] == expected
                assert stream.get("date")


def test_the_environ(serve: Serve) -> None:
    server = serve(ECHO, ON)
    fields = (("user-agent", "me"), ("cookie", "a=1"), ("cookie", "b=2"), ("x-one", "a"))
    lines = ("User-Agent: me", "Cookie: a=1; b=2", "X-One: a")
    length = ("content-length", str(len(BODY)))
    target = "/a%20b?c=d"
    with client(server) as made, server.connect() as connection:
        for stream, other in (
            (made.get(target, *fields), connection.request("GET", target, *lines)),
            (
                made.post(target, BODY, *fields, length),
                connection.request("POST", target, *lines, body=BODY),
            ),
        ):
            ours, theirs = json.loads(stream.body), other.json()
            assert ours["body"] == theirs["body"]
            different = {key for key, _ in ours["environ"].items() ^ theirs["environ"].items()}
            assert different <= {"SERVER_PROTOCOL", "REMOTE_PORT", "HTTP_HOST"}, different
            assert ours["environ"]["SERVER_PROTOCOL"] == "HTTP/2"


@pytest.mark.each_mode
def test_uploads(serve: Serve) -> None:
    length = ("content-length", str(len(BODY)))
    ways = ("hash", "whole", "pieces", "lines")
    with client(serve(STREAMED, ON, STREAM)) as made:
        for folder, fields, way in product(("", "/streamed"), ((), (length,)), ways):
            stream = made.post(f"{folder}/{way}", BODY, *fields)
            assert (stream.status, stream.body, stream.reset) == (200, summary(BODY), None)


@pytest.mark.each_mode("single")
def test_uploads_beside_one_that_rests(serve: Serve) -> None:
    """It has a wide window, for which those of others are held, but only while it goes on."""
    length = ("content-length", str(len(BODY)))
    with client(serve(STREAMED, ON)) as made:
        rests = made.begin("/hash", length, method="POST", ended=False)
        made.send(rests, BODY[:10])
        made.until(lambda: made.room(rests) > 1_000_000)
        others = [made.begin("/hash", length, method="POST", ended=False) for _ in range(3)]
        for other in others:
            made.send(other, BODY, ended=True)
        made.send(rests, BODY[10:], ended=True)
        for stream in (*others, rests):
            assert (made.whole(stream).status, stream.body) == (200, summary(BODY))


@pytest.mark.each_mode("single")
def test_an_upload_that_rests_holds_up_others_once(serve: Serve) -> None:
    """When it goes on, a later one has a wide window at once."""
    length = ("content-length", str(len(BODY)))
    with client(serve(STREAMED, ON)) as made:
        rests = made.begin("/hash", length, method="POST", ended=False)
        made.send(rests, BODY[:10])
        made.until(lambda: made.room(rests) > 1_000_000)
        held = made.post("/hash", BODY, length)
        made.send(rests, BODY[10:100])
        made.ping()
        later = made.begin("/hash", length, method="POST", ended=False)
        made.until(lambda: made.room(later) > 1_000_000)
        for stream, rest in ((rests, BODY[100:]), (later, BODY)):
            made.send(stream, rest, ended=True)
        for stream in (held, rests, later):
            assert (made.whole(stream).status, stream.body) == (200, summary(BODY))


def test_uploads_that_wait_for_a_thread_hold_up_none_that_has_one(serve: Serve) -> None:
    """They fill the window of the connection, and the application waits for the first."""
    with client(serve(STREAMED, ON, STREAM, "--threads=2")) as made:
        uploads = [made.begin("/streamed/whole", method="POST", ended=False) for _ in range(20)]
        made.ping()
        sent = dict.fromkeys((upload.number for upload in uploads), 0)
        for upload in reversed(uploads):
            sent[upload.number] = min(made.room(upload), 200_000)
            made.send(upload, BODY[: sent[upload.number]])
        made.ping()
        for upload in uploads:
            made.send(upload, BODY[sent[upload.number] :], ended=True)
            assert (made.whole(upload).status, upload.body) == (200, summary(BODY))


def test_an_echo_while_it_comes(serve: Serve) -> None:
    with client(serve(STREAMED, ON, STREAM)) as made:
        stream = made.begin("/streamed/echo", method="POST", ended=False)
        for piece in (b"one", b"two", b"three"):
            made.send(stream, piece)
            made.until(lambda piece=piece: stream.body.endswith(piece))  # type: ignore[misc]
        made.send(stream, ended=True)
        assert made.whole(stream).body == b"onetwothree"


def test_expectations_and_hints(serve: Serve) -> None:
    server = serve(ECHO, ON)
    with client(server) as made:
        stream = made.begin("/", ("expect", "100-continue"), method="POST", ended=False)
        made.until(lambda: stream.interim)
        made.send(stream, b"body", ended=True)
        assert json.loads(made.whole(stream).body)["body"] == "body"
        assert [each[":status"] for each in stream.interim] == ["100"]
    server = serve("tests/apps/hinting.py", ON, "--early-hints=on")
    with client(server) as made:
        stream = made.get("/gate?/")
        assert [each[":status"] for each in stream.interim] == ["103", "103"]
        assert stream.interim[1]["x-other"] == "1"
        assert stream.body == b"done"


#: Requests that the server refuses beside those of tests/cases, and their statuses.
REFUSED: dict[str, tuple[tuple[str, str], bytes, int]] = {
    "long line": ((":path", "/" + 200 * "a"), b"", 414),
    "long field": (("x-long", 200 * "a"), b"", 431),
    "many fields": (("x-many", "a"), b"", 431),
    "large body": (("x-one", "a"), 2_000 * b"a", 413),
    "announced": (("content-length", "2000"), b"a", 413),
    "websocket": ((":protocol", "websocket"), b"", 501),
}


def test_refusals(serve: Serve) -> None:
    small = ("--max-request-line=100", "--max-header-size=150", "--max-headers=30")
    server = serve(ECHO, ON, "--max-body=1000", *small)
    with client(server) as made:
        for name, (field, body, status) in REFUSED.items():
            before = server.log_size()
            method = "CONNECT" if name == "websocket" else "POST" if body else "GET"
            pseudo = {":method": method, ":scheme": "http", ":authority": "a", ":path": "/"}
            fields = [field] * (40 if name == "many fields" else 1)
            if field[0].startswith(":"):
                pseudo[field[0]], fields = field[1], []
            stream = made.begin_with([*pseudo.items(), *fields], ended=not body)
            if body:
                made.send(stream, body, ended=True)
            made.until(lambda: stream.status and stream.is_over)  # noqa: B023
            assert stream.status == status, name
            assert stream.body.decode().startswith(f"{status} ")
            # The other streams go on.
            assert made.get("/after").status == 200
            assert f"refused with {status}" in server.log(before)


def test_slow_clients(serve: Serve) -> None:
    server = serve(ECHO, ON, "--body-timeout=0.2", "--write-timeout=0.2", "--header-timeout=0.3")
    with client(server) as made:
        stream = made.begin("/", method="POST", ended=False)
        assert made.whole(stream).status == 408
        assert made.get("/after").status == 200
        made.send_part_of_a_head()
        assert made.ends() == [(NO_ERROR, stream.number + 2)]
    large = serve(ANSWERS, ON, "--write-timeout=0.2")
    with client(large, window=100_000, reads=False) as made:
        stream = made.begin("/large")
        assert made.whole(stream).reset == CANCEL
        assert 65_535 <= len(stream.body) <= 100_000
        assert made.get("/one").body == b"hello"


def test_a_scheme_of_tls_without_tls(serve: Serve) -> None:
    """HAProxy writes `https` whatever its clients speak: it is neither refused nor believed."""
    for trusted in ("127.0.0.1", "192.0.2.1"):
        server = serve(ECHO, ON, "--trusted-proxies", trusted)
        pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")]
        with client(server) as made:
            for said in ((), (("x-forwarded-proto", "https"),)):
                stream = made.whole(made.begin_with([*pseudo, *said]))
                is_believed = said and trusted == "127.0.0.1"
                scheme = "https" if is_believed else "http"
                assert text_of(stream)["wsgi.url_scheme"] == scheme


def test_files(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    """tests/content/test_static_cases.py has what differs from one request to the next."""
    folder = tmp_path_factory.mktemp("files")
    large = bytes(range(256)) * 16_000
    (folder / "large.bin").write_bytes(large)
    (folder / "small.txt").write_bytes(b"small" * 1_000)
    server = serve(ECHO, ON, f"--static=/f={folder}", "--compress=on")
    with client(server) as made:
        for _ in range(2):
            part = made.get("/f/large.bin", ("range", "bytes=1000-3000999"))
            assert (part.status, part.body) == (206, large[1000:3_001_000])
            coded = made.get("/f/small.txt", ("accept-encoding", "gzip"))
            assert coded.get("content-encoding") == "gzip"
            assert len(coded.body) < 1_000
        assert made.post("/f/small.txt", b"body").status == 405
        many = [made.begin("/f/large.bin") for _ in range(5)]
        assert all(made.whole(stream).body == large for stream in many)


def test_a_file_that_becomes_shorter_while_it_is_sent(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    file.write_bytes(b"content" * 200_000)
    server = serve(ECHO, ON, f"--static=/f={tmp_path}")
    before = server.log().count("became shorter while it was sent")
    with client(server, window=70_000, reads=False) as made:
        stream = made.begin("/f/large.bin")
        made.until(lambda: len(stream.body) >= 65_535)
        os.truncate(file, 500_001)
        made.reads = True
        made.read(stream)
        made.until(lambda: stream.reset is not None)
        assert stream.body[:500_001] == (b"content" * 200_000)[:500_001]
        server.wait_log("became shorter while it was sent", before + 1)
        assert made.get("/after").status == 200


def test_what_an_application_does(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(BODY)
    deliverer = serve("tests/apps/deliverer.py", ON, f"--x-sendfile={tmp_path}")
    with client(deliverer) as made:
        assert made.get(f"/?header=X-Sendfile:+{tmp_path}/file").body == BODY
    bare = serve("tests/apps/pep3333.py:bare", ON, tracebacks=True)
    with client(bare) as made:
        assert made.get("/file").body == b"0123456789" * 30_000
        assert made.get("/written_and_returned").body == b"one two three"
        # It fails before it answers, and within its answer.
        assert made.get("/no-such-path").status == 500
        for name in ("/raised_midway", "/raised_midway_length"):
            stream = made.get(name)
            assert (stream.status, stream.body, stream.reset) == (200, b"part", INTERNAL_ERROR)
    with client(serve("tests/apps/environ_texts.py", ON)) as made:
        # No other protocol can be spoken on a stream.
        assert "poorhttp.upgrade" not in json.loads(made.get("/").body)


def test_the_development_server(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "def application(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [environ['SERVER_PROTOCOL'].encode()]\n"
    )
    words = command("dev", "app:application", "--bind", "127.0.0.1:0", "--https")
    with Program(*words, cwd=tmp_path, env={"HOME": str(tmp_path)}, merged=True) as dev:
        found = dev.wait_line(re.compile(r"https://[\w.]+:(\d+)"))
        curl = ("curl", "--silent", "--insecure", "--http2", f"https://127.0.0.1:{found[1]}/")
        assert run(*curl).stdout == "HTTP/2"


def test_clients_of_others(serve: Serve, tmp_path: Path) -> None:
    server = serve(ANSWERS, ON)
    url = f"http://127.0.0.1:{server.port}"
    curl = ("curl", "--silent", "--http2-prior-knowledge")
    assert run(*curl, f"{url}/several").stdout == "one two three"
    urls = [f"{url}/{name}" for name in ("one", "large", "generated", "many_pieces")]
    found = run("nghttp", "--stat", "--null-out", *urls).stdout
    assert found.count(" 200 ") == len(urls)
    echo = f"http://127.0.0.1:{serve(ECHO, ON).port}/"
    large = tmp_path / "large"
    large.write_bytes(b"0123456789" * 100_000)
    told = json.loads(run(*curl, "--data-binary", f"@{large}", echo).stdout)
    assert told["body"] == large.read_text()
