"""What the settings of waitress, uvicorn, hypercorn, daphne and granian become."""

from __future__ import annotations

from poorhttp.plugins.setup.migrate.equivalents.addresses import (
    default_socket_mode,
    folder,
    listen,
    target,
    trust,
)
from poorhttp.plugins.setup.migrate.equivalents.known_names import rule_for
from poorhttp.plugins.setup.migrate.equivalents.plan import (
    Plan,
    Rule,
    Setting,
    explained,
    number,
    option,
    switch,
)

_WEBSOCKET = "docs/guides/asgi.md"
_ALWAYS = "Not needed: poorhttp does it in any case."
_LOGGING = "docs/reference/logs.md"


def waitress(settings: list[Setting]) -> Plan:
    """Return the plan for settings of waitress-serve."""
    plan = Plan("waitress", settings)
    _application(plan)
    unix, listening = plan.find("unix_socket"), plan.all("listen")
    host, port = plan.find("host"), plan.find("port")
    if unix is not None:
        listen(plan, unix, f"unix:{unix.one}")
    for setting in listening:
        for word in setting.one.split():
            listen(plan, setting, word, 8080)
    if unix is None and not listening:
        _host_and_port(plan, host, port, "0.0.0.0", "8080")
    if plan.find("unix_socket_perms") is None:
        default_socket_mode(plan, "0600", "waitress's default of unix_socket_perms")
    plan.set("mode", "threading", "waitress has threads")
    if plan.find("threads") is None:
        plan.set("threads", "4", "waitress's default")
    if (headers := plan.find("trusted_proxy_headers")) is not None:
        words = headers.one.lower().replace("_", "-").replace(",", " ").split()
        plan.set("forwarded_headers", words, headers)
    if (proxy := plan.find("trusted_proxy")) is not None:
        trust(plan, proxy, "")
    plan.apply(WAITRESS, _unknown)
    return plan


def uvicorn(settings: list[Setting]) -> Plan:
    """Return the plan for settings of uvicorn."""
    plan = Plan("uvicorn", settings)
    _application(plan)
    _interface(plan)
    uds, fd = plan.find("uds"), plan.find("fd")
    if uds is not None:
        listen(plan, uds, f"unix:{uds.one}")
        default_socket_mode(plan, "0666", "uvicorn's permissions of a socket")
    if fd is not None:
        listen(plan, fd, f"fd://{fd.one}")
    if uds is None and fd is None:
        _host_and_port(plan, plan.find("host"), plan.find("port"), "127.0.0.1", "8000")
    for name in ("ssl-certfile", "ssl-keyfile"):
        _https(plan, plan.find(name))
    if (allowed := plan.find("forwarded-allow-ips")) is not None:
        trust(plan, allowed, "")
    _requests(plan, plan.find("access-log"), "on")
    plan.apply(UVICORN, _unknown)
    return plan


def granian(settings: list[Setting]) -> Plan:
    """Return the plan for settings of granian."""
    plan = Plan("granian", settings)
    if (prefix := plan.find("url-path-prefix")) is not None and (app := plan.find("app")):
        plan.set("mount", f"{prefix.one}={app.one}", prefix)
        plan.follow(app, "It is mounted below the prefix.")
    _application(plan)
    is_wsgi = _interface(plan)
    if (uds := plan.find("uds")) is not None:
        listen(plan, uds, f"unix:{uds.one}")
    else:
        _host_and_port(plan, plan.find("host"), plan.find("port"), "127.0.0.1", "8000")
    for name in ("ssl-certificate", "ssl-keyfile"):
        _https(plan, plan.find(name))
    if is_wsgi:
        plan.set("mode", "threading", "granian has threads for WSGI")
        if plan.find("blocking-threads") is None:
            plan.set("threads", "1", "granian's default of blocking-threads")
    _requests(plan, plan.find("access-log"), "off")
    plan.apply(GRANIAN, _unknown)
    return plan


def hypercorn(settings: list[Setting]) -> Plan:
    """Return the plan for settings of hypercorn."""
    plan = Plan("hypercorn", settings)
    app = plan.find("app")
    text = app.one if app is not None else ""
    kind, _, rest = text.partition(":")
    if app is not None and kind in ("asgi", "wsgi") and rest:
        target(plan, app, rest)
    else:
        _application(plan)
    if kind != "wsgi":
        plan.set("mode", "asyncio", app or "hypercorn runs ASGI applications")
    for setting in plan.all("bind", "insecure-bind"):
        is_secure = setting.name == "bind" and plan.find("certfile") is not None
        listen(plan, setting, setting.one, before="https" if is_secure else "")
    if plan.find("bind") is None:
        _host_and_port(plan, None, None, "127.0.0.1", "8000")
        _https(plan, plan.find("certfile"))
    if plan.find("access-logfile", "access-log") is None:
        plan.set("access_log", "off", "hypercorn logs no requests by default")
    plan.apply(HYPERCORN, _unknown)
    return plan


