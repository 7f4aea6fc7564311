"""The option table: every setting of the server, each declared once.

The command line, the ini file, the environment, the types that mypy sees, `--help` and the
reference page are made from the class `Settings`. A default is written as a person would write it,
and goes through the same parser.

`python -m poorhttp.config.help` prints the reference page, docs/options.md.
"""

from __future__ import annotations

import os

from poorhttp.config import address
from poorhttp.config.options.content import Content
from poorhttp.config.options.development import Development
from poorhttp.config.options.option import Option, Repeatable, Words
from poorhttp.config.parsers import (
    boolean,
    choice,
    header,
    integer,
    line,
    log_place,
    network,
    optional_folder,
    optional_path,
    optional_prefix,
    path,
    permissions,
    seconds,
    size,
)
from poorhttp.config.suggestions import option_suggestion
from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

APPLICATION = "Application"
LISTENING = "Listening"
WORKERS = "Modes and workers"
PROCESS = "Processes and their identity"
TIME = "Time limits"
SIZE = "Size limits"
PROXIES = "Behind a proxy"
LOGS = "Logs"
ANSWERS = "Answers"

#: Our own modes. Others are found by their entry point.
MODES = ("single", "forking", "threading", "gevent")
MODE_PLUGINS = "poorhttp.modes"

#: By which proxies say for whom they ask.
FORWARDED_HEADERS = (
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
)

#: The named formats of the access log; anything else is a format string.
LOG_FORMATS = ("common", "combined", "json")


def mode_name(text: str) -> str:
    """Read the name of one of our modes or of an installed plug-in."""
    if text in MODES:
        return text
    from importlib.metadata import entry_points  # slow and large: only for a plug-in or a mistake

    installed = [entry.name for entry in entry_points(group=MODE_PLUGINS)]
    return choice(*MODES, *(name for name in installed if name not in MODES))(text)


def log_format(text: str) -> str:
    """Read the name of a log format, or a format string, which has at least one `%` directive."""
    if "%" not in text:
        return choice(*LOG_FORMATS)(text)
    # Only for those who write their own: the core reads the format, so it knows what can be read.
    from poorhttp._core import check_log_format

    check_log_format(line(text))
    return text


def access_log_place(text: str) -> str | None:
    """Read where requests are logged, `terminal`, or `off`, which is None."""
    if text == "off":
        return None
    return text if text == "terminal" else log_place(text)


def optional_address(text: str) -> address.Address | None:
    """Read an address to listen on for HTTP, or `off`, which is None."""
    if text == "off":
        return None
    found = address.parse(text)
    if found.protocol != "http":
        raise ValueError(f'"{text}": HTTP is spoken there; write HOST:PORT or unix:PATH')
    return found


def listener_or_all(text: str) -> str:
    """Read an address that is in `bind`, or `on` for all of them."""
    return text if text == "on" else str(address.parse(text))


def optional_permissions(text: str) -> int | None:
    """Read permission bits in octal; nothing is None."""
    return permissions(text) if text else None


