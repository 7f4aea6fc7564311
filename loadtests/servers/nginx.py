"""Common parts of the configurations of nginx as a measured server."""

from __future__ import annotations

_TEXT = """\
daemon off;
user root;
worker_processes 1;
pid $folder/nginx.pid;
error_log $folder/error.log;
events { worker_connections CONNECTIONS; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
HTTP
}
"""


def configuration(connections: int, http: str) -> str:
    """One process that logs nothing but errors, and lets go of no connection.

    Args:
        connections: how many it may have open.
        http: what else stands in `http`, indented.
    """
    return _TEXT.replace("CONNECTIONS", str(connections)).replace("HTTP", http.rstrip("\n"))
