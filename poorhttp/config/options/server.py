"""Options: target, bind, mode, workers, processes; the help lists all kinds of target and mode."""

from __future__ import annotations

from poorhttp.config import address
from poorhttp.config.options.hooks import FUNCTION
from poorhttp.config.options.option import Option, Repeatable, WordList
from poorhttp.config.parsers import (
    auto_or,
    boolean,
    choice,
    integer,
    line,
    or_off,
    path,
    permissions,
    process_name,
    seconds,
    size,
    variable,
)
from poorhttp.config.registry import registry


def mode_name(text: str) -> str:
    """Read the name of a mode, of the server or of a plug-in."""
    if registry.find("modes", text):
        return text
    if unnamed := registry.unnamed("modes", text):
        raise ValueError(f'"{text}" is no mode of the server; {unnamed}')
    return choice(*registry.names("modes"))(text)


mode_name.choices = MODES = tuple(registry.names("modes"))  # type: ignore[attr-defined]


def plugin_name(text: str) -> str:
    """Read the name of the distribution of a plug-in."""
    if not text.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise ValueError(f'"{text}" is not the name of a distribution, as pip installs it')
    return text


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
        reason="Without a callable, the server tries `application` and then `app`. The callable "
        'may be a call with literals: `shop:create_app()`, `shop:create_app("test", debug=True)`. '
        "On the command line the target has no flag: `poorhttp serve TARGET`. `poorhttp dev` also "
        "takes a folder or a file, or finds the target itself (docs/guides/development.md).",
    )
    plugins = WordList(
        plugin_name,
        (),
        "Plug-ins of others to use, by the names of their distributions.",
        shared=True,
        metavar="NAME",
        reason="Whatever a named plug-in adds to the main process and workers is used. A mode, a "
        "target, a command or an option of an installed plug-in is found without being named, but "
        "not as root, where only named plug-ins are used (docs/reference/plugins.md).",
    )
    chdir = Option(
        path,
        ".",
        "Folder to change to first.",
        shared=True,
        metavar="FOLDER",
        reason="All other relative paths (the target, `pythonpath`, logs, `unix:` addresses) start "
        "from this folder. Only the file that `-c` names is read before the change.",
        aliases=("working-dir", "working-directory"),
    )
    pythonpath = Repeatable(
        path,
        (),
        "Folder in which Python looks for modules first.",
        metavar="FOLDER",
        aliases=("app-dir", "python-path", "pp"),
    )
    env = Repeatable(
        variable,
        (),
        "Environment variable of the application, `NAME=VALUE`.",
        metavar="VARIABLE",
        reason="Set in each worker before the application is loaded. Other users of the machine "
        "can see a command line, so write passwords into a file. gunicorn `raw_env`, uWSGI `env`.",
        short="e",
        secret=True,
    )


