"""Commands to start each server for each kind of content.

One worker each, no access log, and what its documentation recommends for the job. In their files,
$port, $folder, $root and the like stand for what they do in commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadtests.servers.registry.apache import apache, cgi, prefork
from loadtests.servers.registry.commands import GRANIAN, PHP_CHILDREN, UWSGI, ours, php_fpm
from loadtests.servers.registry.server import Server
from loadtests.servers.registry.wsgi import FLOOR

CONNECTIONS = 2048
APACHE_SPARE = 4

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


def nginx(name: str, colour: str, http: str) -> Server:
    """nginx with one process that logs nothing but errors, and lets go of no connection.

    `http` is what else stands in `http`, indented.
    """
    text = f"""\
daemon off;
user root;
worker_processes 1;
pid $folder/nginx.pid;
error_log $folder/error.log;
events {{ worker_connections {CONNECTIONS}; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
{http}
}}
"""
    command = "{nginx} -e stderr -c {folder}/nginx.conf"
    return Server(name, colour, command, programs=("nginx",), files=(("nginx.conf", text),))


def _nginx(name: str, colour: str, more: str = "", location: str = "") -> Server:
    http = f"""\
    sendfile on;
    tcp_nopush on;
    types {{ text/html html; image/gif gif; image/jpeg jpg; image/png png; }}
    charset utf-8;
    default_type application/octet-stream;
    {more}
    server {{
        listen 127.0.0.1:$port backlog=$backlog;
        root $root;
        {location}
    }}"""
    return nginx(name, colour, http)


def _lighttpd(name: str, colour: str, more: str = "", programs: tuple[str, ...] = ()) -> Server:
    return Server(
        name,
        colour,
        "{lighttpd} -D -f {folder}/lighttpd.conf",
        programs=("lighttpd", *programs),
        files=(("lighttpd.conf", _LIGHTTPD + more),),
    )


def _uwsgi(name: str, colour: str, http: str, more: str = "", note: str = "") -> Server:
    command = (
        f"{UWSGI} {http} --listen {{backlog}} --threads 8 --master --die-on-term "
        f"--disable-logging {more}--static-map /={{root}}"
    )
    return Server(name, colour, command, "uWSGI", note=note)


FILES: Sequence[Server] = (
    # It says what the others say besides: about as many octets as lighttpd and nginx send.
    replace(
        FLOOR,
        command=FLOOR.command + " Last-Modified:~Fri,~02~Oct~2009~12:00:00~GMT "
        "ETag:~6b009629-600 Accept-Ranges:~bytes",
    ),
    ours("single", "#0b4f9e", "single", "static:{root}"),
    ours("threading", "#1a7fb8", "threading", "static:{root}"),
    _nginx("nginx", "#2f7d32"),
    _nginx("nginx + open_file_cache", "#7cb342", "open_file_cache max=1000;"),
    _lighttpd("lighttpd", "#c8452c"),
    Server(
        "granian",
        "#b57fd0",
        f"{GRANIAN} --backlog {{backlog}} --log-level error --static-path-route= "
        "--static-path-mount {root} loadtests.apps.echo:application",
        "granian",
    ),
    _uwsgi(
        "uWSGI",
        "#3f8f3f",
        "--http-socket 127.0.0.1:{port}",
        "--offload-threads 1 ",
        note="closes each connection after a file: its clients connect anew for each request",
    ),
    _uwsgi(
        "uWSGI + router",
        "#7cc38f",
        "--http 127.0.0.1:{port} --http-keepalive=75 --tcp-nodelay",
    ),
)

PHP: Sequence[Server] = (
    _lighttpd("lighttpd + php-cgi", "#c8452c", _LIGHTTPD_PHP_CGI, ("php_cgi",)),
    php_fpm("lighttpd + php-fpm", "#e8843c", _lighttpd("", "", _LIGHTTPD_PHP_FPM)),
    php_fpm("nginx + php-fpm", "#2f7d32", _nginx("", "", location=_NGINX_PHP_FPM)),
)
# PHP looks for a change every two seconds, ours each time or never.
_TEMPLATES = "pages:{root} --pages-reload off"
PAGES: Sequence[Server] = (
    ours("pages, single", "#0b4f9e", "single", _TEMPLATES, extra="mako"),
    ours("pages, threading", "#1a7fb8", "threading", _TEMPLATES, extra="mako"),
)
FLASK: Sequence[Server] = (
    ours("Flask, single", "#5b8fd0", "single", extra="flask"),
    ours("Flask, threading", "#7cc7df", "threading", extra="flask"),
)


def programs(at_once: int) -> Sequence[Server]:
    """Servers of CGI programs. Apache has a process for each request, and some that still close."""
    processes = at_once + APACHE_SPARE
    folder = cgi("cgi", options="ExecCGI FollowSymLinks")
    return (
        ours("single", "#0b4f9e", "single", "cgi:{root}"),
        ours("threading", "#1a7fb8", "threading", "cgi:{root}"),
        _lighttpd("lighttpd", "#c8452c", _LIGHTTPD_CGI),
        apache("Apache", "#d9a514", prefork(processes, processes), folder),
    )


SERVERS = {one.name: one for one in (*FILES, *programs(1), *PAGES, *FLASK, *PHP)}
"""By name. What is called the same is the same server, with other content."""
