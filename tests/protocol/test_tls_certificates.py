"""Certificates over TLS: hosts, clients, tickets, renewal while the server runs, redirect, HSTS."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.support.certificate import certificate
from tests.support.nobody import IS_ROOT, Nobody
from tests.support.services import Tree
from tests.testkit.client import HANG
from tests.testkit.process import children
from tests.testkit.server import MODES, Server, command, run, wait_for

APP = "tests/apps/secure.py"
BIND = ("https://127.0.0.1:0",)
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}

#: What `poorhttp` says when renewed files are used, and when they are not.
RENEWED = "new certificates are used"
REFUSED = "new certificates are not used"


def write(folder: Path, name: str, issued: trustme.LeafCert) -> str:
    """Write a key and its chain into one file, in place of one that is there."""
    path = folder / name
    new = folder / f"{name}.new"
    new.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    new.chmod(0o600)
    new.rename(path)
    return str(path)


def context(version: str = "", **client: trustme.LeafCert) -> ssl.SSLContext:
    """What a client connects with, of one version, perhaps with a certificate."""
    made = certificate().client_context()
    if version:
        made.minimum_version = made.maximum_version = VERSIONS[version]
    for issued in client.values():
        issued.configure_cert(made)
    return made


@contextmanager
def connected(
    server: Server | int,
    host: str = "localhost",
    made: ssl.SSLContext | None = None,
    session: ssl.SSLSession | None = None,
) -> Iterator[ssl.SSLSocket]:
    """A connection to a server that has the name `host`."""
    made = made or context()
    port = server if isinstance(server, int) else server.port
    with (
        socket.create_connection(("127.0.0.1", port), HANG) as plain,
        made.wrap_socket(plain, server_hostname=host, session=session) as sock,
    ):
        yield sock


def ask(sock: ssl.SSLSocket, path: str = "/") -> tuple[str, dict[str, Any]]:
    """Head and JSON of the answer to one request, which closes the connection."""
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    received = b""
    while data := sock.recv(65536):
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    return head.decode(), json.loads(body)


def told(server: Server, host: str = "localhost", made: ssl.SSLContext | None = None) -> Any:
    """What the application is told of one connection."""
    with connected(server, host, made) as sock:
        return ask(sock)[1]


def names(server: Server, host: str) -> set[str]:
    """The hosts of the certificate that a client gets, which is not verified."""
    made = context()
    made.check_hostname = False
    with connected(server, host, made) as sock:
        found = sock.getpeercert()
    assert found is not None
    alternatives: Any = found["subjectAltName"]
    return {name for _, name in alternatives}


@pytest.fixture
def ours(tmp_path: Path) -> str:
    """A file with certificate and key for localhost."""
    return write(tmp_path, "ours.pem", certificate().issued)


@pytest.mark.parametrize("mode", MODES)
def test_modes(mode: str, ours: str) -> None:
    with Server(APP, mode, "--tls-certificate", ours, bind=BIND) as server:
        assert server.urls == f"https://127.0.0.1:{server.port}"
        for version in VERSIONS:
            found = told(server, made=context(version))
            assert found["scheme"] == "https"
            assert found["HTTPS"] == "on"
            assert found["port"] == str(server.port)
            assert found["SSL_PROTOCOL"] == f"TLSv{version}"
            assert found["SSL_TLS_SNI"] == "localhost"
            assert found["SSL_CLIENT_VERIFY"] == "NONE"


def test_the_name_of_a_cipher_is_that_of_openssl(ours: str) -> None:
    with Server(APP, "single", "--tls-certificate", ours, bind=BIND) as server:
        for version in VERSIONS:
            with connected(server, made=context(version)) as sock:
                cipher = sock.cipher()
                assert cipher is not None
                assert ask(sock)[1]["SSL_CIPHER"] == cipher[0]
                assert sock.selected_alpn_protocol() is None


def test_hosts(tmp_path: Path, ours: str) -> None:
    authority = certificate().authority
    a = write(tmp_path, "a.pem", authority.issue_cert("a.example", "www.a.example"))
    wild = write(tmp_path, "wild.pem", authority.issue_cert("*.b.example"))
    rsa = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.RSA)
    options = [word for path in (ours, a, wild) for word in ("--tls-certificate", path)]
    options += ["--tls-certificate", write(tmp_path, "rsa.pem", rsa)]
    with Server(APP, "single", *options, bind=BIND) as server:
        for host, expected in {
            "a.example": "a.example",
            "www.a.example": "a.example",
            "WWW.A.Example": "a.example",
            "x.b.example": "*.b.example",
            "x.y.b.example": "localhost",
            "b.example": "localhost",
            "unknown.example": "localhost",
            "localhost": "localhost",
        }.items():
            assert expected in names(server, host), host
        # By kind of key; the first that the client can verify.
        made = context("1.2")
        made.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
        with connected(server, made=made) as sock:
            assert ask(sock)[1]["SSL_CIPHER"] == "ECDHE-RSA-AES128-GCM-SHA256"
        with connected(server, made=context("1.2")) as sock:
            assert "ECDSA" in ask(sock)[1]["SSL_CIPHER"]


def test_min_version(ours: str) -> None:
    with Server(
        APP, "single", "--tls-certificate", ours, "--tls-min-version", "1.3", bind=BIND
    ) as server:
        with pytest.raises(ssl.SSLError), connected(server, made=context("1.2")):
            pass
        assert told(server)["SSL_PROTOCOL"] == "TLSv1.3"


def client_authority(folder: Path) -> tuple[trustme.CA, str]:
    """An authority for clients, and the file with its certificate."""
    authority = trustme.CA(organization_name="Clients")
    authority.cert_pem.write_to_path(str(folder / "clients.pem"))
    return authority, str(folder / "clients.pem")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("required", ["required", "optional"])
def test_certificates_of_clients(tmp_path: Path, ours: str, required: str, version: str) -> None:
    authority, path = client_authority(tmp_path)
    client = authority.issue_cert(
        "anna@example.org", "anna.example", common_name="Anna", organization_name="Shop"
    )
    options = ["--tls-certificate", ours, "--tls-client-ca", path, "--tls-client-auth", required]
    with Server(APP, "single", *options, bind=BIND) as server:
        found = told(server, made=context(version, client=client))
        assert found["SSL_CLIENT_VERIFY"] == "SUCCESS"
        assert found["SSL_CLIENT_S_DN_CN"] == "Anna"
        assert found["SSL_CLIENT_S_DN_O"] == "Shop"
        assert found["SSL_CLIENT_S_DN"].startswith("CN=Anna,")
        assert found["SSL_CLIENT_I_DN_O"] == "Clients"
        assert found["SSL_CLIENT_SAN_DNS_0"] == "anna.example"
        assert found["SSL_CLIENT_SAN_Email_0"] == "anna@example.org"
        pem = found["SSL_CLIENT_CERT"]
        assert pem.strip() == client.cert_chain_pems[0].bytes().decode().strip()
        (tmp_path / "theirs.pem").write_text(pem)
        for option, name in {
            "serial": "M_SERIAL",
            "startdate": "V_START",
            "enddate": "V_END",
        }.items():
            words = ("openssl", "x509", "-noout", f"-{option}", "-in")
            expected = run(*words, tmp_path / "theirs.pem").stdout.strip().partition("=")[2]
            assert found[f"SSL_CLIENT_{name}"] == expected
        number = str(int(found["SSL_CLIENT_M_SERIAL"], 16))
        assert f"serialNumber {number}, issuer" in found["SSL_CLIENT_CERT_RFC4523_CEA"]
        if required == "optional":
            assert told(server, made=context(version))["SSL_CLIENT_VERIFY"] == "NONE"
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                told(server, made=context(version))
        stranger = trustme.CA().issue_cert("anna.example")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            told(server, made=context(version, client=stranger))


def resumed(
    server: Server, made: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[Any, ...]:
    """Whether a session is resumed, by which process, and the session for the next connection."""
    with connected(server, made=made, session=session) as sock:
        _, found = ask(sock)
        assert found["SSL_SESSION_RESUMED"] == ("Resumed" if sock.session_reused else "Initial")
        return bool(sock.session_reused), found["pid"], sock.session


@pytest.mark.parametrize("version", VERSIONS)
def test_workers_resume_sessions_of_each_other(version: str, ours: str) -> None:
    options = ["--tls-certificate", ours, "--workers", "2"]
    with Server(APP, "forking", *options, bind=BIND) as server:
        made = context(version)
        reused, first, session = resumed(server, made, None)
        assert not reused
        seen = {first}

        def other() -> bool:
            reused, pid, _ = resumed(server, made, session)
            assert reused
            seen.add(pid)
            return len(seen) == 2

        wait_for(other, "a connection to the other worker")
        # Workers of a reload, too.
        before = set(children(server.process.pid))
        server.process.send_signal(1)
        server.wait_log("reloaded")
        wait_for(lambda: not before & set(children(server.process.pid)), "the old workers to end")
        reused, pid, _ = resumed(server, made, session)
        assert reused
        assert pid not in before


def test_no_tickets(ours: str) -> None:
    options = ["--tls-certificate", ours, "--tls-session-timeout", "0"]
    with Server(APP, "single", *options, bind=BIND) as server:
        for version in VERSIONS:
            made = context(version)
            _, _, session = resumed(server, made, None)
            assert not resumed(server, made, session)[0]


def test_a_session_without_certificate_is_not_resumed_where_one_is_required(
    tmp_path: Path, ours: str
) -> None:
    _, path = client_authority(tmp_path)
    text = (
        f"[http]\ntarget = {APP}\ntls_certificate = {ours}\nmode = single\n"
        "[service:open]\nbind = https://127.0.0.1:0\n"
        f"[service:closed]\nbind = https://127.0.0.1:0\ntls_client_ca = {path}\n"
    )
    with Tree(tmp_path, text) as tree:
        made = context("1.2")
        _, _, session = resumed(tree.ports["open"], made, None)
        assert resumed(tree.ports["open"], made, session)[0]
        with pytest.raises((ssl.SSLError, ConnectionError)):
            resumed(tree.ports["closed"], made, session)


class Asking:
    """Clients that ask over TLS again and again, on new connections and on kept ones."""

    def __init__(self, server: Server, clients: int = 3) -> None:
        self.server = server
        self.faults: list[str] = []
        self.answers = 0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(clients)]

    def __enter__(self) -> Asking:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(HANG)
            assert not thread.is_alive()
        assert not self.faults, self.faults

    def _ask(self) -> None:
        made = context()
        while not self.over.wait(0.005):
            try:
                told(self.server, made=made)
            except Exception as error:
                self.faults.append(repr(error))
                return
            self.answers += 1

    def wait_more(self) -> None:
        """Wait until some more requests were answered, or one was not."""
        until = self.answers + 10
        wait_for(lambda: self.faults or self.answers >= until, "more answers")


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


@pytest.mark.parametrize("mode", MODES)
def test_renewal(mode: str, tmp_path: Path) -> None:
    """Running workers get what has changed, without losing a request."""
    kind = {"single": "file", "forking": "certbot", "threading": "kubernetes"}.get(mode, "file")
    renewed(tmp_path, kind, "one.example")
    path = str(tmp_path / "both.pem")
    with Server(APP, mode, "--tls-certificate", path, bind=BIND) as server:
        pids = children(server.process.pid)
        with Asking(server) as asking:
            asking.wait_more()
            assert names(server, "localhost") == {"localhost", "one.example"}
            for number, host in enumerate(("two.example", "three.example"), 1):
                renewed(tmp_path, kind, host)
                server.wait_log(RENEWED, number)
                wait_for(lambda: host in names(server, "localhost"), host)  # noqa: B023
                asking.wait_more()
        assert children(server.process.pid) == pids
        assert "PRIVATE" not in server.log()


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
        assert f"{key}: this key does not belong to the certificate {cert}" in server.log()
        assert "1.example" in names(server, "localhost")
        key.write_bytes(b"nonsense")
        server.wait_log(REFUSED, 2)
        assert "1.example" in names(server, "localhost")
        key.unlink()
        server.wait_log(REFUSED, 3)
        # A reload refuses them, too.
        server.process.send_signal(1)
        server.wait_log("not reloaded, the previous version goes on")
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
        renewed(tmp_path, "file", "two.example")
        server.wait_log(RENEWED)
        wait_for(lambda: "two.example" in names(server, "localhost"), "the new certificate")
        worker = told(server)["pid"]
        os.kill(worker, 9)
        wait_for(lambda: told_pid(server) not in (0, worker), "another worker")
        wait_for(lambda: "two.example" in names(server, "localhost"), "the new certificate")


def told_pid(server: Server) -> int:
    """The process that answers; 0: none."""
    try:
        return int(told(server)["pid"])
    except (OSError, json.JSONDecodeError):
        return 0


@pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")
def test_a_key_for_root_alone(tmp_path: Path) -> None:
    """The main process reads it, and workers of another user get it, now and after a renewal."""
    folder = tmp_path / "secret"
    folder.mkdir(mode=0o700)
    renewed(folder, "file", "one.example")
    path = str(folder / "both.pem")
    app = tmp_path / "app.py"
    app.write_text(Path(APP).read_text())
    for each in (tmp_path, *tmp_path.parents[:3]):
        each.chmod(each.stat().st_mode | 0o055)
    nobody = Nobody(tmp_path)
    options = ["--tls-certificate", path, "--user", "nobody"]
    with Server(str(app), "single", *options, bind=BIND, env=nobody.env, cwd=Path("/")) as server:
        worker = told(server)["pid"]
        status = Path(f"/proc/{worker}/status").read_text()
        assert re.search(r"^Uid:\t[1-9]", status, re.MULTILINE), status
        renewed(folder, "file", "two.example")
        server.wait_log(RENEWED)
        wait_for(lambda: "two.example" in names(server, "localhost"), "the new certificate")
        assert told(server)["pid"] == worker
        links = [os.readlink(link) for link in Path(f"/proc/{worker}/fd").iterdir()]
        assert not any("poorhttp-tls" in link for link in links), links


def test_check(tmp_path: Path, ours: str) -> None:
    soon = certificate().authority.issue_cert(
        "b.example", not_after=datetime.now(timezone.utc) + timedelta(days=5, hours=1)
    )
    paths = [ours, write(tmp_path, "b.pem", soon)]
    options = [word for path in paths for word in ("--tls-certificate", path)]
    found = run(*command("check", APP, "--bind", BIND[0], *options))
    assert found.returncode == 0, found.stderr
    assert re.search(
        rf"^certificate {ours} for localhost.*: valid for \d+ days", found.stdout, re.M
    )
    assert f"certificate {paths[1]} for b.example: valid for 5 days (" in found.stdout
    assert f"warning: {paths[1]}: the certificate expires in 5 days" in found.stdout
    with Server(APP, "single", *options, bind=BIND) as server:
        server.wait_log(f"{paths[1]}: the certificate expires in 5 days")


def test_expiry_is_a_metric(ours: str) -> None:
    with Server(
        APP, "single", "--tls-certificate", ours, "--admin", "127.0.0.1:0", bind=BIND
    ) as server:
        server.wait_log("/-/metrics are at")
        port = re.search(r"/-/metrics are at http://127.0.0.1:(\d+)", server.log())
        assert port
        with socket.create_connection(("127.0.0.1", int(port[1])), HANG) as sock:
            sock.sendall(b"GET /-/metrics HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: sock.recv(65536), b"")).decode()
        value = re.search(
            r'^poorhttp_tls_certificate_expiry_seconds\{file="(.*)"\} (\d+)$', text, re.M
        )
        assert value
        assert value[1] == ours
        assert int(value[2]) > datetime.now(timezone.utc).timestamp()


def plain(port: int, request: bytes) -> str:
    """The answer without TLS."""
    with socket.create_connection(("127.0.0.1", port), HANG) as sock:
        sock.sendall(request)
        return b"".join(iter(lambda: sock.recv(65536), b"")).decode()


@pytest.mark.parametrize("mode", MODES)
def test_redirect(mode: str, ours: str) -> None:
    options = ["--tls-certificate", ours, "--redirect-to-https", "on", "--health", "/-"]
    with Server(APP, mode, *options, bind=(*BIND, "127.0.0.1:0")) as server:
        secure, insecure = (int(port) for port in re.findall(r":(\d+)", server.urls))
        end = b"Connection: close\r\n\r\n"
        for target, host, location in [
            (b"/a?b=c", b"shop.example", f"https://shop.example:{secure}/a?b=c"),
            (b"/", b"shop.example:8080", f"https://shop.example:{secure}/"),
            (b"/%20%C3%A4", b"[::1]", f"https://[::1]:{secure}/%20%C3%A4"),
            (b"http://other.example/x", b"other.example", f"https://other.example:{secure}/x"),
        ]:
            answer = plain(
                insecure, b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n" + end
            )
            assert answer.startswith("HTTP/1.1 308 "), answer
            assert f"\r\nLocation: {location}\r\n" in answer
            assert "Strict-Transport-Security" not in answer
        post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n" + end + b"abc"
        assert plain(insecure, post).startswith("HTTP/1.1 308 ")
        assert plain(insecure, b"GET / HTTP/1.0\r\n\r\n").startswith("HTTP/1.1 400 ")
        health = b"GET /-/ready HTTP/1.1\r\nHost: a\r\n" + end
        assert plain(insecure, health).startswith("HTTP/1.1 200 ")
        server.port = secure
        assert told(server)["scheme"] == "https"


def test_a_trusted_proxy_is_not_redirected(ours: str) -> None:
    options = ["--tls-certificate", ours, "--redirect-to-https", "443"]
    options += ["--trusted-proxies", "127.0.0.1"]
    with Server(APP, "single", *options, bind=(*BIND, "127.0.0.1:0")) as server:
        _, insecure = (int(port) for port in re.findall(r":(\d+)", server.urls))
        request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        assert plain(insecure, request).startswith("HTTP/1.1 200 ")


@pytest.mark.parametrize("mode", MODES)
def test_hsts(mode: str, ours: str) -> None:
    options = ["--tls-certificate", ours, "--hsts", "max-age=60; includeSubDomains"]
    with Server(APP, mode, *options, bind=(*BIND, "127.0.0.1:0")) as server:
        secure, insecure = (int(port) for port in re.findall(r":(\d+)", server.urls))
        server.port = secure
        with connected(server) as sock:
            head, _ = ask(sock)
        assert head.count("Strict-Transport-Security: max-age=60; includeSubDomains") == 1
        with connected(server) as sock:
            head, _ = ask(sock, "/hsts")
        assert head.lower().count("strict-transport-security") == 1
        assert "max-age=1" in head
        request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        assert "strict-transport" not in plain(insecure, request).lower()


def test_a_standalone_server(ours: str) -> None:
    options = ["--tls-certificate", ours, "--supervisor", "off"]
    with Server(APP, "threading", *options, bind=BIND) as server:
        assert told(server)["scheme"] == "https"


def test_development(tmp_path: Path) -> None:
    """The certificate is the same at each start, so that browsers remember it."""
    app = tmp_path / "app.py"
    app.write_text(Path(APP).read_text())
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    path = tmp_path / "cache/poorhttp/localhost.pem"
    prints = []
    for _ in range(2):
        with Server("app.py", "threading", "--https", verb="dev", cwd=tmp_path, env=env) as server:
            assert server.urls.startswith("https://")
            server.wait_log("SHA-256 ")
            found = re.search(r"SHA-256 ([0-9A-F:]{95})\n", server.log())
            assert found
            prints.append(found[1])
            assert path.stat().st_mode & 0o777 == 0o600
            made = ssl.create_default_context(cafile=str(path))
            for host in ("localhost", "127.0.0.1", "::1"):
                with connected(server, host, made) as sock:
                    assert ask(sock)[1]["scheme"] == "https"
    assert prints[0] == prints[1]
