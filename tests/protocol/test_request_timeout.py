"""`request_timeout`: a hanging request is interrupted, others go on."""

from __future__ import annotations

import contextlib
import itertools
import linecache
import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import poorhttp
from tests.apps import slow
from tests.support.each_value import DIFFERENT, each_value
from tests.support.status_reader import Admin
from tests.testkit.client import BadResponse, Connection
from tests.testkit.server import Server, wait_for

SLOW = "tests/apps/slow.py"
#: Longer than a busy machine keeps from its end who does not hang.
SOON = ("--request-timeout", "0.6")

#: What waits in the kernel can be interrupted in the main thread only, Python code in every one.
ALWAYS = ("/compute", "/nap")
IN_MAIN_THREAD = ("/sleep", "/receive", "/lock")


def hung_in(server: Server) -> list[str]:
    """The functions in which the application was said to hang; the line is checked."""
    found = []
    place = re.compile(r"\(request_timeout\) the application is in (\S+):(\d+) in (\w+)\n")
    for file, line, function in place.findall(server.log()):
        assert Path(file).name == "slow.py"
        assert linecache.getline(file, int(line)).endswith("# here\n")
        found.append(function)
    return found


@pytest.mark.each_mode
def test_who_hangs_is_interrupted(mode: str) -> None:
    paths = ALWAYS if mode == "threading" else ALWAYS + IN_MAIN_THREAD
    with Server(SLOW, mode, *SOON, "--workers", "1") as server:
        connection = server.connect()
        for path in paths:
            response = connection.request("GET", path)
            assert (response.status, response.body) == (504, b"504 Gateway Timeout\n")
            assert connection.request("GET", "/", "X-Name: me").body == b"me"
        for path in paths:
            server.wait_log(f"GET {path}: the application was interrupted, its client got 504")
        stacks = ", which runs it (most recent call last):\n"
        server.wait_log(stacks, len(paths))
        assert server.log().count(stacks) == len(paths)
        assert hung_in(server) == [path[1:] for path in paths]
        check_that_an_answer_is_cut_short(server, "nap")
        server.wait_log("closed\n", 2)
        server.wait_log("the application was interrupted, its response was cut short", 2)
        assert "cannot be interrupted" not in server.log()


def check_that_an_answer_is_cut_short(server: Server, way: str) -> None:
    """One that was begun; and one without length or chunks does not look complete."""
    with pytest.raises(BadResponse, match="ended"):
        server.get(f"/pieces?{way}")
    connection = server.connect()
    connection.send(f"GET /pieces?{way} HTTP/1.0\r\n\r\n".encode())
    connection.rest()
    assert connection.was_reset


def test_all_threads_are_logged() -> None:
    with Server(SLOW, "threading", "--request-timeout", "0.5", "--threads", "3") as server:
        with server.connect() as one, server.connect() as other:
            one.send_request("GET", "/compute")
            other.send_request("GET", "/nap")
            assert one.response().status == other.response().status == 504
        server.wait_log("its client got 504", 2)
        first = server.log().split(" error: ")[1]
        for name in ("poorhttp-1", "poorhttp-2", "poorhttp-3", "MainThread"):
            assert f"({name})" in first
        assert sorted(hung_in(server)) == ["compute", "nap"]
        # Threads that run no application have no stack in the log.
        *_, last = first.split("\n    Idle: ")
        assert "(MainThread)" in last.splitlines()[0]
        assert "start_and_wait" not in first


def line_of(function: object) -> int:
    """The line of `slow.py` that hangs in `function`."""
    lines = Path(slow.__file__).read_text().splitlines()
    begin = next(at for at, line in enumerate(lines) if f"def {function.__name__}(" in line)  # type: ignore[attr-defined]
    return next(at for at in range(begin, len(lines)) if lines[at].endswith("# here")) + 1


@pytest.mark.each_mode
def test_who_cannot_be_interrupted_is_answered_for(mode: str) -> None:
    """Behind what was ready before; what is behind it gets no answer."""
    with Server(SLOW, mode, *SOON) as server:
        # The last one keeps the whole process.
        paths = ("/swallow", *(["/sleep"] if mode == "threading" else []), "/hold")
        for number, path in enumerate(paths, 1):
            connection = server.connect()
            request = "GET {0} HTTP/1.1\r\nHost: test\r\nX-Name: {0}\r\n\r\n"
            connection.send("".join(map(request.format, ("/", "/", path, "/"))).encode())
            assert [connection.response().status for _ in range(2)] == [200, 200]
            response = connection.response()
            assert (response.status, response.get("Connection")) == (504, "close")
            assert connection.at_end()
            server.wait_log(f"GET {path}: after ")
            server.wait_log("the application cannot be interrupted: its client got 504", number)
        # Nobody can run Python, and still it is known where it hangs.
        server.wait_log("(most recent call first):")
        server.wait_log(f'{SLOW}", line {line_of(slow.hold)} in hold')
        server.kill()


