"""Commands to start each server for each kind of content.

One worker each, no access log, and what its documentation recommends for the job. In their files,
$port, $folder, $root and the like stand for what they do in commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from loadtests.errors import LabError
from loadtests.servers.nginx import configuration
from loadtests.servers.registry import FLOOR, Server

CONNECTIONS = 2048
PHP_CHILDREN = 4
APACHE_SPARE = 4

# The floor says what the others say besides: about as many octets as lighttpd and nginx send.
_FLOOR = replace(
    FLOOR,
    command=FLOOR.command + " Last-Modified:~Fri,~02~Oct~2009~12:00:00~GMT ETag:~6b009629-600 "
    "Accept-Ranges:~bytes",
)

_NGINX = configuration(
    CONNECTIONS,
    """\
    sendfile on;
    tcp_nopush on;
    types { text/html html; image/gif gif; image/jpeg jpg; image/png png; }
    charset utf-8;
    default_type application/octet-stream;
    MORE
    server {
        listen 127.0.0.1:$port backlog=$backlog;
        root $root;
        LOCATION
    }
""",
)

_LIGHTTPD = f"""\
server.document-root = "$root"
server.bind = "127.0.0.1"
server.port = $port
server.listen-backlog = $backlog
server.max-fds = {8 * CONNECTIONS}
server.max-connections = {CONNECTIONS}
server.max-keep-alive-requests = 65535
server.max-keep-alive-idle = 75
server.upload-dirs = ("$folder")
server.errorlog = "$folder/error.log"
mimetype.assign = (
    ".html" => "text/html; charset=utf-8",
    ".gif" => "image/gif",
    ".jpg" => "image/jpeg",
    ".png" => "image/png",
    "" => "application/octet-stream",
)
"""

_LIGHTTPD_CGI = """\
server.modules += ("mod_cgi")
cgi.assign = (".sh" => "", ".pl" => "")
"""

_LIGHTTPD_PHP_CGI = f"""\
server.modules += ("mod_fastcgi")
fastcgi.server = (".php" => ((
    "bin-path" => "$php_cgi",
    "socket" => "$folder/php.socket",
    "max-procs" => 1,
    "bin-environment" => (
        "PHP_FCGI_CHILDREN" => "{PHP_CHILDREN}",
        "PHP_FCGI_MAX_REQUESTS" => "0",
    ),
)))
"""

_LIGHTTPD_PHP_FPM = """\
server.modules += ("mod_fastcgi")
fastcgi.server = (".php" => (("socket" => "$folder/php.socket")))
"""

_PHP_FPM = f"""\
[global]
daemonize = no
error_log = $folder/php.log
[www]
user = root
group = root
listen = $folder/php.socket
listen.backlog = $backlog
pm = static
pm.max_children = {PHP_CHILDREN}
pm.max_requests = 0
"""

_NGINX_PHP_FPM = """\
location ~ \\.php$ {
            fastcgi_pass unix:$folder/php.socket;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_param SCRIPT_NAME $fastcgi_script_name;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param SERVER_PROTOCOL $server_protocol;
        }"""

_APACHE = """\
ServerRoot "$folder"
ServerName 127.0.0.1
Listen 127.0.0.1:$port
ListenBackLog $backlog
PidFile "$folder/apache.pid"
ErrorLog "$folder/error.log"
User www-data
Group www-data
LoadModule mpm_prefork_module MODULES/mod_mpm_prefork.so
LoadModule authz_core_module MODULES/mod_authz_core.so
LoadModule alias_module MODULES/mod_alias.so
LoadModule cgi_module MODULES/mod_cgi.so
StartServers CLIENTS
MinSpareServers CLIENTS
MaxSpareServers CLIENTS
ServerLimit CLIENTS
MaxRequestWorkers CLIENTS
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
ScriptAlias "/" "$root/"
<Directory "$root">
    AllowOverride None
    Options ExecCGI FollowSymLinks
    Require all granted
