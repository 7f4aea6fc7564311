"""Access control of the address `admin`: authorization, protocol cases, malformed requests."""

from __future__ import annotations

import base64
import io
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poorhttp.plugins.monitor.admin import application
from poorhttp.plugins.monitor.admin.application import Application
from poorhttp.plugins.monitor.admin.protection import Protection
from poorhttp.plugins.monitor.admin.questions import COMMAND, Questions
from tests.support.admin_address import Admin
from tests.support.admin_requests import send_made_up
from tests.support.check_each import by_file, check_each
from tests.support.forked_command import run_command
from tests.testkit.cases.blocks import FOLDER, Block, blocks
from tests.testkit.cases.exchanges import Case, read_all
from tests.testkit.client import Connection
from tests.testkit.process import children
from tests.testkit.server import Server

GATE = "tests/apps/gate.py"
TOKEN = "correct-horse-battery-staple"

#: Protocol cases that fit into the smaller limits of the address.
LONGEST = 1000
CASES = by_file(case for case in read_all() if not case.answer and len(case.send) <= LONGEST)

#: Requests that are made up; `make fuzz` makes more.
FUZZED = 300


@pytest.fixture(scope="module")
def plain() -> Iterator[Admin]:
    with Server(GATE, "threading", "--admin", "127.0.0.1:0") as server:
        yield Admin(server)


@pytest.mark.parametrize(
    ("accept", "is_browser"),
    [
        # Firefox and Chromium; curl, Python and `fetch`; others.
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("text/html, application/json;q=0.9", True),
        ("*/*", False),
        ("", False),
        ("application/json, text/plain, */*", False),
        ("application/json, text/html;q=0.9", False),
        ("text/html, application/json", False),
        ("text/*", True),
        ("TEXT/HTML", True),
        ("text/html;q=0, */*", False),
        ("text/html;q=x", False),
        ("application/*;q=0.2, text/*;q=0.3, text/html;q=0.1", False),
    ],
)
def test_a_browser_is_led_to_the_page(accept: str, is_browser: bool, plain: Admin) -> None:
    with plain.connect() as connection:
        fields = [f"Accept: {accept}"] if accept else []
        for method in ("GET", "HEAD"):
            response = connection.request(method, "/-/status", *fields)
            assert response.status == (303 if is_browser else 200)
            assert response.get("Vary") == "Accept"
            # Also behind a prefix of a proxy.
            assert response.get("Location") == ("../" if is_browser else None)
        response = connection.request("GET", "/-/status?json", *fields)
        assert response.json()["pid"] == plain.server.process.pid


def test_a_browser_needs_the_token_first(protected: Admin) -> None:
    with protected.connect() as connection:
        assert connection.request("GET", "/-/status", "Accept: text/html").status == 401


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    options = ("--admin", "127.0.0.1:0", "--admin-token-file", str(file))
    with Server(GATE, "threading", *options) as server:
        yield Admin(server)


def status_of(address: Admin, *headers: str) -> dict[str, Any]:
    with address.connect() as connection:
        found: dict[str, Any] = connection.request("GET", "/-/status", *headers).json()
    return found


def request_of(case: Block, address: Admin) -> bytes:
    basic = base64.b64encode(f"somebody:{TOKEN}".encode()).decode()
    host = "" if case["host"] == "-" else case["host"]
    lines = [f"{case['send']} HTTP/1.1", f"Host: {host}", *case.get("field", ())]
    body: bytes = case.get("body", b"")
    if case["send"].startswith("POST"):
        lines.append(f"Content-Length: {len(body)}")
    text = "\r\n".join([*lines, "", ""])
    for name, value in (
        ("PORT", address.url.rpartition(":")[2]),
        ("TOKEN", TOKEN),
        ("BASIC", basic),
    ):
        text = text.replace(name, value)
    return text.encode() + body


@pytest.mark.parametrize("kind", ["without", "with"])
def test_who_may_ask(kind: str, plain: Admin, protected: Admin) -> None:
    """Cases of tests/cases/admin: tokens, and pages of other sites."""
    address = {"without": plain, "with": protected}[kind]

    def check(case: Block) -> None:
        with address.connect() as connection:
            connection.send(request_of(case, address))
            response = connection.response()
            assert str(response.status) in case[kind], response.body
            if response.status == 401:
                schemes = [each.split()[0] for each in response.get_all("WWW-Authenticate")]
                assert schemes == ["Bearer", "Basic"]
            path = case["send"].split()[1]
            if path.startswith("/-/control/") and response.status not in (400, 413):
                assert response.json()["ok"] is False
            assert response.get("Cache-Control") in ("no-store", None)

    found = list(blocks([FOLDER / "admin" / "requests.txt"], "admin"))

    class Named:
        def __init__(self, block: Block) -> None:
            self.file, self.name, self.block = block.file, block["name"], block

    check_each(map(Named, found), lambda case: check(case.block))
    assert status_of(address, f"Authorization: Bearer {TOKEN}")["ready"] is True
    assert "by an operator" not in address.server.log()


