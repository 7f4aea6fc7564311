"""What the settings of uWSGI become."""

from __future__ import annotations

import os

from poorhttp.config.options.limits import SizeLimits
from poorhttp.plugins.setup.migrate.equivalents.addresses import (
    LOCAL,
    PRIVATE,
    bound,
    folder,
    is_local,
    listen,
    paste,
    target,
)
from poorhttp.plugins.setup.migrate.equivalents.known_names import rule_for
from poorhttp.plugins.setup.migrate.equivalents.log_formats import from_uwsgi
from poorhttp.plugins.setup.migrate.equivalents.plan import (
    Plan,
    Rule,
    Setting,
    explained,
    number,
    option,
    switch,
)
from poorhttp.plugins.setup.migrate.equivalents.uwsgi_families import FAMILIES

#: Names that mean the same.
SAME = {
    "workers": "processes",
    "wsgi": "module",
    **dict.fromkeys(("file", "python-file"), "wsgi-file"),
    "uwsgi-socket": "socket",
    **dict.fromkeys(("virtualenv", "venv", "pyhome"), "home"),
    **dict.fromkeys(("python-path", "pp"), "pythonpath"),
    "chmod": "chmod-socket",
    "chown": "chown-socket",
    "static-check": "check-static",
    "logformat": "log-format",
    **dict.fromkeys(("logto2", "log-to", "daemonize2", "logto"), "daemonize"),
    **dict.fromkeys(("lazy-app", "lazy"), "lazy-apps"),
    "reload-mercy": "worker-reload-mercy",
    **dict.fromkeys(("py-auto-reload", "python-autoreload"), "py-autoreload"),
    **dict.fromkeys(("procname-prefix-spaced", "procname-master", "procname"), "procname-prefix"),
    **dict.fromkeys(("shared-import", "py-import", "pyimport"), "import"),
    **dict.fromkeys(("pidfile2", "safe-pidfile"), "pidfile"),
    "logger-req": "req-logger",
    "reload-on-as": "reload-on-rss",
    "plugin": "plugins",
    "gevent-monkey-patch": "gevent",
    "ugreen": "async",
    "http-to": "http-timeout",
}

#: Largest line of a head that our options allow.
LARGEST = 65000

_ALWAYS = "Not needed: poorhttp does it in any case."


def plan_for(settings: list[Setting]) -> Plan:
    """Return the plan for settings of uWSGI."""
    for setting in settings:
        setting.name = SAME.get(setting.name, setting.name)
    plan = Plan("uWSGI", settings)
    _application(plan)
    _listen(plan)
    _mode(plan)
    _logs(plan)
    plan.apply(RULES, _unknown)
    return plan


def _application(plan: Plan) -> None:
    module, file, mount = plan.find("module"), plan.find("wsgi-file"), plan.find("mount")
    callable_ = plan.find("callable")
    suffix = f":{callable_.one}" if callable_ is not None else ""
    for setting in (module, file):
        if setting is None or plan.from_environment(setting, "target"):
            continue
        text = setting.one.partition(" #")[0].strip()
        if module is not None and "target" in plan.options:
            plan.explain(
                setting,
                f"uWSGI serves it only if {module.one} has no application: in that case, write "
                f"target = {text if ':' in text else text + suffix}. One application is served at "
                "/; mount = /PREFIX=TARGET adds one.",
            )
            continue
        if setting is module:
            text = text.removesuffix(".py")
        target(plan, setting, text if ":" in text else text + suffix)
        if setting is file and os.path.dirname(text) and plan.find("pythonpath") is None:
            plan.set("pythonpath", ".", "uWSGI looks for modules in the current folder too")
    for setting in plan.all("mount"):
        prefix, equals, what = setting.one.partition("=")
        what = what if ":" in what else what + suffix
        if not equals:
            plan.explain(setting, "It has no form that is known: write /PREFIX=TARGET.")
        elif prefix in ("/", "") and "target" not in plan.options:
            target(plan, setting, what)
        else:
            plan.set("mount", f"{prefix}={what}", setting)
    if callable_ is not None and (module or file or mount):
        plan.follow(callable_, "It is part of the target.")


