"""Apache as a measured server: its processes, content and start.

In the parts $port, $folder, $root, $module and the like stand for what they do in commands.
"""

from __future__ import annotations

import os

from loadtests.servers.registry.server import Server

_MODULES = "/usr/lib/apache2/modules"
RIGHTS = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
"""Apache does not serve as root."""
_COMMON = f"""\
{RIGHTS}ServerRoot "$folder"
ServerName 127.0.0.1
DefaultRuntimeDir "$folder"
Listen 127.0.0.1:$port
ListenBackLog $backlog
PidFile "$folder/apache.pid"
ErrorLog "$folder/error.log"
LoadModule authz_core_module {_MODULES}/mod_authz_core.so
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 75
"""


def prefork(processes: int, most: int) -> str:
    """Processes with a connection each: so many begin and wait, and so many may be."""
    return f"""\
LoadModule mpm_prefork_module {_MODULES}/mod_mpm_prefork.so
StartServers {processes}
MinSpareServers {processes}
MaxSpareServers {processes}
ServerLimit {most}
MaxRequestWorkers {most}
"""


PREFORK = prefork(10, 220)
"""As in the study of 2010."""
EVENT = f"""\
LoadModule mpm_event_module {_MODULES}/mod_mpm_event.so
StartServers 1
ThreadsPerChild 25
ServerLimit 16
MaxRequestWorkers 400
"""
"""As many connections are served at once as there may be workers."""
_SERVED = """\
DocumentRoot "$root"
<Directory "$root">
    AllowOverride None
    Require all granted
</Directory>
"""
FILES = f"""\
LoadModule mime_module {_MODULES}/mod_mime.so
TypesConfig /dev/null
AddType text/html .html
AddType image/gif .gif
AddType image/jpeg .jpg
AddType image/png .png
AddDefaultCharset utf-8
{_SERVED}"""


def cgi(module: str, more: str = "", options: str = "ExecCGI") -> str:
    """The folder as CGI programs, run by mod_cgi or mod_cgid."""
    return f"""\
LoadModule alias_module {_MODULES}/mod_alias.so
LoadModule {module}_module {_MODULES}/mod_{module}.so
{more}
ScriptAlias "/" "$root/"
<Directory "$root">
    AllowOverride None
    Options {options}
    Require all granted
</Directory>
"""


# Whom root's Apache serves as does not come into $folder.
SOCKET = "$root/../$port.socket"
PHP = f"""\
LoadModule proxy_module {_MODULES}/mod_proxy.so
LoadModule proxy_fcgi_module {_MODULES}/mod_proxy_fcgi.so
{_SERVED}<FilesMatch "\\.php$">
    SetHandler "proxy:unix:{SOCKET}|fcgi://127.0.0.1/"
</FilesMatch>
"""
# An extension module like our core is of one interpreter only.
EMBEDDED = """\
LoadModule wsgi_module $mod_wsgi
WSGIScriptAlias / "$root/$module.py"
WSGICallableObject $callable
WSGIApplicationGroup %{GLOBAL}
<Directory "$root">
    Require all granted
</Directory>
"""
DAEMON = f"""\
{EMBEDDED}WSGISocketPrefix "$folder/wsgi"
WSGIRestrictEmbedded On
WSGIDaemonProcess lab processes=1 threads=8 listen-backlog=$backlog
WSGIProcessGroup lab
"""


def apache(name: str, colour: str, *parts: str, programs: tuple[str, ...] = ()) -> Server:
    """Apache with a configuration of these parts."""
    return Server(
        name,
        colour,
        "{apache} -D FOREGROUND -f {folder}/apache.conf",
        programs=("apache", *programs),
        files=(("apache.conf", _COMMON + "".join(parts)),),
        forks=True,
    )