class Listening:
    """Where the server listens."""

    GROUP = "Listening"

    bind = Repeatable(
        address.parse,
        ("127.0.0.1:8080",),
        "Address to listen on: `HOST:PORT`, `:PORT`, `[::1]:PORT`, `unix:PATH`, `unix:@NAME` "
        "(abstract), or `fd:N` or `fd:NAME` for an inherited listening socket. A protocol other "
        "than HTTP is written in front of the address: `https://HOST:PORT`, `https+fd:N`, "
        "`uwsgi://HOST:PORT`, `uwsgi+unix:PATH`, and the same with `scgi` and `fastcgi`.",
        metavar="ADDRESS",
        reason="The default accepts only clients on this machine. `0.0.0.0:80` or `:80` is every "
        "IPv4 interface, `[::]:80` every IPv6 interface. With port 0 the system chooses a port, "
        "which the ready line shows. If the option is not set and systemd passes sockets "
        "(`LISTEN_FDS`), the server uses all of them (`fd:*`). `fd:NAME` is the socket with this "
        "`FileDescriptorName`. nginx, lighttpd and Apache speak the gateway protocols; only "
        "`trusted_proxies` may use them. `https` needs `tls_certificate`.",
        short="b",
        aliases=(
            *("host", "port", "listen", "uds", "unix-socket", "fd", "http", "http-socket"),
            "socket",
        ),
    )
    backlog = Option(
        integer(1, 65535),
        "4096",
        "Connections that may wait to be accepted, per address.",
        reason="It must hold the connections that arrive while no worker accepts any: the kernel "
        "drops others, whose clients try again only after 1 s. The kernel lowers it to "
        "`net.core.somaxconn` (4096 since Linux 5.4). gunicorn 2048, waitress 1024, nginx 511.",
        aliases=("server-backlog",),
    )
    reuse_port = Option(
        boolean,
        "off",
        "Give each worker a listening socket of its own (`SO_REUSEPORT`).",
        reason="The kernel then distributes connections by a hash of their addresses, even to a "
        "worker that is busy. With one shared socket, a free worker takes the next connection. "
        "Useful if accepting connections is most of the work. A change of the number of workers "
        "can lose connections that no worker has accepted yet. Off in nginx, too.",
    )
    socket_mode = Option(
        optional_permissions,
        "",
        "Permissions of `unix:` sockets, octal; if empty, the umask decides.",
        metavar="MODE",
        reason="A client needs write permission to connect. `0660` admits a proxy in the same "
        "group, `0666` every user.",
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
        "How requests are scheduled: `single`, `forking`, `threading`, `gevent`, `asyncio`, or "
        "the name of a plug-in.",
        metavar="MODE",
        reason="`single` runs one request at a time. `forking` runs one at a time in each of "
        "several processes. `threading` runs several threads in a process; it suits most "
        "applications, because a slow request does not block the others. `gevent` runs a greenlet "
        "for each request and needs the extra `gevent`. `asyncio` serves ASGI applications, with a "
        "task for each request. Plug-ins register in the entry-point group `poorhttp.modes`. An "
        "ini file may also call the option `type`. See docs/guides/choose-a-mode.md.",
        ini_name="type",
        short="k",
        aliases=("worker-class",),
    )
    workers = Option(
        auto_or(integer(0, 1024)),
        "0",
        "Number of worker processes; 0 lets the server choose; `auto`: as requests come.",
        reason="0 is one worker. In mode `forking` it is as many as there are usable CPUs, and at "
        "least 2, because each process runs one request at a time. Usable are the CPUs of the "
        "affinity (taskset, cpuset), but not more than the CPU quota of the cgroup and of those "
        "above it allows, rounded up (`docker run --cpus`, limits of Kubernetes, `CPUQuota` of "
        "systemd), at the start and at each reload. docs/guides/threads.md is about `auto`.",
        short="w",
        aliases=("processes",),
    )
    threads = Option(
        auto_or(integer(1, 4096)),
        "8",
        "Requests that a worker runs at the same time in mode `threading`; `auto`: as they come.",
        reason="More threads help an application that waits for databases or other servers, and "
        "slow down one that computes. An idle thread costs next to nothing. waitress 4, gunicorn "
        "1. `auto`: from `min_threads` to `max_threads` (docs/guides/threads.md).",
        aliases=("blocking-threads",),
    )
    upgraded_threads = Option(
        integer(0, 100_000),
        "1000",
        "In mode `threading`: how many connections may speak another protocol (WebSocket) at the "
        "same time. 0 allows none, in any mode.",
        reason="Each such connection has a thread of its own, in addition to `threads`. When all "
        "are busy, a request for another protocol gets 503. A waiting thread takes about 30 KiB. "
        "In `gevent` and `asyncio` only `max_connections` limits them; in `single` and `forking` "
        "such a connection keeps the whole worker busy. See docs/guides/websockets.md.",
    )
    streaming_threads = Option(
        integer(0, 100_000),
        "1000",
        "In mode `threading`: how many responses that are sent in pieces may keep a thread that "
        "does not count among `threads` (server-sent events). 0 means none.",
        reason="A response streams when its first piece was sent more than a second ago and its "
        "thread has waited since: for an event of the application, or for its client. Then another "
        "thread serves in its place, and the thread ends with the response. When so many stream, a "
        "further one keeps a thread of the pool, and the error log says so. A request that waits "
        "before its first piece, and one that computes, count among `threads`. A waiting thread "
        "takes about 40 KiB. In `gevent` only `max_connections` limits them; in `single` and "
        "`forking` such a response keeps the whole worker busy. gunicorn, waitress and uWSGI count "
        "them as any other request. See docs/guides/event-streams.md.",
    )
    after_fork = Repeatable(
        line,
        (),
        "Function to call in each worker after it was forked and the application was loaded, "
        "`package.module:function`.",
        metavar=FUNCTION,
        reason="It is called without arguments. If it fails, the worker does not serve.",
    )
    max_requests = Option(
        integer(0, 2**63 - 1),
        "0",
        "Replace a worker when it has begun this many requests; 0 means never.",
        reason="For applications that leak memory. The new worker serves before the old one "
        "stops, one worker of a service is replaced at a time, and no request is lost. Also 0 in "
        "gunicorn.",
        aliases=("limit-max-requests", "maximum-requests"),
        needs_main=True,
    )
    max_requests_jitter = Option(
        integer(0, 2**63 - 1),
        "0",
        "Add a random number up to this to `max_requests`, a different one for each worker.",
        reason="It keeps workers that started together from being replaced at the same time.",
        aliases=("limit-max-requests-jitter",),
    )
    max_rss = Option(
        size(0, 2**63 - 1),
        "0",
        "Replace a worker that uses more memory than this (resident set); 0 means never.",
        reason="Checked once a second. uWSGI `reload-on-rss`.",
        aliases=("workers-max-rss", "reload-on-rss"),
        needs_main=True,
    )
    max_lifetime = Option(
        seconds(0),
        "0",
        "Replace a worker after this time; 0 means never.",
        reason="uWSGI `max-worker-lifetime`.",
        aliases=("workers-lifetime", "max-worker-lifetime"),
        needs_main=True,
    )


