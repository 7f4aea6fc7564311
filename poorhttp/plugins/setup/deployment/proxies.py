"""Makes the configuration of nginx, lighttpd or HAProxy in front, from files of `proxy/`.

There, two servers stand behind; here it is one, so what chooses between them is left out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from poorhttp.plugins.setup.deployment.plan import Plan
from poorhttp.plugins.setup.deployment.templates import Template

#: The servers behind the web servers of `proxy/`.
FIRST, SECOND = "127.0.0.1:8080", "127.0.0.1:8081"


def nginx(plan: Plan) -> tuple[str, str]:
    """Return path and text of a site for nginx."""
    site = Template("proxy/nginx/balanced.conf")
    _, _, inner = site.text.partition("http {\n")
    site.text = textwrap.dedent(inner.rpartition("}")[0])
    shared = Template("proxy/nginx/http.conf")
    # The limit goes into the server, as other sites have theirs.
    start, end = (
        shared.text.index("# Same limit as max_body"),
        shared.text.index("# Only a WebSocket"),
    )
    limit = shared.text[start:end]
    shared.text = shared.text[end:]
    site.replace("include http.conf;\n", shared.text)
    passed = Template("proxy/nginx/pass.conf")
    passed.replace_between("#", "# nginx speaks", "")
    indent = " " * 8
    site.replace(f"{indent}include pass.conf;\n", textwrap.indent(passed.text, indent))
    site.replace_between(
        "    least_conn;",
        "\n    # Idle connections",
        f"    # A lone server is never marked as failed.\n    server {plan.address} max_fails=0;\n",
    )
    site.replace("upstream poorhttp", f"upstream {plan.name}")
    site.replace("http://poorhttp;", f"http://{plan.name};")
    site.replace(
        "    listen 127.0.0.1:8000;\n",
        f"    listen 80;\n    listen [::]:80;\n    server_name {plan.domain or '_'};\n\n"
        + textwrap.indent(limit.rstrip("\n"), "    ")
        + "\n",
    )
    path = f"{plan.deploy}/nginx.conf"
    head = [
        f"# nginx in front of {plan.name}.",
        "#",
        f"#     sudo cp {path} /etc/nginx/sites-enabled/{plan.name}.conf",
        "#     sudo nginx -t && sudo systemctl reload nginx",
    ]
    if plan.domain:
        head.append(f"#     sudo certbot --nginx -d {plan.domain}       (adds TLS)")
    return path, "\n".join(head) + "\n\n" + site.text


def caddy(plan: Plan) -> tuple[str, str]:
    """Return path and text of a Caddyfile."""
    path = f"{plan.deploy}/Caddyfile"
    file = Template("proxy/caddy/balanced.Caddyfile")
    file.replace_between(
        "#",
        "{\n",
        f"# Caddy in front of {plan.name}.\n#\n"
        f"#     sudo cp {path} /etc/caddy/Caddyfile && sudo systemctl reload caddy\n",
    )
    file.drop("\tadmin off", "\tauto_https off")
    site = (
        f"# Caddy fetches a certificate for this name, and speaks TLS.\n{plan.domain} {{\n"
        if plan.domain
        else "# With the name of a host here (example.org), Caddy fetches a certificate and speaks "
        "TLS.\nhttp://:80 {\n"
    )
    file.replace_between("# With the name of a host", "\t# Same limit as max_body", site)
    file.replace(f"reverse_proxy {FIRST} {SECOND}", f"reverse_proxy {_caddy_address(plan)}")
    file.replace_between(
        "\t\tlb_policy least_conn",
        "\t\t# Caddy sets X-Forwarded-For",
        "\t\t# The server is asked again when it refuses: for as long as a restart takes.\n"
        "\t\tlb_retries 2\n\t\tlb_try_duration 2s\n\n",
    )
    file.replace(
        "\t\ttransport http {\n",
        "\t\ttransport http {\n"
        "\t\t\t# HTTP/2 to the server: all requests share one connection, and so one worker.\n"
        "\t\t\t# versions h2c\n",
    )
    return path, file.text


def _caddy_address(plan: Plan) -> str:
    return f"unix/{plan.socket}" if plan.socket else plan.address


def lighttpd(plan: Plan) -> tuple[str, str]:
    """Return path and text of a configuration of lighttpd."""
    path = f"{plan.deploy}/lighttpd.conf"
    file = Template("proxy/lighttpd/balanced.conf")
    shared = Template("proxy/lighttpd/common.conf")
    shared.replace_between("#", 'server.bind = "127.0.0.1"\n', "")
    shared.replace('server.bind = "127.0.0.1"\n', "")
    shared.replace('( "." )', '( "/var/cache/lighttpd/uploads" )')
    file.replace_between(
        "#",
        'include "common.conf"',
        f"# lighttpd in front of {plan.name}.\n#\n"
        f"#     sudo cp {path} /etc/lighttpd/lighttpd.conf && sudo systemctl restart lighttpd\n\n",
    )
    file.replace(
        'include "common.conf"\nserver.port = 8000\n',
        'server.port = 80\nserver.username = "www-data"\nserver.groupname = "www-data"\n'
        + shared.text,
    )
    file.replace_between(
        "# A server that refuses",
        "proxy.server",
        "# read-timeout: how long the server may be silent. One that refuses is asked again at "
        "once.\n",
    )
    file.replace('"port" => 8080, "disable-time" => 2', '"port" => 8080, "disable-time" => 0')
    file.replace_between("),\n", "\n) )", ")")
    at = f'"host" => "{plan.local_host}", "port" => {plan.port}'
    if plan.socket:
        at = f'"socket" => "{plan.socket}"'
    file.replace('"host" => "127.0.0.1", "port" => 8080', at)
    return path, file.text


def haproxy(plan: Plan) -> tuple[str, str]:
    """Return path and text of a configuration of HAProxy."""
    path = f"{plan.deploy}/haproxy.cfg"
    shared = Template("proxy/haproxy/common.cfg")
    shared.replace_between(
        "#",
        "global",
        f"# HAProxy in front of {plan.name}.\n#\n"
        f"#     sudo cp {path} /etc/haproxy/haproxy.cfg && sudo systemctl reload haproxy\n\n",
    )
    shared.replace("    maxconn 1000\n", "    maxconn 1000\n    user haproxy\n    group haproxy\n")
    file = Template("proxy/haproxy/balanced.cfg")
    file.replace_between("#", "frontend web", "")
    file.replace("bind 127.0.0.1:8000", "bind :80")
    file.drop("    balance leastconn", f"    server second {SECOND} tcp-ut 10s")
    address = f"unix@{plan.socket}" if plan.socket else plan.address
    file.replace(f"server first {FIRST}", f"server {plan.name} {address}")
    if plan.socket:
        file.replace_between("    # A machine that loses power", "    server ", "")
        file.replace(" tcp-ut 10s", "")
    file.replace(
        f"    server {plan.name} ",
        '    # HTTP/2 to the server, if many requests are to share few connections: "proto h2" at\n'
        '    # the end of the next line, and "http-reuse always" above it.\n'
        f"    server {plan.name} ",
    )
    return path, f"{shared.text}\n{file.text}"


def apache(plan: Plan) -> tuple[str, str]:
    """Return path and text of a site for Apache."""
    path = f"{plan.deploy}/apache.conf"
    shared = Template("proxy/apache2/common.conf")
    shared.replace_between("#", "# Same limit as max_body", "")
    site = Template("proxy/apache2/balanced.conf")
    site.replace_between("#", "# Each server is asked", "")
    site.replace("# Each server is asked", "# The server is asked")
    site.replace("and one that fails is tried again", "and tried again when it has failed,")
    site.drop('    BalancerMember "http://127.0.0.1:8081" ${health} ${transport}')
    site.drop("    ProxySet lbmethod=bybusyness")
    address = f"unix:{plan.socket}|http://localhost" if plan.socket else f"http://{plan.address}"
    site.replace(f"http://{FIRST}", address)
    site.replace("balancer://poorhttp", f"balancer://{plan.name}")
    modules = "headers proxy_http proxy_balancer lbmethod_byrequests"
    if plan.socket:
        # mod_proxy_hcheck connects to TCP port 80 in place of a Unix socket, and gets no answer.
        site.replace_between("# The server is asked", "# Idle connections", "")
        site.replace("${health}", "retry=0")
    else:
        modules += " proxy_hcheck"
    name = f"ServerName {plan.domain}\n" if plan.domain else ""
    inner = textwrap.indent(f"{name}{shared.text}\n{site.text}", "    ", lambda line: line != "\n")
    return path, (
        f"# Apache in front of {plan.name}.\n#\n"
        f"#     sudo a2enmod {modules}\n"
        f"#     sudo cp {path} /etc/apache2/sites-available/{plan.name}.conf\n"
        f"#     sudo a2ensite {plan.name} && sudo systemctl reload apache2\n\n"
        f"<VirtualHost *:80>\n{inner}</VirtualHost>\n"
    )


#: The web servers that can stand in front, each with a function that returns path and text.
PROXIES: dict[str, Callable[[Plan], tuple[str, str]]] = {
    "nginx": nginx,
    "caddy": caddy,
    "lighttpd": lighttpd,
    "haproxy": haproxy,
    "apache": apache,
}

#: The group in which each runs, as Debian has it.
GROUPS = {
    "nginx": "www-data",
    "caddy": "caddy",
    "lighttpd": "www-data",
    "haproxy": "haproxy",
    "apache": "www-data",
}