def _listen(plan: Plan) -> None:
    protocol = plan.find("protocol", "socket-protocol")
    spoken = protocol.one if protocol is not None else "uwsgi"
    before = {"socket": "" if spoken.startswith("http") else spoken}
    before |= {"http-socket": "", "http": "", "scgi-socket": "scgi", "fastcgi-socket": "fastcgi"}
    for setting in plan.settings:
        if setting.note:
            continue
        if setting.name == "https":
            _https(plan, setting)
        elif setting.name in before:
            text = setting.one.partition(" ")[0]
            if not (":" in text or text.isdigit()):
                text = f"unix:{text}"
            listen(plan, setting, text, before=before[setting.name])
    if protocol is not None:
        plan.follow(protocol, "It is part of bind.")
    gateways = [place for place in bound(plan) if "unix:" in place or "://" in place]
    gateways = [place for place in gateways if place.startswith(("uwsgi", "scgi", "fastcgi"))]
    if gateways:
        local = all(is_local(place) for place in gateways)
        tcp = not all("+unix:" in place for place in gateways)
        unix = ["unix"] if any("+unix:" in place for place in gateways) else []
        proxies = [*(LOCAL if tcp else ()), *unix] if local else list(PRIVATE)
        plan.set("trusted_proxies", proxies, "peers of the uwsgi protocol name the client")
        plan.set("forwarded_headers", "off", "the uwsgi protocol names the client")
        if not local:
            plan.warnings.append(
                "uWSGI answers every peer. Here only trusted_proxies may speak the uwsgi "
                "protocol: these are private networks, narrow them to your proxy."
            )


def _https(plan: Plan, setting: Setting) -> None:
    place, *files = setting.one.split(",")
    listen(plan, setting, place, before="https")
    for name, file in zip(("tls_certificate", "tls_key"), files, strict=False):
        plan.set(name, file, setting)


def _mode(plan: Plan) -> None:
    """Plan mode, workers and threads, which depend on each other."""
    processes, threads = plan.find("processes"), plan.find("threads")
    greenlets = plan.find("gevent")
    several = threads is not None and threads.one not in ("0", "1")
    if greenlets is not None:
        mode: str = "gevent"
        why: Setting | str = greenlets
        note = "needs the extra gevent; how many at a time is max_connections"
    elif several:
        assert threads is not None
        mode, why, note = "threading", f"{threads.place}: {threads.text}", ""
    else:
        alone = processes is None or processes.one == "1"
        mode, note = "single" if alone else "forking", ""
        why = "uWSGI runs one request at a time in a process, unless threads says more"
        if threads is not None:
            plan.explain(threads, "A worker of this mode has one thread.")
    plan.set("mode", mode, why, note)
    if mode == "gevent" and threads is not None:
        plan.explain(threads, "Greenlets are used.")
    if mode != "threading" or processes is not None or threads is None:
        return
    plan.set("workers", "1", "uWSGI's default of processes")


def _logs(plan: Plan) -> None:
    """uWSGI writes requests and messages to one log, unless it is told otherwise."""
    quiet, file = plan.find("disable-logging"), plan.find("daemonize")
    requests = plan.find("req-logger")
    if file is not None and not plan.from_environment(file, "error_log"):
        path = file.one if file.one.lower() not in ("true", "1") else ""
        if not path:
            plan.explain(
                file, "The server stays in the foreground: systemd or a container starts it."
            )
        elif plan.set("error_log", path, file, "and the server stays in the foreground") and (
            requests is None and (quiet is None or not quiet.is_on)
        ):
            plan.set("access_log", path, file)
    if quiet is not None and quiet.is_on:
        plan.follow(quiet, "access_log is off by default.")
    elif requests is not None:
        _destination(plan, requests, "access_log")
    elif "access_log" not in plan.options:
        plan.set("access_log", "-", "uWSGI logs requests unless disable-logging is set")


def _destination(plan: Plan, setting: Setting, name: str) -> None:
    kind, colon, rest = setting.one.partition(":")
    if kind.rpartition(" ")[2] in ("file", "stdio", "syslog", "rsyslog"):
        kind = kind.rpartition(" ")[2]
    if kind == "file" and colon:
        plan.set(name, rest, setting)
    elif kind == "stdio":
        plan.set(name, "-", setting)
    elif kind == "syslog":
        plan.set(name, "syslog", setting)
    else:
        plan.explain(setting, "Logs go to a file, -, syslog or journald.", "docs/reference/logs.md")


