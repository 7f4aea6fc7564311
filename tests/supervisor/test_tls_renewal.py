"""Certificates that are renewed while the server runs, and what is said about their end."""

from __future__ import annotations

import json
import os
import re
import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.supervisor.reloads import refused_reload, reload
from tests.support.admin_address import Admin
from tests.support.binary_upgrade import end, upgrade
from tests.support.certificate import certificate
from tests.support.forked_command import run_command
from tests.support.nobody import IS_ROOT, Nobody
from tests.support.proxies import reserve
from tests.support.tls_client import APP, BIND, Asking, names, told, write
from tests.testkit.client import Connection
from tests.testkit.process import children, opened, workers
from tests.testkit.server import Server, wait_for

#: What `poorhttp` says when renewed files are used, and when they are not.
RENEWED = "new certificates are used"
REFUSED = "new certificates are not used"


@pytest.fixture
def ours(tmp_path: Path) -> str:
    """A file with certificate and key for localhost."""
    return write(tmp_path, "ours.pem", certificate().issued)


def renewed(folder: Path, kind: str, host: str) -> None:
    """Put the files of a certificate for localhost and `host` into place, as tools do it."""
    issued = certificate().authority.issue_cert("localhost", host)
    if kind == "file":
        write(folder, "both.pem", issued)
        return
    version = folder / f"..{host}"
    version.mkdir()
    write(version, "both.pem", issued)
    link = "..data" if kind == "kubernetes" else "both.pem"
    target = version.name if kind == "kubernetes" else f"{version.name}/both.pem"
    (folder / "new").symlink_to(target)
    (folder / "new").rename(folder / link)
    if kind == "kubernetes" and not (folder / "both.pem").exists():
        (folder / "both.pem").symlink_to("..data/both.pem")


def renew(
    server: Server,
    folder: Path,
    host: str,
    kind: str = "file",
    *,
    port: int = 0,
    at_once: bool = False,
) -> None:
    """Renew a certificate, and wait until new connections get it.

    `at_once`: what serves says itself that it uses it.
    """
    times = server.log().count(RENEWED)
    renewed(folder, kind, host)
    server.wait_log(RENEWED, times + 1)
    assert not at_once or host in names(server, "localhost")
    wait_for(lambda: host in names(port or server, "localhost"), f"the certificate of {host}")


@pytest.mark.parametrize(
    ("mode", "kind", "options"),
    [
        ("threading", "kubernetes", ()),
        ("gevent", "certbot", ()),
        ("gevent", "file", ("--supervisor", "off")),
    ],
)
def test_renewal(mode: str, kind: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """Running workers get what has changed, without losing a request."""
    renewed(tmp_path, kind, "one.example")
    tls = ("--tls-certificate", str(tmp_path / "both.pem"))
    with Server(APP, mode, *tls, *options, bind=BIND) as server:
        pids = children(server.process.pid)
        with Asking(server) as asking:
            asking.wait_more()
            assert names(server, "localhost") == {"localhost", "one.example"}
            for host in ("two.example", "three.example"):
                renew(server, tmp_path, host, kind, at_once=not pids)
                asking.wait_more()
        assert children(server.process.pid) == pids
        assert "PRIVATE" not in server.log()


def test_an_upgrade(tmp_path: Path) -> None:
    """The new main process reads the files anew, and gets the sockets with their protocol."""
    renewed(tmp_path, "file", "one.example")
    pidfile = tmp_path / "pid"
    options = ["--tls-certificate", str(tmp_path / "both.pem"), "--pidfile", str(pidfile)]
    with Server(APP, "threading", *options, bind=BIND) as server:
        with Asking(server) as asking:
            asking.wait_more()
            pid = upgrade(server, pidfile)
            asking.wait_more()
        renew(server, tmp_path, "two.example")
        end(server, pid)


def test_a_reload_begins_to_use_certificates_and_ends_it(tmp_path: Path) -> None:
    """The main process watches their files as long as a service has some."""
    renewed(tmp_path, "file", "one.example")
    ini = tmp_path / "poorhttp.ini"
    plain, pair = "[http]\nbind = 127.0.0.1:0\n", f"tls_certificate = {tmp_path}/both.pem\n"
    ini.write_text(plain)
    with reserve() as reserved, Server(APP, "threading", "-c", str(ini), bind=()) as server:
        port = reserved.getsockname()[1]

        def watches() -> bool:
            return any("inotify" in link for link in opened(server.process.pid))

        assert not watches()
        for host in ("two.example", "three.example"):
            ini.write_text(f"[http]\nbind = https://127.0.0.1:{port}\n{pair}")
            reload(server)
            wait_for(watches, "the watch")
            renew(server, tmp_path, host, port=port)
            ini.write_text(plain)
            reload(server)
            wait_for(lambda: not watches(), "the end of the watch")


def test_broken_files_are_refused_and_the_old_ones_stay(tmp_path: Path) -> None:
    authority = certificate().authority
    cert, key = tmp_path / "a.pem", tmp_path / "a.key"
    first, second = (authority.issue_cert("localhost", f"{n}.example") for n in (1, 2))
    cert.write_bytes(first.cert_chain_pems[0].bytes())
    key.write_bytes(first.private_key_pem.bytes())
    options = ["--tls-certificate", str(cert), "--tls-key", str(key)]
    with Server(APP, "threading", *options, bind=BIND) as server:
        cert.write_bytes(second.cert_chain_pems[0].bytes())
        server.wait_log(REFUSED)
        server.wait_log(f"{key}: this key does not belong to the certificate {cert}")
        assert "1.example" in names(server, "localhost")
        key.write_bytes(b"nonsense")
        server.wait_log(REFUSED, 2)
        assert "1.example" in names(server, "localhost")
        key.unlink()
        server.wait_log(REFUSED, 3)
        # A reload refuses them, too.
        refused_reload(server)
        assert "1.example" in names(server, "localhost")
        key.write_bytes(second.private_key_pem.bytes())
        server.wait_log(RENEWED)
        wait_for(lambda: "2.example" in names(server, "localhost"), "the new certificate")


def test_a_preloader_forks_workers_with_the_new_certificate(tmp_path: Path) -> None:
    renewed(tmp_path, "file", "one.example")
    path = str(tmp_path / "both.pem")
    # Such a preloader goes on after the start.
    options = ["--tls-certificate", path, "--preload", "--max-requests", "1000000"]
    with Server(APP, "single", *options, bind=BIND) as server:
        renew(server, tmp_path, "two.example")
        replace_worker(server)
        wait_for(lambda: "two.example" in names(server, "localhost"), "the new certificate")


def told_pid(server: Server) -> int:
    """The process that answers; 0: none."""
    try:
        return int(told(server)["pid"])
    except (OSError, json.JSONDecodeError):
        return 0


def replace_worker(server: Server) -> int:
    """Kill the only worker, and wait until another one answers; its process."""
    worker = told(server)["pid"]
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: told_pid(server) not in (0, worker), "another worker")
    return told_pid(server)


