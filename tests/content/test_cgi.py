"""CGI programs (RFC 3875) over real sockets, in every mode."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.testkit.client import BadResponse, Closed, Response, chunked
from tests.testkit.process import children, descriptors, lives
from tests.testkit.server import Server, wait_for

#: Programs, by name; `{python}` is the one that runs the tests.
PROGRAMS = {
    "env.cgi": "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'; exec /usr/bin/env -0\n",
    "hello.cgi": "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nHello, world!\\n'\n",
    "deep/er/hello.cgi": "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'; pwd\n",
    "deep/index.cgi": "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s' \"$SCRIPT_NAME\"\n",
    "nph-hello.cgi": "#!/bin/sh\nprintf 'HTTP/1.1 200 OK\\r\\n\\r\\n'\n",
    ".hidden.cgi": "#!/bin/sh\nprintf 'A: b\\n\\n'\n",
    # Its head is the query, decoded; then what comes as body.
    "say.pl": r"""#!/usr/bin/perl
$_ = $ENV{QUERY_STRING}; s/%(..)/chr hex $1/ge; syswrite STDOUT, $_;
while (sysread STDIN, $_, 65536) { $n = 0; $n += syswrite STDOUT, $_, 65536, $n while $n < length }
""",
    # The query is a shell command.
    "sh.pl": r"""#!/usr/bin/perl
$_ = $ENV{QUERY_STRING}; s/%(..)/chr hex $1/ge; exec "/bin/sh", "-c", $_;
""",
    "status.py": """#!{python}
import os
print("Content-Type: text/plain\\n", flush=True)
print(open("/proc/self/status").read())
print("Descriptors:", sorted(os.listdir("/proc/self/fd"), key=int))
print("Group:", os.getpgid(0) == os.getpid())
""",
    "ignored.cgi": "#!/bin/sh\nprintf 'A: b\\n\\n'; exec grep SigIgn /proc/self/status\n",
    # How many of its kind run.
    "crowd.cgi": """#!/bin/sh
