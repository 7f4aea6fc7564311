"""Directives of the access log: response fields, cookies, variables, times, names, bytes, users."""

from __future__ import annotations

import gzip
import re
import time
from base64 import b64encode
from pathlib import Path

from tests.logs.log_files import Logged
from tests.support.failure import says

IDENTIFIED = "tests/apps/identified.py"


#: Directives, and what they are for a request that is answered, one that fails, and a refused one.
DIRECTIVES = {
    "%h": ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
    "%m": ("POST", "GET", "-"),
    "%U": ("/one", "/raise", "-"),
    "%q": ("?a=b", "", ""),
    "%H": ("HTTP/1.1", "HTTP/1.1", "-"),
    "%>s": ("200", "500", "400"),
    "%{X-A}i": (r"b\xe9", "-", "-"),
    "%{X-None}i": ("-", "-", "-"),
    "%%": ("%", "%", "%"),
    "%{X-Answer}o": ("4 2", "-", "-"),
    "%{x-twice}o": ("a, b", "-", "-"),
    "%{Server}o": ("poorhttp", "poorhttp", "poorhttp"),
    "%{No}o": ("-", "-", "-"),
    "%{identified.user}e": (r"anna \"a\"", r"anna \"a\"", "-"),
    "%{identified.number}e": ("42", "42", "-"),
    "%{identified.object}e": ("-", "-", "-"),
    "%{REQUEST_METHOD}e": ("POST", "GET", "-"),
    "%{HTTP_X_A}e": (r"b\xe9", "-", "-"),
    "%{NO}e": ("-", "-", "-"),
}


def test_directives(mode: str, tmp_path: Path) -> None:
    """Also variables that the application has set, and in every way in which it can end."""
    names = [*DIRECTIVES, "%B", "%{Content-Length}o"]
    with Logged(IDENTIFIED, mode, tmp_path, "|".join(names), tracebacks=True) as server:
        answered = server.request("POST", "/one?a=b", "X-A: b\xe9", body=b"x")
        server.wait_lines(1)
        failed = server.get("/raise")
        server.wait_lines(2)
        with server.connect() as connection:
            connection.send(b"nonsense\r\n\r\n")
            refused = connection.response()
    for number, response in enumerate((answered, failed, refused)):
        expected = {name: values[number] for name, values in DIRECTIVES.items()}
        expected["%B"] = expected["%{Content-Length}o"] = str(len(response.body))
        found = server.lines()[number].split("|")
        assert dict(zip(names, found, strict=True)) == expected


def test_variables_are_read_when_a_body_has_ended(mode: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "def application(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    environ['start_response'] = start_response\n"
        "    yield b'1'\n"
        "    environ['end'] = 'reached'\n"
    )
    with Logged(str(tmp_path / "app.py"), mode, tmp_path, "%{end}e") as server:
        server.get("/")
    assert server.lines() == ["reached"]


def test_requests(mode: str, tmp_path: Path) -> None:
    head = b"POST /x?y HTTP/1.1\r\nHost: shop.example:8080\r\n"
    anna = b64encode("ann\xe4:secret".encode())
    sent = [
        head + b"Cookie: a=b; id=4711; c\r\nContent-Length: 5\r\n\r\nhello",
        head + b"Cookie: idx=1\r\nCookie: id = 4 \r\nAuthorization: Basic " + anna + b"\r\n\r\n",
        head + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ]
    with Logged(IDENTIFIED, mode, tmp_path, "%{id}C|%u|%v|%V|%p|%I %S %O|%r") as server:
        for each in sent:
            with server.connect() as connection:
                connection.send(each)
                assert connection.response().status == 200
    found = [line.split("|") for line in server.lines()]
    assert [line[0] for line in found] == ["4711", "4", "-"]
    assert [line[1] for line in found] == ["-", r"ann\xc3\xa4", "-"]
    assert {tuple(line[2:5]) for line in found} == {("127.0.0.1", "shop.example", str(server.port))}
    sizes = [[int(each) for each in line[5].split()] for line in found]
    # Of a chunked body the framing does not count.
    assert [received for received, _, _ in sizes] == [len(sent[0]), len(sent[1]), len(sent[2]) - 10]
    assert all(received + out == both for received, both, out in sizes)


def test_names_behind_a_proxy(mode: str, tmp_path: Path) -> None:
    trust = ("--trusted-proxies", "127.0.0.1")
    forwarded = ("X-Forwarded-Host: shop.example", "X-Forwarded-Proto: https")
    with Logged(IDENTIFIED, mode, tmp_path, "%v:%p", *trust) as server:
        server.get("/", *forwarded, "X-Forwarded-Port: 8443")
        server.get("/", *forwarded)
    assert server.lines() == ["shop.example:8443", "shop.example:443"]


def test_times(mode: str, tmp_path: Path) -> None:
    line = "%D %{us}T %{ms}T %T %{s}T %{sec}t %{msec}t %{iso}t"
    before = int(time.time() * 1_000)
    with Logged("tests/apps/slow.py", mode, tmp_path, line) as server:
        server.get("/briefly?1.1")
    after = time.time() * 1_000
    (found,) = server.lines()
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
    with Logged(str(tmp_path / "app.py"), mode, tmp_path, line, *options) as server:
        for path in ("/whole", "/pieces", "/files/text.txt"):
            response = server.get(path, "Accept-Encoding: gzip")
            assert gzip.decompress(response.body) == text
        server.get("/whole")
    lines = [line.split() for line in server.lines()]
    # Lines of requests on different connections may change places.
    plain = ["/whole", str(len(text)), str(len(text)), "-", "-"]
    lines.remove(plain)
    *coded, file = sorted(lines, key=lambda line: line[0] == "/files/text.txt")
    assert {line[0] for line in coded} == {"/whole", "/pieces"}
    for path, size, out, uncoded, ratio in coded:
        assert (size, int(uncoded)) == (out, len(text)), path
        assert int(ratio) == int(size) * 100 // len(text) < 20
    # A file that was compressed once for all responses.
    assert file == ["/files/text.txt", file[2], file[2], "-", "-"]


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
    with Logged(IDENTIFIED, mode, tmp_path, "%s %U", *options, tracebacks=True) as server:
        for path in ("/healthz", "/health%7A", "/healthz/deep?x", "/files/page"):
            for _ in range(20):
                assert server.get(path).status == 200
        for _ in range(100):
            assert server.get("/healthzz").status == 200
            assert server.get("/files/missing").status == 404
        assert server.get("/raise").status == 500
    lines = server.lines()
    assert lines.count("404 /files/missing") == 100
    # Which ones these are depends on the number of the process: 8 deviations on both sides.
    assert 10 <= lines.count("200 /healthzz") <= 90
    assert set(lines) == {"404 /files/missing", "200 /healthzz", "500 /raise"}
