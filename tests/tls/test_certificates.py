"""Certificates over TLS: hosts, clients, tickets, redirect, HSTS."""

from __future__ import annotations

import re
import signal
import socket
import ssl
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
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
from tests.testkit.client import HANG
from tests.testkit.process import children
from tests.testkit.server import MODES, Server, run, wait_for


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


def test_the_protocol_is_http_1(ours: str) -> None:
    with Server(APP, "single", "--tls-certificate", ours, bind=BIND) as server:
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
                with (
                    pytest.raises(ssl.SSLError, match=r"(?i)alert.no.application.protocol"),
                    connected(server, made=made),
                ):
                    pass


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
    need("openssl")
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


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_is_told_why_it_is_refused(tmp_path: Path, ours: str, version: str) -> None:
    """Also if it has sent its request with the end of the handshake, and more than is read."""
    authority, path = client_authority(tmp_path)
    now = datetime.now(timezone.utc)
    ended = short_lived(authority, now - timedelta(hours=1))
    missing = "HANDSHAKE_FAILURE" if version == "1.2" else "CERTIFICATE_REQUIRED"
    cases = [
        (context(version), missing),
        (context(version, client=trustme.CA().issue_cert("x.example")), "UNKNOWN_CA"),
        (context(version, client=ended), "CERTIFICATE_EXPIRED"),
    ]
    with Server(
        APP, "single", "--tls-certificate", ours, "--tls-client-ca", path, bind=BIND
    ) as server:
        for made, alert in cases:
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
    """The certificate itself."""
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


def test_a_revoked_certificate_is_refused(tmp_path: Path, ours: str) -> None:
    authority, path = client_authority(tmp_path)
    good, revoked = (authority.issue_cert(f"{name}.example") for name in ("good", "revoked"))
    with Path(path).open("ab") as file:
        file.write(revoking(authority, revoked))
    options = ["--tls-certificate", ours, "--tls-client-ca", path]
    with Server(APP, "single", *options, bind=BIND) as server:
        assert told(server, made=context(client=good))["SSL_CLIENT_VERIFY"] == "SUCCESS"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            told(server, made=context(client=revoked))


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


def delegate(authority: trustme.CA, *usages: x509.ObjectIdentifier) -> trustme.LeafCert:
    """A certificate with its key, which an authority has made for these uses."""
    issuer, key = signed_by(authority)
    own = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "responder")]))
        .issuer_name(issuer.subject)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
    if usages:
        made = made.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    pem = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return trustme.LeafCert(pem, made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), [])


def stapled(server: Server, version: str = "1.3") -> str:
    """What OpenSSL says about the OCSP response that a server sends."""
    where = ("-connect", f"127.0.0.1:{server.port}", "-servername", "localhost")
    flag = f"-tls{version.replace('.', '_')}"
    return run("openssl", "s_client", *where, "-status", flag).stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_an_ocsp_response_is_stapled(version: str, tmp_path: Path, ours: str) -> None:
    need("openssl")
    path = tmp_path / "ocsp.der"
    path.write_bytes(response())
    options = ["--tls-certificate", ours, "--tls-ocsp", str(path)]
    with Server(APP, "single", *options, bind=BIND) as server:
        found = stapled(server, version)
        assert "OCSP Response Status: successful" in found, found
        assert "Cert Status: good" in found


