"""X-Sendfile and X-Accel-Redirect, in every mode."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from tests.conftest import Serve
from tests.packages import need
from tests.testkit.client import HANG, Response
from tests.testkit.server import Server, wait_for

ALONE = True

# The core opens and sends these files, in all modes alike.
APP = "tests/apps/deliverer.py"

#: When the files were changed.
DATE = "Tue, 14 Nov 2023 22:13:20 GMT"
#: More than is kept in memory.
LARGE = bytes(range(256)) * 4_000


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders with files to hand out, and one without."""
    top = tmp_path_factory.mktemp("shelf")
    for folder in ("one", "one/inner", "two", "outside"):
        (top / folder).mkdir()
    (top / "one/a.txt").write_bytes(b"0123456789")
    (top / "one/.hidden").write_bytes(b"handed out all the same")
    (top / "one/large.bin").write_bytes(LARGE)
    (top / "one/sp ace é.txt").write_bytes(b"name")
    (top / "one/inner/b.txt").write_bytes(b"inner")
    (top / "one/escape").symlink_to("../outside/secret.txt")
    os.mkfifo(top / "one/fifo")
    (top / "two/c.txt").write_bytes(b"second")
    (top / "outside/secret.txt").write_bytes(b"secret")
    for path in top.rglob("*.*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return top


@pytest.fixture
def server(serve: Serve, shelf: Path) -> Server:
    """A server whose application may hand out two of the folders, each in both ways."""
    return serve(
        APP,
        *("--x-sendfile", str(shelf / "one"), "--x-sendfile", str(shelf / "two")),
        *("--x-accel-redirect", f"/files={shelf / 'one'}"),
        *("--x-accel-redirect", f"/files/two={shelf / 'two'}"),
        tracebacks=True,
    )


def ask(
    server: Server, *named: str, method: str = "GET", fields: tuple[str, ...] = (), **query: str
) -> Response:
    """The answer to a request that makes the application say the headers `named`."""
    text = urlencode([("header", header) for header in named] + list(query.items()))
    return server.request(method, f"/?{text}", *fields)


def named(server: Server, header: str) -> tuple[int, bytes]:
    """The answer to a request that makes the application say a header, in Latin-1."""
    answer = server.get(f"/?header={quote(header, encoding='latin-1')}")
    return answer.status, answer.body


def test_a_file_in_place_of_the_body(server: Server, shelf: Path) -> None:
    for kind in ("list", "pieces", "written", "endless"):
        answer = ask(server, f"X-Sendfile: {shelf}/one/a.txt", kind=kind, body="not this")
        assert (answer.status, answer.body, answer.framing) == (200, b"0123456789", "length"), kind
        assert answer.get("X-Sendfile") is None
        assert answer.get("ETag")
        assert answer.get("Last-Modified") == DATE
        assert answer.get("Accept-Ranges") == "bytes"
        assert answer.get("Content-Type") == "text/plain; charset=utf-8"


def test_what_the_application_says_is_kept(server: Server, shelf: Path) -> None:
    answer = ask(
        server,
        "Content-Type: application/x-own",
        "Set-Cookie: a=1",
        "Set-Cookie: b=2",
        "Content-Length: 3",
        "Content-Disposition: attachment",
        f"X-Sendfile: {shelf}/one/a.txt",
    )
    assert answer.get("Content-Type") == "application/x-own"
    assert answer.get_all("Set-Cookie") == ["a=1", "b=2"]
    assert answer.get("Content-Length") == "10"
    assert answer.get("Content-Disposition") == "attachment"
    for path, own in (("one/a.txt", True), ("one/missing", False)):
        answer = ask(server, f"Date: {DATE}", "Server: own", f"X-Sendfile: {shelf}/{path}")
        assert (answer.get("Date") == DATE) is own, path
        assert (answer.get("Server") == "own") is own, path


def test_both_headers(server: Server, shelf: Path) -> None:
    for header, body in (
        (f"X-Sendfile: {shelf}/one/large.bin", LARGE),
        (f"x-sendfile: {shelf}/two/c.txt", b"second"),
        ("X-Accel-Redirect: /files/a.txt?query", b"0123456789"),
        ("X-Accel-Redirect: /files/two/c.txt", b"second"),
        (f"X-Accel-Redirect: /files/{quote('sp ace é.txt')}", b"name"),
    ):
        assert ask(server, header).body == body, header


RANGE = "Range: bytes=2-4"
WHOLE = (200, None, b"0123456789")
PART = (206, "bytes 2-4/10", b"234")
#: What the application says, fields of the request, and what is sent: status, range and body.
CONDITIONS = [
    ("200 OK", [RANGE], PART),
    ("200 OK", ["Range: bytes=20-"], (416, "bytes */10", None)),
    ("200 OK", ["If-None-Match: {tag}"], (304, None, b"")),
    ("200 OK", ['If-Match: "other"'], (412, None, None)),
    # It has not got the file: its status is not about what is sent.
    ("206 Said", [RANGE], PART),
    ("206 Said", [RANGE, 'If-Range: "other"'], WHOLE),
    ("206 Said", ["Range: bytes=20-"], (416, "bytes */10", None)),
    ("206 Said", [RANGE, "If-None-Match: *"], (304, None, b"")),
    ("416 Said", ["Range: bytes=4-"], (206, "bytes 4-9/10", b"456789")),
    ("412 Said", ['If-Match: "other"'], (412, None, None)),
    ("412 Said", ["If-Match: *"], WHOLE),
    ("304 Said", ["If-None-Match: *"], (304, None, b"")),
]


@pytest.mark.parametrize(("said", "fields", "expected"), CONDITIONS)
def test_conditions_and_ranges(
    server: Server, shelf: Path, said: str, fields: list[str], expected: tuple[object, ...]
) -> None:
    named = f"X-Sendfile: {shelf}/one/a.txt"
    tag = ask(server, named).get("ETag")
    # Nor is its Content-Range about that.
    own = [] if said == "200 OK" else ["Content-Range: bytes 0-2/3", "Content-Length: 3"]
    asked = tuple(field.format(tag=tag) for field in fields)
    answer = ask(server, *own, "X-Own: kept", named, status=said, fields=asked)
    body = None if expected[2] is None else answer.body
    assert (answer.status, answer.get("Content-Range"), body) == expected
    assert body is None or answer.get("X-Own") == "kept"


def test_methods_and_several_ranges(server: Server, shelf: Path) -> None:
    named = f"X-Sendfile: {shelf}/one/a.txt"
    answer = ask(server, named, method="HEAD")
    assert (answer.status, answer.get("Content-Length"), answer.body) == (200, "10", b"")
    assert ask(server, named, method="POST").body == b"0123456789"
    several = ask(server, "Content-Type: text/x", named, fields=("Range: bytes=0-0,9-9",))
    assert (several.get("Content-Type") or "").startswith("multipart/byteranges")


def test_conditions_are_compared_with_own_validators(server: Server, shelf: Path) -> None:
    """As the client has got these."""
    own = ('ETag: "own"', f"X-Sendfile: {shelf}/one/a.txt")
    for said, fields, status in (
        ("206 Partial Content", (RANGE, 'If-Range: "own"'), 206),
        ("200 OK", (RANGE, 'If-Range: "own"'), 206),
        ("206 Partial Content", (RANGE, 'If-Range: "other"'), 200),
        ("412 Precondition Failed", ('If-Match: "other"',), 412),
        ("412 Precondition Failed", ('If-Match: "own"',), 200),
        # The time of the file counts for nothing then.
        ("200 OK", (f"If-Modified-Since: {DATE}",), 200),
    ):
        answer = ask(server, *own, status=said, fields=fields)
        assert answer.status == status, (said, fields)
        assert status > 206 or answer.get_all("ETag") == ['"own"']


@pytest.mark.parametrize("name", ["é.txt", "日本.txt", "a%20b.txt", "sp ace é.txt", "Ã©"])
def test_names_as_applications_give_them(server: Server, shelf: Path, name: str) -> None:
    """As bytes in Latin-1 (PEP 3333), as text, or percent-encoded."""
    (shelf / "one" / name).write_bytes(name.encode())
    pep3333, encoded = name.encode().decode("latin-1"), quote(name)
    as_text = [name] if all(ord(letter) < 256 for letter in name) else []
    for given in (pep3333, *as_text, encoded):
        assert named(server, f"X-Sendfile: {shelf}/one/{given}") == (200, name.encode()), given
    locations = [encoded] if "%" in name else [pep3333, *as_text, encoded]
    for given in locations:
        assert named(server, f"X-Accel-Redirect: /files/{given}") == (200, name.encode()), given


def test_the_bytes_as_given_come_first(server: Server, shelf: Path) -> None:
    (shelf / "one/a%62c").write_bytes(b"as given")
    (shelf / "one/abc").write_bytes(b"decoded")
    (shelf / "one" / os.fsdecode(b"\xe9")).write_bytes(b"one byte")
    (shelf / "one/\xe9").write_bytes(b"two bytes")
    for name, content in (("a%62c", b"as given"), ("\xe9", b"one byte")):
        assert named(server, f"X-Sendfile: {shelf}/one/{name}") == (200, content)
    assert named(server, f"X-Sendfile: {shelf}/one/%2e%2e/outside/secret.txt")[0] == 404


@pytest.mark.parametrize(
    "named",
    [
        "Sendfile: {}/outside/secret.txt",
        *(
            f"Sendfile: {{}}/one{path}"
            for path in ("/../outside/secret.txt", "/escape", "/fifo", "/", "", "a.txt", "/missing")
        ),
        *(f"Sendfile: {path}" for path in ("one/a.txt", "/dev/zero", "")),
        *(f"Accel-Redirect: {path}" for path in ("/a.txt", "/files/../a.txt")),
        "Accel-Redirect: /files/%2e%2e/outside/secret.txt",
    ],
)
def test_only_files_of_the_folders(server: Server, shelf: Path, named: str) -> None:
    before = server.log_size()
    answer = ask(server, f"X-{named.format(shelf)}", "Set-Cookie: a=1")
    assert (answer.status, answer.body) == (404, b"404 Not Found\n")
    wait_for(lambda: f"X-{named.partition(':')[0]} names" in server.log(before), "a line")


def test_clients_cannot_ask_for_it(server: Server, shelf: Path) -> None:
    """Neither by the header in a request, nor by the path of a location."""
    assert server.get("/?body=own", f"X-Sendfile: {shelf}/one/a.txt").body == b"own"
    assert server.get("/files/a.txt?body=own").body == b"own"


def test_without_the_option_the_header_means_nothing(serve: Serve, shelf: Path) -> None:
    server = serve(APP)
    answer = ask(server, f"X-Sendfile: {shelf}/one/a.txt", body="own")
    assert (answer.body, answer.get("X-Sendfile")) == (b"own", f"{shelf}/one/a.txt")


def test_wget_continues_what_flask_sends(mode: str, tmp_path: Path) -> None:
    """The real `wget -c`."""
    need("wget")
    content = os.urandom(3_000_000)
    (tmp_path / "é large.bin").write_bytes(content)
    extra = {"FILES": str(tmp_path)}
    options = ("--x-sendfile", str(tmp_path))
    received = tmp_path / "received"
    with Server("tests/apps/flask_sender.py", mode, *options, env=extra) as server:
        url = f"http://127.0.0.1:{server.port}/{quote('é large.bin')}"
        # The second time nothing is missing: a 416.
        for begun in (1_234_567, len(content)):
            received.write_bytes(content[:begun])
            words = ("wget", "--no-proxy", "-nv", "-c", "-O", str(received), url)
            done = subprocess.run(words, capture_output=True, check=False, timeout=HANG)
            assert done.returncode == 0, done.stderr
            assert received.read_bytes() == content
