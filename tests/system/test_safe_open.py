"""Files that root opens, creates and removes in folders writable by others."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import stat
from pathlib import Path

import pytest

from poorhttp.config.settings import Settings
from poorhttp.errors import BindError, ConfigError
from poorhttp.net.listener import Listener
from poorhttp.net.sockets import _Opening, open_listeners
from poorhttp.plugins.dev.profiler import Profiles
from poorhttp.process.pidfile import PidFile
from poorhttp.process.safe_open import make_folders, safe_open, write_file
from tests.support.certificate import certificate
from tests.support.failure import fails, says
from tests.support.nobody import IS_ROOT
from tests.support.tls_client import APP, BIND, told
from tests.testkit.server import Server, wait_for

NOBODY = pwd.getpwnam("nobody")

APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


def give(path: Path) -> Path:
    """Give a file, folder or link to nobody, where we may."""
    if IS_ROOT:
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
    return path


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder that nobody may write."""
    (tmp_path / "theirs").mkdir()
    return give(tmp_path / "theirs")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder that only we may write."""
    (tmp_path / "victim").mkdir(0o700)
    return tmp_path / "victim"


def link(path: Path, target: Path) -> Path:
    """A link that nobody has made."""
    path.symlink_to(target)
    return give(path)


# Opening a file


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_link_of_another_user(theirs: Path, victim: Path, deep: bool, there: bool) -> None:
    """Neither the file itself nor a folder on the way to it, whether the file exists or not."""
    if there:
        (victim / "log").write_text("")
    link(theirs / ("folder" if deep else "log"), victim if deep else victim / "log")
    path = str(theirs / "folder" / "log" if deep else theirs / "log")
    if not IS_ROOT:
        os.close(safe_open(path, APPEND))
        return
    for flags in (APPEND, APPEND | os.O_EXCL):
        with pytest.raises(OSError, match="is a symbolic link of user nobody, which root does not"):
            safe_open(path, flags)
    assert (victim / "log").exists() is there


def test_link_of_root_in_a_folder_of_another_user(theirs: Path, victim: Path) -> None:
    (theirs / "log").symlink_to(victim / "log")
    # For others than root it is an ordinary open, and O_EXCL follows no link.
    os.close(safe_open(str(theirs / "log"), APPEND | (os.O_EXCL if IS_ROOT else 0)))
    assert (victim / "log").exists()
    assert (theirs / "log").is_symlink()


def test_hard_link_to_a_link_of_root(theirs: Path, victim: Path, tmp_path: Path) -> None:
    """Each user can make one where the kernel does not protect links (`protected_hardlinks`)."""
    (tmp_path / "alternative").symlink_to(victim / "log")
    os.link(tmp_path / "alternative", theirs / "log", follow_symlinks=False)
    if IS_ROOT:
        with pytest.raises(OSError, match="is a symbolic link with 2 hard links in a folder that"):
            safe_open(str(theirs / "log"), APPEND)
        assert not (victim / "log").exists()
    os.close(safe_open(str(tmp_path / "alternative"), APPEND))


def test_link_in_a_folder_of_root(tmp_path: Path, victim: Path) -> None:
    """Whose link it is does not matter there: nobody else can have put it there."""
    link(tmp_path / "log", Path("victim/../victim/./log"))
    os.close(safe_open(str(tmp_path / "log"), APPEND))
    assert (victim / "log").exists()


def test_hard_link(theirs: Path, victim: Path, tmp_path: Path) -> None:
    (victim / "shadow").write_text("")
    os.link(victim / "shadow", theirs / "log")
    if IS_ROOT:
        with pytest.raises(OSError, match="it has 2 hard links in a folder that others may write"):
            safe_open(str(theirs / "log"), APPEND)
    os.link(victim / "shadow", victim / "log")
    os.close(safe_open(str(victim / "log"), APPEND))


# What the server opens


@pytest.mark.skipif(not IS_ROOT, reason="only root refuses the links of others")
@pytest.mark.parametrize("option", ["--error-log", "--access-log"])
def test_log_links(option: str, theirs: Path, victim: Path) -> None:
    """The server does not start, and what the link names is not made."""
    log = link(theirs / "log", victim / "log")
    words = ("serve", "tests/apps/echo.py", "--bind", "127.0.0.1:0", option, str(log))
    code, said = fails(*words, "--user", "nobody")
    assert code == 3, said
    assert f"{option}: cannot open {log}: {log} is a symbolic " in said
    assert os.listdir(victim) == []


def test_log_link_at_rotation(tmp_path: Path, theirs: Path, victim: Path) -> None:
    """The server goes on in the old file, and says so."""
    log = theirs / "error.log"
    app = Path("tests/apps/echo.py").resolve()
    with Server(str(app), "threading", "--error-log", str(log)) as server:
        log.rename(theirs / "old.log")
        link(log, victim / "made")
        server.process.send_signal(signal.SIGUSR1)
        if IS_ROOT:
            old = theirs / "old.log"
            wait_for(lambda: "continues in the old file" in old.read_text(), "the line")
    if IS_ROOT:
        assert os.listdir(victim) == []


def test_log_to_standard_output_by_links(tmp_path: Path) -> None:
    """As in containers: root has made a link with the name of the log."""
    (tmp_path / "access.log").symlink_to("/dev/stdout")
    (tmp_path / "error.log").symlink_to("/dev/stderr")
    files = ("--access-log", str(tmp_path / "access.log"), "--error-log")
    with Server("tests/apps/echo.py", "single", *files, str(tmp_path / "error.log")) as server:
        server.get("/told")
        server.process.send_signal(signal.SIGUSR1)
        server.get("/again")
        wait_for(lambda: "/again" in server.output(), "the lines")
        assert '"GET /told HTTP/1.1" 200' in server.output()


def tls_options(folder: Path, **others: Path) -> list[str]:
    """Options that name files of `folder`, where `others` names no other ones."""
    pem = folder / "site.pem"
    if not pem.exists():
        certificate().write(pem)
        pem.chmod(0o600)
    named = {"tls_certificate": pem, "tls_key": pem, **others}
    pairs = ((f"--{option.replace('_', '-')}", str(path)) for option, path in named.items())
    return [word for pair in pairs for word in pair]


def tls_fails(options: list[str]) -> str:
    """What the server says that does not start with these files."""
    return says(3, "serve", APP, "--bind", *BIND, *options)


@pytest.mark.parametrize("option", ["tls_certificate", "tls_key", "tls_ocsp", "tls_client_ca"])
def test_tls_files(theirs: Path, victim: Path, option: str) -> None:
    """What another user has put there is neither followed, waited for, nor read without a limit."""
    file = theirs / "file"
    options = tls_options(victim, **{option: file})
    if IS_ROOT:
        link(file, victim / "site.pem")
        expected = f"{file}: cannot be read: {file} is a symbolic link of user nobody, which root "
        assert expected in tls_fails(options)
        file.unlink()
        os.link(victim / "site.pem", file)
        assert f"{file}: cannot be read: it has 2 hard links in a folder" in tls_fails(options)
        file.unlink()
    os.mkfifo(file, 0o600)
    assert f"{file}: cannot be read: it is not a regular file" in tls_fails(options)
    file.unlink()
    file.mkdir()
    assert f"{file}: cannot be read: it is not a regular file" in tls_fails(options)
    file.rmdir()
    with file.open("wb") as made:
        made.truncate(1 << 32)
    assert re.search(rf"{file}: cannot be read: it has more than \d+ bytes", tls_fails(options))


def test_tls_files_that_are_replaced(theirs: Path, victim: Path) -> None:
    """While the server runs: the old ones stay, and neither a link nor a pipe stops anything."""
    authority = theirs / "ca.pem"
    authority.write_bytes(certificate().authority.cert_pem.bytes())
    options = [*tls_options(victim, tls_client_ca=authority), "--tls-client-auth", "optional"]
    with Server(APP, "single", *options, bind=BIND) as server:
        os.mkfifo(theirs / "new")
        (theirs / "new").rename(authority)
        complaint = f"the old ones stay: {authority}: cannot be read: it is not a regular file"
        server.wait_log(complaint)
        assert told(server)["scheme"] == "https"
        if IS_ROOT:
            link(theirs / "new", victim / "site.pem").rename(authority)
            complaint = f"cannot be read: {authority} is a symbolic link of user nobody"
            server.wait_log(complaint)
        server.process.send_signal(signal.SIGHUP)
        server.wait_log(complaint.rpartition("cannot")[2], 2)
        assert told(server)["scheme"] == "https"


@pytest.mark.parametrize("kind", ["certbot", "kubernetes"])
def test_tls_files_behind_links_of_root(tmp_path: Path, kind: str) -> None:
    """As tools make them: certbot in folders of root, Kubernetes in one that has mode 1777."""
    if kind == "certbot":
        archive, live = tmp_path / "archive" / "site", tmp_path / "live" / "site"
        archive.mkdir(parents=True)
        live.mkdir(parents=True)
        target = "../../archive/site/site.pem"
    else:
        archive, live = tmp_path / "secret" / "..2026", tmp_path / "secret"
        archive.mkdir(parents=True)
        live.chmod(0o1777)
        (live / "..data").symlink_to("..2026")
        target = "..data/site.pem"
    options = tls_options(archive)
    (live / "fullchain.pem").symlink_to(target)
    options = [each.replace(f"{archive}/site.pem", f"{live}/fullchain.pem") for each in options]
    with Server(APP, "single", *options, bind=BIND) as server:
        assert told(server)["scheme"] == "https"


@pytest.mark.skipif(not IS_ROOT, reason="only root refuses the links of others")
def test_pidfile_in_a_linked_folder(theirs: Path, victim: Path) -> None:
    link(theirs / "run", victim)
    file = PidFile(str(theirs / "run" / "pid"))
    for use in (file.check, file.write, file.replace):
        with pytest.raises(ConfigError, match="is a symbolic link of user nobody, which root does"):
            use()
    assert os.listdir(victim) == []


def test_pidfile_whose_folder_becomes_a_link(theirs: Path, victim: Path) -> None:
    """It is not removed elsewhere."""
    (theirs / "run").mkdir()
    file = PidFile(str(theirs / "run" / "pid"))
    file.write()
    os.link(theirs / "run" / "pid", victim / "pid")
    (theirs / "run").rename(theirs / "before")
    link(theirs / "run", victim)
    file.remove()
    assert (victim / "pid").exists() is IS_ROOT


def listen(path: Path, **options: object) -> Listener:
    (listener,) = open_listeners(Settings(bind=f"unix:{path}", **options))
    return listener


@pytest.mark.skipif(not IS_ROOT, reason="only root refuses the links of others")
def test_socket_in_a_linked_folder(theirs: Path, victim: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(victim / "socket"))
    link(theirs / "run", victim)
    before = (victim / "socket").stat()
    with pytest.raises(BindError, match="is a symbolic link of user nobody, which root does not"):
        listen(theirs / "run" / "socket", socket_mode="0666")
    assert (victim / "socket").stat() == before


def test_socket_that_is_replaced(theirs: Path, victim: Path) -> None:
    """The permissions of another program's socket stay what they are."""
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(victim / "socket"))
        (victim / "socket").chmod(0o600)
        listener = listen(theirs / "socket", socket_mode="0600")
        (theirs / "socket").unlink()
        os.link(victim / "socket", theirs / "socket")
        settings = Settings(bind=f"unix:{theirs}/socket", socket_mode="0666")
        with pytest.raises(FileNotFoundError):
            _Opening(settings, ())._grant(str(theirs / "socket"))
        assert (victim / "socket").stat().st_mode & 0o777 == 0o600
        listener.close()
        assert (theirs / "socket").exists()