def test_an_ocsp_response_has_to_fit(tmp_path: Path) -> None:
    """One that does not is not sent, and the log says why; what follows a renewal is."""
    need("openssl")
    authority = certificate().authority
    path, site = tmp_path / "ocsp.der", tmp_path / "site.pem"
    # With the certificate of the issuer, so that the signature can be checked.
    site.write_bytes(
        certificate().issued.private_key_and_cert_chain_pem.bytes() + authority.cert_pem.bytes()
    )
    site.chmod(0o600)
    signing = ExtendedKeyUsageOID.OCSP_SIGNING
    day, past = timedelta(days=1), timedelta(days=-1)
    unsigned = "neither the issuer of the certificate has signed it"
    wrong = {
        b"root:*:0:0\n": "it is not an OCSP response in DER",
        b"": "it is not an OCSP response in DER",
        response() + b"x": "it is not an OCSP response in DER",
        b"-----BEGIN OCSP RESPONSE-----": "it is PEM",
        ocsp.OCSPResponseBuilder.build_unsuccessful(ocsp.OCSPResponseStatus.TRY_LATER).public_bytes(
            Encoding.DER
        ): "the responder has answered TryLater",
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
        server.wait_log(
            f"{path}: clients do not get this OCSP response: it is not an OCSP response"
        )
        assert "OCSP response: no response sent" in stapled(server)
        path.write_bytes(right[0])
        server.wait_log("new certificates are used")
        wait_for(lambda: "Cert Status: good" in stapled(server), "the response to be sent")
    for content, complaint in wrong.items():
        path.write_bytes(content)
        config = TlsConfig(TlsSettings([str(site)], [str(site)], [str(path)], opener=open_regular))
        assert [complaint in warning for warning in config.warnings] == [True], complaint
    for content in right:
        path.write_bytes(content)
        assert (
            TlsConfig(
                TlsSettings([str(site)], [str(site)], [str(path)], opener=open_regular)
            ).warnings
            == []
        )


def test_an_ocsp_response_is_not_sent_when_it_has_ended(tmp_path: Path, ours: str) -> None:
    need("openssl")
    path = tmp_path / "ocsp.der"
    path.write_bytes(response(begin=timedelta(minutes=-1), end=timedelta(seconds=3)))
    options = ["--tls-certificate", ours, "--tls-ocsp", str(path)]
    with Server(APP, "single", *options, bind=BIND) as server:
        wait_for(lambda: "no response sent" in stapled(server), "the end of the response")


def resumed(
    server: Server | int, made: ssl.SSLContext, session: ssl.SSLSession | None
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
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded")
        wait_for(lambda: not before & set(children(server.process.pid)), "the old workers to end")
        reused, pid, _ = resumed(server, made, session)
        assert reused
        assert pid not in before


def short_lived(authority: trustme.CA, end: datetime, is_authority: bool = False) -> Any:
    """A certificate with its key, valid until then: of a client, or of another authority."""
    issuer, key = signed_by(authority)
    own = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{is_authority} {end}")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name if is_authority else issuer.subject)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=1))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
    )
    pem = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    cert = made.sign(own if is_authority else key, hashes.SHA256()).public_bytes(Encoding.PEM)
    return trustme.CA.from_pem(cert, pem) if is_authority else trustme.LeafCert(pem, cert, [])


class Resuming:
    """A client that resumes its session again and again, each time with the newest ticket."""

    def __init__(self, server: Server, version: str, **client: trustme.LeafCert) -> None:
        self.server, self.made = server, context(version, **client)
        self.session = resumed(server, self.made, None)[2]
        self.reused = list[bool]()

    def goes_on(self) -> bool:
        """Whether it is resumed once more; an error if the client is refused."""
        reused, _, self.session = resumed(self.server, self.made, self.session)
        self.reused.append(reused)
        return bool(reused)

    def is_refused(self) -> bool:
        """Whether the client is refused now."""
        with suppress(ssl.SSLError, ConnectionError):
            self.goes_on()
            return False
        return True


def test_no_session_outlives_a_certificate_of_its_client(tmp_path: Path, ours: str) -> None:
    """Neither its own nor that of the issuer, however often it is resumed, by whichever worker."""
    authority, path = client_authority(tmp_path)
    options = ["--tls-certificate", ours, "--tls-client-ca", path, "--workers", "2"]
    end = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(seconds=6)
    ending = short_lived(authority, end, is_authority=True)
    with Path(path).open("ab") as file:
        file.write(ending.cert_pem.bytes())
    with Server(APP, "forking", *options, bind=BIND) as server:
        own = short_lived(authority, end)
        of_issuer = short_lived(ending, end + timedelta(hours=1))
        clients = [
            Resuming(server, version, client=client)
            for version in VERSIONS
            for client in (own, of_issuer)
        ]
        long = Resuming(server, "1.3", client=authority.issue_cert("long.example"))
        for _ in range(3):
            refused = [client.is_refused() for client in clients]
            assert not any(refused) or datetime.now(timezone.utc) > end
        wait_for(lambda: datetime.now(timezone.utc) > end + timedelta(seconds=1), "the end")
        assert [client.is_refused() for client in clients] == [True] * len(clients)
        assert long.goes_on()
        server.wait_log("has failed: invalid peer certificate: certificate expired", len(clients))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_session_timeout_begins_with_the_first_handshake(version: str, ours: str) -> None:
    options = ["--tls-certificate", ours, "--tls-session-timeout", "3"]
    with Server(APP, "single", *options, bind=BIND) as server:
        client = Resuming(server, version)
        begin = time.monotonic()
        # Each gives a new ticket.
        while time.monotonic() < begin + 5:
            client.goes_on()
        assert client.reused[0]
        assert not all(client.reused)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_ticket_does_not_outlive_the_issuer_or_a_revocation(
    version: str, tmp_path: Path, ours: str
) -> None:
    """A new file of issuers counts for those who have come before, too."""
    authority, path = client_authority(tmp_path)
    leaf = authority.issue_cert("a.example")
    options = ["--tls-certificate", ours, "--tls-client-ca", path]
    with Server(APP, "single", *options, bind=BIND) as server:
        client = Resuming(server, version, client=leaf)
        assert client.goes_on()
        before = Path(path).read_bytes()
        for number, content in enumerate(
            (before + revoking(authority, leaf), trustme.CA().cert_pem.bytes()), 1
        ):
            Path(path).write_bytes(content)
            server.wait_log("new certificates are used", 2 * number - 1)
            wait_for(client.is_refused, "the client to be refused")
            Path(path).write_bytes(before)
            server.wait_log("new certificates are used", 2 * number)
            wait_for(lambda: not client.is_refused(), "the client to be accepted")


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
        with connected(server) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            refusal = sock.makefile("rb").read().decode()
        assert refusal.startswith("HTTP/1.1 400 ")
        assert refusal.count("Strict-Transport-Security: max-age=60; includeSubDomains") == 1
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
