"""The options of the server: what is served, where it listens, its modes, workers and processes."""

from __future__ import annotations

from poorhttp.config import address
from poorhttp.config.options.option import Option, Repeatable, WordList
from poorhttp.config.parsers import (
    boolean,
    choice,
    integer,
    line,
    or_off,
    path,
    permissions,
    seconds,
    size,
    token,
    variable,
)

#: The built-in modes. Others are found by their entry point.
MODES = ("single", "forking", "threading", "gevent")


def mode_name(text: str) -> str:
    """Read the name of a built-in mode or of an installed plug-in."""
    if text in MODES:
        return text
    from importlib.metadata import entry_points  # slow and large: only for a plug-in or a mistake

    plugins = [entry.name for entry in entry_points(group="poorhttp.modes")]
    return choice(*dict.fromkeys([*MODES, *plugins]))(text)


mode_name.choices = MODES  # type: ignore[attr-defined]


def optional_permissions(text: str) -> int | None:
    """Read permission bits in octal; an empty text is None."""
    return permissions(text) if text else None


class Application:
    """What is served."""

    GROUP = "Application"

    target = Option(
        line,
        "",
        "What to serve: `package.module:callable`, `path/to/file.py:callable`, or "
        "`SCHEME:rest`: `dispatch:FOLDER`, `static:FOLDER`, `cgi:FOLDER`, `pages:FOLDER`, "
        "`paste:FILE`, `tcp:module:handler`.",
        hosted=True,
        metavar="TARGET",
        reason="Without a callable, `application` and then `app` are tried. The callable may be "
        'the result of a call with literals: `shop:create_app()`, `shop:create_app("test", '
        "debug=True)`. On the command line the target has no flag: `poorhttp serve TARGET`. For "
        "`poorhttp dev` it may be a folder or a file, or be left out (docs/guides/development.md).",
    )
    django = Option(
        boolean,
        "off",
        "Serve the Django project of the current folder, or of the folder that the target names.",
        shared=True,
        reason="`manage.py` tells its settings, unless `DJANGO_SETTINGS_MODULE` does, and these "
        "tell its `WSGI_APPLICATION`. Files that `collectstatic` has put into `STATIC_ROOT` are "
        "served at `STATIC_URL`, without Python (docs/guides/frameworks.md).",
    )
    chdir = Option(
        path,
        ".",
        "Folder to change to before anything else is done.",
        shared=True,
        metavar="FOLDER",
        reason="All other relative paths (the target, `pythonpath`, logs, `unix:` addresses) are "
        "relative to this folder. Only the file named by `-c` is read before.",
        aliases=("working-dir", "working-directory"),
    )
    pythonpath = Repeatable(
        path,
        (),
        "Folder in which Python looks for modules before it looks in all others.",
        metavar="FOLDER",
        aliases=("app-dir", "python-path", "pp"),
    )
    env = Repeatable(
        variable,
        (),
        "Environment variable of the application, `NAME=VALUE`.",
        metavar="VARIABLE",
        reason="Set in each worker before the application is loaded. Other users of the machine "
        "can see a command line: passwords belong into a file. gunicorn `raw_env`, uWSGI `env`.",
        short="e",
    )


class Listening:
    """Where the server listens."""

    GROUP = "Listening"

    bind = Repeatable(
        address.parse,
        ("127.0.0.1:8080",),
        "Address to listen on: `HOST:PORT`, `:PORT`, `[::1]:PORT`, `unix:PATH`, `unix:@NAME` "
        "(abstract), or `fd:N` or `fd:NAME` for an inherited listening socket; for "
        "another protocol than HTTP `https://HOST:PORT`, `https+fd:N`, `uwsgi://HOST:PORT` or "
        "`uwsgi+unix:PATH`, and the same with `scgi` and `fastcgi`.",
        metavar="ADDRESS",
        reason="The default answers only clients on this machine, so that nothing is opened to a "
        "network by accident (gunicorn does the same, waitress listens everywhere). `0.0.0.0:80` "
        "or `:80` is every IPv4 interface, `[::]:80` every IPv6 interface. With port 0 the system "
        "chooses a port; the ready line shows it. If the option is not set and systemd passes "
        "sockets (`LISTEN_FDS`), all of those are used (`fd:*`); `fd:NAME` is the one that its "
        "unit names with `FileDescriptorName`. The gateway protocols, which nginx, lighttpd and "
        "Apache speak, are for `trusted_proxies` only. `https` needs `tls_certificate`.",
        short="b",
        aliases=(
            *("host", "port", "listen", "uds", "unix-socket", "fd", "http", "http-socket"),
            "socket",
        ),
    )
    backlog = Option(
        integer(1, 65535),
        "2048",
        "Connections that may wait to be accepted, per address.",
        reason="Has to hold the connections that arrive while no worker accepts. gunicorn 2048, "
        "waitress 1024, nginx 511. The kernel lowers it to `net.core.somaxconn` (4096 since Linux "
        "5.4).",
        aliases=("server-backlog",),
    )
    reuse_port = Option(
        boolean,
        "off",
        "Give each worker a listening socket of its own (`SO_REUSEPORT`).",
        reason="The kernel then distributes connections by a hash of their addresses, whether a "
        "worker is busy or not; with one socket for all, a free worker takes the next connection. "
        "Useful if accepting connections is most of the work. Changing the number of workers can "
        "lose connections that have not been accepted yet. nginx has it off.",
    )
    socket_mode = Option(
        optional_permissions,
        "",
        "Permissions of `unix:` sockets, octal; if empty, the umask decides.",
        metavar="MODE",
        reason="A client needs write permission to connect: `0660` is for a proxy in the same "
        "group, `0666` for everybody.",
        aliases=("uds-permissions", "unix-socket-perms", "chmod-socket"),
    )
    socket_owner = Option(
        line,
        "",
        "Owner of `unix:` sockets: `USER`, `USER:GROUP` or `:GROUP`; if empty, the user who starts "
        "the server.",
        metavar="OWNER",
        reason="Only root may give a socket to another user.",
        aliases=("chown-socket",),
    )


