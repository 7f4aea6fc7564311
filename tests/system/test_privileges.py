"""`user` and `group`: the change of the process's user, and its privileges after it."""

from __future__ import annotations

import errno
import grp
import json
import os
import pty
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.process.privileges import Privileges
from tests.support.nobody import IS_ROOT, Nobody
from tests.testkit.client import HANG, Connection
from tests.testkit.server import ROOT, Server, command, environment, run

NOBODY = pwd.getpwnam("nobody")

#: Becomes what the options of its arguments say, and tells who it is then.
PROGRAM = """
import json, os, sys
from poorhttp.config import loader
from poorhttp.errors import Failure
from poorhttp.process.privileges import Privileges, apply_umask
if os.geteuid() == 0:
    os.setgroups([1234])
try:
    settings = loader.load(json.loads(sys.argv[1]))[0]
    apply_umask(settings)
    Privileges(settings).drop()
except Failure as failure:
    print(failure, file=sys.stderr)
    sys.exit(failure.exit_code)
try:
    os.setuid(0)
    back = os.geteuid() == 0
except PermissionError:
    back = False
print(json.dumps({
    "uids": os.getresuid(), "gids": os.getresgid(), "groups": sorted(os.getgroups()),
    "umask": os.umask(0), "back": back,
    **{name: os.environ.get(name) for name in ("HOME", "USER", "LOGNAME")},
}))
"""


@pytest.fixture
def public(folder: Path) -> Path:
    """A folder that everybody may read."""
    folder.chmod(0o755)
    return folder


