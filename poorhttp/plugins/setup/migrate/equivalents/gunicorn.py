"""What the settings of gunicorn become."""

from __future__ import annotations

from poorhttp.config.other_servers.translations import EVENTLET, WORKER_CLASSES, translate
from poorhttp.plugins.setup.migrate.equivalents.addresses import (
    default_socket_mode,
    folder,
    listen,
    paste,
    target,
    trust,
)
from poorhttp.plugins.setup.migrate.equivalents.log_formats import from_gunicorn
from poorhttp.plugins.setup.migrate.equivalents.plan import (
    UNKNOWN_VARIABLE,
    Plan,
    Rule,
    Setting,
    above_zero,
    explained,
    number,
    octal,
    option,
    switch,
)

#: Worker classes beside those that our command line knows, by the beginning of their names.
CLASSES = {
    "geventwebsocket": "gevent",
    "ggevent": "gevent",
    "meinheld": "forking",
    "egg:meinheld": "forking",
}

#: The beginning of a variable that says where the application is mounted.
PREFIX_VARIABLE = "SCRIPT_NAME="

MOUNTED = (
    "the application is mounted there; the variable itself is not set, add it to env if the "
    "application reads it"
)

OTHER_LOOP = (
    "Its applications are neither for WSGI nor for ASGI, and poorhttp does not serve them: keep "
    "the old server."
)

#: Hooks of gunicorn, and what is there instead.
HOOKS = {
    "when_ready": "server_ready in [hooks] is called when all workers accept connections",
    "post_fork": "worker_start in [hooks] is called in each worker",
    "post_worker_init": "worker_start in [hooks] is called in each worker with the application",
    "child_exit": "worker_exit in [hooks] is called for each worker that has ended, however it did",
    "worker_exit": "worker_exit in [hooks] is called for each worker that has ended; what has to "
    "run in the worker itself belongs to atexit",
    "worker_abort": "worker_timeout in [hooks] is called before a worker is ended by force",
    "on_reload": "reload in [hooks] is called when workers were replaced",
    "on_starting": "nothing is called before the workers start; run it before poorhttp, or in the "
    "application",
    "on_exit": "nothing is called when the main process ends; run it after poorhttp (ExecStopPost)",
    "pre_fork": "nothing is called in the main process, which runs no code of the application",
    "pre_exec": "nothing is called before an upgrade (USR2)",
    "worker_int": "nothing is called when a worker gets a signal; the application may use atexit",
    "pre_request": "a WSGI middleware does it",
    "post_request": "a WSGI middleware does it, in close() of what it returns",
    "nworkers_changed": "nothing is called; /-/metrics at admin has the number of workers",
    "ssl_context": "the options tls_... say all that is needed",
}

_NOT_NEEDED = "Not needed: "
_LOGGING = "docs/reference/logs.md"
_STRICT = "poorhttp is strict about it, because such requests are used to smuggle others."
_HTTP2 = "docs/guides/http2.md"
_DIRTY = "There are no such processes here; use a task queue."


def plan_for(settings: list[Setting]) -> Plan:
    """Return the plan for settings of gunicorn; of several of a name the last one is in use."""
    plan = Plan("gunicorn", settings)
    _listen(plan)
    _mode(plan)
    allowed = plan.find("forwarded_allow_ips")
    trust(
        plan,
        allowed,
        "gunicorn's default of forwarded_allow_ips, for the addresses that this machine reaches",
    )
    _application(plan)
    plan.apply(RULES, _unknown)
    return plan


def _application(plan: Plan) -> None:
    """Plan the application, and where it is mounted: at the variable SCRIPT_NAME."""
    for setting in plan.all("wsgi_app", "paste"):
        apply = RULES[setting.name].apply
        assert apply is not None
        apply(plan, setting)
    _mount(plan)


