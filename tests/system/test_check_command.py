"""`poorhttp check` and `compile`: output, user and folder, also beside a running server."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from poorhttp import __version__
from tests.support.forked_command import run_command
from tests.support.nobody import IS_ROOT, Nobody
from tests.testkit.server import Server

NOBODY = pwd.getpwnam("nobody")

MAIN = "from poorhttp.cli import main; import sys; sys.exit(main())"

#: Says who loads it.
APPLICATION = """
import os
print("loaded by", os.geteuid(), os.getegid(), os.getgroups(), os.environ.get("USER"))
def application(environ, start_response):
    start_response("200 OK", [])
    return [b"hello"]
"""


@pytest.fixture
def public(folder: Path) -> Path:
    """A folder that everybody may read, and nobody may write."""
    folder.chmod(0o755)
    if IS_ROOT:
        os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    (folder / "app.py").write_text(APPLICATION)
    return folder


def user() -> str:
    """Whom the tests may become."""
    return "nobody" if IS_ROOT else str(os.getuid())


def test_check_loads_as_the_user(nobody: Nobody, public: Path) -> None:
    options = ("--bind", "127.0.0.1:0", "--chdir", str(public), "--user", user())
    done = nobody.as_root(MAIN, "check", "app.py", *options)
    assert done.returncode == 0, done.stderr
    if IS_ROOT:
        assert f"loaded by {NOBODY.pw_uid} {NOBODY.pw_gid} " in done.stdout
        assert "] nobody\n" in done.stdout
    assert "would serve app.py on " in done.stdout
    # Started by a process that waits for no child.
    ignoring = f"import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); {MAIN}"
    done = nobody.as_root(ignoring, "check", "app.py", *options)
    assert done.returncode == 0, done.stderr


def test_compile_writes_as_the_user(nobody: Nobody, public: Path) -> None:
    (public / "pages").mkdir()
    (public / "pages" / "index.html").write_text("hello")
    options = ("--user", user(), "--pages-modules", str(public / "modules"))
    done = nobody.as_root(MAIN, "compile", f"pages:{public}/pages", *options)
    assert done.returncode == 0, done.stderr
    assert "1 page compiled" in done.stdout
    owners = {path.stat().st_uid for path in (public / "modules").rglob("*")}
    assert owners == {NOBODY.pw_uid if IS_ROOT else os.getuid()}


def files_of(folder: Path) -> list[object]:
    """What the socket and the pidfile in a folder are known by."""
    found = [(folder / name).stat() for name in ("socket", "pid")]
    return [(each.st_ino, each.st_mode, each.st_uid, each.st_ctime_ns) for each in found]


@pytest.mark.parametrize("options", [(), ("--reuse-port",), ("--user", user())])
def test_check_beside_the_running_server(
    nobody: Nobody, public: Path, options: tuple[str, ...]
) -> None:
    """Its sockets and its pidfile stay as they are."""
    files = ("--pidfile", f"{public}/pid", "--socket-mode", "0666", *options)
    app = str(public / "app.py")
    binds = ("127.0.0.1:0", f"unix:{public}/socket", f"unix:@{public}")
    with Server(app, "threading", *files, bind=binds, env=nobody.env, cwd=public) as server:
        before = files_of(public)
        again = (f"127.0.0.1:{server.port}", *binds[1:])
        words = [word for bind in again for word in ("--bind", bind)]
        done = run_command("check", app, *words, *files, env=nobody.env, cwd=public)
        assert done.returncode == 0, done.stderr
        for bind in again:
            note = f"{bind} was not opened: a server of poorhttp listens there, "
            assert note + f"{server.process.pid}\n" in done.stdout
        assert files_of(public) == before
        assert server.get("/").body == b"hello"


def test_check_looks_for_what_traces_need(public: Path) -> None:
    words = ("check", "app.py", "--bind", "127.0.0.1:0", "--otel", "traces")
    done = run_command(*words, cwd=public, env={"OTEL_TRACES_EXPORTER": "telegraph"})
    assert done.returncode == 3
    assert 'OpenTelemetry has no exporter "telegraph" of traces here' in done.stderr


def test_what_check_prints(public: Path) -> None:
    (public / "x.ini").write_text("[http]\nmode = forking\nbind = 127.0.0.1:0\nchdir = app\n")
    (public / "app").mkdir()
    (public / "app/mine.py").write_text("def application(environ, start_response): return []\n")
    options = ("--mount", "/x=mine.py", "--static", f"/f={public}", "--workers", "2")
    done = run_command("check", "-c", "x.ini", "mine:application", *options, cwd=public)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"poorhttp {__version__} would serve mine:application on http://127.0.0.1:0 "
        "(forking, 2 workers)",
        "",
        "Routes:",
        "  /                             mine:application, from TARGET",
        "  /x/                           mine.py, from --mount",
        f"  /f/                           the files of {public}, from --static",
        "",
        "Not the default:",
        "  chdir = app                   from x.ini:4: chdir",
        "  bind = 127.0.0.1:0            from x.ini:3: bind",
        "  mode = forking                from x.ini:2: mode",
        "  workers = 2                   from --workers",
    ]
