"""Real programs: `git http-backend` and `php-cgi` as CGI programs, and Mercurial's hgweb.

`make programs` has DokuWiki, and clones and pushes of hgweb.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages import lacking
from tests.testkit.server import Server, run

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


@pytest.mark.skipif(bool(lacking("git")), reason=lacking("git"))
def test_git(mode: str, tmp_path: Path) -> None:
    """Clones, shallow ones too, and a push, for who has the password."""
    # Nothing of the configuration of whoever runs the tests.
    env = {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    env |= {f"GIT_{who}_NAME": "Somebody" for who in ("AUTHOR", "COMMITTER")}
    env |= {f"GIT_{who}_EMAIL": "somebody@a.example" for who in ("AUTHOR", "COMMITTER")}

    def attempt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        words = ("git", "-c", "init.defaultBranch=main", *words)
        return run(*words, cwd=folder, env={**env, "no_proxy": "*"})

    def git(folder: Path, *words: str) -> str:
        done = attempt(folder, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    programs, root = tmp_path / "programs", tmp_path / "repositories"
    one, two, shallow = (tmp_path / name for name in ("one", "two", "shallow"))
    programs.mkdir()
    root.mkdir()
    (programs / "git").write_text(GIT_BACKEND.format(root=root))
    (programs / "git").chmod(0o755)
    git(root, "init", "--bare", "project.git")
    # Beyond `http.postBuffer` (1 MiB) it is sent in chunks; beyond as much it is in a file here.
    files = {"small": b"small\n", "large": os.urandom(3_000_000)}
    with Server(f"cgi:{programs}", mode, "--cgi-pass-authorization", "on") as server:
        place = f"127.0.0.1:{server.port}/git/project.git"
        address = f"http://somebody:secret@{place}"
        git(tmp_path, "clone", address, "one")
        for name, content in files.items():
            (one / name).write_bytes(content)
            git(one, "add", name)
            git(one, "commit", "--message", name)
        git(one, "push", "origin", "HEAD:main")
        git(tmp_path, "clone", "--branch", "main", address, "two")
        assert git(two, "rev-parse", "HEAD") == git(one, "rev-parse", "HEAD")
        git(tmp_path, "clone", "--branch", "main", "--depth", "1", address, "shallow")
        for clone, commits in ((two, "2"), (shallow, "1")):
            assert git(clone, "rev-list", "--count", "HEAD") == commits
            assert (clone / "large").read_bytes() == files["large"]
        refused = attempt(tmp_path, "clone", f"http://somebody:wrong@{place}", "three")
        assert "Authentication failed" in refused.stderr


INPUT = """#!/usr/bin/env php-cgi
<?php
header("Content-Type: application/json");
if (isset($_GET["code"])) http_response_code((int) $_GET["code"]);
if (isset($_GET["to"])) header("Location: $_GET[to]");
setcookie("a", "b c");
echo json_encode([$_SERVER["SCRIPT_NAME"], $_SERVER["PATH_INFO"], $_SERVER["PHP_SELF"],
    $_GET, $_POST, $_COOKIE, array_map(fn($file) => [$file["name"], $file["size"]], $_FILES)]);
"""


#: Queries of the script, and the status of each.
STATUSES = {
    "code=404": "404 Not Found",
    "code=503": "503 Service Unavailable",
    "to=/php/input.php/z": "302 Found",
    "to=https://x.example/&code=301": "301 Moved Permanently",
    # No options of php-cgi (CVE-2012-1823).
    "-s": "200 OK",
    "-d+auto_prepend_file%3D/etc/passwd": "200 OK",
}


@pytest.mark.skipif(bool(lacking("php-cgi")), reason=lacking("php-cgi"))
def test_php(mode: str, tmp_path: Path) -> None:
    """Path info, query, cookies, forms and files; statuses."""
    (tmp_path / "input.php").write_text(INPUT)
    (tmp_path / "input.php").chmod(0o755)
    name, path = "/php/input.php", "/a b/c"
    body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="e"\r\n\r\nxyz\r\n--b--\r\n'
    with Server("", mode, "--mount", f"/php=cgi:{tmp_path}") as server:
        target = "/php/input.php/a%20b/c?x=1&y[]=2"
        form = "Content-Type: application/x-www-form-urlencoded"
        response = server.request("POST", target, form, "Cookie: k=v", body=b"p=1&q=%C5%BE")
        assert (response.status, response.get("Set-Cookie")) == (200, "a=b%20c")
        sent = [{"x": "1", "y": ["2"]}, {"p": "1", "q": "ž"}, {"k": "v"}, []]
        assert json.loads(response.body) == [name, path, name + path, *sent]
        field = "Content-Type: multipart/form-data; boundary=b"
        response = server.request("POST", name, field, body=body)
        assert json.loads(response.body) == [name, "", name, [], [], [], {"f": ["e", 3]}]
        for query, status in STATUSES.items():
            response = server.get(f"{name}?{query}")
            assert f"{response.status} {response.reason}" == status, query
            assert response.get("Content-Type") == "application/json"
            assert json.loads(response.body)[0] == name


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
    with Server(
        "tests/apps/mercurial_site.py", mode, env={"REPOSITORIES": str(tmp_path)}
    ) as server:
        for name in ("tip.tar.gz", "tip.zip", "tip.tar.bz2"):
            response = server.get(f"/files/archive/{name}")
            assert response.status == 200
            (tmp_path / name).write_bytes(response.body)
            shutil.unpack_archive(tmp_path / name, tmp_path / f"from {name}")
            paths = tmp_path.glob(f"from {name}/files-*/*")
            found = {path.name: path.read_bytes() for path in paths}
            assert found.pop(".hg_archival.txt")
            assert found == FILES