class Processes:
    """The main process, and the users whose rights processes have."""

    GROUP = "Processes and their identity"

    supervisor = Option(
        boolean,
        "on",
        "Keep a main process that starts, watches and replaces the workers.",
        shared=True,
        reason="It costs about 2 MiB and handles all signals (docs/reference/signals.md). If it "
        "is off, the process that you start is the only worker: it handles TERM, and nothing "
        "replaces it when it dies. Turn it off under runit, in containers and under other "
        "managers that restart a process.",
    )
    user = Option(
        line,
        "",
        "User that the workers run as, by name or number; if empty, the user who starts the "
        "server.",
        metavar="USER",
        reason="The main process keeps its user, so that it can open sockets, logs and the "
        "pidfile again. It runs no code of the application. nginx does the same.",
        short="u",
        aliases=("uid",),
    )
    group = Option(
        line,
        "",
        "Group that the workers run as; if empty, the group of `user`.",
        metavar="GROUP",
        reason="With `user`, workers also join the other groups of that user and leave those of "
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
        reason="gunicorn sets 0, which lets every user write; systemd sets 0022.",
        short="m",
    )
    merge_memory = Option(
        boolean,
        "off",
        "Let the kernel merge equal memory pages of the processes (KSM, Linux 6.4 and later).",
        shared=True,
        reason="The kernel merges only while `/sys/kernel/mm/ksm/run` is 1, which applies to the "
        "whole machine and takes CPU time (docs/guides/memory.md). Off, because the time that a "
        "write takes tells other users of the machine what merged pages contain.",
    )
    proc_name = Option(
        or_off(process_name),
        "poorhttp",
        "Name of the processes in `ps` and `top`, as `NAME: worker 2 [shop] GET /cart`; `off` "
        "leaves their command lines as they are. A second word says what of a request is shown: "
        "`path`, `query` or `none`.",
        shared=True,
        metavar="NAME",
        reason="A worker shows one of its requests, which costs less than 1 % of the CPU time of a "
        "request. Every user of the machine can read titles, so by default (`path`) they show the "
        "path up to its query or its first `;`: session ids and passwords are often behind these. "
        "`proc_name = shop query` shows 100 bytes of method and target. `proc_name = shop none` "
        "shows no requests, for applications with secret paths, such as `/reset/TOKEN`. The main "
        "process shows its arguments, without the values of `--env` and `--cgi-environment`. No "
        "title shows how long the request has run; `poorhttp ctl requests` does. Programs that "
        "show only 15 characters list the workers as `worker 1` and so on. gunicorn needs the "
        "package setproctitle for this.",
        short="n",
        aliases=("name", "process-name"),
    )
    pidfile = Option(
        or_off(path),
        "off",
        "File for the process ID of the main process; `off` writes none.",
        shared=True,
        metavar="FILE",
        reason="Written when all workers accept connections, removed at the end. If the file "
        "belongs to a server that is still running, the new server does not start.",
        short="p",
        aliases=("pid", "pid-file", "safe-pidfile"),
    )