def _mount(plan: Plan) -> None:
    """Mount the application at the variable SCRIPT_NAME; gunicorn takes its prefix from that."""
    found = [
        (setting, word.partition("=")[2].strip())
        for setting in plan.all("raw_env")
        for word in setting.words
        if word.startswith(PREFIX_VARIABLE)
    ]
    for setting, _ in found:
        others = [word for word in setting.words if not word.startswith(PREFIX_VARIABLE)]
        if others and not plan.from_environment(setting, "env"):
            plan.set("env", others, setting)
    for setting, prefix in found[:-1]:
        plan.explain(setting, f"SCRIPT_NAME = {prefix} is not in use: it is set again behind it.")
    if not found:
        return
    setting, prefix = found[-1]
    planned = plan.options.get("target")
    application = planned.values[0] if planned is not None else "TARGET"
    if UNKNOWN_VARIABLE.search(prefix):
        plan.explain(
            setting,
            "SCRIPT_NAME comes from the environment, which was not known here: instead of target, "
            f"write mount = /PREFIX={application} with it.",
        )
    elif prefix.strip("/") == "":
        plan.follow(setting, "The application is at the root, as without SCRIPT_NAME.")
    elif not prefix.startswith("/"):
        plan.explain(
            setting,
            "A SCRIPT_NAME begins with a slash: gunicorn refuses all requests with this. Write "
            f"mount = /{prefix.strip('/')}={application} instead of target.",
        )
    elif planned is None:
        plan.explain(setting, f"Its application is not known: write mount = {prefix}=TARGET.")
    elif plan.set(
        "mount",
        f"{prefix.rstrip('/')}={application}",
        setting,
        MOUNTED if setting.is_written else "the application is mounted there",
    ):
        plan.options["mount"].comments[:0] = planned.comments
        plan.options["mount"].settings += planned.settings
        del plan.options["target"]


def _listen(plan: Plan) -> None:
    uses = plan.find("protocol")
    certificate = plan.find("certfile")
    before = "https" if certificate is not None and certificate.value else ""
    if uses is not None and uses.one == "uwsgi":
        before = "uwsgi"
        plan.done(uses)
        allow = plan.find("uwsgi_allow_ips")
        if allow is None:
            plan.set(
                "trusted_proxies", ["127.0.0.1", "::1"], "gunicorn's default of uwsgi_allow_ips"
            )
    found = [(setting, word) for setting in plan.all("bind") for word in setting.words]
    for setting, word in found:
        for part in filter(None, word.split(",")):
            listen(plan, setting, part, before=before)
    if not any(word for _, word in found) and not plan.has_sockets:
        plan.set("bind", f"{before}{'://' if before else ''}127.0.0.1:8000", "gunicorn's default")
    if plan.find("umask") is None:
        default_socket_mode(
            plan, "0777", "gunicorn's default of umask, 0: everybody may connect; narrow it"
        )


