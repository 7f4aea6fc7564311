"""PHP by the real `php-cgi`: a script that shows its input; `make programs` has DokuWiki."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.packages import lacking
from tests.testkit.server import Server

FORM = "Content-Type: application/x-www-form-urlencoded"

PROGRAMS = {
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


@pytest.fixture(scope="module")
def server(mode: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("php")
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    with Server("", mode, "--mount", f"/php=cgi:{folder}") as server:
        yield server


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
