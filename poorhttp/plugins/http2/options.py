"""The options of HTTP/2: which clients may speak it, streams and windows."""

from __future__ import annotations

from poorhttp.config.options.option import Option
from poorhttp.config.parsers import choice, integer, size

#: Bytes that each window has before a client knows the settings of a server (RFC 9113 section
#: 6.9.2), and the largest window.
SMALLEST, LARGEST = 65_535, 2**31 - 1


#: Values of the option `http2`; each includes those before.
WAYS = "off tls trusted on"


class Http2:
    """HTTP/2: many requests at once on a connection."""

    GROUP = "HTTP/2"

    http2 = Option(
        choice(*WAYS.split()),
        "trusted",
        "Which clients may speak HTTP/2 besides HTTP/1.1; each word includes those before: `off` "
        "none, `tls` those that ask for it in a TLS handshake (ALPN), `trusted` proxies of "
        "`trusted_proxies` and clients of Unix sockets also without TLS (h2c), `on` everybody.",
        metavar="WORD",
        reason="Browsers speak it over TLS only. Without TLS, a client has to know beforehand that "
        "the server speaks it (prior knowledge), as HAProxy (`proto h2`), Apache "
        "(`h2c://`), Envoy, Cloud Run and fly.io can; `on` is for those whose addresses nobody "
        "knows, on a port that only they can reach. There is no `Upgrade: h2c`, which browsers "
        "never had and RFC 9113 has removed. The gateway protocols have no part in this. gunicorn "
        "`http_protocols` (h1), uvicorn `http2` (off), hypercorn on, granian `http` (auto), nginx "
        "`http2` (off).",
    )
    http2_max_streams = Option(
        integer(1, 10_000),
        "250",
        "Requests at the same time on a connection of HTTP/2.",
        metavar="NUMBER",
        reason="Those whose client has left count until the application is through. A client has "
        "to wait with further ones. A proxy sends the requests of many people on one connection, "
        "so few would make it slow; those that wait for a thread are cheap, about 2 KiB each. "
        "RFC 9113 recommends at least 100. Go 250, granian 200, nginx 128, gunicorn, hypercorn, "
        "Apache and h2o 100.",
        aliases=("http2-max-concurrent-streams",),
    )
    http2_stream_window = Option(
        size(SMALLEST, LARGEST),
        "256KiB",
        "Bytes of a request body that a client of HTTP/2 may send before the first of them is "
        "read.",
        metavar="SIZE",
        reason="The client waits when it has sent so much that the server, or with "
        "`stream_request_body` the application, has not read. Over a way of 100 ms, 256 KiB allow "
        "2.6 MB in a second. The window of a large body that is received as a whole is half of "
        "`http2_connection_window`, if that is more: of one body at a time, as long as it goes on, "
        "because several that a client sends by turns need memory until the last of them ends. For "
        "a client that sends several at once, windows are 64 KiB at first, and so large when the "
        "first bytes are read. Go and granian 1 MiB, nginx, Apache, gunicorn and hypercorn 64 KiB, "
        "the smallest that is possible.",
        aliases=("http2-initial-window-size", "http2-initial-stream-window-size"),
    )
    http2_connection_window = Option(
        size(SMALLEST, LARGEST),
        "2MiB",
        "The same for all requests of a connection of HTTP/2 together.",
        metavar="SIZE",
        reason="So much memory can one connection occupy with bodies that nobody reads; bodies "
        "that the server receives as a whole count for `body_memory` instead. When uploads that "
        "wait have filled this window, and an application waits for another one, more is allowed: "
        "16 KiB for each of `http2_max_streams` at most. Go and granian 1 MiB. How large a list of "
        "header fields may be is said by `max_request_header_size` and `max_headers`, for all "
        "versions of HTTP (announced as SETTINGS_MAX_HEADER_LIST_SIZE).",
        aliases=("http2-initial-connection-window-size",),
    )