def _logger(plan: Plan, setting: Setting) -> None:
    _destination(plan, setting, "error_log")


def _home(plan: Plan, setting: Setting) -> None:
    plan.explain(
        setting,
        f"Install poorhttp there, and start {setting.one.rstrip('/')}/bin/poorhttp.",
    )


def _static(plan: Plan, setting: Setting) -> None:
    prefix, equals, path = setting.one.partition("=")
    if plan.from_environment(setting, "static"):
        return
    name = os.path.basename(path)
    if os.path.isfile(path) or (not os.path.isdir(path) and os.path.splitext(name)[1] != ""):
        plan.explain(
            setting,
            "It is one file, and static is for folders: x_sendfile, or the folder of the file with "
            "static = /=FOLDER and static_fallthrough = on.",
            "docs/guides/static-files.md",
        )
    elif not equals:
        plan.explain(setting, "It has no form that is known: write /PREFIX=FOLDER.")
    elif plan.set("static", f"{prefix}={path}", setting):
        plan.set("static_fallthrough", "on", "uWSGI asks the application for missing files")


def _check_static(plan: Plan, setting: Setting) -> None:
    if plan.set("static", f"/={setting.one}", setting):
        plan.set("static_fallthrough", "on", "uWSGI asks the application for missing files")
        plan.set("static_index", "index.html", "uWSGI serves no index unless static-index names it")


def _buffer(plan: Plan, setting: Setting) -> None:
    if plan.from_environment(setting, "max_header_size"):
        return
    if plan.find("buffer-size") is not setting:
        plan.explain(setting, "It is set again behind it.")
        return
    size = min(int(number(setting.one)), LARGEST)
    larger = [
        name
        for name, default in (
            ("max_request_line", SizeLimits.max_request_line),
            ("max_header_size", SizeLimits.max_header_size),
        )
        if size > default
        and plan.set(name, str(size), setting, "at most 65000" * (size == LARGEST))
    ]
    if not larger:
        plan.follow(
            setting,
            "It limits all headers together. max_request_line and max_header_size limit each line, "
            "and their defaults allow as much.",
        )


def _mode_of_socket(plan: Plan, setting: Setting) -> None:
    text = setting.one if setting.one.lower() not in ("true", "") else "666"
    if any("unix:" in place for place in bound(plan)):
        plan.set("socket_mode", f"0{text.lstrip('0')}", setting)
    else:
        plan.explain(setting, "It is for Unix sockets, and there is none.")


def _user(plan: Plan, setting: Setting) -> None:
    later = plan.find(setting.name)
    if later is not setting and later is not None:
        plan.explain(setting, f"{later.place} sets it again.")
    else:
        plan.set({"uid": "user", "gid": "group"}[setting.name], setting.one, setting)


def _lazy(plan: Plan, setting: Setting) -> None:
    if setting.is_on:
        plan.follow(setting, "Each worker loads the application, unless preload = on.")
    else:
        plan.set("preload", "on", setting)


def _unless_off(plan: Plan, setting: Setting) -> None:
    """A switch that is only worth a word if it is on."""
    if setting.is_on:
        plan.follow(setting, _ALWAYS)
    else:
        plan.explain(setting, "It has no effect here, on or off.")


def _pid(plan: Plan, setting: Setting) -> None:
    if plan.find("pidfile") is not setting:
        plan.explain(setting, "One pidfile is written.")
    elif not plan.from_environment(setting, "pidfile"):
        plan.set("pidfile", setting.one, setting)


def _megabytes(text: str) -> str:
    return f"{number(text)}M"


_SWITCHES = (
    *("master", "enable-threads", "vacuum", "die-on-term", "need-app", "no-orphans"),
    *("single-interpreter", "thunder-lock", "close-on-exec", "close-on-exec2", "ignore-sigpipe"),
    *("ignore-write-errors", "disable-write-exception", "write-errors-tolerance", "reaper"),
    *("auto-procname", "strict", "harakiri-verbose", "manage-script-name", "http-keepalive"),
    *("http-auto-chunked", "http-chunked-input", "so-keepalive", "tcp-nodelay", "master-as-root"),
    *("threads-stacksize", "post-buffering", "offload-threads", "honour-stdin", "log-master"),
    *("static-gzip-all", "add-gid", "no-defer-accept", "py-call-osafterfork", "log-date"),
    *("enable-proxy-protocol", "http-raw-body", "memory-report", "buffer-size-auto", "noorphans"),
    *("wsgi-env-behavior", "wsgi-env-behaviour", "log-5xx", "log-4xx", "log-slow", "show-config"),
    *("plugins", "plugins-dir", "plugin-dir", "need-plugin", "no-default-app", "http-processes"),
    *("http-workers", "logdate", "lazy-apps-off", "hook-master-start"),
)

