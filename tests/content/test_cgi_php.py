"""PHP by the real `php-cgi`: Adminer with SQLite, and a script that shows its input."""

from __future__ import annotations

import html
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urljoin

import pytest

from tests.packages import lacking
from tests.testkit.client import Response
from tests.testkit.server import Server

ADMINER = "/usr/share/adminer/adminer.php"
FORM = "Content-Type: application/x-www-form-urlencoded"

PROGRAMS = {
    # Adminer takes no database without a password; its plugin asks for one of its own.
    "adminer.php": f"""#!/usr/bin/env php-cgi
<?php
function adminer_object() {{
    include_once "/usr/share/adminer/plugins/plugin.php";
    include_once "/usr/share/adminer/plugins/login-password-less.php";
    $hash = password_hash("secret", PASSWORD_BCRYPT, ["cost" => 4]);
    return new AdminerPlugin([new AdminerLoginPasswordLess($hash)]);
}}
ini_set("session.save_path", getenv("SESSIONS"));
include "{ADMINER}";
""",
    "input.php": """#!/usr/bin/env php-cgi
<?php
header("Content-Type: application/json");
if (isset($_GET["code"])) http_response_code((int) $_GET["code"]);
if (isset($_GET["to"])) header("Location: $_GET[to]");
setcookie("a", "b c");
echo json_encode([$_SERVER["SCRIPT_NAME"], $_SERVER["PATH_INFO"], $_SERVER["PHP_SELF"],
    $_GET, $_POST, $_COOKIE, array_map(fn($file) => [$file["name"], $file["size"]], $_FILES)]);
""",
}

pytestmark = pytest.mark.skipif(bool(lacking("php-cgi")), reason=lacking("php-cgi"))


class Browser:
    """A client that keeps cookies and follows redirects."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cookies: dict[str, str] = {}

    def send(self, target: str, form: dict[str, str] | None = None) -> Response:
        fields = [f"Cookie: {'; '.join(map('='.join, self.cookies.items()))}"]
        if form is None:
            response = self.server.get(target, *fields)
        else:
            body = urlencode(form).encode()
            response = self.server.request("POST", target, *fields, FORM, body=body)
        for name, value in response.headers:
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        return response

    def open(self, target: str, form: dict[str, str] | None = None, status: int = 200) -> str:
        """The text of a page, behind redirects."""
        response = self.send(target, form)
        while response.status in (302, 303):
            target = urljoin(target, response.get("Location") or "")
            response = self.send(target)
        assert response.status == status, response.body
        assert "text/html" in (response.get("Content-Type") or "")
        return response.body.decode()


def token(page: str) -> str:
    """What Adminer expects in each form."""
    found = re.search(r"""name=["']token["'] value=["']([^"']+)""", page)
    assert found, page
    return html.unescape(found[1])


@pytest.fixture(scope="module")
def server(mode: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("php")
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    sessions = tmp_path_factory.mktemp("sessions")
    environment = ("--cgi-environment", "PATH", "--cgi-environment", f"SESSIONS={sessions}")
    with Server("", mode, "--mount", f"/php=cgi:{folder}", *environment) as server:
        yield server


@pytest.mark.skipif(bool(lacking(ADMINER)), reason=lacking(ADMINER))
def test_adminer(server: Server, tmp_path: Path) -> None:
    """Logs in, makes a table, and shows its rows."""
    browser, place = Browser(server), "/php/adminer.php"
    login = {"auth[driver]": "sqlite", "auth[server]": "", "auth[username]": ""}
    page = browser.open(place)
    assert "<title>Login - Adminer</title>" in page
    assert set(browser.cookies) == {"adminer_sid", "adminer_key"}
    style = re.search(r'href="(\S+file=default.css\S*)"', page)
    assert style
    response = browser.send(urljoin(place, html.unescape(style[1])))
    assert (response.status, response.get("Content-Type")) == (200, "text/css; charset=utf-8")

    wrong = {**login, "auth[password]": "wrong", "auth[db]": ""}
    assert "<div class='error'>" in browser.open(place, wrong, status=403)

    database = tmp_path / "shop.db"
    database.touch()
    form = {**login, "auth[password]": "secret", "auth[db]": str(database)}
    response = browser.send(place, form)
    assert (response.status, response.reason) == (302, "Found")
    target = urljoin(place, response.get("Location") or "")
    assert "Logout" in browser.open(target)

    page = browser.open(f"{target}&sql=")
    query = "CREATE TABLE carts (name TEXT); INSERT INTO carts VALUES ('ž & \"')"
    page = browser.open(f"{target}&sql=", {"query": query, "token": token(page)})
    assert "Query executed OK" in page, page
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT name FROM carts").fetchall() == [('ž & "',)]
    assert 'ž & "' in html.unescape(browser.open(f"{target}&select=carts"))
    assert "Traceback" not in server.log()


def test_input(server: Server) -> None:
    """Path info, query, cookies, forms and files."""
    target = "/php/input.php/a%20b/c?x=1&y[]=2"
    name = "/php/input.php"
    response = server.request("POST", target, FORM, "Cookie: k=v", body=b"p=1&q=%C5%BE")
    assert (response.status, response.get("Set-Cookie")) == (200, "a=b%20c")
    path = "/a b/c"
    query = {"x": "1", "y": ["2"]}
    form = {"p": "1", "q": "ž"}
    assert json.loads(response.body) == [name, path, name + path, query, form, {"k": "v"}, []]

    body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="e"\r\n\r\nxyz\r\n--b--\r\n'
    response = server.request(
        "POST", name, "Content-Type: multipart/form-data; boundary=b", body=body
    )
    assert json.loads(response.body) == [name, "", name, [], [], [], {"f": ["e", 3]}]


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ("code=404", 404, "Not Found"),
        ("code=503", 503, "Service Unavailable"),
        ("to=/php/input.php/z", 302, "Found"),
        ("to=https://x.example/&code=301", 301, "Moved Permanently"),
        # No options of php-cgi (CVE-2012-1823).
        ("-s", 200, "OK"),
        ("-d+auto_prepend_file%3D/etc/passwd", 200, "OK"),
    ],
)
def test_statuses(server: Server, query: str, status: int, reason: str) -> None:
    response = server.get(f"/php/input.php?{query}")
    assert (response.status, response.reason) == (status, reason)
    assert response.get("Content-Type") == "application/json"
    assert json.loads(response.body)[0] == "/php/input.php"