def _mode(plan: Plan) -> None:
    """Plan mode, workers and threads, which depend on each other."""
    of_class, threads = plan.find("worker_class"), plan.find("threads")
    name = of_class.one.rpartition("#")[2] if of_class is not None else "sync"
    several = threads is not None and threads.one != "1"
    if any(word in name.lower() for word in ("aiohttp", "tornado", "trio")):
        assert of_class is not None
        plan.explain(of_class, OTHER_LOOP)
        plan.warnings.append(f"{of_class.text}: {OTHER_LOOP}")
        return
    if any(word in name.lower() for word in ("uvicorn", "asgi", "sanic", "hypercorn")):
        assert of_class is not None
        plan.set("mode", "asyncio", of_class, "it serves ASGI applications")
        if threads is not None:
            plan.explain(threads, "An event loop runs all requests; threads are for WSGI.")
        return
    if "eventlet" in name.lower():
        assert of_class is not None
        why = f"It is {EVENTLET.format('mode = gevent')}."
        plan.explain(of_class, why)
        plan.warnings.append(f"{of_class.text}: {EVENTLET.format('mode = gevent')}")
        return
    found = [CLASSES[begin] for begin in CLASSES if name.startswith(begin)]
    mode = WORKER_CLASSES.get(name) or (found[-1] if found else "")
    because: Setting | str = of_class or "gunicorn's default, worker_class = 'sync'"
    if not mode:
        assert of_class is not None
        if not plan.from_environment(of_class, "mode"):
            plan.explain(of_class, "It is a worker class of its own; choose one of our modes.")
        return
    note = ""
    if mode == "forking" and several:
        mode, note = "threading", "with threads, it is gthread"
        if threads is not None and of_class is None:
            because = f"{threads.place}: {threads.text}"
    if mode == "forking":
        workers = plan.find("workers")
        alone = workers is None or workers.one == "1"
        mode = "single" if alone else "forking"
        note = "a worker runs one request at a time; mode = threading would run several"
        if threads is not None:
            plan.explain(threads, "A worker of this mode has one thread.")
    elif mode == "gevent":
        note = "needs the extra gevent"
        if threads is not None:
            plan.explain(threads, "Greenlets are used here, as with gunicorn's gevent workers.")
    plan.set("mode", mode, because, note)
    if mode == "threading" and threads is None:
        plan.set("threads", "1", "gunicorn's default of threads")


def _timeout(plan: Plan, setting: Setting) -> None:
    mode = plan.options.get("mode")
    if plan.from_environment(setting, "request_timeout"):
        return
    if mode is None or mode.values[0] not in ("single", "forking"):
        plan.explain(
            setting,
            "With threads or greenlets, gunicorn's timeout ends a worker that does not run at all, "
            "and does not limit requests. To limit them, set request_timeout, which is off.",
            "docs/guides/from-gunicorn.md",
        )
    elif setting.one in ("0", "0.0"):
        plan.follow(setting, "request_timeout is off by default.")
    else:
        plan.set(
            "request_timeout",
            setting.one,
            setting,
            "the client gets 504, and the worker is replaced only if it goes on",
        )


def _keepalive(plan: Plan, setting: Setting) -> None:
    mode = plan.options.get("mode")
    if mode is not None and mode.values[0] in ("single", "forking"):
        plan.explain(
            setting,
            "gunicorn's sync workers keep no connections. Ours do, as it occupies no worker "
            "(keepalive_timeout).",
        )
    elif not plan.from_environment(setting, "keepalive_timeout"):
        plan.set("keepalive_timeout", setting.one, setting)


def _connections(plan: Plan, setting: Setting) -> None:
    mode = plan.options.get("mode")
    if mode is not None and mode.values[0] in ("single", "forking"):
        plan.explain(setting, "gunicorn's sync workers do not use it.")
    elif not plan.from_environment(setting, "max_connections"):
        plan.set("max_connections", setting.one, setting)


def _client_certificates(plan: Plan, setting: Setting) -> None:
    wanted = plan.find("cert_reqs")
    level = wanted.one if wanted is not None else "0"
    if level in ("0", "VerifyMode.CERT_NONE", "CERT_NONE"):
        plan.explain(setting, "Clients are not asked for certificates there (cert_reqs).")
        return
    plan.set("tls_client_ca", setting.words, setting)
    if "1" in level or "OPTIONAL" in level:
        plan.set("tls_client_auth", "optional", wanted or setting)


def _statsd(plan: Plan, setting: Setting) -> None:
    text = setting.one
    plan.set("statsd", text if ":" in text else f"{text}:8125", setting, "names of metrics differ")


def _level(text: str) -> str:
    return {"critical": "error", "fatal": "error", "warn": "warning"}.get(
        text.lower(), text.lower()
    )


def _log(text: str) -> str:
    return "" if text == "None" else text