def become(nobody: Nobody, **options: str) -> dict[str, Any]:
    """Who a process is that has become what the options say; `code` and `message` if it failed."""
    values = json.dumps({name: [value] for name, value in options.items()})
    done = nobody.as_root(PROGRAM, values)
    if done.returncode:
        return {"code": done.returncode, "message": done.stderr}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"user": "nobodi"}, '^user: there is no user "nobodi"; did you mean "nobody"\\?$'),
        ({"user": "Zz-Zz"}, '^user: there is no user "Zz-Zz"; name one of this machine'),
        ({"group": "deamon"}, '^group: there is no group "deamon"; did you mean "daemon"\\?$'),
        ({"user": "12345"}, "^user: the number 12345 belongs to no user .* set group, too$"),
        ({"user": "4294967295", "group": "daemon"}, "^user: .* is too large"),
        ({"group": "9" * 5000}, "^group: .* is too large"),
    ],
)
def test_mistakes(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Privileges(Settings(**options))


DAEMON = grp.getgrnam("daemon").gr_gid

#: Who a process is: user, group, groups beside it, `USER` and `HOME`.
Identity = tuple[int, int, list[int], tuple[str, str] | None]


def nobody_in(group: int) -> Identity:
    """The user nobody with a group."""
    groups = sorted(os.getgrouplist("nobody", group))
    return NOBODY.pw_uid, group, groups, ("nobody", NOBODY.pw_dir)


@pytest.mark.parametrize(
    ("options", "who"),
    [
        ({"user": "nobody"}, nobody_in(NOBODY.pw_gid)),
        ({"user": str(NOBODY.pw_uid)}, nobody_in(NOBODY.pw_gid)),
        ({"user": "nobody", "group": "daemon"}, nobody_in(DAEMON)),
        ({"user": "12345", "group": "23456"}, (12345, 23456, [], ("12345", "/"))),
        ({"group": "daemon"}, (0, DAEMON, [], None)),
    ],
)
def test_user_and_group(options: dict[str, str], who: Identity, nobody: Nobody) -> None:
    found = become(nobody, **options)
    if not IS_ROOT:
        assert found["code"] == 3
        assert f"--{next(iter(options))}: only root can become another user" in found["message"]
        return
    uid, gid, groups, variables = who
    assert (found["uids"], found["gids"]) == ([uid] * 3, [gid] * 3)
    assert found["groups"] == groups
    if variables:
        assert not found["back"]
        assert (found["USER"], found["HOME"]) == variables
        assert found["LOGNAME"] == found["USER"]


def test_umask(nobody: Nobody) -> None:
    assert become(nobody, umask="0137")["umask"] == 0o137


# A server whose workers are somebody else


@pytest.fixture
def app(public: Path) -> str:
    """The application that tells who it is, where nobody can read it."""
    return str(shutil.copy(ROOT / "tests/apps/surroundings.py", public))


@pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")
def test_links_on_the_way_to_the_folder(app: str, nobody: Nobody, public: Path) -> None:
    """Files of relative names are opened by root there: no user chooses another folder for them."""
    theirs, ours, link = public / "theirs", public / "ours", public / "links" / "current"
    for folder in (theirs, ours, link.parent):
        folder.mkdir()
        folder.chmod(0o755)
    os.chown(theirs, NOBODY.pw_uid, NOBODY.pw_gid)
    os.chown(link.parent, NOBODY.pw_uid, NOBODY.pw_gid)
    options = ("--user", "nobody", "--chdir", str(link), "--error-log", "error.log")

    def lead(target: Path, owner: int) -> None:
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        os.chown(link, owner, -1, follow_symlinks=False)

    lead(theirs, NOBODY.pw_uid)
    started = {**nobody.env, "PWD": str(link)}
    with Server(app, "single", "--user", "nobody", env=started, cwd=link) as server:
        lead(ours, NOBODY.pw_uid)
        for times, number in enumerate((signal.SIGHUP, signal.SIGUSR2), 1):
            server.process.send_signal(number)
            server.wait_log("to a folder that is not that user's", times)
    for target, owner, is_followed in (
        (theirs, NOBODY.pw_uid, True),
        (ours, 0, True),
        (ours, NOBODY.pw_uid, False),
    ):
        lead(target, owner)
        if is_followed:
            with Server(app, "single", *options, env=nobody.env, cwd=public) as server:
                assert server.get("/").status == 200
            (target / "error.log").unlink()
        else:
            words = command("serve", app, "--bind", "127.0.0.1:0", *options)
            done = run(*words, cwd=public, env=nobody.env)
            assert done.returncode == 3
            assert "symbolic link of a user to a folder that is not that user's" in done.stderr
            assert not (target / "error.log").exists()


@pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")
@pytest.mark.parametrize(
    ("admin", "protected", "is_open"),
    [
        ("unix:@poorhttp-{pid}", False, True),
        ("127.0.0.1:0", False, True),
        ("127.0.0.1:0", True, False),
        ("unix:{folder}/admin", False, False),
    ],
)
def test_an_admin_address_that_is_open_to_the_application(
    admin: str, protected: bool, is_open: bool, app: str, nobody: Nobody, public: Path
) -> None:
    (public / "token").write_text("a" * 32)
    (public / "token").chmod(0o600)
    options = ["--user", "nobody", "--admin", admin.format(pid=os.getpid(), folder=public)]
    options += ["--admin-token-file", f"{public}/token"] * protected
    with Server(app, "single", *options, env=nobody.env, cwd=public) as server:
        server.wait_log("the status page is at")
        assert server.get("/").status == 200
        assert ("every user of this machine" in server.log()) == is_open


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("single", ()),
        ("forking", ()),
        ("threading", ("--workers", "2", "--umask", "0027")),
        ("threading", ("--preload",)),
        ("single", ("--supervisor", "off")),
    ],
)
def test_workers_are_somebody_else(
    app: str, nobody: Nobody, public: Path, mode: str, options: tuple[str, ...]
) -> None:
    if not IS_ROOT:
        done = nobody.run("serve", "poorhttp.worker.wsgi:serve", "--user", "nobody")
        assert done.returncode == 3
        return
    binds = ("127.0.0.1:0", f"unix:{public}/socket")
    options = ("--user", "nobody", "--pidfile", f"{public}/pid", *options)
    with Server(app, mode, *options, bind=binds, env=nobody.env, cwd=public) as server:
        for where in (("127.0.0.1", server.port), f"{public}/socket"):
            with Connection(where) as connection:
                found = connection.request("GET", "/").json()
            assert (found["uid"], found["gid"]) == (NOBODY.pw_uid, NOBODY.pw_gid)
            assert found["environ"]["USER"] == "nobody"
            # Servers inherit that of the tests.
            os.umask(umask := os.umask(0))
            assert found["umask"] == (0o027 if "--umask" in options else umask)
        if "off" in options:
            return
        assert found["parent"] == server.process.pid
        assert Path(f"/proc/{server.process.pid}").stat().st_uid == 0
        # What only root may do it can still do: the next version is nobody too.
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        again = server.get("/").json()
        assert again["pid"] != found["pid"]
        assert again["uid"] == NOBODY.pw_uid
    assert not (public / "socket").exists()
    assert not (public / "pid").exists()


