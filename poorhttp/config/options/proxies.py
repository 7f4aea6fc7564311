"""The options for proxies in front of the server, and for what answers say."""

from __future__ import annotations

from poorhttp.config import address
from poorhttp.config.options.option import Option, WordList
from poorhttp.config.parsers import choice, header, network, optional_prefix, seconds

PROXIES = "Behind a proxy"
ANSWERS = "Answers"

#: By which proxies say for whom they ask.
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


def optional_address(text: str) -> address.Address | None:
    """Read an address to listen on for HTTP, or `off`, which is None."""
    if text == "off":
        return None
    found = address.parse(text)
    if found.protocol != "http":
        raise ValueError(f'"{text}": HTTP is spoken there; write HOST:PORT or unix:PATH')
    return found


class Proxies:
    """Behind a proxy."""

    trusted_proxies = WordList(
        network,
        (),
        "Who is believed when they say for whom they ask: addresses, networks, and `unix` for "
        "whoever connects to a Unix socket.",
        group=PROXIES,
        metavar="NETWORK",
        reason="Only of these are `forwarded_headers`, the PROXY protocol and the gateway "
        "protocols (`uwsgi://`, `scgi://`, `fastcgi://`) heard; from all others the headers are "
        "withheld from the application. Nobody, because an address that a client may choose is "
        "worse than none. gunicorn believes 127.0.0.1 (`forwarded_allow_ips`), which is everybody "
        "on a shared machine.",
    )
    forwarded_headers = WordList(
        choice(*FORWARDED_HEADERS),
        FORWARDED_HEADERS,
        "Which headers of `trusted_proxies` are heard; `off` for none of them.",
        group=PROXIES,
        metavar="HEADER",
        reason="`Forwarded` (RFC 7239) and `X-Forwarded-For`, `-Proto`, `-Host`, `-Port`, "
        "`-Prefix`, applied from the right up to the first hop that is not trusted. A proxy must "
        "set or remove each of them, or its clients write what we believe: name those here that "
        "yours sets, if you are not sure that it removes the others. What is not named is withheld "
        "from the application; `off` is all of them, for proxies that name the client by the PROXY "
        "protocol or in the variables of a web server.",
    )
    proxy_protocol = WordList(
        listener_or_all,
        ("off",),
        "Where connections begin with a line of the PROXY protocol, version 1 or 2: `on`, `off`, "
        "or addresses of `bind`.",
        group=PROXIES,
        metavar="ADDRESS",
        reason="HAProxy (`send-proxy`, `send-proxy-v2`), nginx (`stream`), and the load balancers "
        "of clouds name their client so. It is expected of `trusted_proxies`, and nobody else's "
        "is heard: that would be a malformed request.",
    )
    health = Option(
        optional_prefix,
        "off",
        "Prefix of the paths at which the server itself says how it is: `/-` for `/-/live` and "
        "`/-/ready`.",
        group=PROXIES,
        metavar="PREFIX",
        reason="On every address of `bind`, for balancers, without the application. `live` is 200 "
        "while the process answers, `ready` is 503 from the moment in which it is told to stop. "
        "Off, because these paths are the application's as long as nobody wants them. `admin` "
        "tells more, to fewer.",
    )
    admin = Option(
        optional_address,
        "off",
        "Address at which is said how the server is: `/-/live`, `/-/ready` and `/-/metrics`.",
        group=PROXIES,
        shared=True,
        metavar="ADDRESS",
        reason="A process of its own answers, as `user`, which asks the main process; without "
        "`user` it has the rights of the workers. It answers also when all workers are busy, and "
        "`ready` is 503 when for some seconds no worker of a service answers. The metrics are in "
        "the format of Prometheus. It asks for no password: choose an address that only those can "
        "reach who shall.",
    )
    drain_delay = Option(
        seconds(0),
        "0",
        "How long the server goes on serving, and says that it is not ready, before it begins to "
        "stop.",
        group=PROXIES,
        shared=True,
        metavar="SECONDS",
        reason="When it is told to stop by TERM; a second one, or INT or QUIT, ends the delay. "
        "Balancers that ask in intervals need to have asked before the first connection is "
        "refused: a little more than their interval times the failures that they wait for. "
        "Kubernetes takes some seconds to tell everybody. It counts towards the time after which a "
        "container or a unit is killed, beside `graceful_timeout`.",
    )


class Answers:
    """What all answers have."""

    server_header = Option(
        header,
        "poorhttp",
        "Text of the `Server` header; empty sends none.",
        group=ANSWERS,
        metavar="TEXT",
        reason="Has no version: that would serve only those who look for servers with known holes.",
    )