mkdir -p crowd; : > crowd/$$
set -- crowd/*; before=$#
sleep 0.02
set -- crowd/*
rm crowd/$$
printf 'A: b\\n\\n%s\\n' $(($# > before ? $# : before))
""",
    "text.cgi": "#!/bin/sh\n",
    "no-interpreter.cgi": "#!/no/such/thing\n",
    "no-line.cgi": "printf 'A: b\\n\\n'\n",
    "moved.cgi": "#!/bin/sh\nprintf 'Location: /env.cgi/b%%20c?d\\n\\n'\n",
    "circle.cgi": "#!/bin/sh\nprintf 'Location: /circle.cgi\\n\\n'\n",
    "beside.cgi": '#!/bin/sh\nprintf "Location: ${SCRIPT_NAME%/*}/env.cgi/x\\n\\n"\n',
    "away.cgi": "#!/bin/sh\nprintf 'Location: /beside?this\\n\\n'\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs."""
    folder = tmp_path_factory.mktemp("programs").resolve()
    for name, text in PROGRAMS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("{python}", sys.executable))
        (folder / name).chmod(0o644 if name == "text.cgi" else 0o755)
    (folder.parent / "outside.cgi").write_text("#!/bin/sh\nprintf 'A: b\\n\\n'\n")
    (folder.parent / "outside.cgi").chmod(0o755)
    (folder / "out.cgi").symlink_to(folder.parent / "outside.cgi")
    return folder


@pytest.fixture
def server(serve: Serve, folder: Path) -> Server:
    """A server with three places for programs in each worker."""
    return serve(f"cgi:{folder}", "--log-level", "info", "--cgi-processes", "3")


@pytest.fixture
def hasty(serve: Serve, folder: Path) -> Server:
    """A server with one place for a program, which has little time."""
    options = ("--cgi-processes", "1", "--cgi-timeout", "1", "--log-level", "info")
    return serve(f"cgi:{folder}", *options)


@pytest.fixture
def behind(serve: Serve, folder: Path) -> Server:
    """A server behind a proxy, with programs that have a chosen environment, also in a mount."""
    chosen = ("--cgi-environment", "A=b=c", "--cgi-environment", "HOME")
    trust = ("--trusted-proxies", "127.0.0.1")
    return serve(f"cgi:{folder}", *chosen, *trust, "--mount", f"/cgi=cgi:{folder}")


def quote(text: str) -> str:
    """Every octet of a text, percent-encoded."""
    return "".join(f"%{octet:02x}" for octet in text.encode("latin-1"))


def say(server: Server, output: str, body: bytes | None = None) -> Response:
    """The answer to a request for a program that says this."""
    return server.request("POST", f"/say.pl?{quote(output)}", body=body)


def shell(command: str) -> str:
    """The target of a program that is a shell command."""
    return f"/sh.pl?{quote(command)}"


def variables(response: Response) -> dict[str, str]:
    """What env.cgi tells."""
    assert response.status == 200
    lines = response.body.decode("latin-1").split("\0")
    return dict(line.split("=", 1) for line in lines if line)


def workers(server: Server) -> list[int]:
    """The numbers of the processes that serve."""
    return children(server.process.pid)


def programs(server: Server) -> list[str]:
    """The programs that run, and those that have ended and were not reaped."""
    found: list[str] = []
    for pid in workers(server):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += (task / "children").read_text().split()
    return found


def wait_for_start(server: Server) -> None:
    wait_for(lambda: programs(server), "the start of a program")


def wait_for_ends(server: Server) -> None:
    wait_for(lambda: not programs(server), "the end of all programs, and that they are reaped")


@contextmanager
def logged(server: Server, *patterns: str) -> Iterator[None]:
    """What happens within leaves lines in the log, which are waited for."""
    before = len(server.log())
    yield
    for pattern in patterns:
        line = re.compile(rf"^\S+Z \[\d+ worker \d\] {pattern}$", re.MULTILINE)
        wait_for(lambda: line.search(server.log(), before), f"{line.pattern} in the log")  # noqa: B023


SECRETS = ("Authorization: Basic c2VjcmV0", "Proxy-Authorization: Basic c2VjcmV0")


def test_meta_variables(server: Server, folder: Path) -> None:
    target = "/env.cgi/behind/b%20c%e4?query=1&x"
    fields = ("Content-Type: text/plain", "X-Custom: own", "Accept: a", "Accept: b", *SECRETS)
    odd = ("Proxy: evil", "X.Odd: x")
    found = variables(server.request("POST", target, *fields, *odd, body=b"12345"))
    assert found.pop("REMOTE_PORT").isdigit()
    assert found.pop("SERVER_SOFTWARE").startswith("poorhttp/")
    # A shell that env.cgi is sets these.
    for name in ("PWD", "OLDPWD", "_", "SHLVL"):
        found.pop(name, None)
    assert found == {
        "CONTENT_LENGTH": "5",
        "CONTENT_TYPE": "text/plain",
        "DOCUMENT_ROOT": str(folder),
        "GATEWAY_INTERFACE": "CGI/1.1",
        "HTTP_ACCEPT": "a, b",
        "HTTP_HOST": "test",
        "HTTP_X_CUSTOM": "own",
        "PATH": os.environ["PATH"],
        "PATH_INFO": "/behind/b c\xe4",
        "PATH_TRANSLATED": f"{folder}/behind/b c\xe4",
        "QUERY_STRING": "query=1&x",
        "REDIRECT_STATUS": "200",
        "REMOTE_ADDR": "127.0.0.1",
        "REMOTE_HOST": "127.0.0.1",
        "REQUEST_METHOD": "POST",
        "REQUEST_URI": target,
        "SCRIPT_FILENAME": f"{folder}/env.cgi",
        "SCRIPT_NAME": "/env.cgi",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": str(server.port),
        "SERVER_PROTOCOL": "HTTP/1.1",
    }


def test_authorization_is_passed_on_where_that_is_asked_for(
    folder: Path, mode: str, tmp_path: Path
) -> None:
    (tmp_path / "a.ini").write_text(
        f"[http]\nmount = /on=cgi:{folder}\ncgi_pass_authorization = on\n"
        f"[host:off.example]\nmount = /off=cgi:{folder}\ncgi_pass_authorization = off\n"
    )
    with Server("", mode, "--config", str(tmp_path / "a.ini")) as server:
        found = variables(server.get("/on/env.cgi", *SECRETS))
        assert found["HTTP_AUTHORIZATION"] == "Basic c2VjcmV0"
        assert "HTTP_PROXY_AUTHORIZATION" not in found
        assert "HTTP_AUTHORIZATION" not in variables(server.get("/on/env.cgi"))
        other = server.get("http://off.example/off/env.cgi", *SECRETS)
        assert "HTTP_AUTHORIZATION" not in variables(other)


def test_chosen_environment(behind: Server) -> None:
    found = variables(behind.get("/env.cgi"))
    assert (found["A"], found["HOME"]) == ("b=c", os.environ["HOME"])
    assert "PYTHONPATH" not in found


def test_a_program_has_nothing_of_ours(folder: Path, mode: str) -> None:
    # As from a careless parent: a descriptor left open, a signal ignored.
    with (
        socket.socket() as left_open,
        Server(f"cgi:{folder}", mode, inherit=(left_open.fileno(),), launcher=("nohup",)) as server,
    ):
        text = server.get("/status.py").body.decode()
        facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        # The fourth is the list of descriptors itself.
        assert facts["Descriptors"].strip() == "['0', '1', '2', '3']"
        assert facts["Group"].strip() == "True"
        assert int(facts["SigBlk"], 16) == 0
        # Python itself ignores SIGPIPE and SIGXFSZ; a shell ignores nothing. 32 and 33 are glibc's
        # own, and no program knows them.
        shown = server.get("/ignored.cgi").body
        assert int(shown.split()[1], 16) & ~(1 << 31 | 1 << 32) == 0


# Which program


def test_names(server: Server, folder: Path) -> None:
    assert server.get("/hello.cgi").body == b"Hello, world!\n"
    assert server.get("/deep/er/hello.cgi/x").body == f"{folder}/deep/er\n".encode()
    assert server.get("/deep/").body == b"/deep/index.cgi"
    assert server.get("/deep%2fer/hello.cgi").status == 200
    # A folder without its slash.
    response = server.get("/%64eep?a?b")
    assert (response.status, response.get("Location")) == (301, "/%64eep/?a?b")


@pytest.mark.parametrize(
    "target",
    [
        *("/", "/none.cgi", "/deep/er", "//deep", "/deep/er/", "/.hidden.cgi", "//hello.cgi"),
        *("/deep/%2e%2e/hello.cgi", "/hello.cgi/%2e%2e/x", "/..%2foutside.cgi"),
        "/deep//er/hello.cgi",
    ],
)
def test_no_program(server: Server, target: str) -> None:
    response = server.get(target)
    assert response.status in (400, 404)
    assert b"Hello" not in response.body


@pytest.mark.parametrize(
    ("target", "status", "line"),
    [
        ("/text.cgi", 403, r"error: request \d+ GET /text.cgi: text.cgi: .*chmod \+x"),
        ("/out.cgi", 404, r"error: .*: out.cgi: a symbolic link leads out of /\S+ and is not .*"),
        ("/nph-hello.cgi", 501, r"error: request \d+ GET \S+: nph-hello.cgi: .* \(nph-\) .*"),
        ("/no-line.cgi", 502, r"error: .*: it cannot be started: Exec format error.*#! line.*"),
        ("/no-interpreter.cgi", 502, r"error: .*: it cannot be started: No such file.*#! line.*"),
        ("/circle.cgi", 500, r"error: .*: circle.cgi: 11 local redirects in a row.*"),
    ],
)
def test_what_is_not_run(server: Server, target: str, status: int, line: str) -> None:
    with logged(server, line):
        assert server.get(target).status == status


def test_bodies(server: Server) -> None:
    for length in (0, 65_537, 1_100_000):
        body = os.urandom(length)
        assert say(server, "A: b\n\n", body).body == body
    with server.connect() as connection:
        connection.send_request("POST", "/say.pl?A:b%0a%0a", "Transfer-Encoding: chunked")
        connection.send(chunked(b"abc", b"de"))
        assert connection.response().body == b"abcde"
    # Nobody reads it.
    assert server.request("POST", "/hello.cgi", body=b"x" * 1_000_000).status == 200


def test_head(server: Server) -> None:
    response = server.request("HEAD", "/hello.cgi")
    assert (response.status, response.body) == (200, b"")
    assert server.request("HEAD", shell("printf 'A: b\\n\\n'; exec yes")).status == 200
    wait_for_ends(server)


# Heads


@pytest.mark.parametrize(
    ("output", "status", "reason", "headers"),
    [
        ("Content-Type: a/b\n\n", 200, "OK", {"content-type": "a/b"}),
        ("Status: 404 Gone Fishing\nX-A: 1:2 \n\n", 404, "Gone Fishing", {"x-a": "1:2"}),
        ("status:201\nLocation: /new\n\n", 201, "Created", {"location": "/new"}),
        ("Status: 404 \n\n", 404, "Not Found", {}),
        ("Location: //a.test/b\n\n", 302, "Found", {"location": "//a.test/b"}),
        ("Location: /hello.cgi\nX-A: b\n\n", 302, "Found", {"location": "/hello.cgi"}),
        ("Connection: close\nX-A: \xe4\n\n", 200, "OK", {"x-a": "\xe4"}),
    ],
)
def test_heads(
    server: Server, output: str, status: int, reason: str, headers: dict[str, str]
) -> None:
    response = say(server, output, b"body")
    assert (response.status, response.reason, response.body) == (status, reason, b"body")
    for name, value in headers.items():
        assert response.get(name) == value


def test_statuses_without_a_body(server: Server) -> None:
    with server.connect() as connection:
        for status in (204, 304):
            assert connection.request("GET", f"/say.pl?Status:{status}%0a%0a").status == status
            assert connection.request("GET", "/hello.cgi").status == 200


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "it wrote no complete response head: it ended with status 0"),
        ("Hello, world!\n\n", 'a line of its head is not a header field: "Hello, world!"'),
        ("Status: 100 Continue\n\n", "status .*: interim responses.*"),
        ("Status: 200 O\rK\n\n", "status .*: a control character.*"),
        ("X: a\rSet-Cookie: b\n\n", "header X: a control character.*"),
        ("X: a\n folded: b\n\n", r'header name " folded": .*'),
        ("Transfer-Encoding: chunked\n\n", "header Transfer-Encoding: hop-by-hop.*"),
        ("Content-Length: 1\nContent-Length: 2\n\n", "two different Content-Lengths.*"),
        (f"X: {'a' * 70_000}", "its head is longer than 65536 bytes"),
        ("X: a\n" * 300 + "\n", "its head does not end"),
        # Local redirects that no client could ask for.
        *(
            (f"Location: /env.cgi/a{path}\n\n", f"its Location is not a path .*: {said}")
            for path, said in [
                ("%00b", "a NUL in the path"),
                ("%0d%0aX:y", "a line end in the path"),
                ("%zz", "a percent sign without two hexadecimal digits in the path"),
                ("\\b", "a backslash in the path"),
                (" b", "a character that a request target must not hold"),
            ]
        ),
    ],
)
def test_malformed_heads(server: Server, output: str, said: str) -> None:
    # What is too long for a query is said behind an empty one.
    query, body = (quote(output), None) if len(output) < 2_000 else ("", output.encode())
    with logged(server, rf"error: request \d+ POST /say.pl\S*: say.pl: {said}"):
        response = server.request("POST", f"/say.pl?{query}", body=body)
        assert (response.status, response.body) == (502, b"502 Bad Gateway\n")


def test_a_body_shorter_than_its_length(server: Server) -> None:
    with pytest.raises(BadResponse):
        say(server, "Content-Length: 10\n\n", b"short")
    assert say(server, "Content-Length: 3\n\n", b"longer").body == b"lon"


def test_local_redirect(server: Server) -> None:
    found = variables(server.request("POST", "/moved.cgi", "Content-Type: a/b", body=b"x"))
    assert {"CONTENT_LENGTH", "CONTENT_TYPE"}.isdisjoint(found)
    assert found["REQUEST_METHOD"] == "GET"
    assert (found["SCRIPT_NAME"], found["PATH_INFO"]) == ("/env.cgi", "/b c")
    assert found["QUERY_STRING"] == "d"
    # It keeps the bytes of its path.
    found = variables(say(server, "Location: /env.cgi/%c3%a9%2F%25?a=%00&b\n\n"))
    assert (found["PATH_INFO"], found["QUERY_STRING"]) == ("/\xc3\xa9/%", "a=%00&b")
    # There may be no program.
    assert server.get("/away.cgi").status == 404


def test_local_redirect_below_the_prefix_of_a_proxy(behind: Server) -> None:
    """A program knows its path as clients do, and so does what it names."""
    for mount in ("", "/cgi"):
        for prefix in ("", "/outer/one"):
            headers = (f"X-Forwarded-Prefix: {prefix}",) if prefix else ()
            found = variables(behind.get(f"{mount}/beside.cgi", *headers))
            script = f"{prefix}{mount}/env.cgi"
            assert (found["SCRIPT_NAME"], found["PATH_INFO"]) == (script, "/x")


def test_standard_error(server: Server) -> None:
    command = "printf 'A: b\\n\\n'; printf 'one\\r\\n\\n\\033[2Jtwo\\n2026 [1] error: three' >&2"
    lines = ("one", r"\\x1b\[2Jtwo", r"2026 \[1\] error: three")
    with logged(server, *(rf"error: request \d+ GET /sh.pl\S*: sh.pl: {line}" for line in lines)):
        server.get(shell(command))


# Time, and ends


def test_too_late_for_a_head(hasty: Server, tmp_path: Path) -> None:
    command = f"sleep 1000 & echo $! > {tmp_path}/child; wait"
    said = r"error: .*: sh.pl: it has written nothing for .* \(cgi_timeout\), and was ended"
    with logged(hasty, said):
        assert hasty.get(shell(command)).status == 504
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: not lives(child), "the end of what the program had started")
    wait_for_ends(hasty)


def test_a_program_that_writes_is_ended_by_the_limit_in_all(folder: Path, mode: str) -> None:
    options = ("--cgi-time-limit", "1", "--log-level", "info")
    with Server(f"cgi:{folder}", mode, *options) as server:
        said = r"error: .*: it has run for too long \(cgi_time_limit\), and was ended"
        with logged(server, said), pytest.raises(BadResponse):
            server.get(shell("printf 'A: b\\n\\n'; while echo x; do sleep 0.02; done"))
        assert server.get(shell("echo x >&2; sleep 1000")).status == 504
        wait_for_ends(server)


@pytest.mark.each_mode
def test_a_client_that_leaves(server: Server, tmp_path: Path) -> None:
    """Before it has got anything, and behind the beginning."""
    for begin in ("true", "printf 'A: b\\n\\nhalf'"):
        pid = tmp_path / begin[:4]
        connection = server.connect()
        connection.send_request("GET", shell(f"{begin}; echo $$ > {pid}; sleep 1000"))
        wait_for(pid.exists, "the start of the program")
        connection.reset()
        wait_for_ends(server)


def test_who_has_left_before_its_turn_gets_no_program(
    folder: Path, mode: str, tmp_path: Path
) -> None:
    """And a stop ends nobody."""
    go = tmp_path / "go"
    os.mkfifo(go)
    waits = shell(f"cat {go}; printf 'A: b\\n\\nx'")
    options = ("--cgi-processes", "1", "--workers", "1")
    with Server(f"cgi:{folder}", mode, *options) as server, server.connect() as connection:
        connection.send_request("GET", waits)
        wait_for_start(server)
        for _ in range(20):
            with server.connect() as other:
                other.send_request("GET", shell(f"echo x >> {tmp_path}/started; sleep 1000"))
                other.reset()
        go.write_text("")
        assert connection.response().body == b"x"
        assert server.get("/hello.cgi").status == 200
        assert not (tmp_path / "started").exists()
        wait_for_ends(server)
        connection.send_request("GET", waits)
        wait_for_start(server)
        server.process.terminate()
        go.write_text("")
        assert connection.response().body == b"x"
        assert server.wait() == 0
        server.ended()


@pytest.mark.each_mode
def test_a_hundred_at_once(server: Server, folder: Path) -> None:
    shutil.rmtree(folder / "crowd", ignore_errors=True)
    server.get("/hello.cgi")
    before = descriptors(*workers(server))
    with ThreadPoolExecutor(100) as clients:
        answers = list(clients.map(lambda _: server.get("/crowd.cgi"), range(100)))
    assert [answer.status for answer in answers] == [200] * 100
    most = max(int(answer.body) for answer in answers)
    assert 1 <= most <= 3 * len(workers(server))
    wait_for_ends(server)
    # gevent keeps those of the threads that it has.
    most = before + 20 * (server.mode == "gevent")
    wait_for(lambda: descriptors(*workers(server)) <= most, "that all descriptors are closed")


def test_every_fault_gives_its_place_back(hasty: Server) -> None:
    targets = [
        *("/no-line.cgi", "/say.pl", "/circle.cgi", "/moved.cgi"),
        shell("sleep 1000"),
        shell("printf 'A: b\\n\\nhalf'; sleep 1000"),
        shell("printf 'A: b\\n\\nhalf'; kill -9 $$"),
        shell("printf 'A: b\\n\\nx'; exec sleep 0.1 >&-"),
    ]
    for target in targets:
        with suppress(BadResponse, Closed):
            hasty.get(target)
        assert hasty.get("/hello.cgi").status == 200, target


@pytest.mark.parametrize("mode", ["threading", "gevent"], indirect=True)
def test_a_program_that_waits_holds_nobody_up(server: Server, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    with server.connect() as connection:
        connection.send_request("GET", shell(f"cat {go}; printf 'A: b\\n\\nx'"))
        wait_for_start(server)
        for _ in range(3):
            assert server.get("/hello.cgi").status == 200
        go.write_text("")
        assert connection.response().body == b"x"


@pytest.mark.each_mode
def test_none_outlives_the_server_that_would_end_it(
    folder: Path, mode: str, tmp_path: Path
) -> None:
    """Neither in a reload behind the beginning of its answer, nor in a stop before."""
    options = ("--graceful-timeout", "0.3", "--log-level", "info")
    end = r"error: .*: sh.pl: the server stops \(graceful_timeout\), and was ended"
    with Server(f"cgi:{folder}", mode, *options) as server:
        for begin, number in (
            ("printf 'A: b\\n\\nhalf'", signal.SIGHUP),
            ("true", signal.SIGTERM),
        ):
            pid = tmp_path / number.name
            with logged(server, end), server.connect() as connection:
                connection.send_request("GET", shell(f"{begin}; echo $$ > {pid}; sleep 1000"))
                wait_for(lambda: pid.exists() and pid.read_text().endswith("\n"), "its beginning")  # noqa: B023
                worker = workers(server)
                server.process.send_signal(number)
                if begin == "true":
                    assert connection.response().status == 504
                wait_for(lambda: not lives(int(pid.read_text())), "its end")  # noqa: B023
            if number == signal.SIGHUP:
                wait_for(lambda: not {*worker} & {*workers(server)}, "the end of the old workers")  # noqa: B023
        assert server.wait() == 0
        server.ended()


@pytest.mark.each_mode
def test_a_request_timeout_ends_it_too(folder: Path, mode: str) -> None:
    options = ("--request-timeout", "1", "--log-level", "info")
    with Server(f"cgi:{folder}", mode, *options, tracebacks=True) as server:
        assert server.get(shell("sleep 1000")).status == 504
        wait_for_ends(server)
        assert server.get("/hello.cgi").status == 200


def test_the_examples(mode: str, tmp_path: Path) -> None:
    # The clock need not go at its pace.
    (tmp_path / "sleep").write_text("#!/bin/sh\n")
    (tmp_path / "sleep").chmod(0o755)
    with Server("cgi:apps/cgi", mode, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}) as server:
        assert server.get("/hello.cgi").body == b"Hello, world!\n"
        assert b"clock.cgi" in server.get("/").body
        assert b"\nPATH_INFO=/x\n" in server.get("/environment.cgi/x").body
        assert b"\nQUERY_STRING=moved\n" in server.get("/moved.cgi").body
        page = server.get("/guestbook.pl?name=a%3Cb&text=x+y").body
        assert b"<b>a&lt;b</b> writes: x y" in page
        digest = server.request("POST", "/digest.py", body=b"x" * 100_000).body.decode()
        assert digest == f"100000 {hashlib.sha256(b'x' * 100_000).hexdigest()}\n"
        assert server.get("/clock.cgi").body.count(b"\n") == 5
