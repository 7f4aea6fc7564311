"""Command lines of the servers, with what varies between their configurations as arguments.

What the braces stand for is in `loadtests.servers.registry.server`.
"""

from __future__ import annotations

from dataclasses import replace

from loadtests.servers.registry.server import Server

CALLABLE = "{module}.py:{callable}"
"""The application as ours is given it; others get MODULE, behind all options."""
MODULE = " {module}:{callable}"
LOOPBACK = "127.0.0.1:{port}"
GUNICORN = f"{{python}} -m gunicorn --bind {LOOPBACK}"
GRANIAN = "{python} -m granian --interface wsgi --host 127.0.0.1 --port {port}"
UWSGI = "{scripts}/uwsgi"


def serve(
    mode: str,
    target: str = CALLABLE,
    bind: str = LOOPBACK,
    options: str = "",
    log: str = "--access-log off",
) -> str:
    """Our command: `mode` with its number of workers or threads, and what is served."""
    words = f"{{python}} -m poorhttp serve {target} --bind {bind} --mode {mode} {log} {options}"
    return " ".join(words.split())


def ours(
    name: str,
    colour: str,
    mode: str,
    target: str = CALLABLE,
    options: str = "",
    extra: str = "",
    bind: str = LOOPBACK,
) -> Server:
    """One of our modes without an access log; `name` goes behind ours."""
    extra = extra or ("gevent" if mode.startswith("gevent") else "")
    command = serve(mode, target, bind, options)
    return Server(f"poorhttp {name}", colour, command, "poorhttp", extra)


def script(text: str) -> str:
    """A command that is a script of the shell."""
    return "{sh} -c " + text.replace(" ", "~")


def backend(name: str, bind: str, options: str = "") -> str:
    """The part of a script that starts `single` and waits until it listens.

    It has written its pidfile then.
    """
    pidfile = f"{{folder}}/{name}.pid"
    started = serve("single", bind=bind, options=f"{options} --pidfile {pidfile}")
    return (
        f"{started} & until test -s {pidfile}; do kill -0 $! 2>/dev/null || exit 1; "
        "sleep 0.02; done; "
    )


PHP_CHILDREN = 4
PHP_SOCKET = "$folder/php.socket"


def php_fpm(
    name: str, colour: str, server: Server, socket: str = PHP_SOCKET, options: str = ""
) -> Server:
    """php-fpm behind a server that is configured for it: started together and ended together."""
    lines = ["[global]", "daemonize = no", "error_log = $folder/php.log"]
    lines += ["[www]", "user = root", "group = root", f"listen = {socket}"]
    lines += [options] if options else []
    lines += ["listen.backlog = $backlog", "pm = static"]
    lines += [f"pm.max_children = {PHP_CHILDREN}", "pm.max_requests = 0"]
    path = socket
    for word in ("folder", "root", "port"):
        path = path.replace(f"${word}", f"{{{word}}}")
    command = (
        "{php_fpm} --allow-to-run-as-root --nodaemonize --fpm-config {folder}/fpm.conf & "
        f"while ! test -S {path}; do sleep 0.02; done; exec {server.command}"
    )
    return replace(
        server,
        name=name,
        colour=colour,
        command=script(command),
        programs=("sh", *server.programs, "php_fpm"),
        files=(*server.files, ("fpm.conf", "\n".join(lines) + "\n")),
    )