def _proxy_protocol(plan: Plan, setting: Setting) -> None:
    if switch(setting.one) == "off":
        plan.follow(setting, "proxy_protocol is off by default.")
        return
    plan.set("proxy_protocol", "on", setting)
    if plan.find("proxy_allow_ips") is None:
        plan.set("trusted_proxies", ["127.0.0.1", "::1"], "gunicorn's default of proxy_allow_ips")


def _proxies(plan: Plan, setting: Setting) -> None:
    if plan.find("proxy_protocol", "protocol") is None:
        plan.explain(setting, "It is for proxy_protocol or protocol, which are not set.")
        return
    words = [word.strip() for item in setting.words for word in item.split(",")]
    if "*" in words:
        plan.explain(setting, "Name the proxies in trusted_proxies; everybody cannot be trusted.")
    else:
        plan.set("trusted_proxies", words, setting)


def _secure_headers(plan: Plan, setting: Setting) -> None:
    names = setting.value if isinstance(setting.value, dict) else {}
    if any(str(name).lower().replace("_", "-") == "x-forwarded-proto" for name in names):
        plan.follow(setting, "X-Forwarded-Proto of trusted_proxies is used here too.")
    else:
        plan.explain(
            setting,
            "Only X-Forwarded-Proto and Forwarded are used: set one of them in the proxy.",
            "docs/guides/trusted-proxies.md",
        )


def _hook(plan: Plan, setting: Setting) -> None:
    plan.explain(
        setting,
        f"A hook: {HOOKS[setting.name]}. Move the function to a module of the application; it "
        "gets one argument.",
        "docs/guides/hooks.md",
    )


def _program(plan: Plan, setting: Setting) -> None:
    target(plan, setting, setting.one)


def _off_by_default(plan: Plan, setting: Setting) -> None:
    """A switch without an equivalent: only if it is on, there is something to say."""
    if not setting.is_on or setting.value in ([], {}, ""):
        plan.follow(setting, "It is off, as here.")
    else:
        plan.explain(setting, *SWITCHES[setting.name])


def _http2(plan: Plan, setting: Setting) -> None:
    """Who may speak HTTP/2: both settings together have one option."""
    protocols, cleartext = plan.find("http_protocols"), plan.find("http2_cleartext")
    way = cleartext.one.strip().lower() if cleartext else "off"
    spoken = [word.strip().lower() for word in protocols.one.split(",")] if protocols else ["h1"]
    if "h2" not in spoken:
        value = "off"
    else:
        value = "trusted" if way in ("prior-knowledge", "both") else "tls"
    if setting.name == "http2_cleartext" and value == "off" and way != "off":
        plan.explain(setting, "It has no effect without h2 in http_protocols.", _HTTP2)
    elif setting.name == "http2_cleartext" and way == "upgrade":
        plan.explain(
            setting,
            "There is no Upgrade: h2c, which RFC 9113 has removed. With http2 = trusted, proxies "
            "of trusted_proxies may begin with HTTP/2.",
            _HTTP2,
        )
    else:
        is_alone = "h1" not in spoken or value == "trusted"
        plan.set("http2", value, setting, "HTTP/1.1 is spoken too" if is_alone else "")


def _paths(plan: Plan, setting: Setting) -> None:
    plan.set("pythonpath", [path for word in setting.words for path in word.split(",")], setting)


def _unknown(setting: Setting) -> Rule:
    return explained("gunicorn has no setting of this name, and ignores it too.")