class Workers:
    """How requests are scheduled, and by how many processes."""

    GROUP = "Modes and workers"

    mode = Option(
        mode_name,
        "threading",
        "How requests are scheduled: `single`, `forking`, `threading`, `gevent`, or the name "
        "of a plug-in.",
        metavar="MODE",
        reason="`single`: one request at a time. `forking`: one at a time in each of several "
        "processes. `threading`: several threads in a process, which suits most applications "
        "because one slow request does not block the others. `gevent`: a greenlet for each "
        "request; needs the extra `gevent`. Plug-ins register in the entry-point group "
        "`poorhttp.modes`. In an ini file the option may also be called `type`, as in the first "
        "Poor HTTP.",
        ini_name="type",
        short="k",
        aliases=("worker-class",),
    )
    workers = Option(
        integer(0, 1024),
        "0",
        "Number of worker processes; 0 lets the server choose.",
        reason="0 is one worker, and in mode `forking` as many as there are usable CPUs, at "
        "least 2: a process that runs one request at a time cannot use more than one CPU, and "
        "more processes than CPUs cost memory.",
        short="w",
        aliases=("processes",),
    )
    threads = Option(
        integer(1, 4096),
        "8",
        "Number of requests that a worker runs at the same time in mode `threading`.",
        reason="Threads wait for databases and other servers, not for the CPU; a thread that "
        "is not needed sleeps. waitress 4, gunicorn 1.",
        aliases=("blocking-threads",),
    )
    upgraded_threads = Option(
        integer(0, 100_000),
        "1000",
        "In mode `threading`: number of connections that applications may have at the same time to "
        "speak another protocol (WebSocket); 0, in each mode: none.",
        reason="Each has a thread of its own, and none of `threads`. Beyond that, a request that "
        "asks for another protocol is answered with 503. A thread that waits takes some 30 KiB; a "
        "library may start another one for each connection. In `gevent` only `max_connections` "
        "counts, in `single` and `forking` a connection has the process. See "
        "docs/guides/websockets.md.",
    )
    preload = Option(
        boolean,
        "off",
        "Load the application once, before its workers are forked, so that they share its memory.",
        reason="A separate process loads it, and a reload (HUP) starts a new one, so changes of "
        "the application still take effect. Off, because what the application opens while it is "
        "loaded (connections to databases, threads) does not survive a fork; open them in "
        "`after_fork`.",
    )
    refork_after = WordList(
        integer(1, 2**63 - 1),
        (),
        "With `preload`: when a worker has begun this many requests, replace the others by forks "
        "of it; several numbers are for one generation of workers after the other.",
        metavar="N",
        reason="Workers then share also what requests have imported, compiled and cached. That "
        "worker finishes its requests first, and no request is lost. Off, because everything that "
        "it has opened is there in each fork, so the application must be ready for it: see "
        "`before_refork` and docs/guides/operations.md. `1000, 10000` suits most. pitchfork "
        "`refork_after`, puma `fork_worker`.",
    )
    before_refork = Repeatable(
        line,
        (),
        "Function to call in a worker from which others are about to be forked, "
        "`package.module:function`.",
        metavar="FUNCTION",
        reason="It closes connections and ends threads, which do not survive a fork. It is called "
        "without arguments, when the worker has finished its requests. If it fails, or threads are "
        "left, no worker is forked from this one. The forks call `after_fork`.",
    )
    after_fork = Repeatable(
        line,
        (),
        "Function to call in each worker when it was forked and the application is loaded, "
        "`package.module:function`.",
        metavar="FUNCTION",
        reason="It is called without arguments. If it fails, the worker does not serve.",
    )
    max_requests = Option(
        integer(0, 2**63 - 1),
        "0",
        "Replace a worker when it has begun this many requests; 0 never does.",
        reason="For applications that leak memory. The new worker serves before the old one stops, "
        "only one worker of a service is replaced at a time, and no request is lost. gunicorn has "
        "0 too.",
        aliases=("limit-max-requests", "maximum-requests"),
    )
    max_requests_jitter = Option(
        integer(0, 2**63 - 1),
        "0",
        "Add a random number up to this to `max_requests`, a different one for each worker.",
        reason="So that workers that were started together are not all replaced at the same time.",
        aliases=("limit-max-requests-jitter",),
    )
    max_rss = Option(
        size(0, 2**63 - 1),
        "0",
        "Replace a worker that uses more memory than this (resident set); 0 never does.",
        reason="Checked once a second. uWSGI `reload-on-rss`.",
        aliases=("workers-max-rss", "reload-on-rss"),
    )
    max_lifetime = Option(
        seconds(0),
        "0",
        "Replace a worker after this time; 0 never does.",
        reason="uWSGI `max-worker-lifetime`.",
        aliases=("workers-lifetime", "max-worker-lifetime"),
    )