@pytest.mark.parametrize(
    ("token", "mode", "message"),
    [
        (None, 0o600, "token: No such file or directory"),
        ("short", 0o600, "has to hold one token of 16 to 4096 visible ASCII characters"),
        ("two words of a sentence", 0o600, "has to hold one token"),
        (TOKEN, 0o604, "everybody can read or write"),
    ],
)
def test_token_files(token: str | None, mode: int, message: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    if token is not None:
        file.write_text(token)
        file.chmod(mode)
    options = ("--admin", "127.0.0.1:0", "--admin-token-file", str(file))
    done = run_command("serve", GATE, "--bind", "127.0.0.1:0", *options)
    assert done.returncode == 3
    assert "--admin-token-file: " in done.stderr
    assert message in done.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_other_machines_need_a_token(address: str, tmp_path: Path) -> None:
    done = run_command("serve", GATE, "--bind", "127.0.0.1:0", "--admin", address)
    assert done.returncode == 3
    assert "can be reached from other machines: set admin_token_file" in done.stderr
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o640)
    with Server(GATE, "threading", "--admin", address, "--admin-token-file", str(file)) as server:
        (port,) = re.findall(r"the status page is at http://\S+:(\d+)", server.log())
        where = ("::1" if address.startswith("[") else "127.0.0.1", int(port))
        with Connection(where) as connection:
            assert connection.request("GET", "/-/ready").status == 200
            assert connection.request("GET", "/-/metrics").status == 401
            right = f"Authorization: Bearer {TOKEN}"
            assert connection.request("GET", "/-/status", right).status == 200
            # The token is read again at a reload.
            file.write_text(TOKEN[::-1])
            fields = (right, "Content-Type: application/json")
            answer = connection.request("POST", "/-/control/reload", *fields, body=b"{}")
            assert answer.status == 202
        server.wait_log("reloaded: the new version serves")
        with Connection(where) as connection:
            assert connection.request("GET", "/-/status", right).status == 401
            right = f"Authorization: Bearer {TOKEN[::-1]}"
            assert connection.request("GET", "/-/status", right).status == 200


# What is no request


@pytest.mark.parametrize("file", CASES)
def test_protocol_cases(plain: Admin, file: str) -> None:
    """The cases of the other addresses: as many answers, the same refusals, the same end."""

    def check(case: Case) -> None:
        with plain.connect() as connection:
            connection.send(case.send)
            for at, status in enumerate(case.statuses):
                response = connection.response("HEAD" if at in case.heads else "GET")
                # Of the application of these cases, 200. Here the page is at `/`, under the names
                # of this address only; `OPTIONS *` is the server's own.
                right = (200, 403, 404, 405) if status == 200 else (status,)
                assert response.status in right, response.status
            if case.close:
                assert connection.at_end(), "the connection stays open"
            else:
                assert connection.request("GET", "/-/live").status == 200

    check_each(CASES[file], check)


def test_made_up_requests(plain: Admin) -> None:
    """None of them gets a 500, ends a process, or changes anything."""
    chance = random.Random(20)
    before = children(plain.server.process.pid)
    for _ in range(FUZZED):
        send_made_up(chance, plain.connect)
    assert children(plain.server.process.pid) == before
    status = status_of(plain)
    assert status["ready"] is True
    assert status["services"][0]["wanted"] == len(status["services"][0]["workers"]) == 1
    assert status["reloads"]["succeeded"] == 0
    assert "by an operator" not in plain.server.log()


class Asked:
    """In place of the main process: notes what it is asked."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def ask(self, kind: bytes, words: str = "") -> bytes:
        if kind == COMMAND:
            self.words.append(words)
        return b'404\n{"ok":false,"message":""}'


def test_what_reaches_the_main_process() -> None:
    """Words of letters, digits and little more, whatever a client writes."""
    chance = random.Random(7)
    asked = Asked()
    protection = Protection.__new__(Protection)
    protection.token = b""
    protection._hosts = set()
    answering: Any = Application.__new__(Application)
    answering._questions, answering._protection = asked, protection
    letters = 'abz09-_. =%\n\r\t\0\x7f\x9b{"\\é\u202e\ud800\u0130\uff11'
    statuses = set()

    def start_response(status: str, fields: list[tuple[str, str]]) -> None:
        statuses.add(status)

    for _ in range(3000):
        texts = ["".join(chance.choices(letters, k=chance.randrange(5))) for _ in range(3)]
        value: Any = chance.choice([texts[0], True, None, 7, -1, 1.5, float("nan"), [], {}, 10**90])
        body = json.dumps({texts[1]: value, "pid": value}, ensure_ascii=chance.random() < 0.5)
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": application.CONTROL + chance.choice(["stop", texts[2]]),
            "HTTP_HOST": "localhost",
            "CONTENT_TYPE": "application/json",
            "wsgi.input": io.BytesIO(body.encode("utf-8", "surrogatepass")),
        }
        (text,) = answering(environ, start_response)
        assert json.loads(text)["ok"] is False
    assert {status[:3] for status in statuses} == {"400", "404"}
    assert len(asked.words) > 100
    word = r"[\w.-]+"
    for words in asked.words:
        assert re.fullmatch(rf"{word}( {word}={word})*", words), words
        assert words.isprintable()


def test_questions_of_the_wrong_form(tmp_path: Path) -> None:
    """The main process answers what an admin process of an attacker may send."""
    questions = Questions("nowhere")
    try:
        sent = [b"x", b"c", b"c" + bytes(8), b"c" + b"\xff" * 1015, b"c" * 4096]
        heard: list[tuple[bytes, str]] = []

        def respond(kind: bytes, words: str) -> str:
            heard.append((kind, words))
            return "\ud800"

        for question in sent:
            questions._theirs.send(question)
        questions.answer(respond)
        assert [kind for kind, _ in heard] == [b"x", b"c", b"c", b"c", b"c"]
        assert max(len(words) for _, words in heard) <= 1015
    finally:
        questions.close()
