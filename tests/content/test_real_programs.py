"""Real programs: `git http-backend` and `php-cgi` as CGI programs, and Mercurial's hgweb.

`make programs` has DokuWiki, and clones and pushes of hgweb.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packages import lacking
from tests.testkit.server import Server, run

needs_git = pytest.mark.skipif(bool(lacking("git")), reason=lacking("git"))
needs_php = pytest.mark.skipif(bool(lacking("php-cgi")), reason=lacking("php-cgi"))

#: As in docs/guides/cgi.md; the password is `secret`.
GIT_BACKEND = """#!/bin/sh
if [ "$HTTP_AUTHORIZATION" != "Basic $(printf 'somebody:secret' | base64)" ]; then
    printf 'Status: 401 Unauthorized\\nWWW-Authenticate: Basic realm="git"\\n'
    printf 'Content-Type: text/plain\\n\\nWho are you?\\n'
    exit
fi
export GIT_PROJECT_ROOT={root} GIT_HTTP_EXPORT_ALL=1 REMOTE_USER=somebody
exec git http-backend
"""


class Git:
    """`git` in a folder, without the configuration of whoever runs the tests."""

    def __init__(self, home: Path) -> None:
        self.env = {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
        author = {f"GIT_AUTHOR_{key}": "somebody" for key in ("NAME", "EMAIL")}
        committer = {key.replace("AUTHOR", "COMMITTER"): name for key, name in author.items()}
        self.env |= {"no_proxy": "*", **author, **committer}

    def attempt(self, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        return run("git", "-c", "init.defaultBranch=main", *words, cwd=folder, env=self.env)

    def __call__(self, folder: Path, *words: str) -> str:
        done = self.attempt(folder, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git(tmp_path)


@pytest.fixture
def repository(tmp_path: Path, mode: str, git: Git) -> Iterator[str]:
    """The address of a repository without name and password, behind a server."""
    programs, root = tmp_path / "programs", tmp_path / "repositories"
    programs.mkdir()
    root.mkdir()
    (programs / "git").write_text(GIT_BACKEND.format(root=root))
    (programs / "git").chmod(0o755)
    git(root, "init", "--bare", "project.git")
    with Server(f"cgi:{programs}", mode, "--cgi-pass-authorization", "on") as server:
        yield f"127.0.0.1:{server.port}/git/project.git"


def commit(git: Git, folder: Path, name: str, content: bytes) -> str:
    """Commit a file; return the number of the commit."""
    (folder / name).write_bytes(content)
    git(folder, "add", name)
    git(folder, "commit", "--message", name)
    return git(folder, "rev-parse", "HEAD")


@needs_git
def test_clone_push_and_shallow_clone(repository: str, git: Git, tmp_path: Path) -> None:
    address = f"http://somebody:secret@{repository}"
    git(tmp_path, "clone", address, "one")
    one, two, shallow = (tmp_path / name for name in ("one", "two", "shallow"))
    commit(git, one, "small", b"small\n")
    # Beyond `http.postBuffer` (1 MiB) it is sent in chunks; beyond as much it is in a file here.
    large = os.urandom(3_000_000)
    last = commit(git, one, "large", large)
    git(one, "push", "origin", "HEAD:main")

    git(tmp_path, "clone", "--branch", "main", address, "two")
    assert git(two, "rev-parse", "HEAD") == last
    assert (two / "large").read_bytes() == large
    assert git(two, "rev-list", "--count", "HEAD") == "2"

    git(tmp_path, "clone", "--branch", "main", "--depth", "1", address, "shallow")
    assert git(shallow, "rev-list", "--count", "HEAD") == "1"
    assert (shallow / "large").read_bytes() == large


@needs_git
def test_nobody_without_the_password(repository: str, git: Git, tmp_path: Path) -> None:
    address = f"http://somebody:wrong@{repository}"
    assert "Authentication failed" in git.attempt(tmp_path, "clone", address, "one").stderr


# PHP

FORM = "Content-Type: application/x-www-form-urlencoded"

INPUT = """#!/usr/bin/env php-cgi
<?php
header("Content-Type: application/json");
if (isset($_GET["code"])) http_response_code((int) $_GET["code"]);
if (isset($_GET["to"])) header("Location: $_GET[to]");
setcookie("a", "b c");
echo json_encode([$_SERVER["SCRIPT_NAME"], $_SERVER["PATH_INFO"], $_SERVER["PHP_SELF"],
    $_GET, $_POST, $_COOKIE, array_map(fn($file) => [$file["name"], $file["size"]], $_FILES)]);
