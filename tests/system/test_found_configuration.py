"""`poorhttp.ini` of the current folder, which nobody has named: read, or refused."""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.forked_command import run_command
from tests.support.nobody import IS_ROOT, Nobody
from tests.testkit.client import Connection
from tests.testkit.server import Program, command

APPLICATION = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "5")])
    return [b"found"]
"""

READ = "poorhttp: poorhttp.ini of this folder is read\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with an application, and what `poorhttp init` writes beside it."""
    (tmp_path / "shop.py").write_text(APPLICATION)
    done = run_command("init", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_what_init_writes_is_checked_and_served(project: Path) -> None:
    done = run_command("check", "--threads", "3", cwd=project)
    assert (done.returncode, done.stderr) == (0, READ)
    assert "would serve shop:app on http://127.0.0.1:8080 (threading, 1 worker of 3" in done.stdout
    with Program(*command("serve", "--bind", "127.0.0.1:0"), cwd=project) as server:
        port = int(server.wait_line()[2].rpartition(":")[2])
        assert server.log().startswith(READ)
        with Connection(("127.0.0.1", port)) as connection:
            assert connection.request("GET", "/").body == b"found"
        # A reload reads it again.
        (project / "poorhttp.ini").write_text("[http]\ntarget = shop:nothing\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("not reloaded; the previous version keeps serving: ")
        server.wait_log('shop has no "nothing"')
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0


def test_what_init_writes_for_files(tmp_path: Path) -> None:
    """In a folder whose own files are served, it is in another one."""
    (tmp_path / "index.html").write_text("found")
    assert run_command("init", cwd=tmp_path).returncode == 0
    done = run_command("check", cwd=tmp_path)
    assert done.stderr == "poorhttp: .deploy/poorhttp.ini of this folder is read\n"
    assert "would serve static:." in done.stdout


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (("other:app",), {}),
        (("-c", "other.ini"), {}),
        (("--mount", "/x=other:app"), {}),
        (("--static", "/x=."), {}),
        ((), {"POORHTTP_TARGET": "other:app"}),
    ],
)
def test_what_is_named_is_alone(words: tuple[str, ...], env: dict[str, str], project: Path) -> None:
    (project / "other.py").write_text(APPLICATION)
    (project / "other.ini").write_text("[http]\ntarget = other:app\n")
    (project / "poorhttp.ini").write_text("[http\n")
    done = run_command("check", *words, cwd=project, env=env)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mistake_in_it(project: Path) -> None:
    (project / "poorhttp.ini").write_text("[http]\nthreads = x\n")
    done = run_command("check", cwd=project)
    assert done.returncode == 3
    assert done.stderr.startswith("poorhttp: poorhttp.ini:2: threads: ")
    (project / "poorhttp.ini").write_text("[http]\n")
    done = run_command("check", cwd=project)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{READ}poorhttp: there is nothing to check; ")


NOBODY = pwd.getpwnam("nobody")


def of_nobody(project: Path) -> None:
    os.chown(project / "poorhttp.ini", NOBODY.pw_uid, NOBODY.pw_gid)


def link_of_nobody(project: Path) -> None:
    (project / "poorhttp.ini").rename(project / "there.ini")
    (project / "poorhttp.ini").symlink_to("there.ini")
    os.lchown(project / "poorhttp.ini", NOBODY.pw_uid, NOBODY.pw_gid)
    project.chmod(0o1777)


def link_of_root(project: Path, within: str) -> None:
    """To a file of root: nobody may put another file or folder in its place."""
    target = project / "theirs" / within
    target.parent.mkdir(parents=True)
    (project / "poorhttp.ini").rename(target)
    (project / "poorhttp.ini").symlink_to(target)
    os.chown(project / "theirs", NOBODY.pw_uid, NOBODY.pw_gid)


def link_to_a_link(project: Path) -> None:
    """The link of nobody's folder leads out of it again."""
    (project / "theirs").mkdir(0o777)
    (project / "theirs").chmod(0o777)
    (project / "poorhttp.ini").rename(project / "there.ini")
    (project / "theirs/link").symlink_to(project / "there.ini")
    (project / "poorhttp.ini").symlink_to("theirs/link")