def test_link_in_the_place_of_a_socket(theirs: Path, victim: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(victim / "socket"))
    link(theirs / "socket", victim / "socket")
    with pytest.raises(BindError, match="a file of that name exists, is not a socket"):
        listen(theirs / "socket")
    assert (theirs / "socket").is_symlink()
    assert (victim / "socket").exists()


def test_folder_of_profiles_that_becomes_a_link(
    theirs: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it leads to is not emptied."""
    monkeypatch.setenv("TMPDIR", str(theirs))
    (victim / "precious").write_text("")
    profiles = Profiles((NOBODY.pw_uid, NOBODY.pw_gid) if IS_ROOT else None)
    Path(profiles.folder, "1-1.html").write_text("")
    Path(profiles.folder).rename(theirs / "moved")
    link(Path(profiles.folder), victim)
    profiles.close()
    assert os.listdir(victim) == ["precious"]
    assert os.listdir(theirs / "moved") == []


# Writing a whole file


def test_a_file_that_is_replaced(theirs: Path) -> None:
    """Its permissions and its owner stay; without `replace` it stays as it is."""
    path = give(theirs / "file") if (theirs / "file").write_text("before") else theirs
    path.chmod(0o640)
    with pytest.raises(FileExistsError):
        write_file(str(path), b"after")
    write_file(str(path), b"after", replace=True)
    found = path.stat()
    assert (path.read_text(), stat.S_IMODE(found.st_mode)) == ("after", 0o640)
    assert found.st_uid == (NOBODY.pw_uid if IS_ROOT else os.geteuid())
    assert os.listdir(theirs) == ["file"]


@pytest.mark.parametrize("replace", [False, True])
def test_what_is_no_file_is_not_written(replace: bool, theirs: Path, victim: Path) -> None:
    (victim / "file").write_text("before")
    link(theirs / "link", victim / "file")
    os.mkfifo(theirs / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=r"and was left alone|File exists"):
            write_file(str(theirs / name), b"after", replace=replace)
    assert (victim / "file").read_text() == "before"
    # One that appears while the file is written is replaced itself.
    assert sorted(os.listdir(theirs)) == ["link", "pipe"]


@pytest.mark.skipif(not IS_ROOT, reason="other users follow links")
def test_folders_are_not_made_behind_links(theirs: Path, victim: Path) -> None:
    link(theirs / "link", victim)
    with pytest.raises(PermissionError, match="is a symbolic link of user nobody"):
        make_folders(str(theirs / "link/deep/deeper"))
    with pytest.raises(PermissionError, match="is a symbolic link of user nobody"):
        write_file(str(theirs / "link/file"), b"")
    assert os.listdir(victim) == []
    make_folders(str(theirs / "a/b/c"))
    assert (theirs / "a/b/c").is_dir()