def daphne(settings: list[Setting]) -> Plan:
    """Return the plan for settings of daphne."""
    plan = Plan("daphne", settings)
    _application(plan)
    plan.set("mode", "asyncio", "daphne runs ASGI applications")
    if (uds := plan.find("unix-socket")) is not None:
        listen(plan, uds, f"unix:{uds.one}")
    elif plan.find("fd") is None:
        _host_and_port(plan, plan.find("bind"), plan.find("port"), "127.0.0.1", "8000")
    if (descriptor := plan.find("fd")) is not None:
        listen(plan, descriptor, f"fd://{descriptor.one}")
    plan.apply(DAPHNE, _unknown)
    return plan


def _interface(plan: Plan) -> bool:
    """Plan the mode by the kind of application, of uvicorn and granian; tell whether it is WSGI."""
    interface = plan.find("interface")
    kind = interface.one if interface is not None else ""
    if interface is not None and kind == "wsgi":
        plan.follow(interface, "poorhttp serves WSGI.")
        return True
    if kind == "rsgi" or (plan.server == "granian" and not kind):
        text = "RSGI, granian's own interface, is not served: serve an ASGI application"
        plan.warnings.append(text)
        if interface is not None:
            plan.explain(interface, f"{text}.")
    elif interface is not None and kind not in ("auto", "asgi3", "asgi", "asginl"):
        plan.explain(interface, "ASGI 3 is served: wrap the application, as asgiref.compat does.")
    elif interface is not None and kind != "asginl":
        plan.follow(interface, "Mode asyncio serves ASGI.")
    if kind == "asginl":
        plan.set("asgi_lifespan", "off", interface or "")
    if plan.find("app") is not None:
        plan.set("mode", "asyncio", f"{plan.server} runs ASGI applications")
    return False


def _loop(text: str) -> str:
    """Translate an event loop; any other is replaced by that which is there."""
    return text if text in ("auto", "asyncio", "uvloop") else "auto"


def _application(plan: Plan) -> None:
    app, factory, called = plan.find("app"), plan.find("factory"), plan.find("call")
    makes = called or factory
    if app is None:
        return
    if "mount" not in plan.options and not plan.from_environment(app, "target"):
        target(plan, app, app.one, factory=makes is not None and makes.is_on)
    if makes is not None:
        plan.follow(makes, "The parentheses of the target call it.")


def _host_and_port(
    plan: Plan, host: Setting | None, port: Setting | None, name: str, default: str
) -> None:
    """Plan an address from a host and a port, each of which may be left out."""
    number = port.one if port is not None else default
    where = host.one if host is not None else name
    where = f"[{where}]" if ":" in where and where[0] != "[" else where
    if (setting := port or host) is None:
        plan.set("bind", f"{where}:{number}", f"{plan.server}'s default")
        return
    before = list(plan.explanations)
    listen(plan, setting, f"{where}:{number}")
    if host is not None and setting is not host:
        if plan.explanations == before:
            plan.set("bind", plan.options["bind"].values, host)
        else:
            plan.follow(host, "It is part of the address.")


def _http2(plan: Plan, setting: Setting) -> None:
    """Plan HTTP/2, which granian (`http`) and uvicorn (`http2`) speak with everybody or nobody."""
    if setting.value == "1" or not setting.is_on:
        plan.set("http2", "off", setting)
    else:
        note = "http2 = trusted is enough behind a proxy of trusted_proxies"
        plan.set("http2", "on", setting, note)


def _https(plan: Plan, setting: Setting | None) -> None:
    """Have TLS on the addresses, because of a certificate."""
    planned = plan.options.get("bind")
    if setting is not None and planned is not None:
        planned.values = [
            place if place.startswith("https") or "unix:" in place else f"https://{place}"
            for place in planned.values
        ]


def _requests(plan: Plan, setting: Setting | None, default: str) -> None:
    """Plan the access log from a switch."""
    on = setting.is_on if setting is not None else default == "on"
    if on:
        plan.set("access_log", "-", setting or f"{plan.server} logs requests by default")
    elif setting is not None:
        plan.follow(setting, "access_log is off by default.")


def _environment_file(plan: Plan, setting: Setting) -> None:
    plan.explain(setting, "Units and containers read such files: EnvironmentFile=, --env-file.")


def _prefix(plan: Plan, setting: Setting) -> None:
    planned = plan.options.get("target")
    prefix = "/" + setting.one.strip("/")
    if planned is None or prefix == "/":
        plan.explain(setting, "mount = /PREFIX=TARGET serves an application below a prefix.")
    elif plan.set("mount", f"{prefix}={planned.values[0]}", setting, planned.comments[0]):
        del plan.options["target"]


