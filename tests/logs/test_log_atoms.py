"""Directives of the access log: response fields, cookies, variables, times, names, bytes, users."""

from __future__ import annotations

import gzip
import re
import time
from base64 import b64encode
from pathlib import Path

from tests.support.failure import says
from tests.testkit.server import Server, wait_for

IDENTIFIED = "tests/apps/identified.py"


class Log:
    """A server with a format, and its lines."""

    def __init__(self, mode: str, folder: Path, line: str, *options: str, app: str = IDENTIFIED):
        self.path = folder / "access.log"
        logged = ("--access-log", str(self.path), "--access-log-format", line)
        self.server = Server(app, mode, "--workers", "1", *logged, *options, tracebacks=True)

    def wait(self, lines: int) -> None:
        """Wait for so many: that of a request may be written after those of later ones."""
        wait_for(lambda: len(self.path.read_text("ascii").splitlines()) == lines, f"{lines} lines")

    def lines(self) -> list[str]:
        """All lines, when the server has stopped."""
        self.server.stop()
        return self.path.read_text("ascii").splitlines()


def test_response_fields(mode: str, tmp_path: Path) -> None:
    log = Log(mode, tmp_path, "%{X-Answer}o|%{x-twice}o|%{Content-Length}o|%{Server}o|%{No}o")
    length = len(log.server.get("/").body)
    log.wait(1)
    log.server.get("/raise")
    log.wait(2)
    with log.server.connect() as connection:
        connection.send(b"nonsense\r\n\r\n")
        refused = connection.response()
        assert refused.status == 400
    assert log.lines() == [
        f"4 2|a, b|{length}|poorhttp|-",
        "-|-|26|poorhttp|-",
        f"-|-|{len(refused.body)}|poorhttp|-",
    ]


def test_variables(mode: str, tmp_path: Path) -> None:
    """Also those that the application has set, and in every way in which it can end."""
    names = (
        "identified.user",
        "identified.number",
        "identified.object",
        "REQUEST_METHOD",
        "HTTP_X_A",
        "NO",
    )
    log = Log(mode, tmp_path, "|".join(f"%{{{name}}}e" for name in names))
    log.server.request("POST", "/", "X-A: b\xe9", body=b"x")
    log.wait(1)
    log.server.get("/raise")
    log.wait(2)
    with log.server.connect() as connection:
        connection.send(b"nonsense\r\n\r\n")
        connection.response()
    mine = r"anna \"a\"|42|-"
    assert log.lines() == [rf"{mine}|POST|b\xe9|-", f"{mine}|GET|-|-", "-|-|-|-|-|-"]


def test_variables_are_read_when_a_body_has_ended(mode: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "def application(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    environ['start_response'] = start_response\n"
        "    yield b'1'\n"
        "    environ['end'] = 'reached'\n"
    )
    log = Log(mode, tmp_path, "%{end}e", app=str(tmp_path / "app.py"))
    log.server.get("/")
    assert log.lines() == ["reached"]


def test_requests(mode: str, tmp_path: Path) -> None:
    log = Log(mode, tmp_path, "%{id}C|%u|%v|%V|%p|%I %S %O|%r")
    head = b"POST /x?y HTTP/1.1\r\nHost: shop.example:8080\r\n"
    anna = b64encode("ann\xe4:secret".encode())
    sent = [
        head + b"Cookie: a=b; id=4711; c\r\nContent-Length: 5\r\n\r\nhello",
        head + b"Cookie: idx=1\r\nCookie: id = 4 \r\nAuthorization: Basic " + anna + b"\r\n\r\n",
        head + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ]
    for each in sent:
        with log.server.connect() as connection:
            connection.send(each)
            assert connection.response().status == 200
    port = log.server.urls.rpartition(":")[2]
    found = [line.split("|") for line in log.lines()]
    assert [line[0] for line in found] == ["4711", "4", "-"]
    assert [line[1] for line in found] == ["-", r"ann\xc3\xa4", "-"]
    assert {tuple(line[2:5]) for line in found} == {("127.0.0.1", "shop.example", port)}
    sizes = [[int(each) for each in line[5].split()] for line in found]
    # Of a chunked body the framing does not count.
    assert [received for received, _, _ in sizes] == [len(sent[0]), len(sent[1]), len(sent[2]) - 10]
    assert all(received + out == both for received, both, out in sizes)