RULES: dict[str, Rule] = {
    **{name: Rule(apply=_unless_off) for name in _SWITCHES},
    "processes": option("workers", number),
    "threads": option("threads", number),
    "chdir": Rule(apply=folder),
    "chdir2": explained("chdir is the folder for everything."),
    "home": Rule(apply=_home),
    "pythonpath": option("pythonpath"),
    "env": option("env"),
    "uid": Rule(apply=_user),
    "gid": Rule(apply=_user),
    "umask": option("umask", lambda text: f"0{text.lstrip('0')}"),
    "harakiri": option("request_timeout", number, "the client gets 504"),
    "max-requests": option("max_requests", number),
    "max-requests-delta": option("max_requests_jitter", number),
    "reload-on-rss": option("max_rss", _megabytes),
    "max-worker-lifetime": option("max_lifetime", number),
    "worker-reload-mercy": option("graceful_timeout", number),
    "buffer-size": Rule(apply=_buffer),
    "limit-post": option("max_body", number),
    "post-buffering-bufsize": option("body_buffer_size", number),
    "listen": option("backlog", number),
    "chmod-socket": Rule(apply=_mode_of_socket),
    "chown-socket": option("socket_owner"),
    "pidfile": Rule(apply=_pid),
    "static-map": Rule(apply=_static),
    "static-map2": Rule(apply=_static),
    "check-static": Rule(apply=_check_static),
    "static-index": option("static_index"),
    "static-expires": explained(
        "static_header = /PREFIX=Cache-Control: max-age=SECONDS does it for a prefix.",
        "docs/guides/static-files.md",
    ),
    "static-safe": explained(
        "Links out of a folder are not followed; name the other folder in static."
    ),
    "procname-prefix": option("proc_name", lambda text: text.strip().rstrip(":")),
    "log-format": Rule(apply=from_uwsgi),
    "logger": Rule(apply=_logger),
    "log-maxsize": explained("logrotate rotates files (USR1).", "docs/reference/logs.md"),
    "log-x-forwarded-for": explained(
        "With trusted_proxies, %h is the client.", "docs/guides/trusted-proxies.md"
    ),
    "log-syslog": explained(
        "Write syslog as the value of error_log and access_log.", "docs/reference/logs.md"
    ),
    "lazy-apps": Rule(apply=_lazy),
    "reuse-port": option("reuse_port", switch),
    "py-autoreload": option("autoreload", switch, "for development there is poorhttp dev"),
    "catch-exceptions": explained("debug = on does it, in poorhttp dev."),
    "socket-timeout": explained(
        "body_timeout and write_timeout are for slow clients.", "docs/reference/options.md"
    ),
    "http-timeout": explained("It is for uWSGI's router; request_timeout limits the application."),
    "import": explained(
        "after_fork, or worker_start in [hooks], calls a function of a module in each worker.",
        "docs/guides/hooks.md",
    ),
    "gevent": explained("It is part of the mode."),
    "loop": explained("mode chooses how requests are scheduled."),
    "async": explained("mode = gevent or threading answers several requests at a time."),
    "paste": Rule(apply=paste),
    "ini-paste": Rule(apply=paste),
    "eval": explained("Write the application into a module, and name it as target."),
    "callable": explained("There is no module or wsgi-file beside it."),
    "set-placeholder": explained("It was used when this file was written."),
    "app": explained("uWSGI has no option of this name."),
}


def _unknown(setting: Setting) -> Rule:
    if setting.used_as_placeholder:
        return explained("A placeholder: its value stands where it is used.")
    for beginnings, rule in FAMILIES:
        if setting.name.startswith(beginnings):
            return rule
    return rule_for(
        setting,
        "poorhttp has no option for it; if uWSGI has none of this name either, it is a placeholder "
        "that nothing uses.",
        aliases=False,
    )