"""


@pytest.fixture(scope="module")
def php(mode: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("php")
    (folder / "input.php").write_text(INPUT)
    (folder / "input.php").chmod(0o755)
    with Server("", mode, "--mount", f"/php=cgi:{folder}") as server:
        yield server


@needs_php
def test_php_input(php: Server) -> None:
    """Path info, query, cookies, forms and files."""
    target = "/php/input.php/a%20b/c?x=1&y[]=2"
    name = "/php/input.php"
    response = php.request("POST", target, FORM, "Cookie: k=v", body=b"p=1&q=%C5%BE")
    assert (response.status, response.get("Set-Cookie")) == (200, "a=b%20c")
    path = "/a b/c"
    query = {"x": "1", "y": ["2"]}
    form = {"p": "1", "q": "ž"}
    assert json.loads(response.body) == [name, path, name + path, query, form, {"k": "v"}, []]

    body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="e"\r\n\r\nxyz\r\n--b--\r\n'
    response = php.request("POST", name, "Content-Type: multipart/form-data; boundary=b", body=body)
    assert json.loads(response.body) == [name, "", name, [], [], [], {"f": ["e", 3]}]


@needs_php
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
def test_php_statuses(php: Server, query: str, status: int, reason: str) -> None:
    response = php.get(f"/php/input.php?{query}")
    assert (response.status, response.reason) == (status, reason)
    assert response.get("Content-Type") == "application/json"
    assert json.loads(response.body)[0] == "/php/input.php"


# Mercurial

HGWEB = "tests/apps/mercurial_site.py"
CONFIGURATION = "[paths]\n/ = {}/*\n[web]\nallow-archive = gz, zip, bz2\n"

#: More than is sent at once.
FILES = {f"{number}.txt": "".join(map(str, range(number, 4_000))).encode() for number in range(30)}


def hg(*words: str | Path) -> None:
    """Run `hg` without the configuration of whoever runs the tests."""
    env = {"HGRCPATH": "", "HGPLAIN": "1", "HGUSER": "a"}
    done = run(Path(sys.executable).with_name("hg"), *words, env=env)
    assert done.returncode == 0, done.stderr


def test_archives_of_mercurial_are_whole(mode: str, tmp_path: Path) -> None:
    """hgweb sends them by `write()`."""
    (tmp_path / "hgweb.conf").write_text(CONFIGURATION.format(tmp_path))
    hg("init", tmp_path / "files")
    for name, content in FILES.items():
        (tmp_path / "files" / name).write_bytes(content)
    hg("-R", tmp_path / "files", "commit", "-A", "-m", "files")
    with Server(HGWEB, mode, env={"REPOSITORIES": str(tmp_path)}) as server:
        for name in ("tip.tar.gz", "tip.zip", "tip.tar.bz2"):
            response = server.get(f"/files/archive/{name}")
            assert response.status == 200
            (tmp_path / name).write_bytes(response.body)
            shutil.unpack_archive(tmp_path / name, tmp_path / f"from {name}")
            found = {
                path.name: path.read_bytes() for path in tmp_path.glob(f"from {name}/files-*/*")
            }
            assert found.pop(".hg_archival.txt")
            assert found == FILES