def test_names_behind_a_proxy(mode: str, tmp_path: Path) -> None:
    log = Log(mode, tmp_path, "%v:%p", "--trusted-proxies", "127.0.0.1")
    forwarded = ("X-Forwarded-Host: shop.example", "X-Forwarded-Proto: https")
    log.server.get("/", *forwarded, "X-Forwarded-Port: 8443")
    log.server.get("/", *forwarded)
    assert log.lines() == ["shop.example:8443", "shop.example:443"]


def test_times(mode: str, tmp_path: Path) -> None:
    line = "%D %{us}T %{ms}T %T %{s}T %{sec}t %{msec}t %{iso}t"
    log = Log(mode, tmp_path, line, app="tests/apps/slow.py")
    before = int(time.time() * 1_000)
    log.server.get("/briefly?1.1")
    (found,) = log.lines()
    after = time.time() * 1_000
    *numbers, iso = found.split()
    us, same, ms, s, seconds, sec, msec = map(int, numbers)
    assert us == same >= 1_000_000
    assert (ms, s, seconds) == (us // 1_000, us // 1_000_000, us // 1_000_000)
    # The clock may have ticks of 10 ms.
    assert before - 20 <= msec <= after + 20
    assert sec == msec // 1_000
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", iso)


def test_compression(mode: str, tmp_path: Path) -> None:
    text = b"all work and no play makes Jack a dull boy\n" * 1_000
    (tmp_path / "text.txt").write_bytes(text)
    (tmp_path / "app.py").write_text(
        "text = b'all work and no play makes Jack a dull boy\\n'\n"
        "def application(environ, start_response):\n"
        "    start_response('200 OK', [('Content-Type', 'text/plain')])\n"
        "    whole = [text * 1000]\n"
        "    return whole if environ['PATH_INFO'] == '/whole' else (text for _ in range(1000))\n"
    )
    line = "%U %B %{outstream}n %{instream}n %{ratio}n"
    options = ("--compress=gzip", "--static", f"/files={tmp_path}")
    log = Log(mode, tmp_path, line, *options, app=str(tmp_path / "app.py"))
    for path in ("/whole", "/pieces", "/files/text.txt"):
        response = log.server.get(path, "Accept-Encoding: gzip")
        assert gzip.decompress(response.body) == text
    log.server.get("/whole")
    lines = [line.split() for line in log.lines()]
    # Lines of requests on different connections may change places.
    plain = ["/whole", str(len(text)), str(len(text)), "-", "-"]
    lines.remove(plain)
    *coded, file = sorted(lines, key=lambda line: line[0] == "/files/text.txt")
    assert {line[0] for line in coded} == {"/whole", "/pieces"}
    for path, size, out, uncoded, ratio in coded:
        assert (size, int(uncoded)) == (out, len(text)), path
        assert int(ratio) == int(size) * 100 // len(text) < 20
    # A file that was compressed once for all responses.
    assert file[:2] == ["/files/text.txt", file[2]]
    assert file[3:] == ["-", "-"]


def test_a_format_of_gunicorn() -> None:
    theirs = """%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%({x-a}i)s" %(M)s"""
    message = says(2, "serve", IDENTIFIED, "--access-log-format", theirs)
    ours = """%h %l %u %t "%r" %s %b "%{Referer}i" "%{x-a}i" %{ms}T"""
    assert "is how gunicorn writes directives; here the format is: " + ours in message


def test_selection(mode: str, tmp_path: Path) -> None:
    """Errors are logged in any case."""
    (tmp_path / "page").write_text("text")
    options = (
        *("--access-log-sample", "0.5"),
        *("--access-log-exclude", "/healthz /files/", "--static", f"/files={tmp_path}"),
    )
    log = Log(mode, tmp_path, "%s %U", *options)
    for path in ("/healthz", "/health%7A", "/healthz/deep?x", "/files/page"):
        for _ in range(20):
            assert log.server.get(path).status == 200
    for _ in range(100):
        assert log.server.get("/healthzz").status == 200
        assert log.server.get("/files/missing").status == 404
    assert log.server.get("/raise").status == 500
    wait_for(lambda: "500 /raise\n" in log.path.read_text(), "the line")
    lines = log.lines()
    assert lines.count("404 /files/missing") == 100
    # Which ones these are depends on the number of the process: 8 deviations on both sides.
    assert 10 <= lines.count("200 /healthzz") <= 90
    assert set(lines) == {"404 /files/missing", "200 /healthzz", "500 /raise"}