class Processes:
    """The main process, and the users whose rights processes have."""

    GROUP = "Processes and their identity"

    supervisor = Option(
        boolean,
        "on",
        "Keep a main process that starts, watches and replaces the workers.",
        shared=True,
        reason="It costs about 2 MiB, and handles the signals of docs/guides/operations.md. Off, "
        "the "
        "process that was started is the single worker: it can be stopped, and it is not replaced "
        "if it dies. For runit, containers and other managers that restart a process that dies.",
    )
    user = Option(
        line,
        "",
        "User whose rights the workers have, by name or number; if empty, the user who starts the "
        "server.",
        metavar="USER",
        reason="The main process keeps its user, so that it can open sockets, logs and the pidfile "
        "again; it runs no code of the application. nginx does the same.",
        short="u",
        aliases=("uid",),
    )
    group = Option(
        line,
        "",
        "Group whose rights the workers have; if empty, the group of `user`.",
        metavar="GROUP",
        reason="With `user`, workers also join the further groups of that user, and leave those of "
        "root.",
        short="g",
        aliases=("gid",),
    )
    umask = Option(
        optional_permissions,
        "",
        "Permissions that new files do not get, octal; if empty, the umask is not changed.",
        shared=True,
        metavar="MASK",
        reason="gunicorn sets 0, which lets everybody write; systemd gives its services 0022.",
        short="m",
    )
    merge_memory = Option(
        boolean,
        "off",
        "Let the kernel merge equal pages of the processes (KSM, Linux 6.4 and later).",
        shared=True,
        reason="The kernel merges only while `/sys/kernel/mm/ksm/run` is 1, which is for the whole "
        "machine and takes processor time: see docs/guides/operations.md. Off, because from the "
        "time that "
        "a write takes, others on the machine can learn what merged pages contain.",
    )
    proc_name = Option(
        or_off(token),
        "poorhttp",
        "Name of the processes in `ps` and `top`, as `NAME: worker 2 [shop] GET /cart`; `off` "
        "leaves their command lines as they are.",
        shared=True,
        metavar="NAME",
        reason="A worker shows one of its requests, which costs a request less than 1 %. The main "
        "process has this name and its arguments; workers are called `worker 1` and so on where a "
        "list has room for 15 characters only. For how long the request has run is not shown, as "
        "idle workers would need a timer for that: `poorhttp ctl requests` tells it. gunicorn has "
        "the same option, and needs the package setproctitle for it.",
        short="n",
        aliases=("name", "process-name"),
    )
    tracemalloc = Option(
        integer(0, 100),
        "0",
        "Frames that Python keeps of the place of each allocation, so that `poorhttp ctl heap` "
        "tells which lines hold memory; 0 keeps none, and it counts objects by their type.",
        metavar="FRAMES",
        reason="1 is enough for that. It costs much time and memory, so it is for the search of a "
        "leak. `PYTHONTRACEMALLOC=1` does the same for all processes.",
    )
    pidfile = Option(
        or_off(path),
        "off",
        "File for the process ID of the main process; `off` writes none.",
        shared=True,
        metavar="FILE",
        reason="Written when all workers accept connections, and removed at the end. If it names a "
        "process that is alive and holds the file, the server does not start.",
        short="p",
        aliases=("pid", "pid-file", "safe-pidfile"),
    )