def _unknown(setting: Setting) -> Rule:
    return rule_for(setting, "poorhttp has no option for it. See docs/reference/options.md.")


def _level(text: str) -> str:
    return {"critical": "error", "trace": "debug"}.get(text.lower(), text.lower())


def _head_size(text: str) -> str:
    """The largest value of `max_request_header_size` is 1 MiB."""
    return str(min(int(number(text)), 1 << 20))


def _megabytes(text: str) -> str:
    return f"{number(text)}M"


WAITRESS = {
    "chdir": Rule(apply=folder),
    "env": option("env"),
    "threads": option("threads", number),
    "unix_socket_perms": option("socket_mode", lambda text: f"0{text.lstrip('0')}"),
    "url_scheme": explained(
        "The scheme is https if a proxy of trusted_proxies says so in X-Forwarded-Proto.",
        "docs/guides/trusted-proxies.md",
    ),
    "url_prefix": Rule(apply=_prefix),
    "backlog": option("backlog", number),
    "connection_limit": option("max_connections", number),
    "channel_timeout": option("keepalive_timeout", number),
    "max_request_header_size": option("max_request_header_size", _head_size),
    "max_request_body_size": option("max_body", number),
    "inbuf_overflow": option("body_buffer_size", number),
    "ident": explained("server_header = off leaves the header out.", "docs/reference/options.md"),
    "trusted_proxy_count": explained(
        "Proxies are known by their addresses: name each in trusted_proxies.",
        "docs/guides/trusted-proxies.md",
    ),
    "clear_untrusted_proxy_headers": explained("With trusted_proxies it is always done."),
    "log_untrusted_proxy_headers": explained("They are withheld, and not logged."),
    "expose_tracebacks": explained("debug = on shows them, in poorhttp dev."),
    "server_name": explained("SERVER_NAME is the host of the request."),
    "app_module": explained("It is the target."),
}
WAITRESS |= {
    name: explained(_ALWAYS)
    for name in (
        *("recv_bytes", "send_bytes", "outbuf_overflow", "outbuf_high_watermark", "ipv4", "ipv6"),
        *("cleanup_interval", "log_socket_errors", "asyncore_loop_timeout", "asyncore_use_poll"),
        "sockets",
    )
}
WAITRESS["channel_request_lookahead"] = explained(
    "waitress.client_disconnected needs no option.", "docs/guides/event-streams.md"
)

UVICORN = {
    "chdir": Rule(apply=folder),
    "env": option("env"),
    "workers": option("workers", number),
    "backlog": option("backlog", number),
    "limit-concurrency": option("asgi_concurrency", number),
    "limit-max-requests": option("max_requests", number),
    "limit-max-requests-jitter": option("max_requests_jitter", number),
    "timeout-keep-alive": option("keepalive_timeout", number),
    "timeout-graceful-shutdown": option("graceful_timeout", number),
    "log-level": option("log_level", _level),
    "log-config": explained("log_config takes such a file, with other loggers.", _LOGGING),
    "reload": option("autoreload", switch, "for development there is poorhttp dev"),
    "reload-include": option("reload_include"),
    "reload-exclude": option("reload_exclude"),
    "ssl-certfile": option("tls_certificate"),
    "ssl-keyfile": option("tls_key"),
    "ssl-ca-certs": option("tls_client_ca"),
    "app-dir": option("pythonpath"),
    "root-path": Rule(apply=_prefix),
    "env-file": Rule(apply=_environment_file),
    "proxy-headers": explained(
        "trusted_proxies says whose headers are used.", "docs/guides/trusted-proxies.md"
    ),
    "server-header": explained("server_header says what it is.", "docs/reference/options.md"),
    "header": explained(
        "Headers are added by the application or the proxy.", "docs/guides/proxies.md"
    ),
    "date-header": explained(_ALWAYS),
    "use-colors": explained("access_log = terminal has colours."),
    "reload-dir": explained(
        "What the application has loaded is watched.", "docs/guides/development.md"
    ),
    "reload-delay": explained("The kernel tells of changes at once."),
    "h11-max-incomplete-event-size": option("max_request_header_size", _head_size),
    "http2": Rule(apply=_http2),
}
UVICORN |= {
    "loop": option("asgi_loop", _loop),
    "lifespan": option("asgi_lifespan"),
    "http": explained("There is one parser, in Rust."),
}
UVICORN |= {
    "ws": explained("There is one implementation, in Rust.", _WEBSOCKET),
    "ws-max-size": option("websocket_max_message", number),
    "ws-max-queue": explained("32 messages wait for the application, at most.", _WEBSOCKET),
    "ws-ping-interval": option("websocket_ping_interval"),
    "ws-ping-timeout": option("websocket_ping_timeout"),
    "ws-per-message-deflate": option("websocket_compression", switch),
}

