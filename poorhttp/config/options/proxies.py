"""The options of reverse proxies (trust, `Server` header)."""

from __future__ import annotations

from poorhttp.config import address
from poorhttp.config.options.option import Option, WordList
from poorhttp.config.parsers import (
    boolean,
    choice,
    header,
    network,
    or_off,
    path,
    prefix,
    seconds,
)

#: Headers in which proxies name their client.
FORWARDED_HEADERS = (
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
)


def listener_or_all(text: str) -> str:
    """Read an address that is in `bind`, or `on` for all of them."""
    return text if text == "on" else str(address.parse(text))


def http_address(text: str) -> address.Address:
    """Read an address to listen on for HTTP."""
    found = address.parse(text)
    if found.protocol != "http":
        raise ValueError(f'"{text}": HTTP is spoken there; write HOST:PORT or unix:PATH')
    return found


class Proxies:
    """Which proxies are trusted, and what they and balancers can ask for."""

    GROUP = "Behind a proxy"

    trusted_proxies = WordList(
        network,
        (),
        "Proxies that may name the client for whom they forward a request: addresses, networks, "
        "and `unix` for every client of a Unix socket.",
        metavar="NETWORK",
        reason="Only from these, `forwarded_headers`, the PROXY protocol and the gateway protocols "
        "(`uwsgi://`, `scgi://`, `fastcgi://`) are accepted; the headers of all others are "
        "withheld from the application. The default is none, because an address that a client may "
        "choose is worse than none. gunicorn trusts 127.0.0.1 (`forwarded_allow_ips`), which is "
        "everybody on a shared machine.",
        aliases=(
            *("forwarded-allow-ips", "proxy-allow-from", "uwsgi-allow-from", "trusted-proxy"),
            "trust-proxy",
        ),
    )
    forwarded_headers = WordList(
        choice(*FORWARDED_HEADERS),
        FORWARDED_HEADERS,
        "Which headers of `trusted_proxies` are used; `off` for none of them.",
        metavar="HEADER",
        reason="`Forwarded` (RFC 7239) and `X-Forwarded-For`, `-Proto`, `-Host`, `-Port`, "
        "`-Prefix`, applied from the right up to the first hop that is not trusted. A proxy must "
        "set or remove each of them, or its clients can forge it: if you are not sure that your "
        "proxy removes the others, name only those here that it sets. Headers that are not named "
        "are withheld from the application; `off` withholds all of them, for proxies that name the "
        "client by the PROXY protocol or in the variables of a gateway protocol.",
        aliases=("trusted-proxy-headers", "trust-proxy-header"),
        fixed={"no-proxy-headers": "off"},
    )
    proxy_protocol = WordList(
        listener_or_all,
        ("off",),
        "Where connections begin with a header of the PROXY protocol, version 1 or 2: `on`, `off`, "
        "or addresses of `bind`.",
        metavar="ADDRESS",
        reason="HAProxy (`send-proxy`, `send-proxy-v2`), nginx (`stream`), and the load balancers "
        "of clouds name their client so. It is required of `trusted_proxies` and refused from all "
        "others, as a malformed request.",
    )
    health = Option(
        or_off(prefix),
        "off",
        "Prefix of the paths at which the server itself reports its health: `/-` for `/-/live` and "
        "`/-/ready`.",
        metavar="PREFIX",
        reason="On every address of `bind`, for balancers, without the application. `live` is 200 "
        "while the process answers, `ready` is 503 from the moment in which the server is asked to "
        "stop. Off, because these paths belong to the application. `admin` reports more, at an "
        "address that fewer clients can reach.",
    )
    admin = Option(
        or_off(http_address),
        "off",
        "Address at which the server reports its state (`/-/live`, `/-/ready`, `/-/metrics`, "
        "`/-/status`), and where `poorhttp ctl` controls it.",
        shared=True,
        metavar="ADDRESS",
        reason="A process of its own answers, with the rights of `user`, and asks the main "
        "process. It answers also when all workers are busy, and `ready` is 503 when for some "
        "seconds no worker of a service answers. Whoever can connect can stop the server: on a "
        "machine with other users, choose a Unix socket, or set `admin_token_file`. An address "
        "that other machines reach needs the latter. `/-/live` and `/-/ready` are for everybody "
        "who reaches the address.",
    )
    admin_token_file = Option(
        or_off(path),
        "off",
        "File with a token, which clients of `admin` send in `Authorization: Bearer TOKEN`; `off` "
        "needs none.",
        shared=True,
        metavar="FILE",
        reason="One line of 16 characters at least (`openssl rand -hex 32`). Others than its owner "
        "and group may not read it, and `poorhttp ctl --token-file FILE` does. Browsers ask for a "
        "password, which is the token, and any name. It is read again at a reload. `/-/live` and "
        "`/-/ready` need no token, because probes have none.",
    )
    drain_delay = Option(
        seconds(0),
        "0",
        "How long the server goes on serving, and reports that it is not ready, before it begins "
        "to stop.",
        shared=True,
        reason="Counts from TERM; a second TERM, or INT or QUIT, ends the delay. Balancers check "
        "at intervals and have to notice before the first connection is refused: a little more "
        "than their interval times the failures that they wait for. Kubernetes takes some seconds "
        "to inform its nodes. The delay counts, like `graceful_timeout`, towards the time after "
        "which a container or a unit is killed.",
    )


class Responses:
    """Headers of all responses, and interim ones."""

    GROUP = "Responses"

    early_hints = Option(
        boolean,
        "on",
        "Let applications send responses 103 (Early Hints) by `wsgi.early_hints`.",
        reason="They go to clients of HTTP/1.1 only. Off, or for others, the call does nothing. "
        "nginx before 1.29 takes a 103 for the final response if it speaks HTTP/1.1 to the server "
        "(`proxy_http_version 1.1`), and its clients hang: off behind those "
        "(docs/guides/early-hints.md). gunicorn always sends them.",
    )

    server_header = Option(
        header,
        "poorhttp",
        "Text of the `Server` header; empty sends none.",
        metavar="TEXT",
        reason="Without a version, which would help only those who look for servers with known "
        "vulnerabilities.",
        aliases=("ident",),
        fixed={"no-server-header": ""},
    )