#: Settings that are off by default: what to do if they are on.
SWITCHES: dict[str, tuple[str, ...]] = {
    "daemon": (
        "The server stays in the foreground: systemd, runit or a container start and watch it.",
        "docs/guides/deploy.md",
    ),
    "spew": ("Use poorhttp ctl stacks, or PYTHON's own tracing.",),
    "check_config": ("poorhttp check does it.",),
    "print_config": ("poorhttp check does it.",),
    "initgroups": (_NOT_NEEDED + "with user, workers always join the groups of that user.",),
    "capture_output": (
        "What the application prints goes to standard output and standard error of the server, "
        "which a unit or a container logs.",
        _LOGGING,
    ),
    "enable_stdio_inheritance": (_NOT_NEEDED + "standard output and error are inherited.",),
    "disable_redirect_access_to_syslog": (_NOT_NEEDED + "access_log alone says where it goes.",),
    "enable_backlog_metric": ("Metrics tell how long requests wait.", "docs/guides/monitoring.md"),
    "permit_obsolete_folding": (_STRICT,),
    "strip_header_spaces": (_STRICT,),
    "permit_unconventional_http_method": (_STRICT,),
    "permit_unconventional_http_version": (_STRICT,),
    "casefold_http_method": (_STRICT,),
    "control_socket_disable": (_NOT_NEEDED + "there is none unless admin is set.",),
    "syslog": ("Write syslog as the value of error_log and access_log.", _LOGGING),
}