HYPERCORN = {
    "chdir": Rule(apply=folder),
    "env": option("env"),
    "access-logfile": option("access_log"),
    "access-log": option("access_log"),
    "error-logfile": option("error_log"),
    "log-file": option("error_log"),
    "error-log": option("error_log"),
    "log-level": option("log_level", _level),
    "certfile": option("tls_certificate"),
    "keyfile": option("tls_key"),
    "root-path": Rule(apply=_prefix),
    "reload": option("autoreload", switch, "for development there is poorhttp dev"),
    "worker-class": option("asgi_loop", _loop),
    "config": explained("Files of hypercorn are not read: write its settings as flags."),
    "quic-bind": explained("HTTP/3 is not spoken."),
    "websocket-ping-interval": option("websocket_ping_interval"),
    "server-name": explained("hosts are sections of the file.", "docs/guides/hosts.md"),
    "debug": explained("It is for the development of hypercorn."),
    "daemon": explained("The server stays in the foreground.", "docs/guides/deploy.md"),
    "read-timeout": explained("body_timeout limits how long a body takes."),
}

DAPHNE = {
    "chdir": Rule(apply=folder),
    "env": option("env"),
    "access-log": option("access_log"),
    "verbosity": explained("log_level says what is logged.", _LOGGING),
    "root-path": Rule(apply=_prefix),
    "http-timeout": option("request_timeout"),
    "application-close-timeout": explained("Applications end by themselves when a client leaves."),
    "ping-interval": option("websocket_ping_interval"),
    "ping-timeout": option("websocket_ping_timeout"),
    "websocket_timeout": explained("Nothing limits how long a WebSocket is open.", _WEBSOCKET),
    "websocket_connect_timeout": explained("request_timeout is for handshakes too.", _WEBSOCKET),
    "proxy-headers": explained(
        "trusted_proxies says whose headers are used.", "docs/guides/trusted-proxies.md"
    ),
    "proxy-headers-host": explained("trusted_proxies and forwarded_headers name them."),
    "proxy-headers-port": explained("trusted_proxies and forwarded_headers name them."),
    "endpoint": explained("Write bind, which takes several addresses.", "docs/guides/tls.md"),
    "server-name": explained("server_header says what it is.", "docs/reference/options.md"),
    "no-server-name": explained("server_header = off leaves it out."),
    "log-fmt": explained("Lines of the error log have one format.", _LOGGING),
}

GRANIAN = {
    "chdir": Rule(apply=folder),
    "env": option("env"),
    "workers": option("workers", number),
    "blocking-threads": option("threads", number),
    "backlog": option("backlog", number),
    "log-level": option("log_level", _level),
    "log-config": explained("log_config takes such a file, with other loggers.", _LOGGING),
    "access-log-fmt": explained("access_log_format has other directives.", _LOGGING),
    "ssl-certificate": option("tls_certificate"),
    "ssl-keyfile": option("tls_key"),
    "ssl-ca": option("tls_client_ca"),
    "respawn-failed-workers": explained(_ALWAYS),
    "respawn-interval": explained(_ALWAYS),
    "workers-lifetime": option("max_lifetime"),
    "workers-max-rss": option("max_rss", _megabytes),
    "workers-kill-timeout": option("graceful_timeout"),
    "reload": option("autoreload", switch, "for development there is poorhttp dev"),
    "process-name": option("proc_name"),
    "pid-file": option("pidfile"),
    "working-dir": Rule(apply=folder),
    "uds-permissions": option("socket_mode", lambda text: f"0{text.lstrip('0')}"),
    "env-files": Rule(apply=_environment_file),
    "static-path-mount": explained(
        "static = /PREFIX=FOLDER serves files.", "docs/guides/static-files.md"
    ),
    "static-path-route": explained(
        "static = /PREFIX=FOLDER serves files.", "docs/guides/static-files.md"
    ),
    "backpressure": explained("queue_timeout refuses what would wait too long."),
    "http": Rule(apply=_http2),
    "loop": option("asgi_loop", _loop),
    "http2-max-headers-size": option("max_request_header_size", number, "it is for HTTP/1.1 too"),
    "reload-paths": explained(
        "What the application has loaded is watched.", "docs/guides/development.md"
    ),
}
GRANIAN |= {
    name: explained("It is a detail of granian's runtime.")
    for name in (
        *("runtime-threads", "runtime-blocking-threads", "runtime-mode", "task-impl"),
        *("ws", "log", "threads", "threading-mode", "blocking-threads-idle-timeout"),
    )
}