def pipe(project: Path) -> None:
    (project / "poorhttp.ini").unlink()
    os.mkfifo(project / "poorhttp.ini")


def with_mode(mode: int, name: str = "poorhttp.ini") -> Callable[[Path], None]:
    return lambda project: (project / name).chmod(mode)


THEIRS = "/theirs, which others may write"

#: What makes a file one that is refused, why, and whether root must be there for that.
REFUSED: dict[str, tuple[Callable[[Path], None], str, bool]] = {
    "owner": (of_nobody, "it belongs to user nobody", True),
    "link": (link_of_nobody, "is a symbolic link of user nobody", True),
    "folder": (with_mode(0o1777, "."), "others may write its folder", True),
    "target's folder": (partial(link_of_root, within="there.ini"), THEIRS, True),
    "folder above": (partial(link_of_root, within="of_root/there.ini"), THEIRS, True),
    "link to a link": (link_to_a_link, THEIRS, True),
    "group": (with_mode(0o664), "others may write it (mode 0664)", True),
    "others": (with_mode(0o646), "others may write it (mode 0646)", False),
    "pipe": (pipe, "it is not a regular file", False),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_others_may_have_written(name: str, project: Path) -> None:
    change, why, needs_root = REFUSED[name]
    if needs_root and not IS_ROOT:
        pytest.skip("only root gives files away, and is asked for more")
    change(project)
    done = run_command("check", cwd=project)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("poorhttp: poorhttp.ini: cannot be read: ")
    assert why in done.stderr
    if name not in ("link", "pipe"):
        assert "write -c poorhttp.ini if you trust it" in done.stderr
        assert run_command("check", "-c", "poorhttp.ini", cwd=project).returncode == 0


def test_a_link_to_a_file_of_ones_own(project: Path, folder: Path) -> None:
    """Also through a folder like /tmp, in which others cannot rename what is not theirs."""
    (folder / "own").mkdir(0o755)
    (project / "poorhttp.ini").rename(folder / "own/there.ini")
    (project / "poorhttp.ini").symlink_to(folder / "own/there.ini")
    folder.chmod(0o1777)
    assert run_command("check", cwd=project).returncode == 0


@pytest.mark.skipif(not IS_ROOT, reason="nobody else has files of somebody else")
def test_files_of_root_and_of_others_for_nobody(nobody: Nobody, folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "shop.py").write_text(APPLICATION)
    (folder / "poorhttp.ini").write_text("[http]\ntarget = shop:app\n")
    for owner, code in ((0, 0), (pwd.getpwnam("daemon").pw_uid, 3)):
        os.chown(folder / "poorhttp.ini", owner, -1)
        done = nobody.run("check", cwd=folder)
        assert done.returncode == code, done.stderr
    assert "it belongs to user daemon" in done.stderr


def test_ctl_finds_the_server_by_it(project: Path) -> None:
    ini = project / "poorhttp.ini"
    text = ini.read_text()
    ini.write_text(f"{text}admin = unix:admin\n")
    with Program(*command("serve", "--bind", "127.0.0.1:0"), cwd=project) as server:
        server.wait_line()
        done = run_command("ctl", "status", cwd=project)
        assert done.stderr == f"poorhttp: unix:{project}/admin, by poorhttp.ini of this folder\n"
        assert f"process {server.process.pid}," in done.stdout
        # A mistake in it keeps nobody from controlling the server.
        ini.write_text("[http]\nthreads = x\n")
        done = run_command("ctl", "--admin", f"unix:{project}/admin", "stop", cwd=project)
        assert (done.returncode, done.stderr) == (0, "")
        done = run_command("ctl", "status", cwd=project)
        assert "poorhttp: poorhttp.ini of this folder is left out: poorhttp.ini:2: " in done.stderr
        assert server.wait() == 0
