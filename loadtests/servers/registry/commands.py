"""Command lines of the servers, with what varies between their configurations as arguments.

What the braces stand for is in `loadtests.servers.registry.server`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadtests.servers.registry.server import Server

CALLABLE = "{module}.py:{callable}"
"""The application as ours is given it; others get MODULE, behind all options."""
MODULE = " {module}:{callable}"
LOOPBACK = "127.0.0.1:{port}"
GUNICORN = f"{{python}} -m gunicorn --bind {LOOPBACK}"
GRANIAN = "{python} -m granian --interface wsgi --host 127.0.0.1 --port {port}"
UWSGI = "{scripts}/uwsgi"
WAITRESS = f"{{python}} -m waitress --listen {LOOPBACK}"


MODES = {
    "single": "#0b4f9e",
    "forking --workers 2": "#2ca6c4",
    "threading --threads 8": "#1a7fb8",
    "gevent": "#7cc7df",
}
"""Ours with usual numbers, and the colour of each."""


def configured(file: str, **words: object) -> str:
    """A text of `configurations/`, with these values for its words in capitals.

    In it $port, $folder, $root and the like stand for what they do in commands.
    """
    text = (Path(__file__).parents[1] / "configurations" / file).read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text


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
    bind: str = LOOPBACK,
    log: str = "--access-log off",
    extra: str = "",
    **fields: Any,
) -> Server:
    """One of our modes, served as `serve` says; `name` goes behind ours, `fields` are others."""
    extra = extra or ("gevent" if mode.startswith("gevent") else "")
    command = serve(mode, target, bind, options, log)
    return Server(f"poorhttp {name}", colour, command, "poorhttp", extra, **fields)


def script(text: str) -> str:
    """A command that is a script of the shell."""
    return "{sh} -c " + text.replace(" ", "~")


def backend(name: str, bind: str, options: str = "") -> str:
    """The part of a script that starts `single` and waits until it listens."""
    return begun(serve("single", bind=bind, options=f"{options} --pidfile"), name) + "; "


def begun(command: str, name: str) -> str:
    """The part of a script that starts a server and waits for its pidfile, the last argument."""
    pidfile = f"{{folder}}/{name}.pid"
    waits = f"until test -s {pidfile}; do kill -0 $! 2>/dev/null || exit 1; sleep 0.02; done"
    return f"{command} {pidfile} & {waits}"


PHP_CHILDREN = 4


def php_fpm(
    name: str, colour: str, server: Server, socket: str = "$folder/php.socket", *options: str
) -> Server:
    """php-fpm behind a server that is configured for it: started together and ended together."""
    path = re.sub(r"\$(\w+)", r"{\1}", socket)
    command = (
        "{php_fpm} --allow-to-run-as-root --nodaemonize --fpm-config {folder}/fpm.conf & "
        f"while ! test -S {path}; do sleep 0.02; done; exec {server.command}"
    )
    listen = "\n".join((socket, *options))
    text = configured("php-fpm.conf", LISTEN=listen, CHILDREN=PHP_CHILDREN)
    return replace(
        server,
        name=name,
        colour=colour,
        command=script(command),
        programs=("sh", *server.programs, "php_fpm"),
        files=(*server.files, ("fpm.conf", text)),
    )