#: Types a command on the terminal of who has started it.
TYPING = """
import fcntl, os, termios
try:
    for letter in b"evil\\n":
        fcntl.ioctl(0, termios.TIOCSTI, bytes([letter]))
    typed = "typed"
except OSError as error:
    typed = f"refused, errno {error.errno}"
os.write(2, f"{typed}\\n".encode())
if MAKES_END:
    raise SystemExit(3)
def application(environ, start_response): ...
"""


@pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")
@pytest.mark.parametrize(
    "words", [("check",), ("serve",), ("serve", "--preload"), ("serve", "--supervisor", "off")]
)
def test_nothing_is_typed_for_root(nobody: Nobody, public: Path, words: tuple[str, ...]) -> None:
    """A shell of root, which has started the server on its terminal, would run it."""
    text = TYPING.replace("MAKES_END", str(words[0] == "serve"))
    (public / "typing_app.py").write_text(text)
    main, terminal = pty.openpty()
    # As of a shell: the leader of the session, and a process that it starts.
    shell = f"import subprocess, sys; sys.exit(subprocess.call({command(*words)!r} + sys.argv[1:]))"
    options = ("--user", "nobody", "--bind", "127.0.0.1:0")
    try:
        with subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL + shell, "typing_app.py", *options],
            stdin=terminal,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(nobody.env),
            cwd=public,
            start_new_session=True,
        ) as process:
            messages = process.communicate(timeout=HANG)[1].decode()
    finally:
        os.close(main)
        os.close(terminal)
    assert f"refused, errno {errno.EPERM}" in messages, messages
    assert "typed" not in messages.splitlines()


#: Makes standard input the terminal of a new session.
OWN_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "


def test_application_that_the_user_cannot_read(app: str, nobody: Nobody) -> None:
    """Root can; the message is about the user who is to serve it."""
    os.chmod(app, 0o600)
    words = ("serve", app, "--bind", "127.0.0.1:0", "--user", "nobody")
    done = nobody.as_root("from poorhttp.cli import main; import sys; sys.exit(main())", *words)
    assert "Traceback" not in done.stderr
    if IS_ROOT:
        assert done.returncode == 4, done.stderr
        assert f"{app} cannot be imported: PermissionError: " in done.stderr
        assert f"{app}', as user nobody" in done.stderr
        assert done.stderr.count("poorhttp: ") == 1
    else:
        assert done.returncode == 3


def test_only_root_becomes_another(nobody: Nobody) -> None:
    done = nobody.run("check", "--user", "daemon", "poorhttp.worker.wsgi:serve")
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("poorhttp: --user: only root can become another user or group")
    assert done.stderr.count("\n") == 1


def test_port_of_root(nobody: Nobody) -> None:
    """Below the number that the kernel says; where it says 0, every port is everybody's."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    done = nobody.run("check", "poorhttp.worker.wsgi:serve", "--bind", "127.0.0.1:1")
    if lowest > 1:
        served = nobody.run("serve", "poorhttp.worker.wsgi:serve", "--bind", "127.0.0.1:1")
        assert (served.returncode, served.stderr) == (done.returncode, done.stderr)
        assert done.returncode == 5, done.stderr
        assert "cannot listen on 127.0.0.1:1: Permission denied; ports below" in done.stderr
        assert done.stderr.count("\n") == 1
    else:
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("option", ["chdir", "pythonpath"])
def test_folders_that_are_closed_to_the_user(nobody: Nobody, public: Path, option: str) -> None:
    (public / "closed" / "inside").mkdir(parents=True)
    (public / "closed").chmod(0o700)
    options = {option: [f"{public}/closed/inside"], "user": ["nobody"]}
    program = PROGRAM.replace("Privileges(s", "loader.change_folder(settings); Privileges(s")
    done = nobody.as_root(program, json.dumps(options))
    assert done.returncode == 3, done.stderr
    if IS_ROOT:
        assert done.stderr.startswith(f"--{option}: nobody cannot read {public}/closed/inside: ")
        assert done.stderr.endswith(f"{public}/closed is closed to that user\n")
    else:
        assert done.stderr.startswith("--user: only root")
