"""Git over HTTP: the real `git` with `git http-backend` as a CGI program, with passwords."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packages import lacking
from tests.testkit.server import Server, run

#: As in docs/guides/cgi.md; the password is `secret`.
PROGRAM = """#!/bin/sh
if [ "$HTTP_AUTHORIZATION" != "Basic $(printf 'somebody:secret' | base64)" ]; then
    printf 'Status: 401 Unauthorized\\nWWW-Authenticate: Basic realm="git"\\n'
    printf 'Content-Type: text/plain\\n\\nWho are you?\\n'
    exit
fi
export GIT_PROJECT_ROOT={root} GIT_HTTP_EXPORT_ALL=1 REMOTE_USER=somebody
exec git http-backend
"""

pytestmark = pytest.mark.skipif(bool(lacking("git")), reason=lacking("git"))


class Git:
    """`git` in a folder, without the configuration of whoever runs the tests."""

    def __init__(self, home: Path) -> None:
        self.env = {
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_COUNT": "2",
            "no_proxy": "*",
            "GIT_CONFIG_KEY_0": "user.name",
            "GIT_CONFIG_VALUE_0": "Somebody",
            "GIT_CONFIG_KEY_1": "user.email",
            "GIT_CONFIG_VALUE_1": "somebody@a.example",
        }

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
def server(tmp_path: Path, mode: str, git: Git) -> Iterator[Server]:
    programs, root = tmp_path / "programs", tmp_path / "repositories"
    programs.mkdir()
    root.mkdir()
    (programs / "git").write_text(PROGRAM.format(root=root))
    (programs / "git").chmod(0o755)
    git(root, "init", "--bare", "project.git")
    with Server(f"cgi:{programs}", mode, "--cgi-pass-authorization", "on") as server:
        yield server


def commit(git: Git, folder: Path, name: str, content: bytes) -> str:
    """Commit a file; return the number of the commit."""
    (folder / name).write_bytes(content)
    git(folder, "add", name)
    git(folder, "commit", "--message", name)
    return git(folder, "rev-parse", "HEAD")


def test_clone_push_and_shallow_clone(server: Server, git: Git, tmp_path: Path) -> None:
    address = f"http://somebody:secret@127.0.0.1:{server.port}/git/project.git"
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


def test_nobody_without_the_password(server: Server, git: Git, tmp_path: Path) -> None:
    address = f"http://somebody:wrong@127.0.0.1:{server.port}/git/project.git"
    assert "Authentication failed" in git.attempt(tmp_path, "clone", address, "one").stderr