def holds_keys(pid: int) -> bool:
    """Whether a process has the memory open in which certificates are sent."""
    return any("memfd:poorhttp-tls" in link for link in opened(pid))


@pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")
def test_a_key_for_root_alone(folder: Path, nobody: Nobody) -> None:
    """The main process reads it, and workers of another user get it, now and after a renewal."""
    folder.chmod(0o755)
    secret, app = folder / "secret", folder / "app.py"
    secret.mkdir(mode=0o700)
    renewed(secret, "file", "one.example")
    app.write_text(Path(APP).read_text())
    options = ["--tls-certificate", str(secret / "both.pem"), "--user", "nobody"]
    with Server(str(app), "single", *options, bind=BIND, env=nobody.env, cwd=Path("/")) as server:
        worker = told(server)["pid"]
        status = Path(f"/proc/{worker}/status").read_text()
        assert re.search(r"^Uid:\t[1-9]", status, re.MULTILINE), status
        renew(server, secret, "two.example")
        assert told(server)["pid"] == worker
        assert not holds_keys(worker)
        # One that is forked from now on does not keep the descriptor of the main process.
        other = replace_worker(server)
        assert "two.example" in names(server, "localhost")
        wait_for(lambda: not holds_keys(other), "the descriptor to be closed")


def sockets(pid: int) -> set[str]:
    """The Unix sockets with a name in the file system that a process has open."""
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    named = {f"socket:[{words[6]}]" for words in lines if len(words) == 8}
    return {link for link in opened(pid) if link in named}


def test_workers_have_no_descriptors_of_the_main_process(
    tmp_path: Path, folder: Path, ours: str
) -> None:
    """Code of the application could write a process ID, take its events, or make it wait for good.

    Those that are forked when the server has started, and after a question at `admin`, too.
    """
    pidfile, admin = tmp_path / "pid", str(folder / "admin")
    options = ("--pidfile", str(pidfile), "--tls-certificate", ours, "--admin", f"unix:{admin}")
    with Server(APP, "threading", *options, bind=BIND) as server, Connection(admin) as asking:
        main = server.process.pid
        wait_for(pidfile.exists, "the PID file")
        assert asking.request("GET", "/-/ready").status == 200
        replace_worker(server)
        links = opened(main)
        # Both ends: signals wake it there.
        own = {link for link in links if link.startswith("pipe:") and links.count(link) > 1}
        own |= {link for link in links if "inotify" in link or str(pidfile) in link}
        assert len(own) == 3, links
        (worker,) = workers(main)
        assert not own & set(opened(worker)), opened(worker)
        assert not sockets(worker) & sockets(main)


def test_what_is_said_of_their_end(tmp_path: Path, ours: str) -> None:
    """By `check`, at the start, by a reload if it is new, and as a metric."""
    soon = certificate().authority.issue_cert(
        "b.example", not_after=datetime.now(timezone.utc) + timedelta(days=5, hours=1)
    )
    paths = [ours, write(tmp_path, "b.pem", soon)]
    options = [word for path in paths for word in ("--tls-certificate", path)]
    found = run_command("check", APP, "--bind", BIND[0], *options)
    assert found.returncode == 0, found.stderr
    valid = rf"^certificate {ours} for localhost.*: valid for \d+ days"
    assert re.search(valid, found.stdout, re.M)
    assert f"certificate {paths[1]} for b.example: valid for 5 days (" in found.stdout
    assert f"warning: {paths[1]}: the certificate expires in 5 days" in found.stdout
    key = tmp_path / "b.pem"
    key.chmod(0o600)
    with Server(APP, "single", *options, "--admin", "127.0.0.1:0", bind=BIND) as server:
        # What still holds is not said again by a reload, and what is new is said.
        for mode in (0o600, 0o644, 0o600, 0o644):
            key.chmod(mode)
            reload(server)
        assert server.log().count(f"{paths[1]}: the certificate expires in 5 days") == 1
        assert server.log().count(f"{paths[1]}: everybody can read this private key") == 2
        with Admin(server).connect() as connection:
            text = connection.request("GET", "/-/metrics").body.decode()
    values = re.findall(
        r'^poorhttp_tls_certificate_expiry_seconds\{file="(.*)"\} (\d+)$', text, re.M
    )
    assert [file for file, _ in values] == paths
    assert all(int(end) > datetime.now(timezone.utc).timestamp() for _, end in values)
