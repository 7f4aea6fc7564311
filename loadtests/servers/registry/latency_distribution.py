"""Servers of the study `ordered`, for each kind of content.

In their files $port, $folder, $root and the like stand for what they do in commands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from loadtests.servers.application import Application
from loadtests.servers.material import Material
from loadtests.servers.registry import STATIC, colour_of
from loadtests.servers.registry.apache import EVENT, PREFORK, SOCKET, apache, cgi
from loadtests.servers.registry.apache import PHP as APACHE_PHP
from loadtests.servers.registry.commands import php_fpm, script
from loadtests.servers.registry.content import CONNECTIONS, PHP, SERVERS, programs
from loadtests.servers.registry.server import Server

FORKING = ("Apache", "mini_httpd", "busybox")
"""Beginnings of the names of those whose processes come and go with the requests."""


class Content(Protocol):
    """A content of the study, and its target."""

    @property
    def name(self) -> str: ...

    @property
    def target(self) -> str: ...


@dataclass(frozen=True)
class ContentServer:
    """A server with a content: where it is asked, and whether it starts programs for requests."""

    server: Server
    application: Application
    target: str
    programs: bool = False

    @property
    def forks(self) -> bool:
        """Whether its processes come and go with the requests."""
        return self.programs or self.server.name.startswith(FORKING)


def _static(*names: str) -> list[Server]:
    return [server for server in STATIC if server.name in names]


def _ours(target: str, extra: str = "") -> list[Server]:
    """Ours, with another target than a folder of files."""
    return [
        replace(
            server,
            command=server.command.replace("static:{root}", target),
            extra=extra or server.extra,
        )
        for server in STATIC
        if server.ours
    ]


def _webfsd_cgi() -> Server:
    """webfsd for CGI: it runs the programs of a folder below the one that it serves."""
    (server,) = _static("webfsd")
    command = server.command.replace("{root}", "{folder}") + " -x /cgi-bin"
    linked = f"ln -s {{root}} {{folder}}/cgi-bin && exec {command}"
    return replace(server, command=script(linked), programs=("sh", *server.programs))


FILES: Sequence[Server] = (
    *(server for server in STATIC if server.ours),
    *_static("nginx", "lighttpd", "Apache event", "Apache prefork"),
    *_static("webfsd", "mini_httpd", "busybox httpd"),
)
"""Servers of files, one of a kind; those in Debian 12 that are like Boa come last."""


def _apache_cgi(name: str, mpm: str, folder: str) -> Server:
    return apache(name, _static(name)[0].colour, mpm, folder)


CGI: Sequence[Server] = (
    *_ours("cgi:{root}"),
    next(server for server in programs(1) if server.name == "lighttpd"),
    _apache_cgi("Apache event", EVENT, cgi("cgid", f'ScriptSock "{SOCKET}"')),
    _apache_cgi("Apache prefork", PREFORK, cgi("cgi")),
    _webfsd_cgi(),
)
NOT_CGI = ("mini_httpd", "busybox httpd")
"""They hand on a program's head with the line ends that it has, and so do not answer in HTTP."""


def _apache_php() -> Server:
    name = "Apache event + php-fpm"
    alone = apache(name, colour_of(name), EVENT, APACHE_PHP)
    return php_fpm(name, alone.colour, alone, SOCKET, "listen.mode = 0666")


def _roomy(server: Server) -> Server:
    """With room for as many connections to PHP as clients, if it is nginx."""
    few, many = (f"worker_connections {count}" for count in (CONNECTIONS, 2 * CONNECTIONS))
    return replace(
        server, files=tuple((name, text.replace(few, many)) for name, text in server.files)
    )


TEMPLATES: Sequence[Server] = (
    *_ours("pages:{root} --pages-reload off", "mako"),
    *map(_roomy, PHP),
    _apache_php(),
)


def serving(content: Content, material: Material) -> Mapping[str, ContentServer]:
    """The servers of a content, by name, in the order of tables."""
    target = content.target
    if content.name in ("page", "file"):
        # The floor has but one answer, and that from its memory.
        floor = [SERVERS["floor"]] if content.name == "page" else []
        found = [ContentServer(one, material.static, target) for one in (*floor, *FILES)]
    elif content.name == "template":
        php = ContentServer(PHP[0], material.php, target.replace(".html", ".php"))
        template = ContentServer(PHP[0], material.pages, target)
        found = [replace(template if one.ours else php, server=one) for one in TEMPLATES]
    else:
        program = ContentServer(CGI[0], material.cgi, target, programs=True)
        below = replace(program, target="/cgi-bin" + target)
        found = [replace(below if one.name == "webfsd" else program, server=one) for one in CGI]
    return {one.server.name: one for one in found}


def everyone() -> list[Server]:
    """All that take part with some content, each once: as it serves files, if it does."""
    known = {one.name: one for one in (*TEMPLATES, *CGI, *FILES, SERVERS["floor"])}
    order = (SERVERS["floor"], *FILES, *CGI, *TEMPLATES)
    return [known[name] for name in dict.fromkeys(one.name for one in order)]
