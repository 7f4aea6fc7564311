"""The options of the server: what is served, where it listens, its modes, workers and processes."""

from __future__ import annotations

from poorhttp.config import address
from poorhttp.config.options.option import Option, Repeatable
from poorhttp.config.parsers import (
    boolean,
    choice,
    integer,
    line,
    optional_path,
    path,
    permissions,
    seconds,
    size,
)

APPLICATION = "Application"
LISTENING = "Listening"
WORKERS = "Modes and workers"
PROCESS = "Processes and their identity"

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
MODE_PLUGINS = "poorhttp.modes"


def mode_name(text: str) -> str:
    """Read the name of one of our modes or of an installed plug-in."""
    if text in MODES:
        return text
    from importlib.metadata import entry_points  # slow and large: only for a plug-in or a mistake

    installed = [entry.name for entry in entry_points(group=MODE_PLUGINS)]
    return choice(*MODES, *(name for name in installed if name not in MODES))(text)


def optional_permissions(text: str) -> int | None:
    """Read permission bits in octal; nothing is None."""
    return permissions(text) if text else None


class Server:
    """What is served, and by which processes."""

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
