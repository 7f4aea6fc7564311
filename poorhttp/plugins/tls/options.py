"""The options of TLS: certificates, client certificates, redirect from HTTP, HSTS."""

from __future__ import annotations

from poorhttp.config.options.option import Option, Repeatable
from poorhttp.config.parsers import boolean, choice, header, optional_folder, path, seconds

#: Longest time that a client may keep a ticket (RFC 8446 section 4.6.1).
WEEK = 7 * 24 * 3600


def session_timeout(text: str) -> float:
    """Read a time in seconds, of a week at most."""
    number = seconds(0)(text)
    if number > WEEK:
        raise ValueError(f'"{text}" is out of range; a ticket is good for a week at most, {WEEK}')
    return number


def port_or_switch(text: str) -> int:
    """Read `off`, which is 0, `on`, which is -1, or a port."""
    if text in ("off", "on"):
        return -(text == "on")
    if text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) <= 65535:
        return int(text)
    raise ValueError(f'"{text}" is neither off, on nor a port; write on, or 443')


def hsts(text: str) -> str:
    """Read `off`, which is empty, or the value of the header (RFC 6797 section 6.1)."""
    if text == "off":
        return ""
    names = [part.strip().lower() for part in header(text).split(";")]
    if text.isdigit():
        return f"max-age={text}"
    ages = [name.partition("=")[2] for name in names if name.startswith("max-age=")]
    others = [name for name in names if not name.startswith("max-age=")]
    if len(ages) != 1 or not ages[0].isdigit() or set(others) - {"includesubdomains", "preload"}:
        raise ValueError(
            f'"{text}" is neither off, nor seconds, nor the value of Strict-Transport-Security; '
            "write max-age=31536000; includeSubDomains"
        )
    return text


#: What `ssl` of Python calls the words of `tls_client_auth`, and their numbers.
_VERIFY = {
    "1": "optional",
    "2": "required",
    "CERT_OPTIONAL": "optional",
    "CERT_REQUIRED": "required",
}


def client_certificates(text: str) -> str:
    """Translate what is asked of clients, in the numbers and names of Python's `ssl`."""
    if text in ("0", "CERT_NONE"):
        raise ValueError(
            "then clients are asked for no certificate; leave it out, and the file of issuers too"
        )
    return _VERIFY.get(text.rpartition(".")[2], text)


def oldest_version(text: str) -> str:
    """Translate a version as `TLSv1.2` or `tls1.2` of others."""
    return text.lower().removeprefix("tls")


def secure_all(values: dict[str, list[str]], flags: dict[str, list[str]]) -> None:
    """Serve TLS at every address, as others do as soon as there is a certificate."""
    values.setdefault("https", ["on"])
    flags.setdefault("https", flags["tls_certificate"][:1])


def check_client_auth(values: dict[str, list[str]], flags: dict[str, list[str]]) -> None:
    """Refuse issuers of client certificates, without which others ask clients for none."""
    if "tls_client_auth" not in values:
        raise ValueError(
            f"{flags['tls_client_ca'][-1]} alone asks clients for no certificate in other "
            "servers, but for one here; write --tls-client-ca if it is required, or leave it out "
            "(docs/guides/tls.md)"
        )


