"""The options that limit time and size, with other servers' flags; temporary files (`temp_dir`)."""

from __future__ import annotations

from poorhttp.config.options.option import Option
from poorhttp.config.parsers import (
    auto_or_seconds,
    boolean,
    integer,
    optional_folder,
    seconds,
    size,
)


class TimeLimits:
    """How long clients, applications and shutdown may take."""

    GROUP = "Time limits"

    header_timeout = Option(
        seconds(0.001),
        "10",
        "Longest time from the first byte of a request to the end of its headers.",
        reason="It limits the whole head, so a client that sends a byte now and then (Slowloris) "
        "cannot hold a connection. nginx 60, Apache 20 to 40.",
        aliases=("http1-header-read-timeout",),
    )
    body_timeout = Option(
        seconds(0.001),
        "30",
        "Longest wait for the next piece of a request body.",
        reason="It starts again with each piece, so a large upload may take long. A client that "
        "sends nothing, or less than `min_rate`, is cut off. nginx 60.",
    )
    write_timeout = Option(
        seconds(0.001),
        "60",
        "Longest wait for a client to take the next piece of a response.",
        reason="It starts again with each piece. `min_rate` limits clients that read very slowly. "
        "Also 60 in nginx.",
    )
    min_rate = Option(
        size(0, 2**40),
        "500",
        "Lowest rate, in bytes per second, at which a client may send a body or read a response; "
        "0 sets no limit.",
        reason="Measured over each period of `body_timeout` or `write_timeout`, so a client cannot "
        "hold a connection by sending a byte now and then, or by a fast beginning. Apache 500 "
        "(`mod_reqtimeout`), nginx none.",
    )
    keepalive_timeout = Option(
        seconds(0.001),
        "75",
        "How long a connection may be idle between two requests.",
        reason="The default is longer than the 60 seconds for which proxies usually keep an idle "
        "connection, so the proxy closes first and never sends a request to a connection that the "
        "server is closing. nginx 75, waitress 120, gunicorn 2.",
        aliases=("keep-alive", "keep-alive-timeout", "timeout-keep-alive", "channel-timeout"),
    )
    graceful_timeout = Option(
        seconds(0),
        "30",
        "How long requests in flight may take to finish when the server stops or reloads, or a "
        "worker is replaced.",
        reason="0 does not wait. 5 in a `poorhttp.Server`. gunicorn 30. Kubernetes kills after 30 "
        "seconds, systemd after 90, `docker stop` after 10.",
        aliases=(
            *("timeout-graceful-shutdown", "workers-kill-timeout", "worker-reload-mercy"),
            "shutdown-timeout",
        ),
    )
    drain_timeout = Option(
        seconds(0),
        "1",
        "How long a stopping worker still reads requests from idle connections.",
        reason="A client may just have sent a request: it gets its response with `Connection: "
        "close`. Without this, keep-alive clients lose requests whenever a server stops or "
        "reloads. nginx closes idle connections at once unless `keepalive_min_timeout` is set.",
    )
    request_timeout = Option(
        seconds(0),
        "0",
        "Longest time that the application may work on a request; 0 sets no limit.",
        reason="After this time the server logs the tracebacks of all threads that run requests, "
        "and raises `poorhttp.errors.RequestTimeout` (a BaseException) in the application; the "
        "client gets 504 if nothing was sent. This interrupts Python code in every mode, and a "
        "blocking system call in `single`, `forking` and `gevent`. In `threading` a blocking "
        "system call or a lock is not interrupted. If the request still runs a second later, the "
        "server answers or cuts off the client and replaces the worker. The time in which a "
        "request waits for a thread does not count. The default is 0, because only "
        "you know how long your requests may take. uWSGI `harakiri` (off); gunicorn's `timeout` "
        "(30) limits requests under its sync worker only.",
        short="t",
        aliases=("timeout", "harakiri"),
    )
    queue_timeout = Option(
        auto_or_seconds,
        "auto",
        "How long a request may wait for a free thread before it gets 503 with `Retry-After`. "
        "`auto` follows the load; 0 sets no limit.",
        metavar="SECONDS",
        reason="Under overload, a server that answers all requests in turn soon answers only "
        "clients that are about to give up. `auto` refuses nothing as long as clients wait for "
        "their responses. It starts to refuse when for a second every request has had to wait, and "
        "more than a fifth of the clients left; an address from which clients only leave counts "
        "once. It then refuses requests that have waited more "
        "than 0.02 s, or than five requests take if that is longer. It stops when a request has "
        "not had to wait. The waiting time includes the time before the connection was accepted, "
        "but not the time before the worker started. On Unix sockets the kernel does not report "
        "how long a connection has waited, so a fixed time is not guaranteed there. HAProxy "
        "`timeout queue`; gunicorn, waitress and uWSGI have none.",
    )
    abort_on_close = Option(
        boolean,
        "on",
        "Drop a request that waits for a free thread if its client closes the connection.",
        reason="A client that gives up closes its connection, so its request is not worth running; "
        "it is logged with 499. A client that closes only its sending half (`nc -N`) looks the "
        "same: such clients need `off`, unless their requests begin at once. After a reset no "
        "request is run, whatever the value. If a client leaves while the application works on its "
        "request, the request is logged with 499 and the next `write` of the application fails. "
        "HAProxy `option abortonclose` (off), nginx `proxy_ignore_client_abort` (off, which "
        "corresponds to `on` here).",
    )