RULES: dict[str, Rule] = {
    "config": explained("The file was read too."),
    "wsgi_app": Rule(apply=_program),
    "backlog": option("backlog", number),
    "workers": option("workers", number),
    "threads": option("threads", number),
    "worker_connections": Rule(apply=_connections),
    "max_requests": option("max_requests", number),
    "max_requests_jitter": option("max_requests_jitter", number),
    "timeout": Rule(apply=_timeout),
    "graceful_timeout": option("graceful_timeout"),
    "keepalive": Rule(apply=_keepalive),
    "limit_request_line": option(
        "max_request_line", above_zero("max_request_line", "write how long one may be.")
    ),
    "limit_request_fields": option("max_headers", number),
    "limit_request_field_size": option(
        "max_header_size", above_zero("max_header_size", "write how long one may be.")
    ),
    "reload": option("autoreload", switch, "for development there is poorhttp dev"),
    "reload_engine": explained(_NOT_NEEDED + "the kernel tells of changes (inotify)."),
    "reload_extra_files": option(
        "reload_include", lambda text: translate("reload-extra-file", text)
    ),
    "preload_app": option("preload", switch, "open connections in worker_start"),
    "sendfile": explained(_NOT_NEEDED + "files are sent by sendfile."),
    "reuse_port": option("reuse_port", switch),
    "chdir": Rule(apply=folder),
    "raw_env": option("env"),
    "pidfile": option("pidfile", _log),
    "worker_tmp_dir": explained(
        _NOT_NEEDED + "workers write no heartbeat to a file. (temp_dir is for request bodies.)"
    ),
    "user": option("user", _log),
    "group": option("group", _log),
    "umask": option("umask", octal),
    "tmp_upload_dir": option("temp_dir", _log),
    "secure_scheme_headers": Rule(apply=_secure_headers),
    "accesslog": option("access_log", _log),
    "access_log_format": Rule(apply=from_gunicorn),
    "errorlog": option("error_log", _log),
    "loglevel": option("log_level", _level),
    "logger_class": explained(
        "Loggers are poorhttp.error and poorhttp.access; log_config takes handlers for them.",
        _LOGGING,
    ),
    "logconfig": explained(
        "log_config = FILE reads such a file, after gunicorn.error and gunicorn.access in it were "
        "renamed to poorhttp.error and poorhttp.access.",
        _LOGGING,
    ),
    "logconfig_dict": explained(
        "Write it to a JSON file for log_config; gunicorn.error and gunicorn.access are called "
        "poorhttp.error and poorhttp.access here.",
        _LOGGING,
    ),
    "logconfig_json": explained(
        "log_config = FILE reads such a file, after gunicorn.error and gunicorn.access in it were "
        "renamed to poorhttp.error and poorhttp.access.",
        _LOGGING,
    ),
    "syslog_addr": explained("error_log = syslog, or syslog:PATH of its socket.", _LOGGING),
    "syslog_prefix": explained("The name is poorhttp, and cannot be chosen.", _LOGGING),
    "syslog_facility": explained("It is daemon for errors, local0 for requests.", _LOGGING),
    "statsd_host": Rule(apply=_statsd),
    "statsd_prefix": option("statsd_prefix", lambda text: text.strip(".")),
    "dogstatsd_tags": option("statsd_tags"),
    "proc_name": option("proc_name", _log),
    "default_proc_name": option("proc_name", _log),
    "pythonpath": Rule(apply=_paths),
    "paste": Rule(apply=paste),
    "raw_paste_global_conf": explained("It is for PasteDeploy.", "docs/guides/pyramid.md"),
    "proxy_protocol": Rule(apply=_proxy_protocol),
    "proxy_allow_ips": Rule(apply=_proxies),
    "protocol": explained("Only http and uwsgi are known here.", "docs/guides/gateways.md"),
    "uwsgi_allow_ips": Rule(apply=_proxies),
    "certfile": option("tls_certificate", _log),
    "keyfile": option("tls_key", _log),
    "ca_certs": Rule(apply=_client_certificates),
    "cert_reqs": explained("It has no effect without ca_certs.", "docs/guides/tls.md"),
    "ssl_version": explained(
        "TLS 1.2 and 1.3 are accepted (tls_min_version).", "docs/guides/tls.md"
    ),
    "ciphers": explained(
        "Only cipher suites without known weaknesses are there.", "docs/guides/tls.md"
    ),
    "suppress_ragged_eofs": explained(_NOT_NEEDED + "the TLS here does not depend on it."),
    "do_handshake_on_connect": explained(_NOT_NEEDED + "no worker waits for a handshake."),
    "forwarder_headers": explained(
        "X-Forwarded-Prefix of trusted_proxies becomes SCRIPT_NAME; others are not taken.",
        "docs/guides/trusted-proxies.md",
    ),
    "header_map": explained(
        "Fields with underscores in their names are not passed on, as they could be taken for "
        "others.",
        "docs/reference/security.md",
    ),
    "http_protocols": Rule(apply=_http2),
    "http2_cleartext": Rule(apply=_http2),
    "http2_max_concurrent_streams": option("http2_max_streams", number),
    "http2_initial_window_size": option("http2_stream_window", number),
    "http2_max_frame_size": explained(_NOT_NEEDED + "frames have 16 KiB."),
    "http2_max_header_list_size": option(
        "max_request_header_size",
        above_zero("max_request_header_size", "write how long all fields may be."),
        "it is for HTTP/1.1 too",
    ),
    "http_parser": explained(_NOT_NEEDED + "there is one parser, in Rust."),
    "root_path": explained(
        "mount = /PREFIX=TARGET sets root_path and SCRIPT_NAME.", "docs/guides/hosts.md"
    ),
    "websocket_max_message_size": option(
        "websocket_max_message",
        above_zero("websocket_max_message", "write how long a message may be."),
    ),
    "control_socket": explained("admin = unix:PATH is for poorhttp ctl.", "docs/guides/control.md"),
    "control_socket_mode": explained("admin_token_file protects admin.", "docs/guides/control.md"),
}
RULES |= {name: Rule(apply=_hook) for name in HOOKS}
RULES |= {name: Rule(apply=_off_by_default) for name in SWITCHES}
RULES |= {name: option(name) for name in ("asgi_loop", "asgi_lifespan")}
RULES["asgi_disconnect_grace_period"] = explained("Nothing is cancelled when a client leaves.")
RULES |= {
    name: explained(_DIRTY)
    for name in (
        *(
            "dirty_apps",
            "dirty_workers",
            "dirty_timeout",
            "dirty_threads",
            "dirty_graceful_timeout",
        ),
        *("on_dirty_starting", "dirty_post_fork", "dirty_worker_init", "dirty_worker_exit"),
    )
}

#: Read by what comes before the rules.
RULES |= {
    name: explained("It was read with the mode.")
    for name in ("bind", "worker_class", "forwarded_allow_ips")
}
