"""Certificate files: what is wrong with them is said in a sentence that begins with their place."""

from __future__ import annotations

import os
import pwd
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.tls._tls import TlsConfig, TlsSettings
from poorhttp.plugins.tls.certificates import Certificates
from poorhttp.process.safe_open import open_regular
from tests.support.certificate import certificate

NOW = datetime.now(timezone.utc)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good certificate and many bad ones."""
    folder = tmp_path_factory.mktemp("files")
    authority = certificate().authority
    leaf = certificate().issued
    chain = b"".join(each.bytes() for each in leaf.cert_chain_pems)
    key = leaf.private_key_pem.bytes()
    other = authority.issue_cert("other.example")
    second = authority.issue_cert("localhost", not_after=NOW + timedelta(days=3, hours=1))
    third = authority.issue_cert("localhost", not_after=NOW - timedelta(days=2, hours=1))
    issuer = authority.cert_pem.bytes()
    for name, content in {
        "good.pem": chain,
        "good.key": key,
        "both.pem": key + chain,
        "other.key": other.private_key_pem.bytes(),
        "swapped.pem": issuer + chain,
        "strange.pem": chain + b"".join(each.bytes() for each in other.cert_chain_pems),
        "soon.pem": second.private_key_and_cert_chain_pem.bytes(),
        "expired.pem": third.private_key_and_cert_chain_pem.bytes(),
        "empty.pem": b"",
        "text.pem": b"a certificate\n",
        "der.pem": b"0\x82\x01\x00",
        "cut.pem": chain[: len(chain) // 3],
        "cut.key": key[: len(key) // 2],
        "base64.pem": chain.replace(b"\nM", b"\n!", 1),
        "damaged.pem": chain[:100] + b"AAAAAAAA" + chain[108:],
        "ca.pem": issuer,
    }.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
    locked = serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (folder / "locked.key").write_bytes(locked)
    return folder


def load(folder: Path, **options: object) -> Certificates:
    """The certificates of these options, whose files are in a folder."""
    for name in ("tls_certificate", "tls_key", "tls_client_ca", "tls_ocsp"):
        given = options.get(name)
        if isinstance(given, str) and given:
            options[name] = str(folder / given)
        elif isinstance(given, list):
            options[name] = [str(folder / each) for each in given]
    found = Certificates.of(Settings(bind="https://127.0.0.1:0", target="x:y", **options))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "bind: https://127.0.0.1:0 needs a certificate; name its file with tls_cert"),
        ({"tls_certificate": "good.pem"}, "good.pem: has a certificate but no private key; name"),
        ({"tls_certificate": "good.key"}, "good.key: is a private key, not a certificate; were"),
        ({"tls_certificate": "none.pem"}, "none.pem: cannot be read: No such file"),
        ({"tls_certificate": "good.pem", "tls_key": "none.key"}, "none.key: cannot be read: No su"),
        ({"tls_certificate": "good.pem", "tls_key": "other.key"}, "other.key: this key does not b"),
        ({"tls_certificate": "good.pem", "tls_key": "locked.key"}, "locked.key: the key is encryp"),
        ({"tls_certificate": "good.pem", "tls_key": "cut.key"}, "cut.key: is damaged: a section"),
        ({"tls_certificate": "good.pem", "tls_key": "text.pem"}, "text.pem: has no private key in"),
        ({"tls_certificate": "empty.pem"}, "empty.pem: is empty"),
        ({"tls_certificate": "text.pem"}, "text.pem: has no certificate in PEM, which begins with"),
        ({"tls_certificate": "der.pem"}, "der.pem: has no certificate in PEM; if it is DER, conv"),
        ({"tls_certificate": "cut.pem", "tls_key": "good.key"}, "cut.pem: is damaged: a section "),
        ({"tls_certificate": "base64.pem", "tls_key": "good.key"}, "base64.pem: is damaged: what "),
        ({"tls_certificate": "damaged.pem", "tls_key": "good.key"}, "damaged.pem: certificate 1 "),
        ({"tls_certificate": "swapped.pem", "tls_key": "good.key"}, "is number 2 of the file; it "),
        (
            {"tls_certificate": "both.pem", "tls_key": ["good.key", "other.key"]},
            "tls_key: 2 keys for 1 certificate; write one for each",
        ),
        (
            {"tls_certificate": "both.pem", "tls_ocsp": ["a", "b"]},
            "tls_ocsp: more responses than c",
        ),
        ({"tls_certificate": "both.pem", "tls_client_ca": "good.key"}, "good.key: is a private k"),
        ({"tls_certificate": "both.pem", "tls_client_ca": "empty.pem"}, "empty.pem: is empty"),
    ],
)
def test_mistakes(files: Path, options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(files, **options)
    assert complaint in str(raised.value)
    assert "PRIVATE" not in str(raised.value).replace("PRIVATE KEY-----", "")


def test_what_is_checked_is_what_is_used(files: Path, tmp_path: Path) -> None:
    """A renewal may write to the files between the check and the use."""
    path = tmp_path / "certificate.pem"
    path.write_bytes((files / "both.pem").read_bytes())
    settings = TlsSettings([str(path)], [str(path)], opener=open_regular)
    path.write_bytes(b"")
    config = TlsConfig(settings)
    os.close(config.replace(settings))
    ((file, names, *_),) = config.certificates
    assert (file, names) == (str(path), ["localhost"])


def test_raw_tcp_is_refused() -> None:
    settings = Settings(bind="https://127.0.0.1:0", target="tcp:x:y", tls_certificate="x")
    with pytest.raises(ConfigError, match="reads its connections itself"):
        Certificates.of(settings)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("on", "neither off, nor seconds"),
        ("max-age", "neither off"),
        ("max-age=1; maxage=2", "neither off"),
        ("max-age=1; max-age=2", "neither off"),
        ("includeSubDomains", "neither off"),
        ("max-age=1\r\nX: y", "cannot stand in a header|control"),
    ],
)
def test_wrong_hsts(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Settings(hsts=text)


@pytest.mark.parametrize(
    ("name", "more", "warning", "line"),
    [
        ("good.pem", {"tls_key": "good.key"}, "", "for localhost: valid for "),
        ("both.pem", {}, "", "for localhost: valid for "),
        ("both.pem", {"tls_client_ca": "ca.pem"}, "", "for localhost: valid for "),
        ("soon.pem", {}, "the certificate expires in 3 days", "valid for 3 days"),
        ("expired.pem", {}, "the certificate has expired, 2 days ago", "expired 2 days"),
        (
            *("strange.pem", {"tls_key": "good.key"}),
            "certificate 2 of the file is not that of the issuer of certificate 1; clients may not "
            "trust it",
            "for localhost: valid for ",
        ),
    ],
)
def test_warnings(files: Path, name: str, more: dict[str, object], warning: str, line: str) -> None:
    found = load(files, tls_certificate=name, **more)
    assert found.warnings() == ([f"{files / name}: {warning}"] if warning else [])
    assert line in found.describe()[0]


@pytest.fixture
def own(files: Path, tmp_path: Path) -> Path:
    """A file with a key."""
    path = tmp_path / "own.pem"
    path.write_bytes((files / "both.pem").read_bytes())
    return path


def test_a_key_that_everybody_can_read(own: Path) -> None:
    own.chmod(0o644)
    found = load(own.parent, tls_certificate="own.pem")
    assert found.warnings() == [
        f"{own}: everybody can read this private key; chmod o-rwx protects it"
    ]
    own.chmod(0o640)
    assert found.warnings() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_key_of_the_user_of_the_workers(own: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    for uid, gid, mode, complains in [
        (nobody.pw_uid, 0, 0o600, True),
        (0, nobody.pw_gid, 0o640, True),
        (0, nobody.pw_gid, 0o600, False),
        (0, 0, 0o640, False),
    ]:
        os.chown(own, uid, gid)
        own.chmod(mode)
        warnings = load(own.parent, tls_certificate="own.pem", user="nobody").warnings()
        told = ["nobody, the user of the workers, can use" in each for each in warnings]
        assert told == [True] * complains


def test_files_are_read_again(tmp_path: Path) -> None:
    authority = trustme.CA()
    path = tmp_path / "both.pem"

    def write(name: str) -> None:
        authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(str(path))

    def names() -> list[str]:
        return [name for _, hosts, *_ in found.config.certificates for name in hosts]

    write("one.example")
    path.chmod(0o600)
    found = load(tmp_path, tls_certificate="both.pem")
    found.reload()
    assert (found.number, found.fd) == (0, -1)
    write("two.example")
    found.reload()
    assert (names(), found.number) == (["two.example"], 1)
    # What workers get cannot be opened by its name by somebody else, or be changed.
    assert os.fstat(found.fd).st_mode & 0o777 == 0
    with pytest.raises(OSError, match="not permitted"):
        os.pwrite(found.fd, b"x", 0)
