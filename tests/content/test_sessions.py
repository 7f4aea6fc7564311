"""Sessions of template pages: identity and lifetime, across workers."""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
from pathlib import Path
from unittest.mock import patch

import pytest
from itsdangerous import TimestampSigner, URLSafeTimedSerializer

from poorhttp.config.settings import Settings
from poorhttp.errors import ApplicationError
from poorhttp.plugins.apps.pages.session import MAX_COOKIE, Sessions
from poorhttp.plugins.apps.pages.session_key import read_key
from poorhttp.targets import load
from tests.conftest import Serve
from tests.support.template_pages import write
from tests.support.wsgi_call import Answer, ask
from tests.testkit.client import Response
from tests.testkit.server import Server

ALONE = True

PAGES = {
    "count.html": "<%! import os %><% session['n'] = session.get('n', 0) + 1 %>"
    "${session['n']} ${os.getpid()}",
    "look.html": "${sorted(session.items()) | n}",
    "same.html": "<% session['n'] = session['n'] %>",
    "none.html": "${'session' if False else ''}",
    "grow.html": "<% session.setdefault('list', []).append(len(session['list'])) %>"
    "${session['list']}",
    "forget.html": "<% session.clear() %>",
    "drop.html": "<% session.pop('n') %>${len(session)}${session.touched}",
    "large.html": "<% session['text'] = request.query %>",
    "object.html": "<% session['text'] = object() %>",
    "leave.html": "<% session['n'] = 5; response.redirect('/look') %>",
    "refuse.html": "<% session['n'] = 5; response.abort(403) %>",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sessions")
    write(path, PAGES)
    return path


class Visitor:
    """A browser with one cookie, and a connection of its own for each request."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cookie = ""

    def get(self, path: str) -> Response:
        headers = [f"Cookie: other=1; {self.cookie}"] if self.cookie else []
        answer = self.server.get(path, *headers)
        cookie = answer.get("Set-Cookie")
        if cookie is not None:
            self.cookie = "" if "Max-Age=0" in cookie else cookie.partition(";")[0]
        return answer

    def count(self) -> tuple[int, int]:
        """How often this visitor has been counted, and by which process now."""
        number, pid = self.get("/count").body.split()
        return int(number), int(pid)


def cookie_of(answer: Answer | Response) -> str | None:
    """What was sent of the session, with the attributes."""
    fields = answer.fields if isinstance(answer, Answer) else answer.headers
    found = [value for name, value in fields if name == "Set-Cookie"]
    assert len(found) < 2
    return found[0] if found else None


@pytest.fixture
def server(serve: Serve, folder: Path) -> Server:
    return serve(f"pages:{folder}", tracebacks=True)


def test_a_session(server: Server) -> None:
    one, other = Visitor(server), Visitor(server)
    for number in range(1, 4):
        answer = one.get("/count")
        assert answer.body.split()[0] == b"%d" % number
        assert answer.get("Vary") == "Cookie"
    assert other.count()[0] == 1
    assert one.get("/look").body == b"[('n', 3)]"
    assert one.get("/grow").body == b"[0]"
    assert one.get("/grow").body == b"[0, 1]"
    assert one.get("/leave").status == 303
    assert one.get("/look").body == b"[('list', [0, 1]), ('n', 5)]"
    gone = "session=; Path=/; Max-Age=0; SameSite=Lax; HttpOnly"
    assert one.get("/forget").get("Set-Cookie") == gone
    assert one.cookie == ""
    assert one.get("/look").body == b"[]"
    assert one.get("/refuse").status == 403
    assert one.get("/look").body == b"[]"


@pytest.mark.parametrize("preload", ["off", "on"])
def test_all_workers_know_a_session_and_those_of_a_reload(folder: Path, preload: str) -> None:
    with Server(f"pages:{folder}", "forking", "--preload", preload) as server:
        visitor = Visitor(server)
        expected, seen = 1, set[int]()
        while len(seen) < 2:
            number, pid = visitor.count()
            assert number == expected
            expected += 1
            seen.add(pid)
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        number, pid = visitor.count()
        assert number == expected
        assert pid not in seen
        # One that takes the place of another, too.
        os.kill(pid, signal.SIGKILL)
        server.wait_log("is replaced")
        assert visitor.count()[0] == expected + 1


def test_a_key_in_a_file_outlives_the_server(server: Server, folder: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    with Server(f"pages:{folder}", "forking", "--session-key", str(key)) as first:
        before = Visitor(first)
        assert [before.count()[0] for _ in range(7)] == [*range(1, 8)]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["key"]
    with Server(f"pages:{folder}", "single", "--session-key", str(key)) as second:
        for each, expected in ((second, 8), (server, 1)):
            after = Visitor(each)
            after.cookie = before.cookie
            assert after.count()[0] == expected


def test_what_is_sent(folder: Path) -> None:
    application = load(f"pages:{folder}")
    value, _, attributes = str(cookie_of(ask(application, "/count"))).partition("; ")
    assert attributes == "Path=/; Max-Age=86400; SameSite=Lax; HttpOnly"
    # Nothing that can be made to run when it is read.
    data = value.partition("=")[2].partition(".")[0]
    assert json.loads(base64.urlsafe_b64decode(data + "==")) == {"n": 1}
    headers = {"Cookie": value}
    # Who does not look at it, or does not change it, sends none.
    untouched = ask(application, "/none", headers=headers)
    assert (cookie_of(untouched), untouched.headers.get("vary")) == (None, None)
    for path in ("/look", "/same"):
        answer = ask(application, path, headers=headers)
        assert (cookie_of(answer), answer.headers["vary"]) == (None, "Cookie")
    assert ask(application, "/drop", headers=headers).text == "0True"
    secure = {"wsgi.url_scheme": "https", "SCRIPT_NAME": "/the shop;1"}
    cookie = str(cookie_of(ask(application, "/count", headers=headers, environ=secure)))
    below = "; Path=/the%20shop%3B1; Max-Age=86400; SameSite=Lax; Secure; HttpOnly"
    assert cookie.endswith(below)


def test_what_is_not_ours_is_no_session(folder: Path, tmp_path: Path) -> None:
    application = load(f"pages:{folder}")
    value = str(cookie_of(ask(application, "/count"))).partition(";")[0]
    assert ask(application, "/look", headers={"Cookie": value}).text == "[('n', 1)]"
    _, _, text = value.partition("=")
    data, date, signature = text.split(".")
    forged = [
        *("", ".", "..", data, f"{data}.{date}", f"{data}.{date}."),
        f"{data}.{date}.{signature[:-1]}",
        f"{data[:-2]}AA.{date}.{signature}",
        f"{data}.AAAAAA.{signature}",
        f"\xff{text}",
        URLSafeTimedSerializer(b"another key").dumps({"n": 1}),
    ]
    for text in forged:
        answer = ask(application, "/look", headers={"Cookie": f"session={text}"})
        assert (answer.status, answer.text) == (200, "[]"), text
    # Nobody has said that another folder shall know it.
    write(tmp_path, PAGES)
    assert ask(load(f"pages:{tmp_path}"), "/look", headers={"Cookie": value}).text == "[]"
    # Of two, the first is that of the more specific path.
    twice = {"Cookie": f"{value}; session=old"}
    assert ask(application, "/look", headers=twice).text == "[('n', 1)]"


def aged(key: Path, seconds: int) -> dict[str, str]:
    """A cookie that was made some time ago."""
    now = TimestampSigner.get_timestamp
    with patch.object(TimestampSigner, "get_timestamp", lambda self: now(self) - seconds):
        text = Sessions(read_key(str(key)), "", 60).sign({"n": 1})
    return {"Cookie": f"session={text}"}


def test_the_lifetime(folder: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    settings = Settings(session_key=str(key), session_lifetime=8000)
    application = load(f"pages:{folder}", settings)
    for age, there, renewed in [
        *((0, True, False), (900, True, False), (1100, True, True)),
        *((7900, True, True), (8100, False, False)),
    ]:
        answer = ask(application, "/look", headers=aged(key, age))
        assert answer.text == ("[('n', 1)]" if there else "[]"), age
        assert ("; Max-Age=8000;" in str(cookie_of(answer))) == renewed, age
    assert cookie_of(ask(application, "/none", headers=aged(key, 5000))) is None


def test_too_much_for_a_cookie(server: Server) -> None:
    text = os.urandom(1400).hex()
    assert len(str(server.get(f"/large?{text}").get("Set-Cookie"))) < MAX_COOKIE + 100
    text = os.urandom(3500).hex()
    answer = server.get(f"/large?{text}")
    assert (answer.status, answer.get("Set-Cookie")) == (500, None)
    server.wait_log("bytes as a cookie, but browsers keep at most 4096")
    assert server.get("/object").status == 500
    server.wait_log("TypeError: Object of type object is not JSON serializable")


def test_a_key_that_is_none(folder: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    open_to = "accessed by its group or by others .mode {:04o}., .*: chmod 600 /.*key$"
    for mode, text, why in [
        *((mode, "k" * 64, open_to.format(mode)) for mode in (0o604, 0o640, 0o620)),
        (0o600, "short", "has 5 bytes"),
        (0o600, "", "has 0 bytes"),
    ]:
        key.write_text(text)
        key.chmod(mode)
        with pytest.raises(ApplicationError, match=f"session_key: .*{why}"):
            load(f"pages:{folder}", Settings(session_key=str(key)))
    with pytest.raises(ApplicationError, match=r"session_key: .*none/key: No such file"):
        load(f"pages:{folder}", Settings(session_key=str(tmp_path / "none" / "key")))