# In other modes, the application is interrupted in the system call, and answers by itself.
@pytest.mark.parametrize("mode", ["threading"])
def test_an_answer_in_the_place_of_the_application_is_logged_and_counted_once(
    mode: str, tmp_path: Path
) -> None:
    os.mkfifo(fifo := tmp_path / "fifo")
    log = tmp_path / "access.log"
    admin = Admin(tmp_path)
    options = (*SOON, "--access-log", str(log), "--access-log-format", "%m %U %s %b")
    with Server("tests/apps/gate.py", mode, *options, *admin.options) as server:
        assert server.get(f"/read?{fifo}").status == 504
        size = len(b"504 Gateway Timeout: the application took too long\n")
        line = f"GET /read 504 {size}\n"
        # The application has not returned yet, and perhaps never will.
        wait_for(lambda: log.read_text() == line, "the line of the 504")
        wait_for(lambda: admin.figures()["timed_out"] == 1, "the count of what has timed out")
        wait_for(lambda: admin.figures()["responses"]["5xx"] == 1, "the count of responses")
        # The application that was interrupted may close the fifo as soon as it has opened it.
        with contextlib.suppress(BrokenPipeError):
            fifo.write_text("late")
        server.stop()
        assert log.read_text() == line


@pytest.mark.parametrize("supervisor", ["on", "off"])
def test_a_stop_does_not_fail_for_who_cannot_be_interrupted(mode: str, supervisor: str) -> None:
    options = (*SOON, "--graceful-timeout", "0.2", "--supervisor", supervisor)
    path = "/sleep" if mode == "threading" else "/swallow"
    with Server(SLOW, mode, *options, "--workers", "1") as server:
        assert server.get(path).status == 504
        server.wait_log("the application cannot be interrupted: its client got 504")
        server.process.terminate()
        assert server.wait() == 0, server.log()
        who = r"worker \d+ still had requests in flight and was killed"
        if supervisor == "off":
            who = "stopped with requests still in flight"
        assert re.search(rf"{who}: request \d+ GET {path}\n", server.log()), server.log()
        server.ended()


@pytest.mark.parametrize(
    ("mode", "number", "supervisor"),
    each_value(DIFFERENT, [signal.SIGTERM, signal.SIGINT], ["on", "off"]),
    indirect=["mode"],
)
def test_a_stop_whose_time_is_over_names_what_it_ends(
    mode: str, number: signal.Signals, supervisor: str
) -> None:
    options = ("--graceful-timeout", "0.2", "--supervisor", supervisor, "--workers", "1")
    with Server("tests/apps/gate.py", mode, *options) as server:
        server.enter(Path("/never"))
        server.process.send_signal(number)
        assert server.wait() == 0, server.log()
        found = r"warning: .*in flight.*: request 1 GET /wait\?/never\n"
        assert re.search(found, server.log()), server.log()
        server.ended()


def test_an_answer_of_who_cannot_be_interrupted_is_cut_short(mode: str) -> None:
    """Of who can: `test_who_hangs_is_interrupted`."""
    with Server(SLOW, mode, *SOON) as server:
        check_that_an_answer_is_cut_short(server, "swallow")
        server.wait_log("the application cannot be interrupted: its response was cut short", 2)
        server.kill()


@pytest.mark.each_mode
def test_the_end_of_an_answer_does_not_wait_for_the_application(mode: str, tmp_path: Path) -> None:
    """It may have much to do once it has said everything; the watch knows the socket until then."""
    mark = tmp_path / "mark"
    with Server(SLOW, mode, "--request-timeout", "600") as server, server.connect() as connection:
        connection.send(f"GET /kept?{mark} HTTP/1.0\r\n\r\n".encode())
        assert connection.rest().endswith(b"\r\n\r\nwhole")
        mark.touch()


def test_a_limit_below_a_millisecond_is_one(mode: str) -> None:
    with Server(SLOW, mode, "--request-timeout", "0.0004", tracebacks=True) as server:
        assert server.get("/nap").status == 504


@pytest.mark.each_mode
def test_at_the_edge_every_answer_is_the_right_one(mode: str) -> None:
    """The timeout strikes when the application is just through, or about to be: again and again."""
    with Server(SLOW, mode, "--request-timeout", "0.004", "--log-level", "info") as server:
        statuses: list[int] = []

        def ask(name: int) -> None:
            connection = server.connect()
            for count in itertools.count():
                if count >= 30 and len({*statuses}) == 2:
                    break
                # 3 to 5 ms.
                seconds = 0.003 + (count * 7 + name) % 100 * 0.00002
                text = f"{name}-{count}"
                response = connection.request("GET", f"/briefly?{seconds}", f"X-Name: {text}")
                bodies = {200: text.encode(), 504: b"504 Gateway Timeout\n"}
                assert response.body == bodies[response.status]
                statuses.append(response.status)
            connection.close()

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(ask, range(4))) == [None] * 4
        server.wait_log("its client got 504", statuses.count(504))
        log = server.log()
        assert log.count("its client got 504") == statuses.count(504)
        assert "failed" not in log
        assert "cannot be interrupted" not in log


def test_the_library_interrupts_threads_and_leaves_signals_alone() -> None:
    numbers = (signal.SIGURG, signal.SIGRTMAX)
    before = [signal.getsignal(number) for number in numbers]
    with poorhttp.Server(slow.application, request_timeout=0.6) as server:
        port = int(server.url.rpartition(":")[2].strip("/"))
        assert [signal.getsignal(number) for number in numbers] == before
        with Connection(("127.0.0.1", port)) as connection:
            assert connection.request("GET", "/compute").status == 504
            assert connection.request("GET", "/", "X-Name: me").body == b"me"
