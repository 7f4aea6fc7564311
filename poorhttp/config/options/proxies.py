"""The options of proxies in front: trust, PROXY protocol, health checks; the `Server` header."""

from __future__ import annotations

from poorhttp.config import address
from poorhttp.config.options.option import Option, WordList
from poorhttp.config.parsers import boolean, choice, header, network, or_off, prefix, seconds

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


class Proxies:
    """Which proxies are trusted, and what they and balancers can ask for."""

    GROUP = "Behind a proxy"

    trusted_proxies = WordList(
        network,
        (),
        "Proxies that may name the client of a request: addresses, networks, and `unix` for every "
        "client of a Unix socket.",
        metavar="NETWORK",
        reason="The server accepts `forwarded_headers`, the PROXY protocol and the gateway "
        "protocols (`uwsgi://`, `scgi://`, `fastcgi://`) only from these proxies. Before the "
        "application sees a request of any other client, it removes all forwarding headers. The "
        "default is none, because otherwise a client could choose its own address. gunicorn trusts "
        "127.0.0.1 (`forwarded_allow_ips`), which on a shared machine is every user.",
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
        "`-Prefix`, read from the right up to the first hop that is not trusted. A proxy must set "
        "or remove each header of this list, or its clients can forge it. If you are not sure, "
        "name only the headers that your proxy sets. The application does not see headers that "
        "are not named. Use `off` for proxies that name the client by the PROXY protocol or a "
        "gateway protocol.",
        aliases=("trusted-proxy-headers", "trust-proxy-header"),
        fixed={"no-proxy-headers": "off"},
    )
    proxy_protocol = WordList(
        listener_or_all,
        ("off",),
        "Where connections begin with a header of the PROXY protocol, version 1 or 2: `on`, "
        "`off`, or addresses of `bind`.",
        metavar="ADDRESS",
        reason="HAProxy (`send-proxy`, `send-proxy-v2`), nginx (`stream`) and cloud load "
        "balancers name the client this way. `trusted_proxies` must send it, and nobody else may.",
    )
    health = Option(
        or_off(prefix),
        "off",
        "Prefix of the paths at which the server reports its own health: `/-` gives `/-/live` and "
        "`/-/ready`.",
        metavar="PREFIX",
        reason="For load balancers, at every address of `bind`, without the application. `live` "
        "is 200 while the process answers. `ready` is 503 as soon as the server is asked to stop. "
        "Off, because these paths belong to the application. `admin` reports more, at an address "
        "that fewer clients can reach.",
    )
    drain_delay = Option(
        seconds(0),
        "0",
        "How long the server keeps serving, but reports that it is not ready, before it begins to "
        "stop.",
        shared=True,
        reason="The delay begins with TERM. A second TERM, or INT or QUIT, ends it. Load "
        "balancers must notice before the first connection is refused: set a little more than "
        "their check interval times the number of failures that they tolerate. Kubernetes takes "
        "some seconds to inform its nodes. Like `graceful_timeout`, the delay counts towards the "
        "time after which a container or unit is killed.",
    )


class Responses:
    """Headers of all responses, and interim ones."""

    GROUP = "Responses"

    early_hints = Option(
        boolean,
        "on",
        "Let applications send 103 (Early Hints) responses by `wsgi.early_hints`.",
        reason="Only clients of HTTP/1.1 get them. Otherwise, or with `off`, the call does "
        "nothing. Turn it off behind nginx before 1.29 with `proxy_http_version 1.1`: nginx takes "
        "a 103 for the final response, and its clients hang (docs/guides/early-hints.md). gunicorn "
        "always sends them.",
    )

    server_header = Option(
        header,
        "poorhttp",
        "Text of the `Server` header; empty sends none.",
        metavar="TEXT",
        reason="It has no version, which would only help those who look for vulnerable servers.",
        aliases=("ident",),
        fixed={"no-server-header": ""},
    )