class Settings(Content, Development):
    """The settings of one server: an attribute for each option.

    Built by `poorhttp.config.loader.load` from the command line, the environment and a file, or
    directly by a program: `Settings(bind="127.0.0.1:8080", threads=4, max_body="16M")`. Values may
    be written as text, as everywhere else, or be numbers, paths and addresses; a repeatable option
    takes one or a list of them.

    Attributes:
        service: its name, if there are several; otherwise empty.
        hosts: what is different for some hosts, whole settings by the name: in lower case, without
            a port, `*.example.org` for all below that.

    Raises:
        ConfigError: an argument is not an option, or its value is wrong.
    """

    service = ""

    target = Option(
        line,
        "",
        "What to serve: `package.module:callable`, `path/to/file.py:callable`, or "
        "`SCHEME:rest`: `dispatch:FOLDER`, `static:FOLDER`, `cgi:FOLDER`, `pages:FOLDER`, "
        "`tcp:module:handler`.",
        group=APPLICATION,
        hosted=True,
        metavar="TARGET",
        reason="Without a callable, `application` and then `app` are tried. It may be made by a "
        'call with literals: `shop:create_app()`, `shop:create_app("test", debug=True)`. On the '
        "command line it stands alone, without a flag: `poorhttp serve TARGET`. For `poorhttp dev` "
        "it may be a folder or a file, or be left out (docs/development.md).",
    )
    chdir = Option(
        path,
        ".",
        "Folder to change to before anything else is done.",
        group=APPLICATION,
        shared=True,
        metavar="FOLDER",
        reason="Every other relative path (the target, `pythonpath`, logs, `unix:` addresses) "
        "counts from here. Only the file named by `-c` is read before.",
    )
    pythonpath = Repeatable(
        path,
        (),
        "Folder in which Python also looks for modules, before all others.",
        group=APPLICATION,
        metavar="FOLDER",
    )
    bind = Repeatable(
        address.parse,
        ("127.0.0.1:8080",),
        "Address to listen on: `HOST:PORT`, `[::1]:PORT`, `unix:PATH`, `unix:@NAME` (abstract), or "
        "`fd:N` or `fd:NAME` for a listening socket that was inherited; for another protocol than "
        "HTTP `uwsgi://HOST:PORT` or `uwsgi+unix:PATH`, and so with `scgi` and `fastcgi`.",
        group=LISTENING,
        metavar="ADDRESS",
        reason="The default answers this machine alone, so that nothing is opened to a network "
        "by accident (gunicorn does the same, waitress listens everywhere). `0.0.0.0:80` is "
        "every IPv4 interface, `[::]:80` every IPv6 interface. Port 0 lets the system choose; "
        "the ready line tells the port. Where it is not set and systemd passes sockets "
        "(`LISTEN_FDS`), all of those are taken (`fd:*`); `fd:NAME` is one that its unit names by "
        "`FileDescriptorName`. The gateway protocols, which nginx, lighttpd and Apache "
        "speak, are for `trusted_proxies` only.",
    )
    backlog = Option(
        integer(1, 65535),
        "2048",
        "Connections that may wait to be accepted, per address.",
        group=LISTENING,
        metavar="N",
        reason="Has to hold the arrivals of one moment in which no worker accepts. gunicorn "
        "2048, waitress 1024, nginx 511. The kernel lowers it to `net.core.somaxconn` (4096 "
        "since Linux 5.4).",
    )
    reuse_port = Option(
        boolean,
        "off",
        "Give each worker a listening socket of its own (`SO_REUSEPORT`).",
        group=LISTENING,
        metavar="SWITCH",
        reason="The kernel then spreads connections by a hash of their addresses, whether a "
        "worker is busy or not; with one socket for all, whoever is free takes the next. Worth "
        "it where so many connections a second come that accepting is the work. Changing the "
        "number of workers can cost connections that have not been accepted yet. nginx has it off.",
    )
    socket_mode = Option(
        optional_permissions,
        "",
        "Permissions of `unix:` sockets, octal; empty leaves them to the umask.",
        group=LISTENING,
        metavar="MODE",
        reason="Who may connect needs the right to write: `0660` is for a proxy in the same group, "
        "`0666` for everybody.",
    )
    socket_owner = Option(
        line,
        "",
        "Owner of `unix:` sockets: `USER`, `USER:GROUP` or `:GROUP`; empty leaves them ours.",
        group=LISTENING,
        metavar="OWNER",
        reason="Only root may give a socket to another user.",
    )
    mode = Option(
        mode_name,
        "threading",
        "How requests are scheduled: `single`, `forking`, `threading`, `gevent`, or the name "
        "of a plug-in.",
        group=WORKERS,
        metavar="MODE",
        reason="`single`: one request at a time. `forking`: one at a time in each of several "
        "processes. `threading`: several threads in a process, which suits most applications "
        "because one slow request does not hold up the others. `gevent`: a greenlet for each "
        "request; needs the extra `gevent`. Plug-ins register in the entry-point group "
        "`poorhttp.modes`. In an ini file it may also be called `type`, as in the first Poor "
        "HTTP.",
        alias="type",
    )
    workers = Option(
        integer(0, 1024),
        "0",
        "Number of worker processes; 0 chooses it.",
        group=WORKERS,
        metavar="N",
        reason="0 is one worker, and in mode `forking` as many as there are usable CPUs, at "
        "least 2: a process that runs one request at a time cannot use more than one CPU, and "
        "more processes than CPUs cost memory.",
    )
    threads = Option(
        integer(1, 4096),
        "8",
        "Number of requests that a worker runs at the same time in mode `threading`.",
        group=WORKERS,
        metavar="N",
        reason="Threads wait for databases and other servers, not for the CPU; a thread that "
        "is not needed sleeps. waitress 4, gunicorn 1.",
    )
    preload = Option(
        boolean,
        "off",
        "Load the application once, before its workers are forked, so that they share its memory.",
        group=WORKERS,
        metavar="SWITCH",
        reason="A process of its own loads it, and a reload (HUP) starts a new one, so it still "
        "takes up changes. Off, because what the application opens while it is loaded "
        "(connections to databases, threads) does not survive a fork; open them in `after_fork`.",
    )
    after_fork = Repeatable(
        line,
        (),
        "Function to call in each worker once it was forked and the application is loaded, "
        "`package.module:function`.",
        group=WORKERS,
        metavar="FUNCTION",
        reason="It gets no arguments. If it fails the worker does not serve.",
    )
    max_requests = Option(
        integer(0, 2**63 - 1),
        "0",
        "Replace a worker when it has begun this many requests; 0 never does.",
        group=WORKERS,
        metavar="N",
        reason="Against applications that leak. The new worker serves before the old one is told "
        "to finish, only one worker of a service is replaced at a time, and no request is lost. "
        "gunicorn 0 too.",
    )
    max_requests_jitter = Option(
        integer(0, 2**63 - 1),
        "0",
        "Add a random number up to this to `max_requests`, for each worker another.",
        group=WORKERS,
        metavar="N",
        reason="So that workers that were started together do not all fall due together.",
    )
    max_rss = Option(
        size(0, 2**63 - 1),
        "0",
        "Replace a worker that holds more memory than this (resident set); 0 never does.",
        group=WORKERS,
        metavar="SIZE",
        reason="Looked at once a second. uWSGI `reload-on-rss`.",
    )
    max_lifetime = Option(
        seconds(0),
        "0",
        "Replace a worker after this time; 0 never does.",
        group=WORKERS,
        metavar="SECONDS",
        reason="uWSGI `max-worker-lifetime`.",
    )
    supervisor = Option(
        boolean,
        "on",
        "Keep a main process that starts, watches and replaces the workers.",
        group=PROCESS,
        shared=True,
        metavar="SWITCH",
        reason="It costs about 2 MiB, and does what signals ask for (docs/operations.md). Off, a "
        "single worker serves in the process that was started: it can be stopped, and if it dies "
        "that is the end. For runit, containers and others who restart what dies.",
    )
    user = Option(
        line,
        "",
        "User to become in the workers, by name or number; empty stays who started us.",
        group=PROCESS,
        metavar="USER",
        reason="The main process opens sockets, logs and the pidfile, and stays who it is, so that "
        "it can do so again; it runs nothing of the application. nginx does the same.",
    )
    group = Option(
        line,
        "",
        "Group to belong to in the workers; empty is that of `user`.",
        group=PROCESS,
        metavar="GROUP",
        reason="With `user`, its further groups are joined too, and those of root are left.",
    )
    umask = Option(
        optional_permissions,
        "",
        "File permissions to withhold from what is created, octal; empty leaves what it is.",
        group=PROCESS,
        shared=True,
        metavar="MASK",
        reason="gunicorn sets 0, which lets everybody write; systemd gives its services 0022.",
    )
    pidfile = Option(
        optional_path,
        "off",
        "File for the number of the main process; `off` writes none.",
        group=PROCESS,
        shared=True,
        metavar="FILE",
        reason="Written when everything accepts, and removed at the end. If it names a process "
        "that is alive and holds it, the server does not start.",
    )
    header_timeout = Option(
        seconds(0.001),
        "10",
        "Longest time from the first byte of a request to the end of its headers.",
        group=TIME,
        metavar="SECONDS",
        reason="Counts the whole head, so that a client that sends a byte now and then "
        "(Slowloris) cannot hold a connection. nginx 60, Apache 20 to 40.",
    )
    body_timeout = Option(
        seconds(0.001),
        "30",
        "Longest wait for the next piece of a request body.",
        group=TIME,
        metavar="SECONDS",
        reason="Starts again with each piece: a large upload may take long, a silent one may "
        "not, nor one that drips (`min_rate`). nginx 60.",
    )
    write_timeout = Option(
        seconds(0.001),
        "60",
        "Longest wait for a client to take the next piece of an answer.",
        group=TIME,
        metavar="SECONDS",
        reason="Starts again with each piece, as in nginx, which has 60 too; a reader that only "
        "sips is seen to by `min_rate`.",
    )
    min_rate = Option(
        size(0, 2**40),
        "500",
        "Lowest rate, in bytes a second, at which a client may send a body or take an answer; 0 "
        "asks for none.",
        group=TIME,
        metavar="SIZE",
        reason="Measured over `body_timeout` or `write_timeout`, again and again, so that neither "
        "a byte now and then nor a fast beginning holds a connection for ever. Slower than any "
        "modem. Apache 500 (`mod_reqtimeout`), nginx none.",
    )
    keepalive_timeout = Option(
        seconds(0.001),
        "75",
        "How long a connection may be idle between two requests.",
        group=TIME,
        metavar="SECONDS",
        reason="Longer than the 60 seconds for which proxies usually keep an idle connection "
        "to their upstream, so that it is the proxy that closes, and never sends a request to "
        "a connection that is just being closed here. nginx 75, waitress 120, gunicorn 2.",
    )
    graceful_timeout = Option(
        seconds(0),
        "30",
        "How long requests in hand may take to finish when the server is told to stop.",
        group=TIME,
        metavar="SECONDS",
        reason="0 does not wait. gunicorn 30; Kubernetes kills after 30, systemd after 90, "
        "`docker stop` after 10.",
    )
    drain_timeout = Option(
        seconds(0),
        "1",
        "How long a worker that is told to finish still hears idle connections.",
        group=TIME,
        metavar="SECONDS",
        reason="A request may be under way on them; it is answered with `Connection: close`. "
        "Without it, keep-alive clients lose requests whenever a server stops or reloads. nginx "
        "closes them at once unless `keepalive_min_timeout` is set.",
    )
    request_timeout = Option(
        seconds(0),
        "0",
        "Longest time that the application may work on a request; 0 is for ever.",
        group=TIME,
        metavar="SECONDS",
        reason="Then the tracebacks of all threads are logged, `poorhttp.errors.RequestTimeout` (a "
        "BaseException) is raised where the application is, and the client gets 504 if nothing was "
        "sent. What waits in the kernel can be reached in `single`, `forking` and `gevent`, Python "
        "code in every mode. If the request is still in hand a second later, its client is "
        "answered or cut off nonetheless, and the worker is replaced. 0, because only the "
        "application's author knows what is long; uWSGI `harakiri` is off too, gunicorn's "
        "`timeout` is 30 and says less.",
    )
    abort_on_close = Option(
        boolean,
        "on",
        "Drop a request that has to wait for others if its client closes its side meanwhile.",
        group=TIME,
        metavar="SWITCH",
        reason="A client that gives up closes its connection, and its request is not worth running "
        "any more: it is logged with 499. A client that has closed only its sending half (`nc -N`) "
        "looks the same, and is answered only if its request begins at once, or with `off`. After "
        "a reset no request is run, whatever this says. HAProxy `option abortonclose` (off), nginx "
        "`proxy_ignore_client_abort` (off, which is our `on`).",
    )
    max_request_line = Option(
        size(64, 65_000),
        "8192",
        "Longest request line, with method, address and version; a longer one is answered with "
        "414.",
        group=SIZE,
        metavar="SIZE",
        reason="RFC 9112 section 3 asks for at least 8000 bytes. nginx 8k, gunicorn 4094.",
    )
    max_headers = Option(
        integer(1, 256),
        "100",
        "Most header lines of a request; more are answered with 431.",
        group=SIZE,
        metavar="N",
        reason="A browser behind a proxy sends fewer than 30. gunicorn and Apache 100.",
    )
    max_header_size = Option(
        size(64, 65_000),
        "16K",
        "Longest header line; a longer one is answered with 431.",
        group=SIZE,
        metavar="SIZE",
        reason="Cookies and tickets of single sign-on outgrow 8 KiB. nginx 8k, gunicorn 8190, "
        "waitress 256 KiB for all headers together.",
    )
    max_body = Option(
        size(0, 2**63 - 1),
        "1GiB",
        "Largest request body; a larger one is answered with 413.",
        group=SIZE,
        metavar="SIZE",
        reason="A body is received whole before the application runs; a large one lies in a "
        "temporary file, so this is a limit of disk space, not of memory. waitress 1 GiB, "
        "nginx 1 MiB, gunicorn none.",
    )
    body_memory = Option(
        size(0, 2**63 - 1),
        "64MiB",
        "Memory of a worker for request bodies that are received; beyond, they are written to disk "
        "earlier.",
        group=SIZE,
        metavar="SIZE",
        reason="A body is written to a temporary file beyond 256 KiB; when all bodies together "
        "need more than this, beyond 16 KiB. A client whose body can be neither kept nor written "
        "gets 503. It does not limit what the application reads into memory.",
    )
    temp_dir = Option(
        optional_folder,
        "",
        "Folder of the temporary files: request bodies beyond 256 KiB, and what waits of an answer "
        "beyond 1 MiB.",
        group=SIZE,
        metavar="FOLDER",
        reason="Empty is what `TMPDIR` names, else `/tmp`. The files have no names, so nothing is "
        "left behind. A folder in which the server cannot create files is an error at start. nginx "
        "`client_body_temp_path`, `proxy_temp_path`; gunicorn `worker_tmp_dir`.",
    )
    spool_limit = Option(
        size(0, 2**63 - 1),
        "1GiB",
        "Largest part of one answer that waits for its client in a temporary file; beyond, the "
        "application that makes it waits for the client. 0 writes no answer to the disk.",
        group=SIZE,
        metavar="SIZE",
        reason="So an application is done as soon as it has made its answer, however slow the "
        "client, and one that makes too much of it waits as it would without us. nginx 1 GiB "
        "(`proxy_max_temp_file_size`), waitress 1 MiB (`outbuf_high_watermark`); gunicorn always "
        "waits.",
    )
    spool_total = Option(
        size(0, 2**63 - 1),
        "1GiB",
        "Room that the answers of a worker take in temporary files, all together; beyond, "
        "applications wait for their clients.",
        group=SIZE,
        metavar="SIZE",
        reason="Clients that read nothing cannot fill the disk, but only cost what they would cost "
        "without temporary files: the threads that answer them, until `write_timeout`. As much as "
        "one answer may need, so that `temp_dir` needs no more than this for each worker beside "
        "the bodies.",
    )
    max_connections = Option(
        integer(0, 10_000_000),
        "0",
        "Most open connections of a worker; 0 is what its descriptors allow.",
        group=SIZE,
        metavar="N",
        reason="At the limit a new connection takes the place of the one that has been idle "
        "longest; if none is idle it is answered with 503 and `Retry-After`. 0 leaves a "
        "twentieth of the descriptors (`ulimit -n`), at least 64, to logs and to the "
        "application. waitress 100, gunicorn 1000 (`worker_connections`), nginx 512.",
    )
    trusted_proxies = Words(
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
    forwarded_headers = Words(
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
    proxy_protocol = Words(
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
    access_log = Option(
        access_log_place,
        "off",
        "Where a line about each request goes: a file, `-` (standard output), `syslog`, "
        "`journald`, `terminal` (coloured, for people), or `off`.",
        group=LOGS,
        metavar="FILE",
        reason="Off, because the proxy in front usually writes one. gunicorn and waitress have "
        "it off too. `terminal` is standard error, as `poorhttp dev` has it, "
        "in a format of its own. `syslog` is the facility `local0`, level `info`; for the rest see "
        "`error_log`. What cannot be written is counted, and the number told in the error log; no "
        "request ever waits for a log.",
    )
    access_log_format = Option(
        log_format,
        "combined",
        "`common`, `combined`, `json`, or a format string with the directives of Apache.",
        group=LOGS,
        metavar="FORMAT",
        reason="Apache's combined format is what log analysers expect. nginx and gunicorn "
        "write it too. `%L` is the number by which the error log names a request, counted in each "
        "worker; `%P` is the worker's process, `%D` the time in microseconds. A line is written "
        "when the kernel has taken the last byte of the answer, or the connection has ended: `%b` "
        "and `%B` are the bytes of content that it took, `%O` all bytes with the head, and `%X` "
        "is `X` if the answer is not complete, `+` if the connection is kept and `-` if not. "
        "`json` writes an object on each line: `time`, `remote_addr`, `method`, `target`, "
        "`protocol`, `referer`, `user_agent`, `worker`, `status`, `size` (as `%B`), `complete`, "
        "`sent` (as `%O`), `duration_us`, `request` (as `%L`), `kept` (requests on this "
        "connection before) "
        "and `pid`.",
    )
    error_log = Option(
        log_place,
        "-",
        "Where everything else that is reported goes: a file, `-` (standard error), `syslog` or "
        "`journald`.",
        group=LOGS,
        shared=True,
        metavar="FILE",
        reason="Files are reopened at USR1, for logrotate. `syslog:PATH` and `journald:PATH` name "
        "another socket than `/dev/log` (facility `daemon`) and `/run/systemd/journal/socket`; "
        "levels become priorities there, and also on a standard error that systemd has connected "
        "to its journal. A file of such a name is written `./syslog`.",
    )
    log_level = Option(
        choice("debug", "info", "warning", "error"),
        "info",
        "Least important message that is still reported: `debug`, `info`, `warning` or `error`.",
        group=LOGS,
        shared=True,
        metavar="LEVEL",
        reason="`debug` also adds the traceback to an error that stops the server.",
    )
    slow_request = Option(
        seconds(0),
        "0",
        "Log a request that takes longer than this, and where the time went; 0 logs none.",
        group=LOGS,
        metavar="SECONDS",
        reason="A warning in the error log says how long it waited for a thread, was in the "
        "application, and was sent. It counts from when the request was there as a whole: what a "
        "client takes to send it is not ours. While all threads were busy nobody saw it come, so "
        "the time of waiting is the longest that it can have been.",
    )
    log_config = Option(
        optional_path,
        "off",
        "Configuration of Python's `logging` (`.ini`, `.json`, `.toml`) that takes over both logs.",
        group=LOGS,
        shared=True,
        metavar="FILE",
        reason="Loggers `poorhttp.error` and `poorhttp.access` then get the lines of the server "
        "instead of `error_log` and `access_log`, and the application's own loggers are set up "
        "before it is loaded. Requests are only logged if `access_log` is anything but `off`, each "
        "at level `INFO` and in `access_log_format`. Records have the attributes `worker` and "
        "`request` (its number, or `None`). `log_level` still says what is reported at all. At "
        "USR1, handlers open their files anew. With `user`, handlers run as that user only, and "
        "the main process, which stays root, logs to `error_log`.",
    )
    server_header = Option(
        header,
        "poorhttp",
        "Text of the `Server` header; empty sends none.",
        group=ANSWERS,
        metavar="TEXT",
        reason="Has no version: that would serve only those who look for servers with known holes.",
    )

    def __init__(self, **overrides: object) -> None:
        self.hosts: dict[str, Settings] = {}
        self._given: dict[str, Sequence[tuple[str, str]]] = {}
        for name, value in overrides.items():
            option = OPTIONS.get(name)
            if option is None:
                meant = option_suggestion(name, {name: name for name in OPTIONS})
                raise ConfigError(f'unknown setting "{name}"{meant}')
            values: Sequence[object] = [value]
            if option.repeatable and isinstance(value, (list, tuple)):
                values = value
            try:
                self.set(option, [(name, _text(name, item)) for item in values])
            except ValueError as error:
                raise ConfigError(str(error)) from None

    def set(self, option: Option[Any], texts: Sequence[tuple[str, str]]) -> None:
        """Give `option` the value of what was written; raises as `Option.read` does."""
        self.__dict__[option.name] = option.read(texts)
        self._given[option.name] = texts

    def take(self, name: str, other: Settings) -> None:
        """Have the value of an option that `other` has, be it the default."""
        self.__dict__.pop(name, None)
        self._given.pop(name, None)
        if other.given(name):
            self.set(OPTIONS[name], other._given[name])

    def place(self, name: str, number: int = 0) -> str:
        """Return where the option was set, as `poorhttp.ini:3: threads` or `--threads`.

        Of a repeatable option, where its value with this number was.
        """
        texts = self._given.get(name, ())
        return texts[number][0] if number < len(texts) else name

    def written(self, name: str) -> list[str]:
        """Return what was written for the option, or nothing if nobody set it."""
        return [text for _, text in self._given.get(name, ())]

    def given(self, name: str) -> bool:
        """Tell whether anybody set the option, be it to its default."""
        return name in self._given

    def changed(self) -> list[str]:
        """Return the names of the options that do not have their default value."""
        return [name for name, option in OPTIONS.items() if getattr(self, name) != option.default]

    def wants(self, name: str) -> bool:
        """Tell whether an option that can be off is not."""
        return getattr(self, name) not in (None, False, 0, "off")

    @property
    def serves(self) -> bool:
        """Whether they name anything to serve."""
        return bool(self.target or self.mount or self.static or self.hosts)

    @property
    def worker_count(self) -> int:
        """Number of worker processes, with 0 replaced by what it stands for in this mode."""
        if self.workers:
            return self.workers
        return max(2, len(os.sched_getaffinity(0))) if self.mode == "forking" else 1


#: Every option by its name, in the order of their declaration.
OPTIONS: dict[str, Option[Any]] = {
    name: option
    for declared in (Settings, Content, Development)
    for name, option in vars(declared).items()
    if isinstance(option, Option)
}


def _text(name: str, value: object) -> str:
    """Return the written form of a value that a program gave."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (str, int, float, address.Address)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise ValueError(f"{name}: {value!r} is not a text, a number, a path or an address")