</Directory>
"""


def _nginx(name: str, colour: str, more: str = "") -> Server:
    return Server(
        name,
        colour,
        "{nginx} -c {folder}/nginx.conf",
        programs=("nginx",),
        files=(("nginx.conf", _NGINX.replace("MORE", more).replace("LOCATION", "")),),
    )


def _lighttpd(name: str, colour: str, more: str = "", programs: tuple[str, ...] = ()) -> Server:
    return Server(
        name,
        colour,
        "{lighttpd} -D -f {folder}/lighttpd.conf",
        programs=("lighttpd", *programs),
        files=(("lighttpd.conf", _LIGHTTPD + more),),
    )


def _behind(name: str, colour: str, server: Server, configuration: tuple[str, str]) -> Server:
    """php-fpm behind a server, started together and ended together."""
    wait = "while~!~test~-S~{folder}/php.socket;~do~sleep~0.02;~done"
    fpm = "{php_fpm}~--allow-to-run-as-root~--nodaemonize~--fpm-config~{folder}/fpm.conf"
    return replace(
        server,
        name=name,
        colour=colour,
        command=f"{{sh}} -c {fpm}~&~{wait};~exec~{server.command.replace(' ', '~')}",
        programs=("sh", *server.programs, "php_fpm"),
        files=(configuration, ("fpm.conf", _PHP_FPM)),
    )


def _ours(what: str, mode: str, colour: str, target: str, extra: str = "") -> Server:
    return Server(
        f"poorhttp {what}{mode}",
        colour,
        f"{{python}} -m poorhttp serve {target} --bind 127.0.0.1:{{port}} --mode {mode} "
        "--access-log off",
        "poorhttp",
        extra,
    )


_GRANIAN = Server(
    "granian",
    "#b57fd0",
    "{python} -m granian --interface wsgi --host 127.0.0.1 --port {port} --backlog {backlog} "
    "--log-level error --static-path-route= --static-path-mount {root} "
    "loadtests.apps.echo:application",
    "granian",
)
_UWSGI = Server(
    "uWSGI",
    "#3f8f3f",
    "{scripts}/uwsgi --http-socket 127.0.0.1:{port} --listen {backlog} --threads 8 --master "
    "--die-on-term --disable-logging --offload-threads 1 --static-map /={root}",
    "uWSGI",
    note="closes each connection after a file: its clients connect anew for each request",
)
_UWSGI_ROUTER = replace(
    _UWSGI,
    name="uWSGI + router",
    colour="#7cc38f",
    command="{scripts}/uwsgi --http 127.0.0.1:{port} --http-keepalive=75 --tcp-nodelay "
    "--listen {backlog} --threads 8 --master --die-on-term --disable-logging "
    "--static-map /={root}",
    note="",
)

FILES: Sequence[Server] = (
    _FLOOR,
    _ours("", "single", "#0b4f9e", "static:{root}"),
    _ours("", "threading", "#1a7fb8", "static:{root}"),
    _nginx("nginx", "#2f7d32"),
    _nginx("nginx + open_file_cache", "#7cb342", "open_file_cache max=1000;"),
    _lighttpd("lighttpd", "#c8452c"),
    _GRANIAN,
    _UWSGI,
    _UWSGI_ROUTER,
)

PHP: Sequence[Server] = (
    _lighttpd("lighttpd + php-cgi", "#c8452c", _LIGHTTPD_PHP_CGI, ("php_cgi",)),
    _behind(
        "lighttpd + php-fpm",
        "#e8843c",
        _lighttpd("", ""),
        ("lighttpd.conf", _LIGHTTPD + _LIGHTTPD_PHP_FPM),
    ),
    _behind(
        "nginx + php-fpm",
        "#2f7d32",
        _nginx("", ""),
        (
            "nginx.conf",
            _NGINX.replace("MORE", "").replace("LOCATION", _NGINX_PHP_FPM),
        ),
    ),
)
# PHP looks for a change every two seconds, ours each time or never.
_TEMPLATES = "pages:{root} --pages-reload off"
PAGES: Sequence[Server] = (
    _ours("pages, ", "single", "#0b4f9e", _TEMPLATES, "mako"),
    _ours("pages, ", "threading", "#1a7fb8", _TEMPLATES, "mako"),
)
FLASK: Sequence[Server] = (
    _ours("Flask, ", "single", "#5b8fd0", "{module}.py:{callable}", "flask"),
    _ours("Flask, ", "threading", "#7cc7df", "{module}.py:{callable}", "flask"),
)


def programs(at_once: int) -> Sequence[Server]:
    """Who runs CGI programs. Apache has a process for each request, and some that still close."""
    modules = "/usr/lib/apache2/modules"
    clients = str(at_once + APACHE_SPARE)
    configuration = _APACHE.replace("CLIENTS", clients).replace("MODULES", modules)
    return (
        _ours("", "single", "#0b4f9e", "cgi:{root}"),
        _ours("", "threading", "#1a7fb8", "cgi:{root}"),
        _lighttpd("lighttpd", "#c8452c", _LIGHTTPD_CGI),
        Server(
            "Apache",
            "#d9a514",
            "{apache} -f {folder}/apache.conf -D FOREGROUND",
            programs=("apache",),
            files=(("apache.conf", configuration),),
        ),
    )


def _all() -> Mapping[str, Server]:
    everyone = [*FILES, *programs(1), *PAGES, *FLASK, *PHP]
    return {server.name: server for server in everyone}


CONTESTANTS = _all()
"""By name. What is called the same is the same server, with other content."""


def names(beginnings: Iterable[str]) -> set[str]:
    """The names that begin so. Raises LabError for a beginning that fits none."""
    chosen: set[str] = set()
    for beginning in beginnings:
        fitting = {name for name in CONTESTANTS if name.startswith(beginning)}
        if not fitting:
            known = ", ".join(CONTESTANTS)
            raise LabError(f"no server is called {beginning!r}. There are: {known}")
        chosen |= fitting
    return chosen