class Tls:
    """TLS, for addresses of `bind` that begin with `https`."""

    GROUP = "TLS"

    tls_certificate = Repeatable(
        path,
        (),
        "PEM file with a certificate, followed by those of its issuers, for the addresses of "
        "`bind` that begin with `https://`.",
        metavar="FILE",
        reason="Write each of several certificates on its own line. A client that names the host "
        "(SNI) gets the certificate with this name or a matching wildcard, otherwise the first. "
        "Two certificates may have the same names and different kinds of keys: the server uses the "
        "first that the client can verify. The main process reads the files with its own rights. "
        "When they change, running workers get the new ones; broken files are refused and logged, "
        "and the old certificates stay. See docs/guides/tls.md.",
        aliases=(*("certfile", "ssl-certfile", "ssl-certificate", "ssl-certificate-file", "cert"),),
        settle=secure_all,
        common=True,
    )
    tls_key = Repeatable(
        path,
        (),
        "PEM file with the private key of each `tls_certificate`, in the same order; if empty, "
        "the key is in the file of the certificate.",
        metavar="FILE",
        reason="The file must not be encrypted, and only the user who starts the server should be "
        "able to read it: the server logs a warning if everybody or the user of the workers can.",
        aliases=("keyfile", "ssl-keyfile", "ssl-certificate-key-file", "key"),
        common=True,
    )
    tls_ocsp = Repeatable(
        path,
        (),
        "File with the OCSP response for each `tls_certificate`, DER, in the same order.",
        metavar="FILE",
        reason="The server sends it to clients that ask for it (stapling), if it is valid and "
        "about this certificate; otherwise the log says why it does not. Another program must "
        "fetch it and replace the file; few issuers still support OCSP.",
    )
    tls_client_ca = Option(
        optional_folder,
        "",
        "PEM file with the certificates of the issuers of client certificates; it may also hold "
        "their revocation lists.",
        metavar="FILE",
        reason="Clients must then show a certificate, and the application gets the variables "
        "`SSL_CLIENT_...` of Apache's mod_ssl. If empty, the server asks no client for a "
        "certificate.",
        aliases=("ca-certs", "ssl-ca-certs", "ssl-ca", "ssl-ca-certificate-file"),
        settle=check_client_auth,
    )
    tls_client_auth = Option(
        choice("required", "optional"),
        "required",
        "With `tls_client_ca`: a client without a certificate is refused (`required`), or "
        "admitted (`optional`).",
        metavar="WORD",
        reason="With `optional` the application decides by `SSL_CLIENT_VERIFY`, which is "
        "`SUCCESS` or `NONE`. A certificate of another issuer is always refused.",
        aliases=("cert-reqs", "ssl-cert-reqs"),
        translate=client_certificates,
    )
    tls_min_version = Option(
        choice("1.2", "1.3"),
        "1.2",
        "Oldest version of TLS that is accepted.",
        metavar="VERSION",
        reason="Earlier versions are forbidden (RFC 8996). With TLS 1.2, only cipher suites with "
        "forward secrecy and authenticated encryption are accepted. Also 1.2 in nginx.",
        aliases=("ssl-protocol-min",),
        translate=oldest_version,
    )
    tls_session_timeout = Option(
        session_timeout,
        "21600",
        "How long a client may resume a session; 0 means never.",
        metavar="SECONDS",
        reason="A resumed session needs no signature, which is the most expensive part of a "
        "handshake. The time counts from the first handshake, however often a session is resumed. "
        "A session ends with the certificates of its client, too. Each worker can resume the "
        "sessions of all others, also after a reload. The key of the tickets is replaced every "
        "hour, so a stolen key decrypts recorded TLS 1.2 sessions from a period of this length "
        "plus one hour, but no TLS 1.3 sessions. nginx and Apache 5 minutes.",
    )
    kernel_tls = Option(
        boolean,
        "off",
        "Let the kernel encrypt a connection from its first large file on.",
        reason="Files are then sent by `sendfile`, as without TLS. Without the kernel module "
        "`tls`, and on Unix sockets, nothing changes. Off, because the kernel is not always "
        "faster, and because its module exposes more code to the network. Off in nginx, too. See "
        "docs/guides/tls-details.md.",
    )
    redirect_to_https = Option(
        port_or_switch,
        "off",
        "Redirect requests without TLS to `https`: `on`, or the port that clients use if it "
        "differs from that of `bind`.",
        metavar="PORT",
        reason="The redirect has status 308, which keeps method and body, and goes to the name in "
        "`Host`. The server does not redirect requests of `trusted_proxies`, of Unix sockets and "
        "of gateway protocols, nor health checks (`health`).",
        fixed={"https-only": "on"},
    )
    hsts = Option(
        hsts,
        "off",
        "Value of `Strict-Transport-Security` in responses over TLS: `max-age=31536000`.",
        metavar="TEXT",
        reason="For this time, browsers use only `https` for this host and accept no broken "
        "certificate (RFC 6797). Begin with a short time: you cannot take it back. A header that "
        "the application sets takes precedence.",
        aliases=("hsts-policy",),
    )
