"""Certificates over TLS: hosts, clients, tickets, redirect, HSTS."""

from __future__ import annotations

import re
import signal
import ssl
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from poorhttp.plugins.tls._tls import TlsConfig, TlsSettings
from poorhttp.process.safe_open import open_regular
from tests.conftest import Serve
from tests.packages import need
from tests.support.certificate import certificate
from tests.support.services import Tree
from tests.support.tls_client import (
    APP,
    BIND,
    VERSIONS,
    ask,
    connected,
    context,
    names,
    told,
    write,
)
from tests.testkit.client import Connection, Response
from tests.testkit.process import children
from tests.testkit.server import Server, alone, run, wait_for

ALONE = True

Clients = tuple[trustme.CA, str]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with certificate and key for localhost."""
    return write(tmp_path_factory.mktemp("ours"), "ours.pem", certificate().issued)


@pytest.fixture
def tls(ours: str) -> tuple[str, str]:
    """The option that names it."""
    return ("--tls-certificate", ours)


@pytest.fixture
def clients(tmp_path: Path) -> Clients:
    """An authority for clients, and the file with its certificate."""
    authority = trustme.CA(organization_name="Clients")
    authority.cert_pem.write_to_path(str(tmp_path / "clients.pem"))
    return authority, str(tmp_path / "clients.pem")


def secure(mode: str, *options: str) -> Server:
    """A server with an address that speaks TLS, without a main process where the mode allows it."""
    return Server(APP, mode, *options, *alone(mode), bind=BIND)


@pytest.fixture
def server(serve: Serve, tls: tuple[str, str]) -> Server:
    return serve(APP, *tls, bind=BIND)


@pytest.mark.each_mode
def test_modes(server: Server) -> None:
    assert server.urls == f"https://127.0.0.1:{server.port}"
    for version in VERSIONS:
        with connected(server, made=context(version)) as sock:
            assert sock.selected_alpn_protocol() is None
            cipher = sock.cipher()
            assert cipher is not None
            found = ask(sock)[1]
        expected = {
            "scheme": "https",
            "HTTPS": "on",
            "port": str(server.port),
            "SSL_PROTOCOL": f"TLSv{version}",
            "SSL_TLS_SNI": "localhost",
            "SSL_CLIENT_VERIFY": "NONE",
            # As OpenSSL names it.
            "SSL_CIPHER": cipher[0],
        }
        assert {key: found[key] for key in expected} == expected


def test_the_protocol_is_http_1(serve: Serve, tls: tuple[str, str]) -> None:
    server = serve(APP, *tls, "--http2=off", bind=BIND)
    made = context()
    made.set_alpn_protocols(["h2", "http/1.1"])
    with connected(server, made=made) as sock:
        assert sock.selected_alpn_protocol() == "http/1.1"
    for version in VERSIONS:
        made = context(version)
        for offered in (["http/1.0"], ["h2", "http/1.0"], ["http/1.0", "http/1.1"]):
            made.set_alpn_protocols(offered)
            with connected(server, made=made) as sock:
                expected = "http/1.1" if "http/1.1" in offered else "http/1.0"
                assert sock.selected_alpn_protocol() == expected
                assert ask(sock)[0].startswith("HTTP/1.1 200")
        for offered in (["h2"], ["h2", "http/2", "x"]):
            made.set_alpn_protocols(offered)
            with pytest.raises(ssl.SSLError, match=r"(?i)alert.no.application.protocol"):
                told(server, made=made)


def test_hosts(tmp_path: Path, ours: str) -> None:
    authority = certificate().authority
    a = write(tmp_path, "a.pem", authority.issue_cert("a.example", "www.a.example"))
    wild = write(tmp_path, "wild.pem", authority.issue_cert("*.b.example"))
    rsa = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.RSA)
    options = [word for path in (ours, a, wild) for word in ("--tls-certificate", path)]
    options += ["--tls-certificate", write(tmp_path, "rsa.pem", rsa)]
    with secure("single", *options) as server:
        for expected, hosts in {
            "a.example": ("a.example", "www.a.example", "WWW.A.Example"),
            "*.b.example": ("x.b.example",),
            "localhost": ("x.y.b.example", "b.example", "unknown.example", "localhost"),
        }.items():
            assert all(expected in names(server, host) for host in hosts), expected
        # By kind of key; the first that the client can verify.
        made = context("1.2")
        made.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
        assert told(server, made=made)["SSL_CIPHER"] == "ECDHE-RSA-AES128-GCM-SHA256"
        assert "ECDSA" in told(server, made=context("1.2"))["SSL_CIPHER"]


def test_min_version(tls: tuple[str, str]) -> None:
    with secure("single", *tls, "--tls-min-version", "1.3") as server:
        with pytest.raises(ssl.SSLError):
            told(server, made=context("1.2"))
        assert told(server)["SSL_PROTOCOL"] == "TLSv1.3"


def told_by_openssl(pem: str, folder: Path, option: str) -> str:
    """A field of a certificate as OpenSSL has it."""
    (folder / "theirs.pem").write_text(pem)
    words = ("openssl", "x509", "-noout", f"-{option}", "-in", folder / "theirs.pem")
    return run(*words).stdout.strip().partition("=")[2]


@pytest.mark.parametrize("required", ["required", "optional"])
def test_certificates_of_clients(
    tmp_path: Path, tls: tuple[str, str], clients: Clients, required: str
) -> None:
    """Who is refused is told why, also if it sends more than is read behind its handshake."""
    need("openssl")
    authority, path = clients
    client = authority.issue_cert(
        "anna@example.org", "anna.example", common_name="Anna", organization_name="Shop"
    )
    pem = client.cert_chain_pems[0].bytes().decode()
    past = datetime.now(timezone.utc) - timedelta(hours=1)
    ended = authority.issue_cert("anna.example", not_after=past)
    stranger = trustme.CA().issue_cert("anna.example")
    options = (*tls, "--tls-client-ca", path, "--tls-client-auth", required)
    with secure("single", *options) as server:
        for version in VERSIONS:
            found = told(server, made=context(version, client=client))
            expected = {
                "SSL_CLIENT_VERIFY": "SUCCESS",
                "SSL_CLIENT_S_DN_CN": "Anna",
                "SSL_CLIENT_S_DN_O": "Shop",
                "SSL_CLIENT_I_DN_O": "Clients",
                "SSL_CLIENT_SAN_DNS_0": "anna.example",
                "SSL_CLIENT_SAN_Email_0": "anna@example.org",
                "SSL_CLIENT_M_SERIAL": told_by_openssl(pem, tmp_path, "serial"),
                "SSL_CLIENT_V_START": told_by_openssl(pem, tmp_path, "startdate"),
                "SSL_CLIENT_V_END": told_by_openssl(pem, tmp_path, "enddate"),
            }
            assert {key: found[key] for key in expected} == expected
            assert found["SSL_CLIENT_S_DN"].startswith("CN=Anna,")
            assert found["SSL_CLIENT_CERT"].strip() == pem.strip()
            number = str(int(found["SSL_CLIENT_M_SERIAL"], 16))
            assert f"serialNumber {number}, issuer" in found["SSL_CLIENT_CERT_RFC4523_CEA"]
            alerts = [
                (context(version, client=stranger), "UNKNOWN_CA"),
                (context(version, client=ended), "CERTIFICATE_EXPIRED"),
            ]
            if required == "optional":
                assert told(server, made=context(version))["SSL_CLIENT_VERIFY"] == "NONE"
            else:
                missing = "HANDSHAKE_FAILURE" if version == "1.2" else "CERTIFICATE_REQUIRED"
                alerts.append((context(version), missing))
            for made, alert in alerts:
                with pytest.raises(ssl.SSLError, match=f"(?i)alert.{alert.replace('_', '.')}"):
                    upload(server, made)


def upload(server: Server, made: ssl.SSLContext) -> None:
    """Send more than is read, and wait for the answer."""
    with connected(server, made=made) as sock:
        with suppress(ConnectionError):
            sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000)
        sock.recv(1)


def signed_by(authority: trustme.CA) -> tuple[x509.Certificate, Any]:
    """The certificate of an authority, and its key."""
    return x509.load_pem_x509_certificate(authority.cert_pem.bytes()), authority._private_key


def loaded(issued: trustme.LeafCert) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())


def revoking(authority: trustme.CA, revoked: trustme.LeafCert) -> bytes:
    """The revocation list of an authority, with one certificate."""
    issuer, key = signed_by(authority)
    now = datetime.now(timezone.utc)
    entry = x509.RevokedCertificateBuilder().serial_number(loaded(revoked).serial_number)
    made = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.subject)
        .last_update(now - timedelta(days=1))
        .next_update(now + timedelta(days=1))
        .add_extension(x509.CRLNumber(1), critical=False)
        .add_revoked_certificate(entry.revocation_date(now).build())
    )
    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def response(
    *,
    issued: trustme.LeafCert | None = None,
    signer: trustme.CA | None = None,
    delegate: trustme.LeafCert | None = None,
    status: ocsp.OCSPCertStatus = ocsp.OCSPCertStatus.GOOD,
    begin: timedelta = timedelta(0),
    end: timedelta | None = timedelta(days=1),
    hashed: Any = None,
) -> bytes:
    """An OCSP response about a certificate of the tests' authority."""
    issuer, _ = signed_by(certificate().authority)
    responder, key = signed_by(signer or certificate().authority)
    now = datetime.now(timezone.utc)
    revoked = status is ocsp.OCSPCertStatus.REVOKED
    made = ocsp.OCSPResponseBuilder().add_response(
        cert=loaded(issued or certificate().issued),
        issuer=issuer,
        algorithm=hashed or hashes.SHA1(),
        cert_status=status,
        this_update=now + begin,
        next_update=None if end is None else now + end,
        revocation_time=now if revoked else None,
        revocation_reason=None,
    )
    if delegate is not None:
        responder = loaded(delegate)
        key = load_pem_private_key(delegate.private_key_pem.bytes(), None)
        made = made.certificates([responder])
    made = made.responder_id(ocsp.OCSPResponderEncoding.NAME, responder)
    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def issue(
    issuer: trustme.CA | None, end: datetime, *extensions: x509.ExtensionType
) -> trustme.LeafCert:
    """A certificate with its key, valid until then, signed by its issuer, or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{issuer is None} {end}")])
    above, signing = signed_by(issuer) if issuer else (None, key)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(above.subject if above else name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=2))
        .not_valid_after(end)
    )
    for extension in extensions:
        critical = isinstance(extension, x509.BasicConstraints)
        made = made.add_extension(extension, critical=critical)
    cert = made.sign(signing, hashes.SHA256()).public_bytes(Encoding.PEM)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return trustme.LeafCert(pem, cert, [])


def delegate(authority: trustme.CA, *usages: x509.ObjectIdentifier) -> trustme.LeafCert:
    """A certificate with its key, which an authority has made for these uses."""
    used = [x509.ExtendedKeyUsage(usages)] if usages else []
    return issue(authority, datetime.now(timezone.utc) + timedelta(days=1), *used)


def stapled(server: Server, version: str = "1.3") -> str:
    """What OpenSSL says about the OCSP response that a server sends."""
    where = ("-connect", f"127.0.0.1:{server.port}", "-servername", "localhost")
    flag = f"-tls{version.replace('.', '_')}"
    return run("openssl", "s_client", *where, "-status", flag).stdout


def test_an_ocsp_response_has_to_fit(tmp_path: Path) -> None:
    """One that does not is not sent, and the log says why; what follows a renewal is."""
    need("openssl")
    authority = certificate().authority
    path, site = tmp_path / "ocsp.der", tmp_path / "site.pem"
    # With the certificate of the issuer, so that the signature can be checked.
    write(tmp_path, "site.pem", certificate().issued)
    authority.cert_pem.write_to_path(str(site), append=True)
    signing = ExtendedKeyUsageOID.OCSP_SIGNING
    day, past = timedelta(days=1), timedelta(days=-1)
    unsigned = "neither the issuer of the certificate has signed it"
    later = ocsp.OCSPResponseBuilder.build_unsuccessful(ocsp.OCSPResponseStatus.TRY_LATER)
    wrong = {
        b"root:*:0:0\n": "it is not an OCSP response in DER",
        b"": "it is not an OCSP response in DER",
        response() + b"x": "it is not an OCSP response in DER",
        b"-----BEGIN OCSP RESPONSE-----": "it is PEM",
        later.public_bytes(Encoding.DER): "the responder has answered TryLater",
        response(issued=authority.issue_cert("localhost")): "it is about another certificate",
        response(status=ocsp.OCSPCertStatus.REVOKED): "the certificate is revoked",
        response(status=ocsp.OCSPCertStatus.UNKNOWN): "the certificate is unknown",
        response(begin=day, end=2 * day): "it is not valid yet",
        response(begin=2 * past, end=past): "it has expired",
        response(signer=trustme.CA()): unsigned,
        response(delegate=delegate(authority)): unsigned,
        response(delegate=delegate(authority, ExtendedKeyUsageOID.SERVER_AUTH)): unsigned,
        response(delegate=delegate(trustme.CA(), signing)): unsigned,
        response()[:-1] + bytes([response()[-1] ^ 1]): unsigned,
    }
    right = [
        response(),
        response(hashed=hashes.SHA256(), end=None),
        response(delegate=delegate(authority, signing)),
    ]
    path.write_bytes(next(iter(wrong)))
    options = ["--tls-certificate", str(site), "--tls-ocsp", str(path)]
    with Server(APP, "single", *options, bind=BIND) as server:
        refused = f"{path}: clients do not get this OCSP response: it is not an OCSP response"
        server.wait_log(refused)
        assert "OCSP response: no response sent" in stapled(server)
        path.write_bytes(right[0])
        server.wait_log("new certificates are used")
        wait_for(lambda: "Cert Status: good" in stapled(server), "the response to be sent")
        for version in VERSIONS:
            assert "OCSP Response Status: successful" in stapled(server, version)

    def warnings(content: bytes) -> list[str]:
        path.write_bytes(content)
        files = [str(site)]
        return TlsConfig(TlsSettings(files, files, [str(path)], opener=open_regular)).warnings

    for content, complaint in wrong.items():
        assert [complaint in warning for warning in warnings(content)] == [True], complaint
    for content in right:
        assert warnings(content) == []


def test_an_ocsp_response_is_not_sent_when_it_has_ended(
    tmp_path: Path, tls: tuple[str, str]
) -> None:
    need("openssl")
    path = tmp_path / "ocsp.der"
    end = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(seconds=3)
    path.write_bytes(response(begin=timedelta(minutes=-1), end=end - datetime.now(timezone.utc)))
    with secure("single", *tls, "--tls-ocsp", str(path)) as server:
        wait_for(lambda: datetime.now(timezone.utc) > end + timedelta(seconds=1), "its end")
        assert "no response sent" in stapled(server)


def resumed(
    server: Server | int, made: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[Any, ...]:
    """Whether a session is resumed, by which process, and the session for the next connection."""
    with connected(server, made=made, session=session) as sock:
        _, found = ask(sock)
        assert found["SSL_SESSION_RESUMED"] == ("Resumed" if sock.session_reused else "Initial")
        return bool(sock.session_reused), found["pid"], sock.session


def test_workers_resume_sessions_of_each_other(tls: tuple[str, str]) -> None:
    """Workers of a reload, too."""
    with secure("forking", *tls, "--workers", "2") as server:
        for times, version in enumerate(VERSIONS, 1):
            made = context(version)
            reused, first, session = resumed(server, made, None)
            assert not reused
            seen = {first}

            def other() -> bool:
                reused, pid, _ = resumed(server, made, session)  # noqa: B023
                assert reused
                seen.add(pid)  # noqa: B023
                return len(seen) == 2  # noqa: B023

            wait_for(other, "a connection to the other worker")
            before = set(children(server.process.pid))
            server.process.send_signal(signal.SIGHUP)
            server.wait_log("reloaded", times)
            wait_for(lambda: not before & set(children(server.process.pid)), "the old ones to end")  # noqa: B023
            reused, pid, _ = resumed(server, made, session)
            assert reused
            assert pid not in before


class Resuming:
    """A client that resumes its session again and again, each time with the newest ticket."""

    def __init__(self, server: Server, version: str, **client: trustme.LeafCert) -> None:
        self.server, self.made = server, context(version, **client)
        self.session = resumed(server, self.made, None)[2]

    def goes_on(self) -> bool:
        """Whether it is resumed once more; an error if the client is refused."""
        reused, _, self.session = resumed(self.server, self.made, self.session)
        return bool(reused)

    def is_refused(self) -> bool:
        """Whether the client is refused now."""
        with suppress(ssl.SSLError, ConnectionError):
            self.goes_on()
            return False
        return True


def test_no_session_outlives_a_certificate_of_its_client(
    tls: tuple[str, str], clients: Clients
) -> None:
    """Neither its own nor that of the issuer, however often it is resumed, by whichever worker."""
    authority, path = clients
    end = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(seconds=6)
    made = issue(None, end, x509.BasicConstraints(True, None))
    ending = trustme.CA.from_pem(made.cert_chain_pems[0].bytes(), made.private_key_pem.bytes())
    with Path(path).open("ab") as file:
        file.write(ending.cert_pem.bytes())
    with secure("forking", *tls, "--tls-client-ca", path, "--workers", "2") as server:
        own = authority.issue_cert("own.example", not_after=end)
        of_issuer = issue(ending, end + timedelta(hours=1))
        ends = [
            Resuming(server, version, client=client)
            for version in VERSIONS
            for client in (own, of_issuer)
        ]
        long = Resuming(server, "1.3", client=authority.issue_cert("long.example"))
        for _ in range(3):
            refused = [client.is_refused() for client in ends]
            assert not any(refused) or datetime.now(timezone.utc) > end
        wait_for(lambda: datetime.now(timezone.utc) > end + timedelta(seconds=1), "the end")
        assert [client.is_refused() for client in ends] == [True] * len(ends)
        assert long.goes_on()
        server.wait_log("has failed: invalid peer certificate: certificate expired", len(ends))


def test_the_session_timeout_begins_with_the_first_handshake(tls: tuple[str, str]) -> None:
    """Though each handshake gives a new ticket; with 0, there is none."""
    with secure("single", *tls, "--tls-session-timeout", "3") as server:
        clients = [Resuming(server, version) for version in VERSIONS]
        assert all(client.goes_on() for client in clients)
        for client in clients:
            wait_for(lambda: not client.goes_on(), "the end of the session")  # noqa: B023
    with secure("single", *tls, "--tls-session-timeout", "0") as server:
        assert not any(Resuming(server, version).goes_on() for version in VERSIONS)


def test_a_ticket_does_not_outlive_the_issuer_or_a_revocation(
    tls: tuple[str, str], clients: Clients
) -> None:
    """A new file of issuers counts for those who have come before, too."""
    authority, path = clients
    leaf = authority.issue_cert("a.example")
    with Server(APP, "single", *tls, "--tls-client-ca", path, bind=BIND) as server:
        before = Path(path).read_bytes()
        others = (before + revoking(authority, leaf), trustme.CA().cert_pem.bytes())
        times = count(1)
        both = [Resuming(server, version, client=leaf) for version in VERSIONS]
        assert all(client.goes_on() for client in both)
        for content in others:
            Path(path).write_bytes(content)
            server.wait_log("new certificates are used", next(times))
            wait_for(lambda: all(client.is_refused() for client in both), "their refusal")
            Path(path).write_bytes(before)
            server.wait_log("new certificates are used", next(times))
            wait_for(lambda: not any(client.is_refused() for client in both), "their return")


def test_a_session_without_certificate_is_not_resumed_where_one_is_required(
    tmp_path: Path, ours: str, clients: Clients
) -> None:
    text = (
        f"[http]\ntarget = {APP}\ntls_certificate = {ours}\nmode = single\n"
        "[service:open]\nbind = https://127.0.0.1:0\n"
        f"[service:closed]\nbind = https://127.0.0.1:0\ntls_client_ca = {clients[1]}\n"
    )
    with Tree(tmp_path, text) as tree:
        made = context("1.2")
        _, _, session = resumed(tree.ports["open"], made, None)
        assert resumed(tree.ports["open"], made, session)[0]
        with pytest.raises((ssl.SSLError, ConnectionError)):
            resumed(tree.ports["closed"], made, session)


def test_redirect_and_hsts(tls: tuple[str, str]) -> None:
    hsts = "max-age=60; includeSubDomains"
    options = (*tls, "--redirect-to-https", "on", "--health", "/-", "--hsts", hsts)
    trust = ("--trusted-proxies", "127.0.0.2")
    bind = (*BIND, "127.0.0.1:0")
    with Server(APP, "threading", *options, *trust, bind=bind) as server:
        insecure = server.port_of("http")
        server.port = port = server.port_of("https")

        def plain(target: str, host: str = "a", source: str = "", **more: Any) -> Response:
            with Connection(("127.0.0.1", insecure), source) as connection:
                connection.host = host
                answer = connection.request(more.pop("method", "GET"), target, **more)
            assert answer.get("Strict-Transport-Security") is None
            return answer

        for target, host, location in [
            ("/a?b=c", "shop.example", f"https://shop.example:{port}/a?b=c"),
            ("/", "shop.example:8080", f"https://shop.example:{port}/"),
            ("/%20%C3%A4", "[::1]", f"https://[::1]:{port}/%20%C3%A4"),
            ("http://other.example/x", "other.example", f"https://other.example:{port}/x"),
        ]:
            answer = plain(target, host)
            assert (answer.status, answer.get("Location")) == (308, location)
        assert plain("/", method="POST", body=b"abc").status == 308
        assert plain("/", version="HTTP/1.0").status == 400
        assert plain("/-/ready").status == 200
        # A proxy that is trusted is not redirected.
        assert plain("/", source="127.0.0.2").status == 200
        with connected(server) as sock:
            head, found = ask(sock)
        assert found["scheme"] == "https"
        assert head.count(f"Strict-Transport-Security: {hsts}") == 1
        with connected(server) as sock:
            head, _ = ask(sock, "/hsts")
        assert head.lower().count("strict-transport-security") == 1
        assert "max-age=1" in head
        with connected(server) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            refusal = sock.makefile("rb").read().decode()
        assert refusal.startswith("HTTP/1.1 400 ")
        assert refusal.count(f"Strict-Transport-Security: {hsts}") == 1


def test_development(tmp_path: Path) -> None:
    """The certificate is the same at each start, so that browsers remember it."""
    (tmp_path / "app.py").write_text(Path(APP).read_text())
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    path = tmp_path / "cache/poorhttp/localhost.pem"
    prints = []
    for _ in range(2):
        with Server("app.py", "threading", "--https", verb="dev", cwd=tmp_path, env=env) as server:
            assert server.urls.startswith("https://")
            prints.append(server.wait_line(re.compile(r"SHA-256 ([0-9A-F:]{95})\n"))[1])
            assert path.stat().st_mode & 0o777 == 0o600
            made = ssl.create_default_context(cafile=str(path))
            for host in ("localhost", "127.0.0.1", "::1"):
                with connected(server, host, made) as sock:
                    assert ask(sock)[1]["scheme"] == "https"
    assert prints[0] == prints[1]
