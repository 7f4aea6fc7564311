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
from loadtests.servers.registry.server import Server, chosen
from loadtests.servers.registry.wsgi import ours_serving

FLOOR = SERVERS["floor"]
FILES: Sequence[Server] = (
    *(server for server in STATIC if server.ours),
    *chosen(STATIC, ("nginx", "lighttpd", "Apache event", "Apache prefork")),
    *chosen(STATIC, ("webfsd", "mini_httpd", "busybox httpd")),
)
"""Servers of files, one of a kind; those in Debian 12 that are like Boa come last."""

[_WEBFSD] = chosen(STATIC, ["webfsd"])
# It runs the programs of a folder below the one that it serves.
_BELOW = _WEBFSD.command.replace("{root}", "{folder}") + " -x /cgi-bin"
CGI: Sequence[Server] = (
    *ours_serving("cgi:{root}"),
    *chosen(programs(1), ["lighttpd"]),
    apache("Apache event", colour_of("Apache event"), EVENT, cgi("cgid", f'ScriptSock "{SOCKET}"')),
    apache("Apache prefork", colour_of("Apache prefork"), PREFORK, cgi("cgi")),
    replace(
        _WEBFSD,
        command=script(f"ln -s {{root}} {{folder}}/cgi-bin && exec {_BELOW}"),
        programs=("sh", *_WEBFSD.programs),
        target="/cgi-bin",
    ),
)
NOT_CGI = ("mini_httpd", "busybox httpd")
"""They hand on a program's head with the line ends that it has, and so do not answer in HTTP."""

# Room for as many connections to PHP as clients, in nginx.
_FEW, _MANY = (f"worker_connections {count}" for count in (CONNECTIONS, 2 * CONNECTIONS))
_APACHE = "Apache event + php-fpm"
TEMPLATES: Sequence[Server] = (
    *ours_serving("pages:{root} --pages-reload off", "mako"),
    *(
        replace(one, files=tuple((name, text.replace(_FEW, _MANY)) for name, text in one.files))
        for one in PHP
    ),
    php_fpm(
        _APACHE,
        colour_of(_APACHE),
        apache("", "", EVENT, APACHE_PHP),
        SOCKET,
        "listen.mode = 0666",
    ),
)


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
        return self.programs or self.server.forks


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
        found = [ContentServer(one, material.cgi, one.target + target, True) for one in CGI]
    return {one.server.name: one for one in found}


def everyone() -> list[Server]:
    """All that take part with some content, each once: as it serves files, if it does."""
    found: dict[str, Server] = {}
    for one in (FLOOR, *FILES, *CGI, *TEMPLATES):
        found.setdefault(one.name, one)
    return list(found.values())