class SizeLimits:
    """How large requests and temporary files may be, and how many connections are open."""

    GROUP = "Size limits"

    max_request_line = Option(
        size(64, 65_000),
        "8192",
        "Longest request line, with method, address and version; a longer one is answered with "
        "414.",
        reason="RFC 9112 section 3 asks for at least 8000 bytes. nginx 8k, gunicorn 4094.",
        aliases=("limit-request-line",),
    )
    max_headers = Option(
        integer(1, 256),
        "100",
        "Largest number of header lines of a request; more are answered with 431.",
        reason="A browser behind a proxy sends fewer than 30. gunicorn and Apache 100.",
        aliases=("limit-request-fields",),
    )
    max_header_size = Option(
        size(64, 65_000),
        "16K",
        "Longest header line; a longer one is answered with 431. `max_request_header_size` limits "
        "all of them together.",
        reason="Cookies and single sign-on tickets can exceed 8 KiB. nginx 8k, gunicorn 8190.",
        aliases=("limit-request-field_size", "limit-request-field-size"),
    )
    max_request_header_size = Option(
        size(64, 2**20),
        "65535",
        "Longest head of a request: the request line and all header lines together. A longer one "
        "is answered with 431.",
        reason="Some clients send long heads, such as Mercurial, which names every head of a "
        "repository there: 256K allows about 3000 of them with `max_headers = 256`. A client that "
        "is not authenticated can make the server keep so much. A head is not larger than 1 MiB. "
        "A packet of uwsgi is never longer than 64 KiB, so larger values are of use with HTTP, "
        "SCGI and FastCGI. waitress 256 KiB, uvicorn 64 KiB, nginx 32 KiB "
        "(`large_client_header_buffers`), gunicorn `limit_request_fields` x "
        "`limit_request_field_size`.",
    )
    max_body = Option(
        size(0, 2**63 - 1),
        "1GiB",
        "Largest request body; a larger one is answered with 413.",
        reason="The server receives the whole body before it calls the application, and keeps a "
        "large one in a temporary file. So this limits disk space, not memory. waitress 1 GiB, "
        "nginx 1 MiB, gunicorn none.",
        aliases=("max-request-body-size", "limit-request-body"),
    )
    body_buffer_size = Option(
        size(0, 2**63 - 1),
        "1MiB",
        "Largest request body that is kept in memory; a larger one is written to a temporary file.",
        reason="Writing a body to a file and reading it again costs more than receiving it. 16 "
        "KiB are always kept in memory. nginx 16k (`client_body_buffer_size`), waitress 512 KiB "
        "(`inbuf_overflow`).",
        aliases=("inbuf-overflow",),
    )
    body_memory = Option(
        size(0, 2**63 - 1),
        "64MiB",
        "Memory of a worker for request bodies that are being received; when they need more, "
        "smaller bodies are written to disk too.",
        reason="A body goes to a temporary file beyond `body_buffer_size`, or beyond 16 KiB when "
        "all bodies together need more than this. A client whose body can be neither kept nor "
        "written gets 503. The option does not limit what the application reads into memory.",
    )
    temp_dir = Option(
        optional_folder,
        "",
        "Folder of the temporary files: request bodies beyond `body_buffer_size`, and parts of "
        "responses beyond 1 MiB (all streams of a connection: 4 MiB) that wait for their client.",
        metavar="FOLDER",
        reason="If empty, the folder that `TMPDIR` names, else `/tmp`. The files have no names, "
        "so nothing is left behind. The server does not start if it cannot create files there. "
        "nginx `client_body_temp_path`, `proxy_temp_path`; gunicorn `worker_tmp_dir`.",
    )
    spool_limit = Option(
        size(0, 2**63 - 1),
        "1GiB",
        "Largest part of the responses on a connection that waits in temporary files. Beyond it, "
        "the application waits for the client. 0 writes no response to disk.",
        reason="The application is done as soon as it has produced its response, however slow the "
        "client is. nginx 1 GiB (`proxy_max_temp_file_size`), waitress 1 MiB "
        "(`outbuf_high_watermark`); under gunicorn the application always waits.",
        aliases=("outbuf-high-watermark",),
    )
    spool_total = Option(
        size(0, 2**63 - 1),
        "1GiB",
        "Disk space of all responses of a worker in temporary files. Beyond it, applications wait "
        "for their clients.",
        reason="This keeps clients that read nothing from filling the disk. They only keep their "
        "threads busy until `write_timeout`. Request bodies are not included.",
    )
    max_connections = Option(
        integer(0, 10_000_000),
        "0",
        "Largest number of open connections of a worker; 0 means as many as its file descriptors "
        "allow.",
        reason="At the limit a new connection replaces the one that has been idle longest. If none "
        "is idle, the new connection gets 503 with `Retry-After`. 0 leaves a twentieth of the "
        "descriptors (`ulimit -n`), at least 64, to logs and the application. waitress 100, "
        "gunicorn 1000 (`worker_connections`), nginx 512.",
        aliases=("worker-connections", "limit-concurrency", "connection-limit"),
    )
