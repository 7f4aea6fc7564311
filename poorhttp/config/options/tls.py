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
    raise ValueError(f'"{text}" is none of off and on, and no port; write on, or 443')


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


class Tls:
    """TLS, for addresses of `bind` that begin with `https`."""

    GROUP = "TLS"

    tls_certificate = Repeatable(
        path,
        (),
        "File with a certificate and behind it those of its issuers, PEM, for the addresses of "
        "`bind` that begin with `https://`.",
        metavar="FILE",
        reason="For several certificates, one on each line: the client names the host (SNI), and "
        "gets the one that has this name or a wildcard for it, else the first. Two with the same "
        "names and different kinds of keys are allowed: the first that the client can verify is "
        "used. The main process reads the files before workers give up its rights. When they "
        "change, running workers get the new ones; broken ones are refused and logged, and the "
        "old ones stay. See docs/guides/tls.md.",
        aliases=(*("certfile", "ssl-certfile", "ssl-certificate", "ssl-certificate-file", "cert"),),
    )
    tls_key = Repeatable(
        path,
        (),
        "File with the private key of each `tls_certificate`, PEM, in the same order; if empty, it "
        "is in the file of the certificate.",
        metavar="FILE",
        reason="Not encrypted, and readable by the user who starts the server alone: a warning is "
        "logged if others can read it.",
        aliases=("keyfile", "ssl-keyfile", "ssl-certificate-key-file", "key"),
    )
    tls_ocsp = Repeatable(
        path,
        (),
        "File with the OCSP response for each `tls_certificate`, DER, in the same order.",
        metavar="FILE",
        reason="It is sent to clients that ask for it (stapling). Something else has to fetch it "
        "and replace the file; few issuers still have OCSP.",
    )
    tls_client_ca = Option(
        optional_folder,
        "",
        "File with the certificates of those who issue certificates to clients, PEM; it may hold "
        "their revocation lists, too.",
        metavar="FILE",
        reason="Clients then have to show a certificate, and the application gets the variables "
        "`SSL_CLIENT_...` of Apache's mod_ssl. If it is empty, no client is asked for one.",
        aliases=("ca-certs", "ssl-ca-certs", "ssl-ca", "ssl-ca-certificate-file"),
    )
    tls_client_auth = Option(
        choice("required", "optional"),
        "required",
        "With `tls_client_ca`: whether a client without certificate is refused.",
        metavar="WORD",
        reason="`optional`: the application decides, by `SSL_CLIENT_VERIFY`, which is `SUCCESS` or "
        "`NONE`. A certificate of another issuer is refused in any case.",
        aliases=("cert-reqs", "ssl-cert-reqs"),
    )
    tls_min_version = Option(
        choice("1.2", "1.3"),
        "1.2",
        "Oldest version of TLS that is accepted.",
        metavar="VERSION",
        reason="Earlier versions are forbidden (RFC 8996) and not there. Of TLS 1.2, only cipher "
        "suites with forward secrecy and authenticated encryption are. nginx has 1.2 too.",
        aliases=("ssl-protocol-min",),
    )
    tls_session_timeout = Option(
        session_timeout,
        "21600",
        "How long a client may resume a session; 0: never.",
        metavar="SECONDS",
        reason="A resumed session needs no signature, the costliest part of a handshake. All "
        "workers, also those of a reload, resume sessions of each other. The key of the tickets is "
        "replaced every hour, so it decrypts no recorded session of TLS 1.2 that is older than "
        "this and an hour; sessions of TLS 1.3 it never does. nginx has 5 minutes, Apache too.",
    )
    kernel_tls = Option(
        boolean,
        "off",
        "Have the kernel encrypt what follows on a connection from its first large file on.",
        reason="Files are then sent by `sendfile`, as without TLS. Nothing changes where the "
        "kernel cannot (Linux without its module `tls`), and on Unix sockets. It is off because "
        "it depends on kernel and processor which of the two is faster, and because the module is "
        "code of the kernel that faces the network. nginx needs a build of OpenSSL for it, and "
        "has it off too. See docs/guides/tls.md.",
    )
    redirect_to_https = Option(
        port_or_switch,
        "off",
        "Redirect requests that come without TLS to `https`: `on`, or the port that clients know "
        "if it is another one than that of `bind`.",
        metavar="PORT",
        reason="With status 308, which keeps method and body, by the name in `Host`. Requests that "
        "a proxy of `trusted_proxies` has forwarded, those of Unix sockets and gateway protocols, "
        "and health checks (`health`) are not redirected.",
        fixed={"https-only": "on"},
    )
    hsts = Option(
        hsts,
        "off",
        "Value of `Strict-Transport-Security` in responses over TLS: `max-age=31536000`.",
        metavar="TEXT",
        reason="Browsers then use nothing but `https` for this host as long as that, and accept no "
        "broken certificate (RFC 6797). Begin with a short time: it cannot be taken back. An "
        "application that sets the header itself has the last word.",
        aliases=("hsts-policy",),
    )
